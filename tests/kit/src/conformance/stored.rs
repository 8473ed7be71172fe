//! What the scripts leave in Redis, to the millisecond, and what they make of what they find there:
//! values of others, lost or spoilt counters, impossible places.

pub(in crate::conformance) mod found;
pub(in crate::conformance) mod heard;
pub(in crate::conformance) mod portions;
pub(in crate::conformance) mod short_ways;
pub(in crate::conformance) mod times;
pub(in crate::conformance) mod tokens;

use std::time::Duration;

use crate::{Backend, RedisServer, eventually};
use lock_store::{
    Acquire, Acquired, AcquiredAll, Busy, Claim, Fenced, Granted, Owner, Permits, Queue, Release,
    Released, Renewal, Renewed,
};

use crate::conformance::verbs::{LEASE, Two, by, owner, store_of};

const LOCK: &str = "lock:k";
const QUEUE: &str = "lock:%queue:{lock:k}";
const FENCE: &str = "lock:%fence:{lock:k}";
/// The largest number to which Lua counts exactly.
const LAST_TOKEN: u64 = 9_007_199_254_740_991;

const KINDS: [Option<Permits>; 4] = [
    None,
    Some(Permits::READ),
    Some(Permits::WRITE),
    permits(2, 5),
];

/// A whole lock of each kind.
const WHOLES: [Option<Permits>; 3] = [None, Some(Permits::WRITE), permits(5, 5)];

const fn permits(permits: u32, of: u32) -> Option<Permits> {
    Some(Permits { count: permits, of })
}

/// A server, and two clients that speak the store's verbs.
pub(super) struct Stored {
    pub(super) backend: Backend,
    pub(super) two: Two,
}

impl Stored {
    pub(super) fn on(backend: Backend) -> Self {
        let two = Two::new(&backend);
        Self { backend, two }
    }

    /// With both clients connected, and nothing left of their attempts to connect: the server
    /// counts from now on what is asked of it.
    async fn settled(backend: Backend) -> Self {
        let stored = Self::on(backend);
        for through in 0..2 {
            stored.take(owner(through, 1), None).await;
            stored.free(owner(through, 1), None).await;
        }
        eventually("each client has its one connection", async || {
            stored.server().client_count().await == 2
        })
        .await;
        stored
    }

    pub(super) fn server(&self) -> &RedisServer {
        self.backend.one_redis().expect("one Redis server")
    }

    /// A line of words, as in `redis-cli`.
    async fn command(&self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        self.server().command(&words).await;
    }

    async fn number(&self, line: &str) -> i64 {
        let words: Vec<&str> = line.split(' ').collect();
        self.server().query(&words).await
    }

    /// Puts a place into the queue by hand, a moment before now.
    async fn places(&self, place: &str) {
        let script = "local time = redis.call('TIME')
            return redis.call('ZADD', KEYS[1], time[1] * 1000000 + time[2] - 1000, ARGV[1])";
        let words = ["EVAL", script, "1", QUEUE, place];
        self.server().command(&words).await;
    }

    /// Checks the time to live of a key that was written a moment ago.
    async fn assert_lives(&self, key: &str, longest: Duration) {
        let millis = self.number(&format!("PTTL {key}")).await;
        let left = Duration::from_millis(millis.try_into().unwrap());
        let moment = Duration::from_millis(900);
        assert!(
            left <= longest && left + moment > longest,
            "{key}: {left:?} {longest:?}"
        );
    }

    async fn ask(&self, request: Acquire) -> Acquired {
        let store = &self.two.stores[store_of(request.claim.owner)];
        store.acquire(request, by()).await.unwrap().value
    }

    async fn take(&self, owner: Owner, share: Option<Permits>) {
        self.take_for(owner, share, LEASE).await;
    }

    async fn take_for(&self, owner: Owner, share: Option<Permits>, lease: Duration) {
        let respect = request(owner, share, Queue::Respect);
        let reply = self
            .ask({
                let mut request = respect;
                request.lease = lease;
                request
            })
            .await;
        assert!(matches!(reply, Acquired::Granted(_)), "{reply:?}");
    }

    async fn queue(&self, owner: Owner, share: Option<Permits>, tokens: u32) {
        let join = request(owner, share, Queue::Join);
        let reply = self
            .ask({
                let mut request = join;
                request.tokens = tokens;
                request
            })
            .await;
        let queued = matches!(reply, Acquired::Busy(Busy { queued: true, .. }));
        assert!(queued, "{reply:?}");
    }

    /// Acquires with this many tokens. Returns the first.
    async fn fenced(&self, owner: Owner, share: Option<Permits>, tokens: u32) -> Option<u64> {
        let respect = request(owner, share, Queue::Respect);
        match self
            .ask({
                let mut request = respect;
                request.tokens = tokens;
                request
            })
            .await
        {
            Acquired::Granted(Granted { token, .. }) => Some(token.unwrap()),
            Acquired::Conflict => None,
            busy => panic!("{busy:?}"),
        }
    }

    async fn all(&self, owner: Owner, keys: &[&str], tokens: u32) -> AcquiredAll {
        let one = |key: &&str| {
            let mut request = request(owner, None, Queue::Respect);
            request.claim = Claim::new((*key).into(), owner, None);
            request.tokens = tokens;
            request
        };
        let requests = keys.iter().map(one).collect();
        let reply = self.two.stores[store_of(owner)].acquire_all(requests, by());
        reply.await.unwrap().value
    }

    async fn end(&self, owner: Owner, share: Option<Permits>, keep: Duration) -> Released {
        let claim = claim(owner, share);
        let release = vec![Release::new(claim, keep)];
        let reply = self.two.stores[0].release(release, by()).await;
        reply.unwrap().value[0]
    }

    async fn free(&self, owner: Owner, share: Option<Permits>) {
        let released = self.end(owner, share, Duration::ZERO).await;
        assert_eq!(released, Released::Released);
    }

    async fn renew_hold(&self, owner: Owner, share: Option<Permits>, lease: Duration) -> Renewed {
        let claim = claim(owner, share);
        let renewal = vec![Renewal::new(claim, lease)];
        let reply = self.two.stores[0].renew(renewal, by()).await;
        reply.unwrap().value[0]
    }

    async fn fence(&self, owner: Owner, share: Option<Permits>) -> Fenced {
        let reply = self.two.stores[0].fence(claim(owner, share), by()).await;
        reply.unwrap().value
    }

    async fn abandon(&self, owner: Owner, share: Option<Permits>) -> Released {
        let request = request(owner, share, Queue::Join);
        let reply = self.two.stores[0].abandon(request, by()).await;
        reply.unwrap().value
    }

    async fn await_grants(&self, owners: &[Owner]) {
        eventually("it hears of its grants", async || {
            let heard = self.two.heard[0].0.lock().unwrap();
            let owners = owners.iter().copied();
            heard.iter().map(|(owner, _)| *owner).eq(owners)
        })
        .await;
    }
}

fn claim(owner: Owner, share: Option<Permits>) -> Claim {
    let key = "k".into();
    Claim::new(key, owner, share)
}

fn request(owner: Owner, share: Option<Permits>, queue: Queue) -> Acquire {
    let mut request = Acquire::new(claim(owner, share), LEASE);
    request.first_lease = LEASE / 5;
    request.queue = queue;
    request
}
