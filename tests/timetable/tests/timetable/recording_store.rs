//! The embedded store. Every command of one client is recorded and meets its fate.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_runtime::{LockClient, LockClientBuilder, LockError, StoreErrorKind};
use lock_store::SimulatedStop;
use lock_store::memory::MemoryStore;
use lock_store::{
    Answer, Asked, Capabilities, ClientId, ClientMessage, Ended, Failure, HandedOver, Instant,
    Link, Listener, LockKey, Owner, Store, StoreFuture, Trust,
};
use lock_testkit_core::store_decorator::{
    Interceptor, Reply, Request, decorated, failure, silence,
};
use lock_testkit_core::{runtime_now, sleep_until};
use tokio::runtime::{Builder, Handle};
use tokio::time::sleep;
use tracing::field::{Field, Visit};
use tracing::{Level, Subscriber};
use tracing_subscriber::Registry;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::fates::{Fate, Fates};
use crate::schedule::{Ask, Command, Line, Outcome, Schedule};
use crate::{rules, schedule};

/// How many milliseconds a request waits by default.
pub(crate) const WAIT: u64 = 10_000;
/// More lines than any schedule has: then its time stands still.
const ENDLESS: usize = 10_000;

/// One client's way to the store, and the record of its commands.
#[derive(Debug)]
pub(crate) struct RecordingStore {
    pub(crate) memory: MemoryStore,
    began: Instant,
    schedule: Mutex<Schedule>,
    /// How many lines the test has looked at.
    looked_at: Mutex<usize>,
    fates: Mutex<Fates>,
    pub(crate) listener: Mutex<Option<Arc<dyn Listener>>>,
    owners: Mutex<Vec<Owner>>,
    /// What the store says that it can do.
    can: Capabilities,
    /// For its numbers at the end.
    client: Mutex<Option<LockClient>>,
}

thread_local! {
    /// The stores of the test that runs in this thread.
    static OPENED: RefCell<Vec<Arc<RecordingStore>>> = const { RefCell::new(Vec::new()) };
}

/// Runs a test in simulated time. Every schedule that it recorded must keep the rules and match the
/// test's snapshot.
pub(crate) fn simulated(test: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let _logs = tracing::subscriber::set_default(Registry::default().with(Logs));
    runtime.block_on(test);
    let ends = |store: Arc<RecordingStore>| {
        let client = store.client.lock().unwrap().take();
        let (now, stats) =
            runtime.block_on(async { (store.now(), client.map(|client| client.stats())) });
        let mut schedule = store.schedule.lock().unwrap().clone();
        (schedule.ends, schedule.stats) = (now, stats);
        schedule
    };
    let schedules: Vec<_> = OPENED.take().into_iter().map(ends).collect();
    schedules.iter().for_each(rules::check);
    schedule::is_as_in_its_snapshot(&schedules);
}

/// Warnings are lines of the schedule of the client that was opened last.
struct Logs;

impl<S: Subscriber> Layer<S> for Logs {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if *event.metadata().level() > Level::WARN {
            return;
        }
        let mut text = LogText::default();
        event.record(&mut text);
        let LogText { message, fields } = text;
        OPENED.with_borrow(|opened| {
            if let Some(store) = opened.last() {
                store.note(format!("log: {message}{fields}"));
            }
        });
    }
}

#[derive(Default)]
struct LogText {
    message: String,
    fields: String,
}

impl Visit for LogText {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => self.fields += &format!(", {name}={value:?}"),
        }
    }
}

/// Sleeps.
pub(crate) async fn ms(milliseconds: u64) {
    sleep(Duration::from_millis(milliseconds)).await;
}

