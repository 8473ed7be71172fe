//! The embedded store behind a desk, where every command is written down and meets its fate.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lock_runtime::{LockClient, LockClientBuilder, LockError, LockKey, StoreError, StoreErrorKind};
use lock_store::Pause;
use lock_store::memory::MemoryStore;
use lock_store::{
    Acquire, Acquired, AcquiredAll, Answer, Claim, Failure, Fenced, Inspection, LatchRequest,
    LatchVerb, Latched, Link, Listener, Owner, RateRequest, Rated, Release, Released, Renewal,
    Renewed, Store, StoreFuture,
};
use tokio::runtime::{Builder, Handle};
use tokio::time::{sleep, sleep_until};

/// What becomes of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    /// It is carried out.
    Passes,
    /// It is carried out, and its reply comes after so many milliseconds, over the link of this number.
    Replies(u64, u64),
    /// It is not carried out, which is told at once.
    Fails(StoreErrorKind),
    /// The store loses all that it has, and then it is carried out.
    LosesAll,
    /// It is carried out, and its reply is lost.
    Lost,
    /// It is not carried out, and until its time is over nothing is heard.
    Silence,
}

/// Replies that the store would not give.
#[derive(Debug, Default)]
pub(crate) struct Says {
    pub(crate) acquired: VecDeque<Acquired>,
    pub(crate) all: VecDeque<AcquiredAll>,
    pub(crate) renewed: VecDeque<Vec<Renewed>>,
    pub(crate) released: VecDeque<Released>,
    pub(crate) fenced: VecDeque<Fenced>,
    pub(crate) latched: VecDeque<Latched>,
    pub(crate) rated: VecDeque<Rated>,
}

/// One client's way to the store, and what went over it.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) store: MemoryStore,
    began: Instant,
    log: Mutex<Vec<String>>,
    fates: Mutex<HashMap<&'static str, VecDeque<Fate>>>,
    /// For those without a fate of their own.
    usual: Mutex<HashMap<&'static str, Fate>>,
    pub(crate) says: Mutex<Says>,
    pub(crate) listener: Mutex<Option<Arc<dyn Listener>>>,
    pub(crate) owners: Mutex<Vec<Owner>>,
}

/// Runs a test in simulated time.
pub(crate) fn simulated(test: impl Future<Output = ()>) {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(test);
}

/// Sleeps.
pub(crate) async fn ms(milliseconds: u64) {
    sleep(Duration::from_millis(milliseconds)).await;
}

