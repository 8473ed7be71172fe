//! Two clients that speak a store's verbs, and what they hear.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_store::{
    Acquire, Acquired, Busy, Claim, ClientId, ClientMessage, Clock, Ended, Failure, HandedOver,
    Instant, Listener, LockFound, Owner, Permits, Queue, Release, Released, Renewal, Renewed,
    Store, WakeUp,
};
use lock_testkit::StoreUnderTest;
use tokio::runtime::Handle;

pub(crate) const A: ClientId = ClientId(0xaaaa_aaaa_aaaa_aaaa_aaaa_aaaa_aaaa_aaaa);
pub(crate) const B: ClientId = ClientId(0xbbbb_bbbb_bbbb_bbbb_bbbb_bbbb_bbbb_bbbb);
pub(crate) const LEASE: Duration = Duration::from_secs(60);
pub(crate) const READ: Option<Permits> = Some(Permits::READ);
pub(crate) const WRITE: Option<Permits> = Some(Permits::WRITE);

pub(crate) const fn permits(count: u32) -> Option<Permits> {
    Some(Permits { count, of: 5 })
}

pub(crate) fn owner(client: ClientId, request: u64) -> Owner {
    Owner { client, request }
}

pub(crate) fn by() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

/// All that a client hears.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) granted: Mutex<Vec<(Owner, Option<u64>)>>,
    pub(crate) told: Mutex<Vec<ClientMessage>>,
    pub(crate) freed: Mutex<Vec<Ended>>,
}

impl Listener for Heard {
    fn on_granted(&self, grant: HandedOver) -> WakeUp {
        let mut granted = self.granted.lock().unwrap();
        granted.push((grant.owner, grant.token));
        WakeUp::default()
    }

    fn recheck(&self) {}

    fn on_freed(&self, ended: Ended) {
        self.freed.lock().unwrap().push(ended);
    }

    fn on_message(&self, message: ClientMessage) {
        self.told.lock().unwrap().push(message);
    }
}

/// `a` began before `b`.
pub(crate) struct Clients {
    pub(crate) a: Arc<dyn Store>,
    pub(crate) b: Arc<dyn Store>,
    pub(crate) heard_by_b: Arc<Heard>,
    _heard_by_a: Arc<Heard>,
}

impl Clients {
    pub(crate) async fn of(store: &dyn StoreUnderTest) -> Self {
        let (heard_by_a, heard_by_b) = (Arc::<Heard>::default(), Arc::<Heard>::default());
        let open = |id, heard: &Arc<Heard>| {
            let listener: Arc<dyn Listener> = heard.clone();
            store.store(id, &listener, Clock::new(Handle::current()))
        };
        let a = open(A, &heard_by_a);
        a.ping(by()).await.unwrap();
        let b = open(B, &heard_by_b);
        b.ping(by()).await.unwrap();
        Self {
            a,
            b,
            heard_by_b,
            _heard_by_a: heard_by_a,
        }
    }

    pub(crate) fn of_client(&self, client: ClientId) -> &dyn Store {
        match client == A {
            true => &*self.a,
            false => &*self.b,
        }
    }

    /// Asks with these tokens.
    pub(crate) async fn acquire(
        &self,
        claim: Claim,
        queue: Queue,
        tokens: u32,
    ) -> Result<Acquired, Failure> {
        let client = claim.owner.client;
        let request = request(claim, queue, tokens);
        let reply = self.of_client(client).acquire(request, by()).await;
        reply.map(|answer| answer.value)
    }

    pub(crate) async fn take(&self, claim: Claim, tokens: u32) -> Option<u64> {
        match self.acquire(claim, Queue::Respect, tokens).await {
            Ok(Acquired::Granted(granted)) => granted.token,
            other => panic!("{other:?}"),
        }
    }

    /// Takes a place in the queue, or confirms it.
    pub(crate) async fn wait(&self, claim: Claim, tokens: u32) {
        let reply = self.acquire(claim, Queue::Join, tokens).await.unwrap();
        let queued = matches!(reply, Acquired::Busy(Busy { queued: true, .. }));
        assert!(queued, "{reply:?}");
    }

    pub(crate) async fn release(&self, claim: Claim, keep: Duration) -> Released {
        let store = self.of_client(claim.owner.client);
        let release = vec![Release::new(claim, keep)];
        store.release(release, by()).await.unwrap().value[0]
    }

    pub(crate) async fn renew(&self, claim: Claim) -> Renewed {
        let store = self.of_client(claim.owner.client);
        let renewal = vec![Renewal::new(claim, 2 * LEASE)];
        store.renew(renewal, by()).await.unwrap().value[0]
    }

    pub(crate) async fn inspect(&self, key: &str) -> LockFound {
        let found = self.a.inspect(key.into(), by()).await.unwrap();
        found.value.unwrap()
    }
}

pub(crate) fn claim(key: &str, owner: Owner, permits: Option<Permits>) -> Claim {
    Claim::new(key.into(), owner, permits)
}

pub(crate) fn request(claim: Claim, queue: Queue, tokens: u32) -> Acquire {
    let mut request = Acquire::new(claim, LEASE);
    request.first_lease = LEASE;
    request.queue = queue;
    request.tokens = tokens;
    request
}
