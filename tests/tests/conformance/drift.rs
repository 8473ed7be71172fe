//! The two stores side by side, driven by the same random steps: the same replies, the same grants told, and in Redis
//! the number of permits in use is at every moment the sum of those that the holders have.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lock_runtime::Clock;
use lock_runtime::store::memory::MemoryStore;
use lock_runtime::store::redis::RedisStore;
use lock_runtime::store::{
    Acquire, Acquired, Claim, ClientId, Fenced, Listener, Owner, Queue, Release, Renewal, Share,
    Store,
};
use lock_tests::RedisServer;
use tokio::runtime::{Builder, Runtime};

use super::verbs::{Heard, by};

const STEPS: usize = 400;
const SEEDS: u64 = 25;

/// Leases end in the middle between the moments to which time is set, so that what the test takes itself decides nothing.
const LEASES: [u64; 3] = [1050, 2050, 3050];
const FIRST_LEASE: Duration = Duration::from_secs(750);
const KEEPS: [u64; 2] = [0, 1550];
const TICKS: [u64; 2] = [400, 1100];

/// What holds a key and what is in its set: {type, `used`, sum over the members, time to live, longest lease}.
const LOOK: &str = r"
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'zset' then return {kind, 0, 0, redis.call('PTTL', KEYS[1]), 0} end
local sum, last, time = 0, 0, redis.call('TIME')
local all = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
for i = 1, #all, 2 do
  if tonumber(all[i + 1]) > 0 then
    sum, last = sum + string.match(all[i], ':(%d+)$'), math.max(last, all[i + 1])
  end
end
return {kind, -redis.call('ZSCORE', KEYS[1], 'used'), sum, redis.call('PTTL', KEYS[1]),
  math.floor((last - time[1] * 1000000 - time[2]) / 1000)}";

/// Lets all leases of a key end so many milliseconds earlier.
const TICK: &str = r"
local kind, millis = redis.call('TYPE', KEYS[1]).ok, tonumber(ARGV[1])
if kind == 'none' then return 0 end
if kind == 'zset' then
  local all = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
  for i = 1, #all, 2 do
    if tonumber(all[i + 1]) > 0 then redis.call('ZINCRBY', KEYS[1], -millis * 1000, all[i]) end
  end
end
redis.call('PEXPIRE', KEYS[1], redis.call('PTTL', KEYS[1]) - millis)
return 1";

/// The generator of Steele, Lea and Flood (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        let at = usize::try_from(self.below(all.len() as u64)).unwrap();
        all[at]
    }
}

/// One request of a client, with what it believes it has.
#[derive(Clone, Debug)]
struct Request {
    /// Through which of the two clients it talks.
    through: usize,
    acquire: Acquire,
    /// Its share, as later commands name it.
    claims: Option<Share>,
}

struct Stores {
    real: Runtime,
    paused: Runtime,
    server: RedisServer,
    look: String,
    tick: String,
}

/// One kind of store with its two clients.
struct Side {
    stores: [Arc<dyn Store>; 2],
    heard: [Arc<Heard>; 2],
    last_token: HashMap<String, u64>,
}

impl Side {
    fn heard(&self) -> [Vec<(Owner, bool)>; 2] {
        let told = |heard: &Arc<Heard>| {
            let heard = heard.0.lock().unwrap();
            heard.iter().map(|(o, t)| (*o, t.is_some())).collect()
        };
        [told(&self.heard[0]), told(&self.heard[1])]
    }

    fn note_token(&mut self, key: &str, token: Option<u64>) {
        if let Some(token) = token {
            let last = self.last_token.insert(key.to_owned(), token);
            assert!(last < Some(token), "{token} after {last:?}");
        }
    }
}

/// Rounded so that what the test takes itself makes no difference.
fn rounded(remaining: Option<Duration>) -> Option<u64> {
    remaining.map(|left| left.as_secs().div_ceil(100))
}

#[derive(Clone, Debug)]
enum Verb {
    Acquire(Queue),
    Renew(Duration),
    Release(Duration),
    Abandon,
    Shrink(u32),
    Fence,
    Resize(u32),
    Inspect,
    ForceRelease,
}