pub(crate) fn of(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// What an error is about.
pub(crate) fn short(error: &LockError) -> String {
    match error {
        LockError::Busy { waited, .. } => format!("busy after {waited:?}"),
        LockError::Unavailable { source, .. } => {
            let text = source.to_string();
            let own = if text.contains("its fate") {
                ""
            } else {
                ", seen by us"
            };
            format!("{:?}{own}", source.kind())
        }
        LockError::Lost { reason, .. } => format!("lost, {reason:?}"),
        LockError::KeyConflict { .. } => "conflict".to_owned(),
        other => other.to_string(),
    }
}

impl Desk {
    /// A client behind a desk of its own, in front of an empty store.
    pub(crate) async fn open() -> (Arc<Self>, LockClient) {
        Self::open_with(MemoryStore::new(), |builder| builder).await
    }

    /// The same in front of this store, with settings.
    pub(crate) async fn open_with(
        store: MemoryStore,
        settings: impl FnOnce(LockClientBuilder) -> LockClientBuilder,
    ) -> (Arc<Self>, LockClient) {
        let desk = Arc::new(Self {
            store: store.clone(),
            began: tokio::time::Instant::now().into_std(),
            log: Mutex::default(),
            fates: Mutex::default(),
            usual: Mutex::default(),
            says: Mutex::default(),
            listener: Mutex::default(),
            owners: Mutex::default(),
        });
        let behind = Arc::clone(&desk);
        let builder = LockClient::builder()
            .simulated(Handle::current(), 7, Pause::default())
            .store(move |namespace, id, listener, clock| {
                *behind.listener.lock().unwrap() = Some(Arc::clone(listener));
                Arc::new(Counter {
                    desk: Arc::clone(&behind),
                    inner: store.connect(namespace, id, listener, clock),
                })
            });
        let client = settings(builder).connect().await.unwrap();
        desk.seen();
        (desk, client)
    }

    /// One more client of the same store, whose commands nobody writes down.
    pub(crate) async fn other(&self) -> LockClient {
        let store = self.store.clone();
        LockClient::builder()
            .simulated(Handle::current(), 8, Pause::default())
            .store(move |namespace, id, listener, clock| {
                store.connect(namespace, id, listener, clock)
            })
            .connect()
            .await
            .unwrap()
    }

    pub(crate) fn now(&self) -> u64 {
        let since = tokio::time::Instant::now().into_std() - self.began;
        u64::try_from(since.as_millis()).unwrap()
    }

    /// What was asked since the last call: when, for what, and within how many milliseconds.
    pub(crate) fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }

    /// The same in one line.
    pub(crate) fn story(&self) -> String {
        self.seen().join("; ")
    }

    /// The same, of the commands of this name alone: when.
    pub(crate) fn when(&self, verb: &str) -> Vec<u64> {
        let seen = self.seen();
        let words = seen.iter().map(|line| line.split(' ').collect::<Vec<_>>());
        words
            .filter(|words| words[1] == verb)
            .map(|words| words[0].parse().unwrap())
            .collect()
    }

    /// The fates of the next commands of this name.
    pub(crate) fn next(&self, verb: &'static str, fates: &[Fate]) {
        let mut all = self.fates.lock().unwrap();
        all.entry(verb).or_default().extend(fates);
    }

    /// The fate of every later command of this name.
    pub(crate) fn always(&self, verb: &'static str, fate: Fate) {
        self.usual.lock().unwrap().insert(verb, fate);
    }

    /// The client is told that its owner `at` (in the order of their acquires) has the key.
    pub(crate) fn tell_granted(&self, at: usize, token: Option<u64>) {
        self.tell_granted_over(Link(0), at, token);
    }

    /// The same, over this link.
    pub(crate) fn tell_granted_over(&self, link: Link, at: usize, token: Option<u64>) {
        let owner = self.owners.lock().unwrap()[at];
        let listener = self.listener.lock().unwrap();
        drop(listener.as_ref().unwrap().granted(link, owner, token));
    }

    fn says<T>(&self, from: impl FnOnce(&mut Says) -> &mut VecDeque<T>) -> Option<T> {
        from(&mut self.says.lock().unwrap()).pop_front()
    }

    fn write_down(&self, verb: &'static str, what: &str, by: Instant) -> Fate {
        let now = tokio::time::Instant::now().into_std();
        let within = by.saturating_duration_since(now).as_millis();
        let (what, more) = what.split_once('+').unwrap_or((what, ""));
        let more = if more.is_empty() {
            String::new()
        } else {
            format!(" +{more}")
        };
        let line = format!("{} {verb} {what} {within}{more}", self.now());
        self.log.lock().unwrap().push(line);
        let next = self
            .fates
            .lock()
            .unwrap()
            .get_mut(verb)
            .map(VecDeque::pop_front);
        let usual = self.usual.lock().unwrap().get(verb).copied();
        next.flatten().or(usual).unwrap_or(Fate::Passes)
    }
}

#[derive(Debug)]
struct Counter {
    desk: Arc<Desk>,
    inner: Arc<dyn Store>,
}

impl Counter {
    fn meets<'s, T: Send + 'static>(
        &'s self,
        verb: &'static str,
        what: &str,
        by: Instant,
        says: Option<T>,
        command: impl FnOnce() -> StoreFuture<'s, T> + Send + 's,
    ) -> StoreFuture<'s, T> {
        let fate = self.desk.write_down(verb, what, by);
        let link = self.inner.link();
        Box::pin(async move {
            let error = |kind| StoreError::new(kind, "it was its fate");
            let carried_out = async {
                match says {
                    Some(value) => Ok(Answer { value, link }),
                    None => command().await,
                }
            };
            match fate {
                Fate::Passes => carried_out.await,
                Fate::LosesAll => {
                    self.desk.store.lose_everything();
                    carried_out.await
                }
                Fate::Replies(after, number) => {
                    let answer = carried_out.await?;
                    ms(after).await;
                    let link = Link(number);
                    Ok(Answer { link, ..answer })
                }
                Fate::Fails(kind) => Err(Failure {
                    error: error(kind),
                    unknown: None,
                }),
                Fate::Lost => {
                    carried_out.await?;
                    sleep_until(by.into()).await;
                    Err(Failure {
                        error: error(StoreErrorKind::Timeout),
                        unknown: Some(link),
                    })
                }
                Fate::Silence => {
                    sleep_until(by.into()).await;
                    Err(Failure {
                        error: error(StoreErrorKind::Timeout),
                        unknown: None,
                    })
                }
            }
        })
    }
}

