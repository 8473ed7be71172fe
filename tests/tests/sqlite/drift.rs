//! Drives SQLite and the embedded store, which is the specification, with the same random commands.
//! Both give the same replies and announce the same grants.
//!
//! `LOCK_DRIFT_COMMANDS` sets how many (default 20,000).

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lock_store::memory::MemoryStore;
use lock_store::{
    Acquire, Acquired, AcquiredAll, Busy, Claim, ClientId, Clock, Fenced, Granted,
    Instant as StoreInstant, Listener, Owner, Permits, Queue, Release, Renewal, Store,
};
use lock_testkit::{Heard, SqliteFile, StoreUnderTest, context};
use tokio::runtime::{Builder, Runtime};

const STEPS: usize = 300;

/// Leases end halfway between the instants to which time is set. So the test's own duration changes
/// no result.
const LEASES: [u64; 3] = [1050, 2050, 3050];
const FIRST_LEASE: Duration = Duration::from_secs(750);
const KEEPS: [u64; 2] = [0, 1550];
/// In milliseconds. The short ones decide about places: after two of them a client stands still,
/// and after three a wait has ended. The test itself may take half a second between them.
const TICKS: [u64; 4] = [400_000, 1_100_000, 1100, 1100];
const WAITS: [Option<Duration>; 3] = [
    None,
    Some(Duration::from_millis(2750)),
    Some(Duration::from_secs(750)),
];
const KEYS: [&str; 2] = ["k", "l"];

/// The generator of Steele, Lea and Flood (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % end
    }

    fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap()
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.index(all.len())]
    }
}

/// One kind of store with its two clients.
struct Side {
    stores: [Arc<dyn Store>; 2],
    heard: [Arc<Heard>; 2],
    last_token: HashMap<String, u64>,
}

impl Side {
    fn new(open: impl Fn(ClientId, &Arc<dyn Listener>) -> Arc<dyn Store>) -> Self {
        let heard = [Arc::<Heard>::default(), Arc::default()];
        let store = |number: usize| {
            let listener: Arc<dyn Listener> = heard[number].clone();
            open(ClientId(number as u128 + 1), &listener)
        };
        Self {
            stores: [store(0), store(1)],
            heard: heard.clone(),
            last_token: HashMap::new(),
        }
    }

    fn heard(&self) -> [Vec<(Owner, bool)>; 2] {
        let told = |heard: &Arc<Heard>| {
            let heard = heard.0.lock().unwrap();
            heard.iter().map(|(o, t)| (*o, t.is_some())).collect()
        };
        [told(&self.heard[0]), told(&self.heard[1])]
    }

    fn note_token(&mut self, key: &str, token: Option<u64>) -> bool {
        if let Some(token) = token {
            let last = self.last_token.insert(key.to_owned(), token);
            assert!(last < Some(token), "{token} after {last:?}");
        }
        token.is_some()
    }
}

/// A client's request, and what it believes to have.
#[derive(Clone, Debug)]
struct Request {
    through: usize,
    acquire: Acquire,
    /// Its permits, as later commands claim them.
    claims: Option<Permits>,
}

#[derive(Clone, Debug)]
enum Verb {
    Acquire(Queue),
    AcquireAll(Queue),
    Renew(Duration),
    Release(Duration),
    Abandon,
    Shrink(u32),
    Fence,
    Inspect,
    ForceRelease,
}

fn by() -> StoreInstant {
    StoreInstant::now() + Duration::from_secs(10)
}

/// Rounded, so that the test's own duration makes no difference.
fn rounded(remaining: Option<Duration>) -> Option<u64> {
    remaining.map(|left| left.as_secs().div_ceil(100))
}