pub(crate) fn of(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// The gist of an error.
pub(crate) fn short(error: &LockError) -> String {
    match error {
        LockError::Busy { waited, .. } => format!("busy after {waited:?}"),
        LockError::Unavailable { source, .. } => {
            let text = source.to_string();
            let own = if text.contains("the test failed this") {
                ""
            } else {
                ", seen by us"
            };
            format!("{:?}{own}", source.kind())
        }
        LockError::LatchClosed { waited, .. } => format!("closed after {waited:?}"),
        LockError::LatchNotSet { .. } => "not set".to_owned(),
        LockError::Lost { reason, .. } => format!("lost, {reason:?}"),
        LockError::KeyConflict { .. } => "conflict".to_owned(),
        other => other.to_string(),
    }
}

impl RecordingStore {
    /// A client of an empty store of its own.
    pub(crate) async fn open() -> (Arc<Self>, LockClient) {
        Self::open_with(|builder| builder).await
    }

    /// The same, with settings.
    pub(crate) async fn open_with(
        settings: impl FnOnce(LockClientBuilder) -> LockClientBuilder,
    ) -> (Arc<Self>, LockClient) {
        Self::open_both(settings, Capabilities::all()).await
    }

    /// The same, of a store that can't do everything.
    pub(crate) async fn open_as(change: impl FnOnce(&mut Capabilities)) -> (Arc<Self>, LockClient) {
        let mut can = Capabilities::all();
        change(&mut can);
        Self::open_both(|builder| builder, can).await
    }

    /// The same, with settings.
    pub(crate) async fn open_both(
        settings: impl FnOnce(LockClientBuilder) -> LockClientBuilder,
        can: Capabilities,
    ) -> (Arc<Self>, LockClient) {
        let memory = MemoryStore::new();
        let recorder = Arc::new(Self {
            memory: memory.clone(),
            began: runtime_now(),
            schedule: Mutex::default(),
            looked_at: Mutex::default(),
            fates: Mutex::default(),
            listener: Mutex::default(),
            owners: Mutex::default(),
            can,
            client: Mutex::default(),
        });
        OPENED.with_borrow_mut(|opened| opened.push(Arc::clone(&recorder)));
        let behind = Arc::clone(&recorder);
        let builder = LockClient::builder()
            .name("this")
            .simulated(Handle::current(), 7, SimulatedStop::default())
            // Patience with silence has a test of its own.
            .unavailable_after(Duration::from_secs(3600))
            .store(move |context| {
                *behind.listener.lock().unwrap() = context.listener.upgrade();
                Ok(decorated(memory.connect(context), Arc::clone(&behind)))
            });
        let client = settings(builder).connect().await.unwrap();
        *recorder.schedule.lock().unwrap() = Schedule::default();
        *recorder.client.lock().unwrap() = Some(client.clone());
        (recorder, client)
    }

    /// One more client of the same store. Its commands are not recorded.
    pub(crate) async fn other(&self) -> LockClient {
        let memory = self.memory.clone();
        LockClient::builder()
            .name("other")
            .simulated(Handle::current(), 8, SimulatedStop::default())
            .store(move |context| Ok(memory.connect(context)))
            .connect()
            .await
            .unwrap()
    }

    pub(crate) fn now(&self) -> u64 {
        self.milliseconds(runtime_now())
    }

    fn milliseconds(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.began);
        u64::try_from(since.as_millis()).unwrap()
    }

    /// The subject of this schedule, when the test records several.
    pub(crate) fn title(&self, title: impl Into<String>) {
        self.schedule.lock().unwrap().title = title.into();
    }

    /// Adds a line to the schedule: what the test did or found.
    pub(crate) fn note(&self, text: impl Into<String>) {
        self.push(Line::Note {
            at: self.now(),
            text: text.into(),
        });
    }

    fn push(&self, line: Line) -> usize {
        let mut schedule = self.schedule.lock().unwrap();
        schedule.lines.push(line);
        let count = schedule.lines.len();
        drop(schedule);
        assert!(count < ENDLESS, "the client asks again and again");
        count - 1
    }

    /// A request that may wait for `wait` milliseconds, or for ever. Its beginning and its end are
    /// lines of the schedule. A rule demands a request for each command.
    pub(crate) fn ask<T, W, F>(
        self: &Arc<Self>,
        wait: W,
        request: F,
    ) -> impl Future<Output = Result<T, LockError>> + use<T, W, F>
    where
        W: Into<Option<u64>>,
        F: Future<Output = Result<T, LockError>>,
    {
        let (store, wait) = (Arc::clone(self), wait.into());
        async move {
            let at = store.now();
            let line = store.push(Line::Ask(Ask {
                at,
                wait,
                ended: None,
                has_it: false,
            }));
            let mut ends = AskEnds {
                store: &store,
                line,
                answer: "the request was dropped".to_owned(),
                has_it: false,
            };
            let answer = request.await;
            ends.has_it = answer.is_ok();
            ends.answer = answer.as_ref().map_or_else(short, |_| "ok".to_owned());
            answer
        }
    }

    /// The lines since the last look.
    fn lines(&self) -> Vec<Line> {
        let mut lines = self.schedule.lock().unwrap().lines.clone();
        let from = std::mem::replace(&mut *self.looked_at.lock().unwrap(), lines.len());
        lines.split_off(from)
    }

    /// The commands since the last look.
    pub(crate) fn seen(&self) -> Vec<Command> {
        let lines = self.lines();
        lines.iter().filter_map(Line::command).cloned().collect()
    }

    /// The same: the time and the name of each.
    pub(crate) fn calls(&self) -> Vec<(u64, &'static str)> {
        let seen = self.seen();
        seen.iter().map(|one| (one.at, one.verb())).collect()
    }

    /// The same: the times of the commands with this name.
    pub(crate) fn when(&self, verb: &str) -> Vec<u64> {
        let calls = self.calls().into_iter();
        calls
            .filter_map(|(at, name)| (name == verb).then_some(at))
            .collect()
    }

    /// Sets the fates of the next commands with this name.
    pub(crate) fn next(&self, verb: &'static str, fates: &[Fate]) {
        self.fates.lock().unwrap().next(verb, fates);
    }

    /// Sets the fate of every later command with this name.
    pub(crate) fn set_usual(&self, verb: &'static str, fate: Fate) {
        self.fates.lock().unwrap().set_usual(verb, fate);
    }

    /// The next command of this reply's kind gets the reply, instead of being carried out.
    pub(crate) fn answer(&self, reply: Reply) {
        self.fates.lock().unwrap().answer(reply);
    }

    /// Tells the client that its owner `at` (in the order of their acquires) has the key.
    pub(crate) fn notify_granted(&self, at: usize, token: Option<u64>) {
        self.notify_granted_over(Link(0), at, token);
    }

    /// The same, over this link.
    pub(crate) fn notify_granted_over(&self, link: Link, at: usize, token: Option<u64>) {
        self.note(format!("told of a grant over link {}", link.0));
        self.hear(Trust::Order(link), at, token);
    }

    /// The same, to be trusted so far.
    pub(crate) fn notify_granted_with(&self, trust: Trust, at: usize, token: Option<u64>) {
        self.note("told of a grant");
        self.hear(trust, at, token);
    }

    /// Tells the client that messages may have been lost.
    pub(crate) fn call_all(&self) {
        self.note("messages may be lost");
        let listener = self.listener.lock().unwrap();
        listener.as_ref().unwrap().recheck();
    }

    /// Tells the client that nothing more is heard over this link.
    pub(crate) fn lose(&self, link: Link) {
        self.note(format!("link {} is lost", link.0));
        self.listener
            .lock()
            .unwrap()
            .as_ref()
            .unwrap()
            .on_lost(link);
    }

    /// Drops the client that is kept for its numbers at the end.
    pub(crate) fn let_go(&self) {
        self.client.lock().unwrap().take();
    }

    /// Tells the client that somebody's hold of this key has ended, and nobody else.
    pub(crate) fn is_freed(&self, key: &str) {
        self.note(format!("{key} was freed"));
        let owner = Owner {
            client: ClientId(99),
            request: 1,
        };
        let listener = self.listener.lock().unwrap();
        let ended = Ended::new(LockKey::from(key), owner, 1);
        listener.as_ref().unwrap().on_freed(ended);
    }

    /// Another client asks who holds this key.
    pub(crate) fn is_asked_who_holds(&self, key: &str) {
        self.note(format!("is asked who holds {key}"));
        let (key, asker) = (LockKey::from(key), ClientId(99));
        let listener = self.listener.lock().unwrap();
        let question = ClientMessage::WhoHolds { key, asker };
        listener.as_ref().unwrap().on_message(question);
    }

    /// Another client says something.
    pub(crate) fn hears(&self, message: ClientMessage) {
        self.note(format!("a message about {}", message.key()));
        let listener = self.listener.lock().unwrap();
        listener.as_ref().unwrap().on_message(message);
    }

    /// The notes since the last look that begin with these words.
    pub(crate) fn noted(&self, words: &str) -> Vec<(u64, String)> {
        let lines = self.lines();
        lines.iter().filter_map(|line| line.noted(words)).collect()
    }

    /// The times of the commands with this name, and of the notes that begin with these words,
    /// since the last look.
    pub(crate) fn when_both(&self, verb: &str, words: &str) -> (Vec<u64>, Vec<u64>) {
        let lines = self.lines();
        let commands = lines.iter().filter_map(Line::command);
        let commands = commands.filter(|one| one.verb() == verb).map(|one| one.at);
        let notes = lines.iter().filter_map(|line| Some(line.noted(words)?.0));
        (commands.collect(), notes.collect())
    }

    fn hear(&self, trust: Trust, at: usize, token: Option<u64>) {
        let owner = self.owners.lock().unwrap()[at];
        let listener = self.listener.lock().unwrap();
        drop(
            listener
                .as_ref()
                .unwrap()
                .on_granted(HandedOver::new(owner, token, trust)),
        );
    }

    fn came_to(&self, line: usize, outcome: Outcome) {
        if let Line::Command(command) = &mut self.schedule.lock().unwrap().lines[line] {
            command.outcome = outcome;
        }
    }
}

