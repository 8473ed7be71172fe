//! Any history of requests to a rate limiter, against a bucket that is counted drop by drop.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

use std::sync::Arc;
use std::time::Duration;

use lock_runtime::Clock;
use lock_runtime::store::memory::MemoryStore;
use lock_runtime::store::{ClientId, Listener, Owner, RateRequest, Rated, Store, WakeUp};
use proptest::prelude::*;

#[derive(Debug)]
struct Deaf;

impl Listener for Deaf {
    fn granted(&self, _: Owner, _: Option<u64>) -> WakeUp {
        WakeUp::default()
    }
    fn look_again(&self) {}
}

/// A token bucket as it is drawn in books: `level` thousandths of a nanosecond's worth of tokens, below zero when
/// those who wait have taken in advance.
struct Model {
    interval: i128,
    burst: i128,
    level: i128,
}

impl Model {
    fn pass_time(&mut self, nanos: i128) {
        self.level = (self.level + nanos).min(self.burst * self.interval);
    }

    fn take(&mut self, tokens: i128, wait: i128) -> Rated {
        let after = self.level - tokens * self.interval;
        let missing = nanos((-after).max(0));
        if -after > wait {
            return Rated::Limited {
                retry_after: missing,
            };
        }
        self.level = after;
        Rated::Passed {
            delay: missing,
            left: u32::try_from(after.max(0) / self.interval).unwrap(),
        }
    }
}

fn nanos(nanos: i128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap())
}

/// Time that passes before it, tokens, wait.
type Step = (u64, u32, u64);

/// What the store replies to each step, with the time in milliseconds at which it was asked.
fn replies(interval: Duration, burst: u32, steps: &[Step]) -> Vec<(Duration, Rated)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let clock = Clock::simulated(tokio::runtime::Handle::current());
        let listener: Arc<dyn Listener> = Arc::new(Deaf);
        let store: Arc<dyn Store> =
            MemoryStore::new().connect("lock", ClientId(1), &listener, clock.clone());
        let started = clock.now();
        let mut replies = Vec::new();
        for &(pause, tokens, wait) in steps {
            tokio::time::advance(Duration::from_nanos(pause)).await;
            let request = RateRequest {
                key: "k".into(),
                interval,
                burst,
                tokens: tokens.min(burst),
                wait: Duration::from_nanos(wait),
            };
            let answer = store.rate(request, clock.now()).await.unwrap();
            replies.push((clock.now() - started, answer.value));
        }
        replies
    })
}

proptest! {
    #[test]
    fn every_reply_is_that_of_a_bucket(
        interval in 1_000..50_000_000_u64,
        burst in 1..40_u32,
        steps in proptest::collection::vec((0..60_000_000_u64, 0..45_u32, prop_oneof![Just(0), 0..100_000_000_u64]), 1..120),
    ) {
        let mut model = Model { interval: interval.into(), burst: burst.into(), level: i128::from(interval) * i128::from(burst) };
        let replies = replies(Duration::from_nanos(interval), burst, &steps);
        for (at, (&(pause, tokens, wait), (_, reply))) in steps.iter().zip(&replies).enumerate() {
            model.pass_time(pause.into());
            let expected = model.take(tokens.min(burst).into(), wait.into());
            prop_assert_eq!(*reply, expected, "step {}", at);
        }
    }

    #[test]
    fn no_window_lets_more_pass_than_rate_and_burst(
        interval in 1_000..20_000_000_u64,
        burst in 1..20_u32,
        steps in proptest::collection::vec((0..10_000_000_u64, 1..25_u32, prop_oneof![Just(0), 0..100_000_000_u64]), 1..80),
    ) {
        let replies = replies(Duration::from_nanos(interval), burst, &steps);
        let mut passes: Vec<(Duration, u64)> = Vec::new();
        for (&(_, tokens, wait), (at, reply)) in steps.iter().zip(&replies) {
            match reply {
                Rated::Passed { delay, .. } => {
                    prop_assert!(*delay <= Duration::from_nanos(wait));
                    passes.push((*at + *delay, tokens.min(burst).into()));
                }
                Rated::Limited { retry_after } => prop_assert!(*retry_after > Duration::from_nanos(wait)),
                Rated::Conflict => panic!("{reply:?}"),
            }
        }
        for (at, (first, _)) in passes.iter().enumerate() {
            let mut taken = 0;
            for (last, tokens) in &passes[at..] {
                prop_assert!(first <= last, "turns come in order");
                taken += tokens;
                let window = u64::try_from((*last - *first).as_nanos()).unwrap();
                prop_assert!(taken <= window / interval + u64::from(burst), "{} in {} ns", taken, window);
            }
        }
    }
}
