//! A machine that sleeps. Its clock goes on and its timers do not; in the store, leases go on
//! ending.
#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lock_runtime::{Guard, LockClient, LockError, LostReason};
use lock_store::memory::MemoryStore;
use lock_store::{Instant, SimulatedStop, Store, StoreFuture};
use lock_testkit_core::store_decorator::{Interceptor, Reply, Request, decorated};
use tokio::runtime::{Builder, Handle};
use tokio::time::sleep;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: u64 = 3_600_000;

/// A client and the store that it uses, whose clocks agree.
struct Machine {
    client: LockClient,
    pause: SimulatedStop,
    memory: MemoryStore,
}

/// A network that takes a tenth of a second for a reply.
#[derive(Debug)]
struct Slow;

impl Interceptor for Slow {
    fn intercept<'s>(
        &'s self,
        store: &'s dyn Store,
        request: Request,
        by: Instant,
    ) -> StoreFuture<'s, Reply> {
        Box::pin(async move {
            let reply = request.send(store, by).await;
            sleep(SECOND / 10).await;
            reply
        })
    }
}

impl Machine {
    async fn start() -> Self {
        let (pause, memory) = (SimulatedStop::default(), MemoryStore::new());
        let client = connect(7, &pause, &memory).await;
        Self {
            client,
            pause,
            memory,
        }
    }

    /// A client on another machine, for which as much time passes.
    async fn elsewhere(&self) -> LockClient {
        connect(8, &self.pause, &self.memory).await
    }

    async fn hold(&self) -> Guard {
        self.client.lock("k").acquire().await.unwrap()
    }
}

async fn connect(id: u128, pause: &SimulatedStop, memory: &MemoryStore) -> LockClient {
    let memory = memory.clone();
    LockClient::builder()
        .simulated(Handle::current(), id, pause.clone())
        .store(move |context| Ok(decorated(memory.connect(context), Arc::new(Slow))))
        .connect()
        .await
        .unwrap()
}

fn simulated(test: impl Future<Output = ()>) {
    let mut runtime = Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(test);
}

fn is_unavailable(error: &LockError) -> bool {
    matches!(error, LockError::Unavailable { .. })
}

/// The time that the timers show.
fn awake() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

#[test]
fn a_hold_whose_lease_ended_in_the_sleep_is_not_held_at_once() {
    simulated(async {
        let machine = Machine::start().await;
        let guard = machine.hold().await;
        assert!(guard.is_held());
        machine.pause.sleep(HOUR);
        assert!(!guard.is_held());
        assert_eq!(guard.remaining(), Duration::ZERO);
        let extended = guard.extend(30 * SECOND).await;
        assert!(matches!(extended, Err(LockError::Lost { .. })));
        let released = guard.release().await;
        assert!(matches!(
            released,
            Err(LockError::Lost {
                reason: LostReason::Stalled,
                ..
            })
        ));
    });
}

#[test]
fn its_loss_is_told_within_a_second_of_waking() {
    simulated(async {
        let machine = Machine::start().await;
        let guard = machine.hold().await;
        let told = tokio::spawn(async move {
            guard.lost().await;
            awake()
        });
        sleep(SECOND / 2).await;
        machine.pause.sleep(HOUR);
        let woke = awake();
        let after = told.await.unwrap() - woke;
        assert!(after <= SECOND, "{after:?}");
    });
}

#[test]
fn its_body_runs_no_line_more() {
    simulated(async {
        let machine = Machine::start().await;
        let lines = Arc::<AtomicU32>::default();
        let written = Arc::clone(&lines);
        let body = tokio::spawn(machine.client.lock("k").run(async move {
            loop {
                written.fetch_add(1, Ordering::Relaxed);
                sleep(SECOND / 100).await;
            }
        }));
        sleep(SECOND).await;
        machine.pause.sleep(HOUR);
        let before = lines.load(Ordering::Relaxed);
        let ended: Result<(), _> = body.await.unwrap();
        assert!(matches!(ended, Err(LockError::Lost { .. })), "{ended:?}");
        assert!(before > 50 && lines.load(Ordering::Relaxed) == before);
    });
}

#[test]
fn a_hold_that_outlived_the_sleep_is_renewed_within_a_second_of_waking() {
    simulated(async {
        let machine = Machine::start().await;
        let guard = machine.hold().await;
        sleep(SECOND / 2).await;
        // Two thirds of its lease. The renewal was due after one third.
        machine.pause.sleep(20_000);
        assert!(guard.is_held() && guard.remaining() < 10 * SECOND);
        sleep(SECOND + SECOND / 5).await;
        assert!(guard.remaining() > 28 * SECOND, "{:?}", guard.remaining());
    });
}

#[test]
fn a_grant_that_came_in_the_sleep_is_not_trusted() {
    simulated(async {
        let machine = Machine::start().await;
        let request = machine.client.lock("k").lease(30 * SECOND).wait_forever();
        let asking = tokio::spawn(request.acquire());
        sleep(SECOND / 20).await;
        machine.pause.sleep(HOUR);
        match asking.await.unwrap() {
            // Another grant, requested after the sleep.
            Ok(guard) => assert!(guard.remaining() > 29 * SECOND),
            Err(error) => assert!(is_unavailable(&error), "{error}"),
        }
    });
}

#[test]
fn a_wait_for_ever_gets_what_the_sleep_has_freed_within_two_seconds() {
    for same_process in [true, false] {
        simulated(async {
            let machine = Machine::start().await;
            let holder = match same_process {
                true => machine.client.clone(),
                false => machine.elsewhere().await,
            };
            let held = holder.lock("k").acquire().await.unwrap();
            let waiting = tokio::spawn(machine.client.lock("k").wait_forever().acquire());
            sleep(SECOND / 2).await;
            machine.pause.sleep(HOUR);
            let woke = awake();
            let guard = waiting.await.unwrap().unwrap();
            let after = awake() - woke;
            assert!(guard.is_held() && after <= 2 * SECOND, "{after:?}");
            assert!(!held.is_held());
        });
    }
}

#[test]
fn a_wait_that_ended_in_the_sleep_ends_within_two_seconds_of_waking() {
    simulated(async {
        let machine = Machine::start().await;
        // For longer than the sleep.
        let lease = Duration::from_millis(2 * HOUR);
        let elsewhere = machine.elsewhere().await;
        let held = elsewhere.lock("k").lease(lease).acquire().await.unwrap();
        let waiting = tokio::spawn(machine.client.lock("k").wait(30 * SECOND).acquire());
        sleep(SECOND / 2).await;
        machine.pause.sleep(HOUR);
        let woke = awake();
        let error = waiting.await.unwrap().unwrap_err();
        let after = awake() - woke;
        assert!(error.is_busy() || is_unavailable(&error), "{error}");
        assert!(after <= 2 * SECOND, "{after:?}");
        assert!(held.is_held());
    });
}
