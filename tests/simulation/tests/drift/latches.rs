//! Latches: set, counted down, looked at and waited for, with calls repeated.

use std::sync::Arc;
use std::time::Duration;

use lock_store::{ClientId, LatchState, Owner};
use lock_testkit::{LatchRequest, LatchVerb, Latched};

use crate::{Both, Random, Side, by, to_commands};

const STEPS: usize = 400;

/// A minute, for which calls and places are remembered, ends between two of these.
const TICKS: [u64; 3] = [25_000, 25_000, 100_000];
const TTLS: [u64; 3] = [37, 162, 1012];

async fn run(side: &mut Side, through: usize, request: &LatchRequest) -> String {
    let store = Arc::clone(&side.stores[through]);
    let latched = request.clone().send(&*store, by()).await.unwrap().value;
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
        }) => {
            let opened = nth(opened);
            let generation = nth(generation);
            let left = remaining.map(|left| left.as_secs().div_ceil(5));
            format!("{count} of {generation} after {opened}, {left:?}")
        }
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
    }
}

#[test]
fn the_stores_agree_on_latches() {
    to_commands(5, scenario);
}

fn scenario(both: &mut Both<'_>, seed: u64) {
    let mut random = Random(seed);
    // A latch opens for all at once.
    both.in_order = false;
    // The last calls of each client, which may come again.
    let mut calls: [Vec<LatchRequest>; 2] = Default::default();
    for number in 0..STEPS {
        let through = random.index(2);
        if random.below(12) == 0 {
            let all = both.keys();
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            both.pass_time(random.of(&TICKS), &all);
            continue;
        }
        let known = &mut calls[through];
        let mut call = if known.is_empty() || random.below(3) > 0 {
            let call = request(&mut random, through, number as u64);
            known.push(call.clone());
            call
        } else {
            let last = known.len().min(6);
            known[known.len() - 1 - random.index(last)].clone()
        };
        if call.verb == LatchVerb::Wait && random.below(3) == 0 {
            call.verb = LatchVerb::Leave;
        }
        let name = format!("{:?} {:?}", call.owner.request, call.verb);
        both.compare(name, async |side| run(side, through, &call).await);
    }
}