fn names<'k>(keys: impl Iterator<Item = &'k LockKey>) -> String {
    let keys: Vec<_> = keys.map(ToString::to_string).collect();
    keys.join(",")
}

impl Store for Counter {
    fn acquire(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Acquired> {
        let mut what = format!("{} {:?}", request.claim.key, request.queue);
        if request.tokens > 0 {
            what += &format!("+{}", request.tokens);
        }
        let says = self.desk.says(|says| &mut says.acquired);
        self.desk.owners.lock().unwrap().push(request.claim.owner);
        self.meets("acquire", &what, by, says, move || {
            self.inner.acquire(request, by)
        })
    }
    fn acquire_all(&self, requests: Vec<Acquire>, by: Instant) -> StoreFuture<'_, AcquiredAll> {
        let what = names(requests.iter().map(|one| &one.claim.key));
        let says = self.desk.says(|says| &mut says.all);
        let command = move || self.inner.acquire_all(requests, by);
        self.meets("acquire_all", &what, by, says, command)
    }
    fn renew(&self, holds: Vec<Renewal>, by: Instant) -> StoreFuture<'_, Vec<Renewed>> {
        let what = names(holds.iter().map(|one| &one.claim.key));
        let lease = holds[0].lease.as_millis();
        let says = self.desk.says(|says| &mut says.renewed);
        let command = move || self.inner.renew(holds, by);
        self.meets("renew", &format!("{what} {lease}"), by, says, command)
    }
    fn release(&self, requests: Vec<Release>, by: Instant) -> StoreFuture<'_, Vec<Released>> {
        let what = names(requests.iter().map(|one| &one.claim.key));
        let keep = requests[0].keep.as_millis();
        let says = self.desk.says(|says| &mut says.released);
        let says = says.map(|one| vec![one; requests.len()]);
        let command = move || self.inner.release(requests, by);
        self.meets("release", &format!("{what} {keep}"), by, says, command)
    }
    fn fence(&self, claim: Claim, by: Instant) -> StoreFuture<'_, Fenced> {
        let (what, says) = (
            claim.key.to_string(),
            self.desk.says(|says| &mut says.fenced),
        );
        self.meets("fence", &what, by, says, move || {
            self.inner.fence(claim, by)
        })
    }
    fn shrink(&self, claim: Claim, permits: u32, by: Instant) -> StoreFuture<'_, Released> {
        let what = claim.key.to_string();
        let command = move || self.inner.shrink(claim, permits, by);
        self.meets("shrink", &what, by, None, command)
    }
    fn resize(&self, key: LockKey, of: u32, by: Instant) -> StoreFuture<'_, bool> {
        let what = key.to_string();
        self.meets("resize", &what, by, None, move || {
            self.inner.resize(key, of, by)
        })
    }
    fn abandon(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Released> {
        let what = request.claim.key.to_string();
        let command = move || self.inner.abandon(request, by);
        self.meets("abandon", &what, by, None, command)
    }
    fn inspect(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<Inspection>> {
        let what = key.to_string();
        self.meets("inspect", &what, by, None, move || {
            self.inner.inspect(key, by)
        })
    }
    fn force_release(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<bool>> {
        let what = key.to_string();
        let command = move || self.inner.force_release(key, by);
        self.meets("force_release", &what, by, None, command)
    }
    fn rate(&self, request: RateRequest, by: Instant) -> StoreFuture<'_, Rated> {
        let what = format!("{} {}", request.key, request.wait.as_millis());
        let says = self.desk.says(|says| &mut says.rated);
        self.meets("rate", &what, by, says, move || {
            self.inner.rate(request, by)
        })
    }
    fn latch(&self, request: LatchRequest, by: Instant) -> StoreFuture<'_, Latched> {
        let verb = match request.verb {
            LatchVerb::Set { .. } => "set",
            LatchVerb::CountDown => "count_down",
            LatchVerb::Look => "look",
            LatchVerb::Wait => "wait",
            LatchVerb::Leave => "leave",
        };
        self.desk.owners.lock().unwrap().push(request.owner);
        let what = request.key.to_string();
        let says = self.desk.says(|says| &mut says.latched);
        self.meets(verb, &what, by, says, move || self.inner.latch(request, by))
    }
    fn ping(&self, by: Instant) -> StoreFuture<'_, ()> {
        self.meets("ping", "-", by, None, move || self.inner.ping(by))
    }
    fn link(&self) -> Link {
        self.inner.link()
    }
    fn close(&self) {
        self.inner.close();
    }
    fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }
}
