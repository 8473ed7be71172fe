//! Random commands about few keys, and what an engine replies.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lock_store::{
    Acquire, Acquired, AcquiredAll, Busy, Claim, ClientId, Fenced, Granted, Instant, Listener,
    Owner, Permits, Queue, Release, Renewal, Store,
};

use crate::heard::Heard;
use crate::seeded::Seeded;

/// Leases end halfway between the instants to which time is set. So the test's own duration changes
/// no result.
const LEASES: [u64; 3] = [1050, 2050, 3050];
const FIRST_LEASE: Duration = Duration::from_secs(750);
const KEEPS: [u64; 2] = [0, 1550];
const WAITS: [Option<Duration>; 3] = [
    None,
    Some(Duration::from_millis(2750)),
    Some(Duration::from_secs(750)),
];
const KEYS: [&str; 2] = ["k", "l"];

/// One kind of store with its two clients.
pub(super) struct Side {
    pub(super) stores: [Arc<dyn Store>; 2],
    heard: [Arc<Heard>; 2],
    last_token: HashMap<String, u64>,
    tokens_after: Option<u64>,
}

impl Side {
    pub(super) fn new(
        tokens_after: Option<u64>,
        open: impl Fn(ClientId, &Arc<dyn Listener>) -> Arc<dyn Store>,
    ) -> Self {
        let heard = [Arc::<Heard>::default(), Arc::default()];
        let store = |number: usize| {
            let listener: Arc<dyn Listener> = heard[number].clone();
            open(ClientId(number as u128 + 1), &listener)
        };
        Self {
            stores: [store(0), store(1)],
            heard: heard.clone(),
            last_token: HashMap::new(),
            tokens_after,
        }
    }

    pub(super) async fn until_hearing(&self) {
        for heard in &self.heard {
            heard.until_hearing().await;
        }
    }

    pub(super) fn heard(&self) -> [Vec<(Owner, Option<u64>)>; 2] {
        let told = |heard: &Arc<Heard>| {
            let heard = heard.0.lock().unwrap();
            heard.iter().map(|(o, t)| (*o, self.counted(*t))).collect()
        };
        [told(&self.heard[0]), told(&self.heard[1])]
    }

    fn note_token(&mut self, key: &str, token: Option<u64>) -> Option<u64> {
        if let Some(token) = token {
            let last = self.last_token.insert(key.to_owned(), token);
            assert!(last < Some(token), "{token} after {last:?}");
        }
        self.counted(token)
    }

    /// A token as both sides name it: its number, or 0 if only that there is one is the same.
    fn counted(&self, token: Option<u64>) -> Option<u64> {
        token.map(|token| self.tokens_after.map_or(0, |after| token - after))
    }
}

/// A client's request, and what it believes to have.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) through: usize,
    pub(super) acquire: Acquire,
    /// Its permits, as later commands claim them.
    pub(super) claims: Option<Permits>,
}

#[derive(Clone, Debug)]
pub(super) enum Verb {
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

pub(super) fn by() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

/// Rounded, so that the test's own duration makes no difference.
fn rounded(remaining: Option<Duration>) -> Option<u64> {
    remaining.map(|left| left.as_secs().div_ceil(100))
}

/// `forgets`: there are places that were suspended. The stores forget them at different times.
pub(super) async fn run(side: &mut Side, request: &Request, verb: &Verb, forgets: bool) -> String {
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
                    format!("granted {fenced:?} {limit:?}")
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
                    let fenced: Vec<Option<u64>> = tokens
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
                let token = side.note_token(key.as_str(), Some(token));
                format!("token {token:?}")
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

fn below(random: &mut Seeded, end: u32) -> u32 {
    u32::try_from(random.any() % u64::from(end)).unwrap()
}

/// A new request, mostly of the scenario's kind, or in some scenarios of any.
pub(super) fn request(random: &mut Seeded, focus: u64, number: u64) -> Request {
    let through = random.below(2);
    let permits = |random: &mut Seeded, of: u32| Permits {
        count: below(random, of) + 1,
        of,
    };
    let kind = match random.below(10) {
        0..8 if focus % 6 < 5 => usize::try_from(focus % 6).unwrap(),
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
                    (*random.pick(&["k", "k", "l"])).into(),
                    Owner {
                        client,
                        request: number,
                    },
                    permits,
                ),
                Duration::from_secs(*random.pick(&LEASES)),
            );
            request.first_lease = FIRST_LEASE;
            request.wait = *random.pick(&WAITS);
            request.tokens = *random.pick(&[0, 0, 1, 3]);
            request.queue = Queue::Join;
            request
        },
        claims: permits,
    }
}

pub(super) fn verb(random: &mut Seeded, request: &mut Request) -> Verb {
    match random.below(30) {
        0..=6 => Verb::Acquire(Queue::Join),
        7 | 8 => Verb::Acquire(Queue::Respect),
        9 | 10 if request.claims.is_none() => {
            Verb::AcquireAll(*random.pick(&[Queue::Barge, Queue::Respect]))
        }
        11..=13 => Verb::Renew(Duration::from_secs(*random.pick(&LEASES))),
        14..=19 => Verb::Release(Duration::from_secs(*random.pick(&KEEPS))),
        20 | 21 => Verb::Abandon,
        22..=24 => match request.claims {
            Some(permits) if permits.of == Permits::READ_WRITE => {
                if random.below(3) == 0 {
                    request.claims = Some(Permits::READ);
                }
                Verb::Shrink(1)
            }
            Some(permits) => Verb::Shrink(below(random, permits.count) + 1),
            None => Verb::Inspect,
        },
        25 => Verb::Fence,
        26 if random.below(3) == 0 => Verb::ForceRelease,
        _ => Verb::Inspect,
    }
}