async fn run(side: &mut Side, request: &Request, verb: &Verb) -> String {
    let store = Arc::clone(&side.stores[request.through]);
    let key = request.acquire.claim.key.clone();
    let claim = Claim {
        share: request.claims,
        ..request.acquire.claim.clone()
    };
    match verb {
        Verb::Acquire(queue) => {
            let acquire = Acquire {
                queue: *queue,
                ..request.acquire.clone()
            };
            match store.acquire(acquire, by()).await.unwrap().value {
                Acquired::Granted { token } => {
                    side.note_token(key.as_str(), token);
                    format!("granted {}", token.is_some())
                }
                Acquired::Busy { remaining, queued } => {
                    format!("busy {:?} {queued}", rounded(remaining))
                }
                Acquired::Conflict => "conflict".to_owned(),
            }
        }
        Verb::Renew(lease) => {
            let renewal = Renewal {
                claim,
                lease: *lease,
            };
            format!(
                "{:?}",
                store.renew(vec![renewal], by()).await.unwrap().value
            )
        }
        Verb::Release(keep) => {
            let release = Release { claim, keep: *keep };
            format!(
                "{:?}",
                store.release(vec![release], by()).await.unwrap().value
            )
        }
        Verb::Abandon => {
            let reply = store.abandon(request.acquire.clone(), by()).await.unwrap();
            format!("{:?}", reply.value)
        }
        Verb::Shrink(rest) => {
            let reply = store.shrink(claim, *rest, by()).await.unwrap();
            format!("{:?}", reply.value)
        }
        Verb::Fence => match store.fence(claim, by()).await.unwrap().value {
            Fenced::Token(token) => {
                side.note_token(key.as_str(), Some(token));
                "token".to_owned()
            }
            other => format!("{other:?}"),
        },
        Verb::Resize(of) => format!("{:?}", store.resize(key, *of, by()).await.unwrap().value),
        Verb::Inspect => {
            let found = store.inspect(key, by()).await.unwrap().value.unwrap();
            let (held, left) = (found.holder.is_some(), rounded(found.remaining));
            format!("{held} {} {left:?} {}", found.holders, found.waiting)
        }
        Verb::ForceRelease => {
            format!("{:?}", store.force_release(key, by()).await.unwrap().value)
        }
    }
}

/// A new request, mostly of the kind of that scenario; now and then of a client that nobody has heard of for long.
fn request(random: &mut Random, focus: u64, key: &str, number: u64) -> Request {
    let through = usize::try_from(random.below(2)).unwrap();
    let dead = random.below(6) == 0;
    let client = if dead { 99 } else { through as u128 + 1 };
    let permits = |random: &mut Random, of: u32| Share {
        permits: u32::try_from(random.below(u64::from(of))).unwrap() + 1,
        of,
    };
    // Mostly of one kind, since they get in each other's way.
    let kind = if random.below(10) < 8 {
        focus % 4
    } else {
        random.below(5)
    };
    let share = match kind {
        0 | 1 if random.below(3) > 0 => Some(Share::READ),
        0 | 1 => Some(Share::WRITE),
        2 => Some(permits(random, 3)),
        3 => Some(permits(random, 5)),
        _ => None,
    };
    Request {
        through,
        acquire: Acquire {
            claim: Claim {
                key: key.into(),
                owner: Owner {
                    client: ClientId(client),
                    request: number,
                },
                share,
            },
            lease: Duration::from_secs(random.of(&LEASES)),
            first_lease: FIRST_LEASE,
            tokens: random.of(&[0, 0, 1, 3]),
            queue: Queue::Join,
            instead_of: None,
        },
        claims: share,
    }
}

fn verb(random: &mut Random, request: &mut Request) -> Verb {
    match random.below(30) {
        0..=6 => Verb::Acquire(Queue::Join),
        7 | 8 => Verb::Acquire(Queue::Respect),
        // The plain command, which can't tell a conflict, is for tests of its own.
        9 if request.acquire.claim.share.is_none() && request.acquire.tokens > 0 => {
            Verb::Acquire(Queue::Barge)
        }
        10..=13 => Verb::Renew(Duration::from_secs(random.of(&LEASES))),
        14..=19 => Verb::Release(Duration::from_secs(random.of(&KEEPS))),
        20 | 21 => Verb::Abandon,
        22..=24 => match request.claims {
            Some(share) => {
                // As after a downgrade of which nobody knows how it ended: what is claimed is what it then has at least.
                let rest = if share.of == Share::READ_WRITE {
                    1
                } else {
                    u32::try_from(random.below(u64::from(share.permits))).unwrap() + 1
                };
                if share.of == Share::READ_WRITE && random.below(3) == 0 {
                    request.claims = Some(Share::READ);
                }
                Verb::Shrink(rest)
            }
            None => Verb::Inspect,
        },
        25 => Verb::Fence,
        26 => Verb::Resize(u32::try_from(random.below(6)).unwrap() + 1),
        27 if random.below(3) == 0 => Verb::ForceRelease,
        _ => Verb::Inspect,
    }
}

