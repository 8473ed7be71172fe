//! What the scripts leave in Redis to the millisecond, and what they make of what they find there: values of others,
//! counters that were lost or spoilt, places that nobody can have written.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lock_runtime::store::{
    Acquire, Acquired, AcquiredAll, Claim, Fenced, Owner, Queue, Release, Released, Renewal,
    Renewed, Share,
};
use lock_tests::{Backend, RedisServer, eventually};

use crate::verbs::{LEASE, Two, by, owner, store_of};

const LOCK: &str = "lock:k";
const QUEUE: &str = "lock:%queue:{lock:k}";
const FENCE: &str = "lock:%fence:{lock:k}";
/// The last number that Lua can still count to.
const LAST_TOKEN: u64 = 9_007_199_254_740_991;

const KINDS: [Option<Share>; 4] = [None, Some(Share::READ), Some(Share::WRITE), permits(2, 5)];

/// All of a lock of each kind.
const WHOLES: [Option<Share>; 3] = [None, Some(Share::WRITE), permits(5, 5)];

const fn permits(permits: u32, of: u32) -> Option<Share> {
    Some(Share { permits, of })
}

/// A server, and two clients of it that speak the store's verbs.
struct Stored {
    backend: Backend,
    two: Two,
}

impl Stored {
    async fn new() -> Self {
        let backend = Backend::redis().await;
        let two = Two::new(&backend);
        Self { backend, two }
    }

    fn server(&self) -> &RedisServer {
        match &self.backend {
            Backend::Redis(server) => server,
            other => unreachable!("{other:?}"),
        }
    }

    /// A line of words as in `redis-cli`.
    async fn command(&self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        self.server().command(&words).await;
    }

    async fn number(&self, line: &str) -> i64 {
        let words: Vec<&str> = line.split(' ').collect();
        self.server().query(&words).await
    }

    /// How long a key lives, which nothing has touched for more than a moment.
    async fn lives(&self, key: &str, longest: Duration) {
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

    async fn takes(&self, owner: Owner, share: Option<Share>) {
        let reply = self.ask(request(owner, share, Queue::Respect)).await;
        assert!(matches!(reply, Acquired::Granted { .. }), "{reply:?}");
    }

    async fn queues(&self, owner: Owner, share: Option<Share>, tokens: u32) {
        let join = request(owner, share, Queue::Join);
        let reply = self.ask(Acquire { tokens, ..join }).await;
        let queued = matches!(reply, Acquired::Busy { queued: true, .. });
        assert!(queued, "{reply:?}");
    }

    /// With so many tokens; which is the first?
    async fn fenced(&self, owner: Owner, share: Option<Share>, tokens: u32) -> Option<u64> {
        let respect = request(owner, share, Queue::Respect);
        match self.ask(Acquire { tokens, ..respect }).await {
            Acquired::Granted { token } => Some(token.unwrap()),
            Acquired::Conflict => None,
            busy => panic!("{busy:?}"),
        }
    }

    async fn all(&self, owner: Owner, keys: &[&str], tokens: u32) -> AcquiredAll {
        let one = |key: &&str| Acquire {
            claim: Claim {
                key: (*key).into(),
                owner,
                share: None,
            },
            tokens,
            ..request(owner, None, Queue::Respect)
        };
        let requests = keys.iter().map(one).collect();
        let reply = self.two.stores[store_of(owner)].acquire_all(requests, by());
        reply.await.unwrap().value
    }

    async fn ends(&self, owner: Owner, share: Option<Share>, keep: Duration) -> Released {
        let claim = claim(owner, share);
        let release = vec![Release { claim, keep }];
        let reply = self.two.stores[0].release(release, by()).await;
        reply.unwrap().value[0]
    }

    async fn frees(&self, owner: Owner, share: Option<Share>) {
        let released = self.ends(owner, share, Duration::ZERO).await;
        assert_eq!(released, Released::Released);
    }

    async fn renews(&self, owner: Owner, share: Option<Share>, lease: Duration) -> Renewed {
        let claim = claim(owner, share);
        let renewal = vec![Renewal { claim, lease }];
        let reply = self.two.stores[0].renew(renewal, by()).await;
        reply.unwrap().value[0]
    }

    async fn fence(&self, owner: Owner, share: Option<Share>) -> Fenced {
        let reply = self.two.stores[0].fence(claim(owner, share), by()).await;
        reply.unwrap().value
    }

    async fn abandons(&self, owner: Owner, share: Option<Share>) -> Released {
        let request = request(owner, share, Queue::Join);
        let reply = self.two.stores[0].abandon(request, by()).await;
        reply.unwrap().value
    }

    async fn hears(&self, owners: &[Owner]) {
        eventually("it hears of its grants", async || {
            let heard = self.two.heard[0].0.lock().unwrap();
            let owners = owners.iter().copied();
            heard.iter().map(|(owner, _)| *owner).eq(owners)
        })
        .await;
    }
}

fn claim(owner: Owner, share: Option<Share>) -> Claim {
    let key = "k".into();
    Claim { key, owner, share }
}

fn request(owner: Owner, share: Option<Share>, queue: Queue) -> Acquire {
    Acquire {
        claim: claim(owner, share),
        lease: LEASE,
        first_lease: LEASE / 5,
        tokens: 0,
        instead_of: None,
        queue,
    }
}

fn micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_micros().try_into().unwrap()
}