/// `forgets`: there are places that were passed over. The stores forget them at different times.
async fn run(side: &mut Side, request: &Request, verb: &Verb, forgets: bool) -> String {
    let store = Arc::clone(&side.stores[request.through]);
    let acquire = request.acquire.clone();
    let key = acquire.claim.key.clone();
    let mut claim = acquire.claim.clone();
    claim.permits = request.claims;
    match verb {
        Verb::Acquire(queue) => {
            let acquire = {
                let mut request = acquire;
                request.queue = *queue;
                request
            };
            match store.acquire(acquire, by()).await.unwrap().value {
                Acquired::Granted(Granted { token, limit, .. }) => {
                    let fenced = side.note_token(key.as_str(), token);
                    format!("granted {fenced} {limit:?}")
                }
                Acquired::Busy(Busy {
                    remaining,
                    queued,
                    holder,
                    limit,
                    ..
                }) => {
                    // Of several holds that end at the same time, each store names another.
                    let exclusive = holder.filter(|_| claim.permits.is_none());
                    let remaining = rounded(remaining);
                    let queued = queued && (*queue == Queue::Join || !forgets);
                    format!("busy {remaining:?} {queued} {exclusive:?} {limit:?}")
                }
                Acquired::Conflict => "conflict".to_owned(),
            }
        }
        Verb::AcquireAll(queue) => {
            let of_key = |key: &str| {
                let mut request = acquire.clone();
                request.claim = Claim::new(key.into(), acquire.claim.owner, None);
                request.queue = *queue;
                request
            };
            let requests = KEYS.map(of_key).to_vec();
            match store.acquire_all(requests, by()).await.unwrap().value {
                AcquiredAll::Granted { tokens, .. } => {
                    let tokens = KEYS.iter().zip(tokens);
                    let fenced: Vec<bool> = tokens
                        .map(|(key, token)| side.note_token(key, token))
                        .collect();
                    format!("granted {fenced:?}")
                }
                other => format!("{other:?}"),
            }
        }
        Verb::Renew(lease) => {
            let lease = *lease;
            let renewed = store.renew(vec![Renewal::new(claim, lease)], by()).await;
            format!("{:?}", renewed.unwrap().value)
        }
        Verb::Release(keep) => {
            let keep = *keep;
            let released = store.release(vec![Release::new(claim, keep)], by()).await;
            format!("{:?}", released.unwrap().value)
        }
        Verb::Abandon => format!("{:?}", store.abandon(acquire, by()).await.unwrap().value),
        Verb::Shrink(rest) => {
            let shrunk = store.shrink(claim, *rest, by()).await;
            format!("{:?}", shrunk.unwrap().value)
        }
        Verb::Fence => match store.fence(claim, by()).await.unwrap().value {
            Fenced::Token(token) => {
                side.note_token(key.as_str(), Some(token));
                "token".to_owned()
            }
            other => format!("{other:?}"),
        },
        Verb::Inspect => {
            let found = store.inspect(key, by()).await.unwrap().value.unwrap();
            let (held, left) = (found.holder.is_some(), rounded(found.remaining));
            let waiting = (!forgets).then_some(found.waiting);
            format!("{held} {} {left:?} {waiting:?}", found.holders)
        }
        Verb::ForceRelease => {
            format!("{:?}", store.force_release(key, by()).await.unwrap().value)
        }
    }
}

/// A new request, mostly of the scenario's kind.
fn request(random: &mut Random, focus: u64, number: u64) -> Request {
    let through = random.index(2);
    let permits = |random: &mut Random, of: u32| Permits {
        count: u32::try_from(random.below(u64::from(of))).unwrap() + 1,
        of,
    };
    let kind = match random.below(10) {
        0..8 => focus % 5,
        _ => random.below(5),
    };
    let permits = match kind {
        0 if random.below(3) > 0 => Some(Permits::READ),
        0 => Some(Permits::WRITE),
        1 => Some(permits(random, 3)),
        2 => Some(permits(random, 5)),
        _ => None,
    };
    let client = ClientId(through as u128 + 1);
    Request {
        through,
        acquire: {
            let mut request = Acquire::new(
                Claim::new(
                    random.of(&["k", "k", "l"]).into(),
                    Owner {
                        client,
                        request: number,
                    },
                    permits,
                ),
                Duration::from_secs(random.of(&LEASES)),
            );
            request.first_lease = FIRST_LEASE;
            request.wait = random.of(&WAITS);
            request.tokens = random.of(&[0, 0, 1, 3]);
            request.queue = Queue::Join;
            request
        },
        claims: permits,
    }
}

fn verb(random: &mut Random, request: &mut Request) -> Verb {
    match random.below(30) {
        0..=6 => Verb::Acquire(Queue::Join),
        7 | 8 => Verb::Acquire(Queue::Respect),
        9 | 10 if request.claims.is_none() => {
            Verb::AcquireAll(random.of(&[Queue::Barge, Queue::Respect]))
        }
        11..=13 => Verb::Renew(Duration::from_secs(random.of(&LEASES))),
        14..=19 => Verb::Release(Duration::from_secs(random.of(&KEEPS))),
        20 | 21 => Verb::Abandon,
        22..=24 => match request.claims {
            Some(permits) if permits.of == Permits::READ_WRITE => {
                if random.below(3) == 0 {
                    request.claims = Some(Permits::READ);
                }
                Verb::Shrink(1)
            }
            Some(permits) => {
                Verb::Shrink(u32::try_from(random.below(u64::from(permits.count))).unwrap() + 1)
            }
            None => Verb::Inspect,
        },
        25 => Verb::Fence,
        26 if random.below(3) == 0 => Verb::ForceRelease,
        _ => Verb::Inspect,
    }
}

struct Both {
    real: Runtime,
    paused: Runtime,
    file: SqliteFile,
    sqlite: Side,
    memory: Side,
    steps: Vec<String>,
}

impl Both {
    fn new() -> Self {
        let real = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let paused = Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let (file, embedded) = (SqliteFile::new(), MemoryStore::new());
        let sqlite = Side::new(|id, listener| {
            let clock = Clock::new(real.handle().clone());
            file.store(id, listener, clock)
        });
        for store in &sqlite.stores {
            real.block_on(store.connected(by())).unwrap();
        }
        let memory = Side::new(|id, listener| {
            let clock = Clock::simulated(paused.handle().clone());
            embedded.connect(context("lock", id, listener, clock))
        });
        Self {
            real,
            paused,
            file,
            sqlite,
            memory,
            steps: Vec::new(),
        }
    }

