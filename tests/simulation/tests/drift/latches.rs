//! Latches: set, counted down, inspected and waited for, with repeated calls.

use std::sync::Arc;
use std::time::Duration;

use lock_store::{ClientId, LatchState, Owner, Store};
use lock_testkit_core::{LatchRequest, LatchVerb, Latched, wall_micros};

use crate::{Both, Random, Side, by, to_commands};

const STEPS: usize = 400;

/// A place is remembered and a call is valid for one minute. Calls are remembered for two. Both
/// times end between two of these ticks.
const TICKS: [u64; 3] = [25_000, 25_000, 100_000];
const TTLS: [u64; 3] = [37, 162, 1012];

/// How many milliseconds the stamp of a new call is behind the store's clock. A call is valid from
/// 30 s before its stamp to 60 s after it. No sum of these and of the ticks ends near a limit.
const BEHIND: [i64; 8] = [0, 0, 0, 0, 50_000, 70_000, -20_000, -45_000];

/// A call, and the time of its stamp in milliseconds since the scenario began.
#[derive(Clone)]
struct Call {
    request: LatchRequest,
    made: Option<i64>,
}

/// The store's clock, in microseconds.
async fn time(store: &dyn Store) -> u64 {
    let request = LatchRequest {
        key: "clock".into(),
        owner: Owner {
            client: ClientId(0),
            request: 0,
        },
        verb: LatchVerb::CountDown,
        made: None,
    };
    match request.send(store, by()).await.unwrap().value {
        Latched::Untimely { now } => now,
        other => panic!("{other:?}"),
    }
}

/// `embedded` is a client of the store whose clock does not show the machine's time.
async fn run(
    side: &mut Side,
    through: usize,
    call: &Call,
    passed: i64,
    embedded: &Arc<dyn Store>,
) -> String {
    let store = Arc::clone(&side.stores[through]);
    let mut request = call.request.clone();
    if let Some(made) = call.made {
        let age = (passed - made) * 1000;
        let now = match Arc::ptr_eq(&side.stores[0], embedded) {
            true => time(&*store).await,
            false => wall_micros(),
        };
        request.made = now.checked_add_signed(-age);
    }
    let latched = request.send(&*store, by()).await.unwrap().value;
    let mut nth = |generation: u64| {
        if generation == 0 {
            return 0;
        }
        let known = side.generations.iter().position(|one| *one == generation);
        known.unwrap_or_else(|| {
            assert!(side.generations.iter().all(|one| *one < generation));
            side.generations.push(generation);
            side.generations.len() - 1
        }) + 1
    };
    match latched {
        Latched::Is(LatchState {
            count,
            generation,
            opened,
            remaining,
            ..
        }) => {
            let opened = nth(opened);
            let generation = nth(generation);
            let left = remaining.map(|left| left.as_secs().div_ceil(5));
            format!("{count} of {generation} after {opened}, {left:?}")
        }
        Latched::Untimely { .. } => "untimely".to_owned(),
        other => format!("{other:?}"),
    }
}

fn request(random: &mut Random, through: usize, number: u64) -> LatchRequest {
    let verb = match random.below(10) {
        0 | 1 => LatchVerb::Set {
            count: u32::try_from(random.below(4)).unwrap() + 1,
            ttl: Duration::from_secs(random.of(&TTLS)),
        },
        2..=6 => LatchVerb::CountDown,
        7 | 8 => LatchVerb::Wait,
        _ => LatchVerb::Look,
    };
    LatchRequest {
        key: "l".into(),
        owner: Owner {
            client: ClientId(through as u128 + 1),
            request: number,
        },
        verb,
        made: None,
    }
}

#[test]
fn the_stores_agree_on_latches() {
    to_commands(5, scenario);
}

fn scenario(both: &mut Both<'_>, seed: u64) {
    let mut random = Random(seed);
    // A latch opens for all waiters at once.
    both.in_order = false;
    // The last calls of each client. They may be repeated.
    let mut calls: [Vec<Call>; 2] = Default::default();
    let mut passed = 0;
    let embedded = Arc::clone(&both.memory.stores[0]);
    for number in 0..STEPS {
        let through = random.index(2);
        if random.below(12) == 0 {
            let millis = random.of(&TICKS);
            both.pass_time(millis);
            passed += i64::try_from(millis).unwrap();
            continue;
        }
        let known = &mut calls[through];
        let mut call = if known.is_empty() || random.below(3) > 0 {
            let call = Call {
                request: request(&mut random, through, number as u64),
                made: (random.below(8) > 0).then(|| passed - random.of(&BEHIND)),
            };
            known.push(call.clone());
            call
        } else {
            let last = known.len().min(6);
            let mut call = known[known.len() - 1 - random.index(last)].clone();
            // Half of the repeats keep their old stamp, as a call does that was delayed on its way.
            if random.below(2) == 0 {
                call.made = Some(passed);
            }
            call
        };
        let request = &mut call.request;
        if request.verb == LatchVerb::Wait && random.below(3) == 0 {
            request.verb = LatchVerb::Leave;
        }
        let age = call.made.map(|made| passed - made);
        let name = format!(
            "{:?} {:?}, made {age:?} ms ago",
            request.owner.request, request.verb
        );
        both.compare(name, async |side| {
            run(side, through, &call, passed, &embedded).await
        });
        if both.are_apart {
            return;
        }
    }
}