#[tokio::test]
async fn values_of_others_are_conflicts_that_stay_as_they_are() {
    let stored = Stored::new().await;
    let me = owner(0, 1);
    for value in [
        "RPUSH lock:k x",
        "HSET lock:k field 1",
        "ZADD lock:k 1 member",
        "ZADD lock:k -1 used",
        "ZADD lock:k -5 of 3 member",
    ] {
        stored.command("DEL lock:k").await;
        stored.command(value).await;
        // Who waits goes on waiting.
        let place = format!("0:1000:0:0:{}", owner(1, 9));
        stored.command(&format!("ZADD {QUEUE} 1 {place}")).await;
        let before: Vec<u8> = stored.server().query(&["DUMP", LOCK]).await;
        for share in KINDS {
            for queue in [Queue::Respect, Queue::Join] {
                let reply = stored.ask(request(me, share, queue)).await;
                assert_eq!(reply, Acquired::Conflict, "{value} {share:?}");
            }
            assert_eq!(stored.abandons(me, share).await, Released::NotHeld);
            assert_eq!(
                stored.ends(me, share, LEASE).await,
                Released::NotHeld,
                "{value}"
            );
            assert_eq!(stored.renews(me, share, LEASE).await, Renewed::Gone);
            assert_eq!(stored.fence(me, share).await, Fenced::Conflict, "{value}");
        }
        let store = &stored.two.stores[0];
        let shrunk = store.shrink(claim(me, Some(Share::WRITE)), 1, by()).await;
        assert_eq!(shrunk.unwrap().value, Released::NotHeld);
        assert!(!store.resize("k".into(), 3, by()).await.unwrap().value);
        let forced = store.force_release("k".into(), by()).await.unwrap().value;
        assert_eq!(forced, None, "{value}");
        // To look, what is in use is enough.
        let found = store.inspect("k".into(), by()).await.unwrap().value;
        assert_eq!(found.is_some(), value.ends_with("used"), "{value}");
        assert_eq!(stored.all(me, &["k"], 0).await, AcquiredAll::Conflict(0));
        let after: Vec<u8> = stored.server().query(&["DUMP", LOCK]).await;
        assert_eq!(before, after, "{value}");
        let places: Vec<String> = stored.server().query(&["ZRANGE", QUEUE, "0", "-1"]).await;
        assert_eq!(places, [place], "{value}");
        assert_eq!(stored.server().keys("*").await.len(), 2, "{value}");
    }
}

#[tokio::test]
async fn a_queue_that_is_something_else_keeps_nobody_from_a_free_lock() {
    let stored = Stored::new().await;
    let (me, other) = (owner(0, 1), owner(0, 2));
    stored.command(&format!("SET {QUEUE} text")).await;
    for share in KINDS {
        stored.takes(me, share).await;
        let reply = stored.ask(request(other, share, Queue::Join)).await;
        if share != permits(2, 5) && share != Some(Share::READ) {
            assert_eq!(reply, Acquired::Conflict, "{share:?}");
        }
        assert_eq!(
            stored.abandons(other, share).await == Released::Released,
            matches!(reply, Acquired::Granted { .. })
        );
        assert_eq!(stored.abandons(me, share).await, Released::Released);
        stored.takes(me, share).await;
        stored.frees(me, share).await;
        assert_eq!(stored.number("EXISTS lock:k").await, 0, "{share:?}");
    }
    let left: String = stored.server().query(&["GET", QUEUE]).await;
    assert_eq!(left, "text");
}

