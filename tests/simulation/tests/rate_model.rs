//! Compares any history of requests to a rate limiter with a bucket that counts drop by drop, and
//! store with store.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use lock_store::Clock;
use lock_store::memory::MemoryStore;
use lock_store::{ClientId, HandedOver, Listener, RateRequest, Rated, Store, WakeUp};
use lock_testkit_core::{LuaScripts, context};
use proptest::prelude::*;

#[derive(Debug)]
struct Deaf;

impl Listener for Deaf {
    fn on_granted(&self, _: HandedOver) -> WakeUp {
        WakeUp::default()
    }
    fn recheck(&self) {}
}

/// A textbook token bucket, in nanoseconds' worth of tokens. It is below zero when waiters have
/// taken tokens in advance.
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

/// The nanoseconds until the bucket gets a token back, and the bucket's size.
type Limit = (u64, u32);
/// Nanoseconds of pause before the step, or by how many milliseconds the clock is set back there,
/// as a negative number; index of the limit, tokens, nanoseconds of wait.
type Step = (i64, usize, u32, u64);

fn request(limits: &[Limit], &(_, limit, tokens, wait): &Step) -> RateRequest {
    let (interval, burst) = limits[limit % limits.len()];
    let mut request = RateRequest::new("k".into(), Duration::from_nanos(interval), burst);
    request.tokens = tokens.min(burst);
    request.wait = Duration::from_nanos(wait);
    request
}

/// The embedded store's reply to each step, and the time of the step since the beginning.
fn replies(limits: &[Limit], steps: &[Step]) -> Vec<(Duration, Rated)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let ahead = Arc::new(AtomicI64::new(0));
        let clock = Clock::simulated(tokio::runtime::Handle::current()).ahead(Arc::clone(&ahead));
        let listener: Arc<dyn Listener> = Arc::new(Deaf);
        let store: Arc<dyn Store> =
            MemoryStore::new().connect(context("lock", ClientId(1), &listener, clock.clone()));
        let started = clock.now();
        let mut replies = Vec::new();
        for step in steps {
            match u64::try_from(step.0) {
                Ok(pause) => tokio::time::advance(Duration::from_nanos(pause)).await,
                Err(_) => drop(ahead.fetch_add(step.0, Ordering::Relaxed)),
            }
            let answer = store.rate(request(limits, step), clock.now()).await;
            replies.push((clock.now() - started, answer.unwrap().value));
        }
        replies
    })
}

/// A clock that the test sets, and keys that live as long as the test wants.
const SURROUNDINGS: &str = "local server = redis
    local redis = {error_reply = server.error_reply, call = function(name, key, value, px, ttl)
      if name == 'TIME' then return {ARGV[5], ARGV[6]} end
      if name == 'GET' then return server.call('GET', key) end
      assert(name == 'SET' and px == 'PX')
      local debt = tonumber(string.match(value, '%d+$'))
      local nanos = tonumber(ttl) * 1000000
      assert(nanos >= debt and nanos - 4 * 1000000 < debt, 'lives too long or too short')
      return server.call('SET', key, value)
    end}
";

/// The script in its surroundings.
fn script() -> String {
    SURROUNDINGS.to_owned() + &LuaScripts::under_test().script("RATE")
}

/// The script's reply to each step.
fn scripted(connection: &mut redis::Connection, limits: &[Limit], steps: &[Step]) -> Vec<Rated> {
    redis::cmd("FLUSHALL").exec(connection).unwrap();
    let (mut micros, script) = (1_800_000_000_999_990_u64, script());
    let asked = steps.iter().map(|step| {
        micros = match u64::try_from(step.0) {
            Ok(pause) => micros + pause / 1000,
            Err(_) => micros - 1000 * step.0.unsigned_abs(),
        };
        let request = request(limits, step);
        let reply: (u8, u64, u32) = redis::cmd("EVAL")
            .arg(&script)
            .arg(&["1", "bucket"])
            .arg(u64::try_from(request.interval.as_nanos()).unwrap())
            .arg(&[request.burst, request.tokens])
            .arg(u64::try_from(request.wait.as_nanos()).unwrap())
            .arg(&[micros / 1_000_000, micros % 1_000_000])
            .query(connection)
            .unwrap();
        match reply {
            (1, delay, left) => Rated::Passed {
                delay: Duration::from_nanos(delay),
                left,
            },
            (_, retry_after, _) => Rated::Limited {
                retry_after: Duration::from_nanos(retry_after),
            },
        }
    });
    asked.collect()
}