#[test]
fn the_stores_agree_over_random_steps_and_permits_in_use_are_those_of_the_holders() {
    let real = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let server = real.block_on(RedisServer::start());
    let load =
        |script: &'static str| real.block_on(server.query::<String>(&["SCRIPT", "LOAD", script]));
    let (look, tick) = (load(LOOK), load(TICK));
    let paused = Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let all = Stores {
        real,
        paused,
        server,
        look,
        tick,
    };
    let seeds = std::env::var("SEED").map_or(0..SEEDS, |seed| {
        let seed = seed.parse().unwrap();
        seed..seed + 1
    });
    for seed in seeds {
        scenario(&all, seed);
    }
}

fn scenario(all: &Stores, seed: u64) {
    let (memory, namespace) = (MemoryStore::new(), format!("seed-{seed}"));
    let side = |redis: bool| {
        let heard = [Arc::<Heard>::default(), Arc::default()];
        let store = |number: usize| -> Arc<dyn Store> {
            let listener: Arc<dyn Listener> = heard[number].clone();
            let id = ClientId(number as u128 + 1);
            if redis {
                let _entered = all.real.enter();
                let clock = Clock::new(all.real.handle().clone());
                RedisStore::connect(&all.server.url(), &namespace, id, &listener, clock).unwrap()
            } else {
                let clock = Clock::simulated(all.paused.handle().clone());
                memory.connect(&namespace, id, &listener, clock)
            }
        };
        Side {
            stores: [store(0), store(1)],
            heard: heard.clone(),
            last_token: HashMap::new(),
        }
    };
    let (mut redis, mut embedded) = (side(true), side(false));
    let mut random = Random(seed);
    let key = format!("{namespace}:k");
    let mut numbers = 0;
    let mut fresh = |random: &mut Random| {
        numbers += 1;
        request(random, seed, "k", numbers)
    };
    let mut requests: Vec<Request> = (0..7).map(|_| fresh(&mut random)).collect();
    let mut steps = Vec::new();
    for step in 0..STEPS {
        let at = usize::try_from(random.below(requests.len() as u64)).unwrap();
        match random.below(20) {
            0 => {
                let secs = random.of(&TICKS);
                steps.push(format!("{step}: {secs} s later"));
                all.paused
                    .block_on(tokio::time::advance(Duration::from_secs(secs)));
                let millis = (secs * 1000).to_string();
                all.real.block_on(
                    all.server
                        .command(&["EVALSHA", &all.tick, "1", &key, &millis]),
                );
            }
            1 => requests[at] = fresh(&mut random),
            _ => {
                let verb = verb(&mut random, &mut requests[at]);
                let other = usize::try_from(random.below(requests.len() as u64)).unwrap();
                let other = requests[other].acquire.claim.owner;
                requests[at].acquire.instead_of = (random.below(4) == 0).then_some(other);
                let request = &requests[at];
                let claim = (&request.acquire.claim.share, request.claims);
                let (owner, tokens) = (request.acquire.claim.owner, request.acquire.tokens);
                let name = format!(
                    "{step}: {:x}-{:x} {claim:?} tokens={tokens} {verb:?}",
                    owner.client.0, owner.request
                );
                let expected = all.real.block_on(run(&mut embedded, request, &verb));
                steps.push(format!("{name} -> {expected}"));
                let reply = all.real.block_on(run(&mut redis, request, &verb));
                assert_eq!(
                    reply,
                    expected,
                    "seed {seed}, Redis against memory, after\n{}",
                    last(&steps)
                );
                if matches!(verb, Verb::Shrink(_)) && reply == "Released" {
                    let (of, Verb::Shrink(permits)) = (request.claims, verb) else {
                        continue;
                    };
                    let share = of.map(|share| Share { permits, ..share });
                    requests[at].claims = share;
                    // Only of a writer may an acquire still come late.
                    if of.is_some_and(|share| share.of != Share::READ_WRITE) {
                        requests[at].acquire.claim.share = share;
                    }
                }
            }
        }
        check(all, &redis, &embedded, &key, || {
            format!("seed {seed}, after\n{}", last(&steps))
        });
    }
}

fn last(steps: &[String]) -> String {
    steps[steps.len().saturating_sub(40)..].join("\n")
}

fn check(all: &Stores, redis: &Side, memory: &Side, key: &str, after: impl Fn() -> String) {
    let (kind, used, sum, ttl, lease): (String, i64, i64, i64, i64) = all
        .real
        .block_on(all.server.query(&["EVALSHA", &all.look, "1", key]));
    assert_eq!(used, sum, "permits in use against those held, {}", after());
    if kind == "zset" {
        assert!(sum > 0, "an empty set stays, {}", after());
        assert!(ttl >= lease, "{ttl} ms to live of {lease}, {}", after());
    }
    assert!(kind == "none" || ttl > 0, "{kind} without TTL, {}", after());
    let started = Instant::now();
    while redis.heard() != memory.heard() {
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "told in Redis {:?}\nand in memory {:?}\n{}",
            redis.heard(),
            memory.heard(),
            after()
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}