#[tokio::test]
async fn what_an_abandon_could_not_do_is_told() {
    let stored = Stored::new().await;
    let (me, waits) = (owner(0, 1), owner(0, 2));
    stored.takes(me, None).await;
    stored.queues(waits, None, 0).await;
    stored.command("REPLICAOF 127.0.0.1 1").await;
    for owner in [me, waits] {
        let abandoned = stored.two.stores[0].abandon(request(owner, None, Queue::Join), by());
        assert!(abandoned.await.is_err());
    }
    stored.command("REPLICAOF NO ONE").await;
}

#[tokio::test]
async fn places_that_nobody_can_have_written_are_passed_over() {
    let stored = Stored::new().await;
    let (me, next) = (owner(0, 1), owner(0, 2));
    for share in WHOLES {
        stored.two.heard[0].0.lock().unwrap().clear();
        stored.takes(me, share).await;
        for place in ["text", "0:1:0:0:nobody", "0:1:0:0:", "x:1:0:0:1-1"] {
            stored.command(&format!("ZADD {QUEUE} 0 {place}")).await;
        }
        stored.queues(next, share, 0).await;
        stored.frees(me, share).await;
        stored.hears(&[next]).await;
        stored.frees(next, share).await;
        assert!(stored.server().keys("*").await.is_empty());
    }
}

#[tokio::test]
async fn a_read_write_lock_whose_leases_have_ended_is_no_obstacle_to_a_resize() {
    let stored = Stored::new().await;
    let reader = owner(0, 1);
    stored.takes(reader, Some(Share::READ)).await;
    let store = &stored.two.stores[0];
    assert!(!store.resize("k".into(), 3, by()).await.unwrap().value);
    stored.command(&format!("ZADD {LOCK} 1 {reader}:1")).await;
    assert!(store.resize("k".into(), 3, by()).await.unwrap().value);
    assert!(stored.server().keys("*").await.is_empty());
}

#[tokio::test]
async fn places_of_another_kind_get_no_share() {
    let stored = Stored::new().await;
    let (leaves, stays, next, other) = (owner(0, 1), owner(0, 2), owner(0, 3), owner(0, 4));
    let (two, three) = (permits(2, 5), permits(3, 5));
    stored.takes(leaves, two).await;
    stored.takes(stays, two).await;
    stored.queues(next, three, 0).await;
    stored
        .command(&format!("ZADD {QUEUE} 0 0:1000:1:2147483647:{other}"))
        .await;
    stored.frees(leaves, two).await;
    stored.hears(&[next]).await;
    assert_eq!(stored.number("ZSCORE lock:k used").await, -5);
    stored.frees(stays, two).await;
    stored.frees(next, three).await;
    stored.takes(leaves, Some(Share::READ)).await;
    stored.takes(stays, Some(Share::READ)).await;
    stored
        .command(&format!("ZADD {QUEUE} 0 0:1000:1:5:{other}"))
        .await;
    stored.frees(leaves, Some(Share::READ)).await;
    assert_eq!(stored.number("ZSCORE lock:k used").await, -1);
    stored.frees(stays, Some(Share::READ)).await;
    stored.hears(&[next]).await;
    assert!(stored.server().keys("*").await.is_empty());
}