/// Records how a request ended, also when it is dropped.
struct AskEnds<'a> {
    store: &'a RecordingStore,
    line: usize,
    answer: String,
    has_it: bool,
}

impl Drop for AskEnds<'_> {
    fn drop(&mut self) {
        let now = self.store.now();
        if let Line::Ask(ask) = &mut self.store.schedule.lock().unwrap().lines[self.line] {
            (ask.ended, ask.has_it) = (Some(now), self.has_it);
        }
        self.store.note(std::mem::take(&mut self.answer));
    }
}

/// Records that a command's reply is no longer awaited.
struct Dropped<'a>(Option<(&'a RecordingStore, usize)>);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        if let Some((store, line)) = self.0 {
            store.came_to(line, Outcome::Dropped { at: store.now() });
        }
    }
}

impl Interceptor for RecordingStore {
    fn intercept<'s>(
        &'s self,
        store: &'s dyn Store,
        request: Request,
        by: Instant,
    ) -> StoreFuture<'s, Reply> {
        let now = self.now();
        let line = self.push(Line::Command(Box::new(Command {
            at: now,
            within: self.milliseconds(by).saturating_sub(now),
            request: request.clone(),
            outcome: Outcome::UnderWay,
        })));
        match &request {
            Request::Acquire(request) => self.owners.lock().unwrap().push(request.claim.owner),
            other => {
                let call = other.latch_call();
                let owner = call.map(|call| call.owner);
                self.owners.lock().unwrap().extend(owner);
            }
        }
        let (fate, instead) = self.fates.lock().unwrap().of(&request);
        Box::pin(async move {
            let mut dropped = Dropped(Some((self, line)));
            let answer = self.meet(fate, store, request, instead, by).await;
            dropped.0 = None;
            let at = self.now();
            let outcome = match &answer {
                Ok(Answer { value, link, .. }) => Outcome::Answered {
                    at,
                    reply: value.clone(),
                    link: *link,
                },
                Err(failure) => Outcome::Failed {
                    at,
                    kind: failure.error.kind(),
                    unknown: failure.unknown.is_some(),
                },
            };
            self.came_to(line, outcome);
            answer
        })
    }

    fn tell<'s>(
        &'s self,
        store: &'s dyn Store,
        to: ClientId,
        message: ClientMessage,
        by: Instant,
    ) -> Asked<'s, bool> {
        let within = self.milliseconds(by).saturating_sub(self.now());
        self.note(match &message {
            ClientMessage::WhoHolds { key, .. } => format!("asks who holds {key}, within {within}"),
            ClientMessage::Holds {
                key,
                name,
                held_for,
                ..
            } => {
                format!("says that {name} holds {key} for {held_for:?}, within {within}")
            }
            ClientMessage::Revoke { key, .. } => format!("demands {key}, within {within}"),
            ClientMessage::Revoking { key, answer, .. } => {
                format!("answers a demand for {key} with {answer:?}, within {within}")
            }
        });
        let fate = self.fates.lock().unwrap().of_message();
        match fate {
            Fate::Fails(kind) => Box::pin(async move { Err(failure(kind, None).error) }),
            Fate::FailsLate(kind, after) => Box::pin(async move {
                ms(after).await;
                Err(failure(kind, None).error)
            }),
            // It goes to somebody who listens, and says nothing.
            Fate::Silence => Box::pin(async { Ok(true) }),
            // Nobody listens.
            Fate::Lost => Box::pin(async { Ok(false) }),
            Fate::Replies(after, _) => Box::pin(async move {
                ms(after).await;
                store.tell(to, message, by).await
            }),
            _ => store.tell(to, message, by),
        }
    }

    fn migrate(&self, by: Instant) {
        let within = self.milliseconds(by).saturating_sub(self.now());
        self.note(format!("the store is to migrate within {within}"));
    }

    fn finish(&self, by: Instant) {
        let within = self.milliseconds(by).saturating_sub(self.now());
        self.note(format!("the store is to finish within {within}"));
    }

    fn close(&self) {
        self.note("the store is closed");
    }

    fn capabilities(&self, _: Capabilities) -> Capabilities {
        self.can.clone()
    }

    /// The key `k@9` is on a server of its own, with link 9.
    fn link_of(&self, key: &LockKey, own: Link) -> Link {
        let server = key.as_str().split_once('@');
        server.map_or(own, |(_, link)| Link(link.parse().unwrap()))
    }
}

impl RecordingStore {
    async fn meet(
        &self,
        fate: Fate,
        store: &dyn Store,
        request: Request,
        instead: Option<Reply>,
        by: Instant,
    ) -> Result<Answer<Reply>, Failure> {
        let link = store.link();
        let carried_out = async {
            match instead {
                Some(value) => Ok(Answer::new(value, link)),
                None => request.send(store, by).await,
            }
        };
        match fate {
            Fate::Passes => carried_out.await,
            Fate::LosesAll => {
                self.memory.lose_everything();
                carried_out.await
            }
            Fate::Replies(after, number) => {
                let answer = carried_out.await?;
                ms(after).await;
                let link = Link(number);
                Ok(Answer::new(answer.value, link))
            }
            Fate::Fails(kind) => Err(failure(kind, None)),
            Fate::FailsLate(kind, after) => {
                let until = runtime_now() + of(after);
                Err(failure(kind, Some(link)).until(until))
            }
            Fate::Lost => {
                carried_out.await?;
                sleep_until(by).await;
                Err(failure(StoreErrorKind::Timeout, Some(link)))
            }
            Fate::Silence => silence(by, None).await,
        }
    }
}