    fn compare(&mut self, request: &Request, verb: &Verb) -> String {
        let passed_over = "SELECT count(*) FROM place WHERE passed_over IS NOT NULL";
        let forgets = self.file.number(passed_over) > 0;
        let memory = run(&mut self.memory, request, verb, forgets);
        let expected = self.real.block_on(memory);
        let owner = request.acquire.claim.owner;
        self.steps.push(format!(
            "{}-{} {:?} {:?} {verb:?} -> {expected}",
            owner.client.0, owner.request, request.acquire.claim.key, request.claims
        ));
        let sqlite = run(&mut self.sqlite, request, verb, forgets);
        let reply = self.real.block_on(sqlite);
        assert_eq!(reply, expected, "SQLite against memory, {}", self.after());
        let started = Instant::now();
        while self.sqlite.heard() != self.memory.heard() {
            let (sqlite, memory) = (self.sqlite.heard(), self.memory.heard());
            assert!(
                started.elapsed() < Duration::from_secs(5),
                "told by SQLite {sqlite:?}\nand by memory {memory:?}\n{}",
                self.after()
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        reply
    }

    /// Lets time pass in both stores. In the file, everything ends earlier.
    fn pass_time(&mut self, millis: u64) {
        self.steps.push(format!("{millis} ms later"));
        let advance = async || tokio::time::advance(Duration::from_millis(millis)).await;
        self.paused.block_on(advance());
        let by = millis * 1_000_000;
        let earlier = format!(
            "BEGIN IMMEDIATE;
             UPDATE hold SET ends = ends - {by};
             UPDATE place SET ends = ends - {by}, heard = heard - {by},
                 passed_over = passed_over - {by};
             COMMIT"
        );
        self.file.connection().execute_batch(&earlier).unwrap();
    }

    /// For messages: the last steps.
    fn after(&self) -> String {
        let from = self.steps.len().saturating_sub(100);
        let mut text = String::from("after\n");
        for (number, step) in self.steps.iter().enumerate().skip(from) {
            let _ = writeln!(text, "{number}: {step}");
        }
        text
    }
}

#[test]
fn the_rules_are_those_of_the_embedded_store() {
    let wanted = std::env::var("LOCK_DRIFT_COMMANDS");
    let wanted = wanted.map_or(20_000, |number| number.parse().unwrap());
    let (mut done, mut seed) = (0, 0);
    while done < wanted {
        println!("seed {seed}");
        let mut both = Both::new();
        scenario(&mut both, seed);
        done += both.steps.len();
        seed += 1;
    }
}

/// Random commands seldom do this: the first of several readers asks, who wait for a writer whose
/// lease has ended.
fn ask_behind_a_lease_that_ended(both: &mut Both, like: &Request) {
    let asks = |both: &mut Both, number: u64, permits| {
        let mut request = like.clone();
        request.acquire.claim.owner.request = 1000 + number;
        (request.acquire.claim.permits, request.claims) = (Some(permits), Some(permits));
        request.acquire.wait = None;
        both.compare(&request, &Verb::Acquire(Queue::Join))
    };
    asks(both, 0, Permits::WRITE);
    for reader in 1..=3 {
        asks(both, reader, Permits::READ);
    }
    both.pass_time(3_100_000);
    assert!(asks(both, 1, Permits::READ).starts_with("granted"));
}

fn scenario(both: &mut Both, seed: u64) {
    let mut random = Random(seed);
    let mut numbers = 0;
    let mut fresh = |random: &mut Random| {
        numbers += 1;
        request(random, seed, numbers)
    };
    let mut requests: Vec<Request> = (0..7).map(|_| fresh(&mut random)).collect();
    if seed.is_multiple_of(5) {
        ask_behind_a_lease_that_ended(both, &requests[0]);
    }
    for _ in 0..STEPS {
        let at = random.index(requests.len());
        match random.below(20) {
            0 => both.pass_time(random.of(&TICKS)),
            1 => requests[at] = fresh(&mut random),
            _ => {
                let verb = verb(&mut random, &mut requests[at]);
                let other = random.index(requests.len());
                let other = requests[other].acquire.claim.owner;
                requests[at].acquire.instead_of = (random.below(4) == 0).then_some(other);
                let reply = both.compare(&requests[at], &verb);
                if let Verb::Shrink(permits) = verb
                    && reply == "Released"
                {
                    let of = requests[at].claims;
                    requests[at].claims = of.map(|claimed| Permits {
                        count: permits,
                        ..claimed
                    });
                    // An acquire can still arrive late only if it is a writer's.
                    if of.is_some_and(|permits| permits.of != Permits::READ_WRITE) {
                        requests[at].acquire.claim.permits = requests[at].claims;
                    }
                }
            }
        }
    }
}