#[tokio::test]
async fn a_fence_counter_that_is_spoilt_grants_nothing() {
    let stored = Stored::new().await;
    let (me, next, last) = (owner(0, 1), owner(0, 2), owner(0, 3));
    for counter in ["x", "-1", "9007199254740991", "99999999999999999999"] {
        stored.two.heard[0].0.lock().unwrap().clear();
        stored.command(&format!("SET {FENCE} {counter}")).await;
        for share in WHOLES {
            assert_eq!(stored.fenced(me, share, 1).await, None, "{counter}");
            assert_eq!(stored.number("EXISTS lock:k").await, 0, "{counter}");
            stored.takes(me, share).await;
            assert_eq!(stored.fence(me, share).await, Fenced::Conflict);
            // Who waits for a token can't have the lock; who needs none can.
            stored.queues(next, share, 1).await;
            stored.queues(last, share, 0).await;
            stored.frees(me, share).await;
            stored.frees(last, share).await;
        }
        stored.hears(&[last; WHOLES.len()]).await;
        let both = stored.all(me, &["a", "k"], 1).await;
        assert_eq!(both, AcquiredAll::Conflict(1), "{counter}");
        assert_eq!(stored.server().keys("*").await, [FENCE], "{counter}");
        let left: String = stored.server().query(&["GET", FENCE]).await;
        assert_eq!(left, counter);
    }
    stored.command(&format!("DEL {FENCE}")).await;
    stored.command(&format!("HSET {FENCE} field 1")).await;
    assert_eq!(stored.fenced(me, None, 1).await, None);
    assert_eq!(stored.server().keys("*").await, [FENCE]);
}

#[tokio::test]
async fn a_spoilt_counter_leaves_no_ended_lease_in_use() {
    let stored = Stored::new().await;
    let (me, gone, rests) = (owner(0, 1), owner(0, 2), owner(0, 3));
    for spoilt in [true, false] {
        stored.takes(gone, permits(2, 5)).await;
        stored.takes(rests, permits(1, 5)).await;
        stored.command(&format!("ZADD {LOCK} 1 {gone}:2")).await;
        stored.command(&format!("SET {FENCE} x")).await;
        if spoilt {
            assert_eq!(stored.fenced(me, permits(1, 5), 1).await, None);
        } else {
            assert_eq!(stored.fence(rests, permits(1, 5)).await, Fenced::Conflict);
        }
        assert_eq!(stored.number("ZSCORE lock:k used").await, -1);
        assert_eq!(stored.number("ZCARD lock:k").await, 3);
        stored.frees(rests, permits(1, 5)).await;
    }
}

#[tokio::test]
async fn tokens_follow_the_counter_or_the_clock_and_so_many_are_reserved() {
    let stored = Stored::new().await;
    let (me, next) = (owner(0, 1), owner(0, 2));
    let day = Duration::from_secs(86400);
    let counter = async || -> u64 { stored.server().query(&["GET", FENCE]).await };
    for share in WHOLES {
        // A counter that was lost begins above every token that there was.
        stored.command(&format!("DEL {FENCE}")).await;
        let before = micros();
        let first = stored.fenced(me, share, 3).await.unwrap();
        assert!((before..=micros()).contains(&first), "{before} {first}");
        assert_eq!(counter().await, first + 2);
        stored.lives(FENCE, day).await;
        stored.frees(me, share).await;
        // One that is ahead of the clock is followed, one by one.
        let ahead = micros() + 3_600_000_000;
        stored.command(&format!("SET {FENCE} {ahead}")).await;
        assert_eq!(stored.fenced(me, share, 3).await, Some(ahead + 1));
        assert_eq!(counter().await, ahead + 3);
        stored.lives(FENCE, day).await;
        assert_eq!(stored.fence(me, share).await, Fenced::Token(ahead + 4));
        assert_eq!(counter().await, ahead + 4);
        // Handed over, too.
        stored.queues(next, share, 2).await;
        stored.frees(me, share).await;
        let told = async || stored.two.heard[0].0.lock().unwrap().pop();
        eventually("it is told", async || {
            told().await == Some((next, Some(ahead + 5)))
        })
        .await;
        assert_eq!(counter().await, ahead + 6);
        stored.frees(next, share).await;
        let both = stored.all(me, &["k"], 2).await;
        let tokens = vec![Some(ahead + 7)];
        assert_eq!(both, AcquiredAll::Granted { tokens });
        assert_eq!(counter().await, ahead + 8);
        stored.frees(me, None).await;
    }
}

#[tokio::test]
async fn the_last_tokens_are_given_and_none_that_a_double_cannot_hold() {
    let stored = Stored::new().await;
    let me = owner(0, 1);
    for (counter, tokens, first) in [
        (LAST_TOKEN - 1, 1, Some(LAST_TOKEN)),
        (LAST_TOKEN - 1, 2, None),
        (LAST_TOKEN - 3, 3, Some(LAST_TOKEN - 2)),
        (LAST_TOKEN, 1, None),
    ] {
        stored.command(&format!("SET {FENCE} {counter}")).await;
        assert_eq!(stored.fenced(me, None, tokens).await, first);
        if first.is_some() {
            stored.frees(me, None).await;
        }
    }
    stored.command(&format!("SET {FENCE} 0")).await;
    assert!(stored.fenced(me, None, 1).await > Some(0));
}