/// From a microsecond to a month, so that every number of the script reaches its limit at some
/// time.
fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (1_000..50_000_000_u64, 1..40_u32),
        (3_600_000_000_000..=2_592_000_000_000_000_u64, Just(1)),
        (1_000..2_592_000_000_u64, Just(1_000_000)),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_script_and_the_embedded_store_say_the_same() {
    const MONTH: i64 = 30 * 24 * 3600 * 1_000_000;
    let server = lock_testkit_core::RedisServer::start().await;
    let client = redis::Client::open(server.url()).unwrap();
    tokio::task::spawn_blocking(move || {
        let connection = std::cell::RefCell::new(client.get_connection().unwrap());
        let pause = prop_oneof![Just(0), 0..60_000_i64, 0..MONTH].prop_map(|micros| micros * 1000);
        let pause = prop_oneof![8 => pause, 1 => -MONTH / 1000..0];
        let month = MONTH.unsigned_abs() * 1000;
        let wait = prop_oneof![Just(0), 0..100_000_000_u64, 0..month];
        let step = (pause, 0..3_usize, 0..45_u32, wait);
        let history = (
            proptest::collection::vec(limit(), 1..3),
            proptest::collection::vec(step, 1..40),
        );
        let mut runner = proptest::test_runner::TestRunner::default();
        runner
            .run(&history, |(limits, steps)| {
                let scripted = scripted(&mut connection.borrow_mut(), &limits, &steps);
                let embedded: Vec<Rated> = replies(&limits, &steps)
                    .into_iter()
                    .map(|(_, reply)| reply)
                    .collect();
                prop_assert_eq!(scripted, embedded);
                Ok(())
            })
            .unwrap();
    })
    .await
    .unwrap();
}

/// Whatever the clock shows, a request that is refused passes when it comes back as told.
#[test]
fn a_clock_set_back_costs_no_more_than_the_bucket() {
    const HOUR: i64 = 3_600_000;
    let limit = (50_000_000, 4);
    // All tokens, then one that is refused; an hour back; then one that waits for its turn.
    let steps = [(0, 0, 4, 0), (-HOUR, 0, 1, 0), (50_000_000, 0, 1, 0)];
    let replies: Vec<_> = replies(&[limit], &steps)
        .into_iter()
        .map(|it| it.1)
        .collect();
    let interval = Duration::from_nanos(limit.0);
    let passed = |left| Rated::Passed {
        delay: Duration::ZERO,
        left,
    };
    let limited = Rated::Limited {
        retry_after: interval,
    };
    assert_eq!(replies, [passed(0), limited, passed(0)]);
}

/// Requests under one limit.
fn steps(pauses: Range<i64>, tokens: Range<u32>, most: usize) -> impl Strategy<Value = Vec<Step>> {
    let waits = prop_oneof![Just(0), 0..100_000_000_u64];
    proptest::collection::vec((pauses, Just(0), tokens, waits), 1..most)
}

proptest! {
    #[test]
    fn every_reply_is_that_of_a_bucket(
        interval in 1_000..50_000_000_u64,
        burst in 1..40_u32,
        steps in steps(0..60_000_000, 0..45, 120),
    ) {
        let mut model = Model {
            interval: interval.into(),
            burst: burst.into(),
            level: i128::from(interval) * i128::from(burst),
        };
        let replies = replies(&[(interval, burst)], &steps);
        let replied = steps.iter().zip(&replies);
        for (at, (&(pause, _, tokens, wait), (_, reply))) in replied.enumerate() {
            model.pass_time(pause.into());
            let expected = model.take(tokens.min(burst).into(), wait.into());
            prop_assert_eq!(*reply, expected, "step {}", at);
        }
    }

    #[test]
    fn no_window_lets_more_pass_than_rate_and_burst(
        interval in 1_000..20_000_000_u64,
        burst in 1..20_u32,
        steps in steps(0..10_000_000, 1..25, 80),
    ) {
        let replies = replies(&[(interval, burst)], &steps);
        let mut passes: Vec<(Duration, u64)> = Vec::new();
        for (&(_, _, tokens, wait), (at, reply)) in steps.iter().zip(&replies) {
            match reply {
                Rated::Passed { delay, .. } => {
                    prop_assert!(*delay <= Duration::from_nanos(wait));
                    passes.push((*at + *delay, tokens.min(burst).into()));
                }
                Rated::Limited { retry_after } => {
                    prop_assert!(*retry_after > Duration::from_nanos(wait));
                }
                Rated::Conflict => panic!("{reply:?}"),
            }
        }
        for (at, (first, _)) in passes.iter().enumerate() {
            let mut taken = 0;
            for (last, tokens) in &passes[at..] {
                prop_assert!(first <= last, "turns come in order");
                taken += tokens;
                let window = u64::try_from((*last - *first).as_nanos()).unwrap();
                let allowed = window / interval + u64::from(burst);
                prop_assert!(taken <= allowed, "{} in {} ns", taken, window);
            }
        }
    }
}
