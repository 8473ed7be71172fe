//! Exclusive locks of several keys, taken at once and released in batches.

use std::sync::Arc;
use std::time::Duration;

use lock_runtime::LockKey;
use lock_store::{
    Acquire, Acquired, AcquiredAll, Busy, Claim, ClientId, Fenced, Granted, Owner, Queue, Release,
    Renewal,
};

use crate::{
    Both, FIRST_LEASE, KEEPS, LEASES, Random, Side, TICKS, WAITS, by, rounded, to_commands,
};

const STEPS: usize = 400;

const KEYS: [&str; 4] = ["a", "b", "c", "d"];

/// A request for some of the keys, with an owner token for each.
#[derive(Clone, Debug)]
struct Request {
    through: usize,
    claims: Vec<Claim>,
    lease: Duration,
    tokens: u32,
}

#[derive(Clone, Debug)]
enum Verb {
    AcquireAll(Queue),
    /// For the key with this index alone.
    Acquire(usize),
    Abandon(usize),
    Fence(usize),
    Renew,
    Release(Duration),
    Inspect(usize),
    ForceRelease(usize),
}

fn request(random: &mut Random, number: u64) -> Request {
    let through = random.index(2);
    let client = ClientId(through as u128 + 1);
    let first = random.index(KEYS.len());
    let last = first + 1 + random.index(KEYS.len() - first);
    let claim = |(at, key): (usize, &&str)| {
        Claim::new(
            LockKey::from(*key),
            Owner {
                client,
                request: number * 10 + at as u64,
            },
            None,
        )
    };
    Request {
        through,
        claims: KEYS[first..last].iter().enumerate().map(claim).collect(),
        lease: Duration::from_secs(random.of(&LEASES)),
        tokens: random.of(&[0, 1, 3]),
    }
}

fn verb(random: &mut Random, request: &Request) -> Verb {
    let at = random.index(request.claims.len());
    match random.below(24) {
        0..=6 => Verb::AcquireAll(Queue::Respect),
        7 | 8 => Verb::AcquireAll(Queue::Barge),
        9..=11 => Verb::Acquire(at),
        12 | 13 => Verb::Abandon(at),
        14 => Verb::Fence(at),
        15 | 16 => Verb::Renew,
        17..=21 => Verb::Release(Duration::from_secs(random.of(&KEEPS))),
        22 if random.below(3) == 0 => Verb::ForceRelease(at),
        _ => Verb::Inspect(at),
    }
}

impl Request {
    fn acquire(&self, at: usize, queue: Queue) -> Acquire {
        let mut request = Acquire::new(self.claims[at].clone(), self.lease);
        request.first_lease = FIRST_LEASE;
        request.wait = WAITS[1];
        request.tokens = self.tokens;
        request.queue = queue;
        request
    }
}

async fn run(side: &mut Side, request: &Request, verb: &Verb) -> String {
    let store = Arc::clone(&side.stores[request.through]);
    let claims = request.claims.iter().cloned();
    let key = |at: usize| request.claims[at].key.clone();
    match verb {
        Verb::AcquireAll(queue) => {
            let all = (0..request.claims.len()).map(|at| request.acquire(at, *queue));
            match store.acquire_all(all.collect(), by()).await.unwrap().value {
                AcquiredAll::Granted { tokens, .. } => {
                    let mut given = Vec::new();
                    for (claim, token) in request.claims.iter().zip(tokens) {
                        side.note_token(claim.key.as_str(), token);
                        given.push(token.is_some());
                    }
                    format!("granted {given:?}")
                }
                other => format!("{other:?}"),
            }
        }
        Verb::Acquire(at) => {
            let acquire = request.acquire(*at, Queue::Join);
            match store.acquire(acquire, by()).await.unwrap().value {
                Acquired::Granted(Granted { token, .. }) => {
                    side.note_token(key(*at).as_str(), token);
                    format!("granted {}", token.is_some())
                }
                Acquired::Busy(Busy {
                    remaining, queued, ..
                }) => {
                    format!("busy {:?} {queued}", rounded(remaining))
                }
                Acquired::Conflict => "conflict".to_owned(),
            }
        }
        Verb::Abandon(at) => {
            let abandon = store.abandon(request.acquire(*at, Queue::Join), by());
            format!("{:?}", abandon.await.unwrap().value)
        }
        Verb::Fence(at) => {
            let fence = store.fence(request.claims[*at].clone(), by());
            match fence.await.unwrap().value {
                Fenced::Token(token) => {
                    side.note_token(key(*at).as_str(), Some(token));
                    "token".to_owned()
                }
                other => format!("{other:?}"),
            }
        }
        Verb::Renew => {
            let lease = request.lease;
            let holds = claims.map(|claim| Renewal::new(claim, lease));
            let renewed = store.renew(holds.collect(), by()).await.unwrap();
            format!("{:?}", renewed.value)
        }
        Verb::Release(keep) => {
            let keep = *keep;
            let holds = claims.map(|claim| Release::new(claim, keep));
            let released = store.release(holds.collect(), by()).await.unwrap();
            format!("{:?}", released.value)
        }
        Verb::Inspect(at) => {
            let found = store.inspect(key(*at), by()).await.unwrap().value.unwrap();
            let (held, left) = (found.holder.is_some(), rounded(found.remaining));
            format!("{held} {} {left:?} {}", found.holders, found.waiting)
        }
        Verb::ForceRelease(at) => {
            let forced = store.force_release(key(*at), by()).await.unwrap();
            format!("{:?}", forced.value)
        }
    }
}

#[test]
fn the_stores_agree_on_several_keys_at_once() {
    to_commands(5, scenario);
}

fn scenario(both: &mut Both<'_>, seed: u64) {
    let mut random = Random(seed);
    both.keys = &KEYS;
    let mut requests: Vec<Request> = (0..6).map(|one| request(&mut random, one)).collect();
    for step in 0..STEPS {
        let at = random.index(requests.len());
        match random.below(20) {
            0 => both.pass_time(random.of(&TICKS)),
            1 => requests[at] = request(&mut random, 100 + step as u64),
            _ => {
                let request = &requests[at];
                let verb = verb(&mut random, request);
                let name = format!("{request:?} {verb:?}");
                both.compare(name, async |side| run(side, request, &verb).await);
                if both.are_apart {
                    return;
                }
            }
        }
    }
}