#[tokio::test]
async fn a_set_lives_a_second_longer_than_its_longest_lease() {
    let stored = Stored::new().await;
    let (long, short) = (owner(0, 1), owner(0, 2));
    let slack = Duration::from_secs(1);
    let share = permits(1, 5);
    let takes = async |owner, lease| {
        let request = request(owner, share, Queue::Respect);
        stored.ask(Acquire { lease, ..request }).await
    };
    takes(long, LEASE).await;
    stored.lives(LOCK, LEASE + slack).await;
    takes(short, LEASE / 2).await;
    stored.lives(LOCK, LEASE + slack).await;
    // A repeat makes it longer, and never shorter.
    takes(short, LEASE * 2).await;
    stored.lives(LOCK, LEASE * 2 + slack).await;
    takes(short, LEASE).await;
    stored.lives(LOCK, LEASE * 2 + slack).await;
    assert_eq!(
        stored.renews(long, share, LEASE * 3).await,
        Renewed::Renewed
    );
    stored.lives(LOCK, LEASE * 3 + slack).await;
    assert_eq!(stored.renews(short, share, LEASE).await, Renewed::Renewed);
    stored.lives(LOCK, LEASE * 3 + slack).await;
    assert_eq!(stored.number("ZSCORE lock:k used").await, -2);
    let ends = stored.number(&format!("ZSCORE {LOCK} {short}:1")).await;
    let ends = u64::try_from(ends).unwrap();
    assert!(ends > micros() + 19_000_000 && ends < micros() + 20_000_000);
}

#[tokio::test]
async fn an_exclusive_lease_is_kept_to_the_millisecond() {
    let stored = Stored::new().await;
    let me = owner(0, 1);
    let asks = async |lease| {
        let join = request(me, None, Queue::Join);
        stored.ask(Acquire { lease, ..join }).await
    };
    for (lease, left) in [(2, 2), (1, 2), (3, 3)] {
        asks(LEASE * lease).await;
        stored.lives(LOCK, LEASE * left).await;
    }
    assert_eq!(stored.renews(me, None, LEASE).await, Renewed::Renewed);
    stored.lives(LOCK, LEASE * 3).await;
    assert_eq!(stored.renews(me, None, LEASE * 4).await, Renewed::Renewed);
    stored.lives(LOCK, LEASE * 4).await;
    stored.ends(me, None, LEASE / 2).await;
    stored.lives(LOCK, LEASE / 2).await;
    // Several at once, too.
    stored.command("DEL lock:k").await;
    for (left, then) in [(LEASE / 5, LEASE), (LEASE * 5, LEASE * 5)] {
        stored.all(me, &["k"], 0).await;
        let millis = left.as_millis();
        stored.command(&format!("PEXPIRE {LOCK} {millis}")).await;
        let tokens = vec![None];
        let again = stored.all(me, &["k"], 0).await;
        assert_eq!(again, AcquiredAll::Granted { tokens });
        stored.lives(LOCK, then).await;
    }
}

#[tokio::test]
async fn a_lease_that_has_ended_is_taken_out_by_whoever_finds_it() {
    let stored = Stored::new().await;
    let (gone, rests, me) = (owner(0, 1), owner(0, 2), owner(0, 3));
    let (two, one) = (permits(2, 5), permits(1, 5));
    for finder in 0..8 {
        stored.takes(gone, two).await;
        stored.takes(rests, one).await;
        stored.command(&format!("ZADD {LOCK} 1 {gone}:2")).await;
        let store = &stored.two.stores[0];
        let mut used = 1;
        match finder {
            // Its own repeat changes nothing else.
            0 => {
                let repeat = request(rests, one, Queue::Respect);
                let lease = LEASE / 2;
                stored.ask(Acquire { lease, ..repeat }).await;
            }
            1 => assert_eq!(stored.all(me, &["k"], 0).await, AcquiredAll::Conflict(0)),
            2 => {
                let other = stored.ask(request(me, None, Queue::Join)).await;
                assert_eq!(other, Acquired::Conflict);
            }
            3 => {
                let reply = stored.ask(request(me, permits(5, 5), Queue::Respect)).await;
                assert!(matches!(reply, Acquired::Busy { .. }), "{reply:?}");
            }
            4 => assert_eq!(stored.abandons(me, one).await, Released::NotHeld),
            5 => assert_eq!(
                stored.ends(me, one, Duration::ZERO).await,
                Released::NotHeld
            ),
            6 => {
                let shrunk = store.shrink(claim(me, two), 1, by()).await;
                assert_eq!(shrunk.unwrap().value, Released::NotHeld);
            }
            _ => {
                assert!(matches!(stored.fence(rests, one).await, Fenced::Token(_)));
                stored.takes(me, two).await;
                used = 3;
            }
        }
        assert_eq!(stored.number("ZSCORE lock:k used").await, -used, "{finder}");
        let gone = format!("{gone}:2");
        let left: Option<f64> = stored.server().query(&["ZSCORE", LOCK, &gone]).await;
        assert_eq!(left, None, "{finder}");
        stored.command("DEL lock:k").await;
    }
}

#[tokio::test]
async fn places_are_numbered_in_turn_and_a_queue_is_forgotten_after_a_minute() {
    let stored = Stored::new().await;
    let minute = Duration::from_secs(60);
    stored.takes(owner(0, 1), None).await;
    let scores = async || -> Vec<i64> {
        let words = ["ZRANGE", QUEUE, "0", "-1", "WITHSCORES"];
        let found: Vec<String> = stored.server().query(&words).await;
        let scores = found.iter().skip(1).step_by(2);
        scores.map(|score| score.parse().unwrap()).collect()
    };
    for request in 2..5 {
        stored.queues(owner(0, request), None, 0).await;
    }
    assert_eq!(scores().await, [1, 2, 3]);
    stored.abandons(owner(0, 2), None).await;
    stored.queues(owner(0, 5), None, 0).await;
    assert_eq!(scores().await, [2, 3, 4]);
    stored.command(&format!("PEXPIRE {QUEUE} 5000")).await;
    stored.queues(owner(0, 3), None, 0).await;
    assert_eq!(scores().await, [2, 3, 4]);
    stored.lives(QUEUE, minute).await;
}

#[tokio::test]
async fn who_finds_it_taken_is_told_when_the_first_lease_ends() {
    let stored = Stored::new().await;
    let (long, short) = (owner(0, 1), owner(0, 2));
    let ends = async |share| match stored
        .ask(request(owner(0, 3), share, Queue::Respect))
        .await
    {
        Acquired::Busy { remaining, .. } => remaining.unwrap(),
        other => panic!("{other:?}"),
    };
    let within = |left: Duration, longest: Duration| {
        assert!(left <= longest && left * 10 > longest * 9, "{left:?}");
    };
    stored.takes(long, permits(3, 5)).await;
    within(ends(permits(3, 5)).await, LEASE);
    let respect = request(short, permits(1, 5), Queue::Respect);
    let lease = LEASE / 2;
    stored.ask(Acquire { lease, ..respect }).await;
    within(ends(permits(3, 5)).await, LEASE / 2);
    let found = stored.two.stores[0].inspect("k".into(), by()).await;
    let found = found.unwrap().value.unwrap();
    assert_eq!(found.holders, 2);
    assert_eq!(found.holder, Some(format!("{long}:3")));
    within(found.remaining.unwrap(), LEASE);
    // Leases that have ended are nobody's, also before somebody takes them out.
    stored.command(&format!("ZADD {LOCK} 1 {short}:1")).await;
    let found = stored.two.stores[0].inspect("k".into(), by()).await;
    assert_eq!(found.unwrap().value.unwrap().holders, 1);
    stored.command(&format!("ZADD {LOCK} 1 {long}:3")).await;
    let found = stored.two.stores[0].inspect("k".into(), by()).await;
    let found = found.unwrap().value.unwrap();
    assert_eq!(
        (found.holder, found.holders, found.remaining),
        (None, 0, None)
    );
    stored.takes(short, None).await;
    within(ends(None).await, LEASE);
}
