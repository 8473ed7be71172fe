//! Every public future, dropped after every number of polls and at every millisecond, in every state: nothing is left.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use lock_runtime::{Guard, LockClient, LockError, Rate};
use lock_tests::polled;

use crate::faults::Faults;
use crate::rng::Rng;
use crate::run::{clean_up, connect, in_simulation};
use crate::users::Service;
use crate::world::{World, sleep};

const MS: Duration = Duration::from_millis(1);
/// Longer than anything here takes: a lock that is free only because its lease is over is not free.
const LEASE: Duration = Duration::from_secs(50);
const PERMITS: u32 = 3;

/// What is so while the future runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    /// Another client has it until the future is dropped.
    Held,
    /// Another client has it for so many milliseconds, and then it is handed over.
    HandedOver(u64),
    /// Another client waits for it.
    Wanted,
    /// Every message takes 60 ms, one way.
    Slow,
    /// No reply arrives until the future is dropped.
    NoReply,
    /// The connection is cut after so many milliseconds, and what was under way arrives later.
    Cut(u64),
}

/// When the future is dropped.
#[derive(Clone, Copy, Debug)]
enum Until {
    Polls(usize),
    Time(Duration),
}

/// A future under test.
type Subject = Pin<Box<dyn Future<Output = ()> + Send>>;
/// What is to be held before it begins.
type Before = fn(&LockClient) -> lock_runtime::Lock;

struct Case {
    name: &'static str,
    before: Option<Before>,
    make: fn(LockClient, Option<Guard>) -> Subject,
}

fn case(name: &'static str, make: fn(LockClient, Option<Guard>) -> Subject) -> Case {
    let before = None;
    Case { name, before, make }
}

fn with_guard(
    name: &'static str,
    before: Before,
    make: fn(LockClient, Option<Guard>) -> Subject,
) -> Case {
    let before = Some(before);
    Case { name, before, make }
}

/// The output of the subject does not matter, and its guard is dropped with it.
macro_rules! subject {
    (|$client:ident| $future:expr) => {
        |$client: LockClient, _| Box::pin(async move { drop($future.await) })
    };
    (|$client:ident, $guard:ident| $future:expr) => {
        |$client: LockClient, guard: Option<Guard>| {
            let $guard = guard.unwrap();
            Box::pin(async move {
                let _client = &$client;
                drop($future.await)
            })
        }
    };
}

fn requests() -> Vec<Case> {
    vec![
        case("acquire", subject!(|c| c.lock("k").wait(40 * MS).acquire())),
        case(
            "fenced fair acquire",
            subject!(|c| c.lock("k").fenced().fair().wait(40 * MS).acquire()),
        ),
        case(
            "acquire that waits for ever",
            subject!(|c| c.lock("k").wait_forever().acquire()),
        ),
        case("into_future", |c, _| {
            Box::pin(async move { drop(c.lock("k").wait(40 * MS).await) })
        }),
        case("try_acquire", subject!(|c| c.lock("k").try_acquire())),
        case(
            "fenced try_acquire",
            subject!(|c| c.lock("k").fenced().try_acquire()),
        ),
        case(
            "run",
            subject!(|c| c.lock("k").wait(40 * MS).run(sleep(5 * MS))),
        ),
        case("run with a nested request", |c, _| {
            Box::pin(async move {
                let nested = c.lock("k").fenced().run(sleep(3 * MS));
                drop(c.lock("k").wait(40 * MS).run(nested).await);
            })
        }),
        case("run that keeps its key", |c, _| {
            let lock = c.lock("k").wait(40 * MS).hold_at_least(15 * MS);
            Box::pin(async move { drop(lock.run(sleep(5 * MS)).await) })
        }),
        case("run_with", |c, _| {
            let body = async |guard: &Guard| {
                sleep(2 * MS).await;
                let _ = guard.extend(LEASE).await;
            };
            Box::pin(async move { drop(c.lock("k").wait(40 * MS).run_with(body).await) })
        }),
        case(
            "several",
            subject!(|c| c.multi_lock(["m", "k", "a"]).wait(40 * MS).acquire()),
        ),
        case(
            "fenced try of several",
            subject!(|c| c.multi_lock(["m", "k"]).fenced().try_acquire()),
        ),
        case(
            "read",
            subject!(|c| c.rw_lock("rw").read().wait(40 * MS).acquire()),
        ),
        case(
            "write",
            subject!(|c| c.rw_lock("rw").write().wait(40 * MS).acquire()),
        ),
        case(
            "permits",
            subject!(|c| c
                .semaphore("sem", PERMITS)
                .acquire_many(2)
                .wait(40 * MS)
                .acquire()),
        ),
    ]
}

fn guards() -> Vec<Case> {
    let lock: Before = |c| c.lock("k");
    let two: Before = |c| c.multi_lock(["k", "m"]);
    let write: Before = |c| c.rw_lock("rw").write();
    vec![
        with_guard("release", lock, subject!(|c, guard| guard.release())),
        with_guard(
            "release of several",
            two,
            subject!(|c, guard| guard.release()),
        ),
        with_guard(
            "release of a writer",
            write,
            subject!(|c, guard| guard.release()),
        ),
        with_guard("extend", lock, subject!(|c, guard| guard.extend(LEASE))),
        with_guard("downgrade", write, subject!(|c, guard| guard.downgrade())),
        with_guard(
            "lost",
            |c| c.lock("k").lease(20 * MS),
            subject!(|c, guard| guard.lost()),
        ),
        with_guard("scope", lock, |c, guard| {
            let guard = guard.unwrap();
            Box::pin(async move {
                let nested = c.lock("k").fenced().run(sleep(2 * MS));
                drop(guard.scope(nested).await);
            })
        }),
    ]
}

fn others() -> Vec<Case> {
    vec![
        case(
            "latch set",
            subject!(|c| c.latch("latch").ttl(500 * MS).set(2)),
        ),
        case("latch count_down", |c, _| {
            let latch = c.latch("latch").ttl(500 * MS);
            Box::pin(async move {
                let _ = latch.set(2).await;
                let _ = latch.count_down().await;
            })
        }),
        case("latch count", subject!(|c| c.latch("latch").count())),
        case("latch wait", subject!(|c| c.latch("latch").wait(40 * MS))),
        case("latch wait_forever", |c, _| {
            let latch = c.latch("latch").ttl(500 * MS);
            Box::pin(async move {
                let _ = latch.set(1).await;
                let other = latch.clone();
                let counting = async {
                    sleep(10 * MS).await;
                    other.count_down().await
                };
                let _ = tokio::join!(latch.wait_forever(), counting);
            })
        }),
        case("rate limiter acquire", |c, _| {
            let limiter = c.rate_limiter("rate", Rate::per_second(100).burst(1));
            let limiter = limiter.wait(50 * MS);
            Box::pin(async move {
                let _ = limiter.acquire().await;
                let _ = limiter.acquire().await;
            })
        }),
        case("rate limiter try_acquire", |c, _| {
            let limiter = c.rate_limiter("rate", Rate::per_second(100).burst(1));
            Box::pin(async move { drop(limiter.try_acquire().await) })
        }),
        case(
            "resize",
            subject!(|c| c.semaphore("sem", PERMITS + 1).resize()),
        ),
        case("inspect", subject!(|c| c.inspect("k"))),
        case("force_release", subject!(|c| c.force_release("k"))),
        case("health", subject!(|c| c.health())),
        case("shutdown", |c, _| {
            Box::pin(async move { c.shutdown(20 * MS).await })
        }),
        with_guard(
            "shutdown with a hold",
            |c| c.lock("k"),
            |c, guard| {
                Box::pin(async move {
                    c.shutdown(20 * MS).await;
                    drop(guard);
                })
            },
        ),
        with_guard(
            "shutdown with a request",
            |c| c.lock("k"),
            |c, guard| {
                Box::pin(async move {
                    let more = c.lock("k").acquire();
                    let shutdown = c.shutdown(20 * MS);
                    let (more, ()) = tokio::join!(more, shutdown);
                    drop((more, guard));
                })
            },
        ),
    ]
}

/// Runs the case once. False if the future had ended before it was to be dropped.
fn dropped(case: &Case, state: State, until: Until) -> bool {
    in_simulation(async {
        let mut faults = Faults::none();
        match state {
            State::Slow => faults.delay = (60, 60),
            State::NoReply => faults.lost_reply = 1000,
            State::Cut(_) => faults.late = 1000,
            _ => {}
        }
        let world = World::new(faults, None, true);
        let mut rng = Rng::new(7);
        let timeout = Duration::from_millis(200);
        let subject = connect(&world, 0, &mut rng, timeout, LEASE).await;
        let other = connect(&world, 1, &mut rng, timeout, LEASE).await;
        let cut_short = play(case, state, until, &subject, &other).await;
        all_is_free(&other).await;
        clean_up(&world, vec![subject, other]).await;
        let violations = world.violations();
        if !violations.is_empty() {
            world.lines().iter().for_each(|line| println!("{line}"));
            panic!("{}, {state:?}, {until:?}: {violations:?}", case.name);
        }
        cut_short
    })
}

async fn play(case: &Case, state: State, until: Until, subject: &Service, other: &Service) -> bool {
    let world = Arc::clone(&subject.world);
    // What is held before is not what is tested.
    let guard = match case.before {
        Some(before) => Some(quietly(&world, before(&subject.client)).await),
        None => None,
    };
    let mut held = Vec::new();
    if guard.is_none() && matches!(state, State::Held | State::HandedOver(_)) {
        for key in ["k", "m"] {
            held.push(other.client.lock(key).acquire().await.unwrap());
        }
        held.push(other.client.rw_lock("rw").write().await.unwrap());
        let semaphore = other.client.semaphore("sem", PERMITS);
        held.push(semaphore.acquire_many(PERMITS).await.unwrap());
    }
    let (holds, wants) = (held, other.client.clone());
    let meanwhile = async move {
        match state {
            State::HandedOver(after) => {
                sleep(Duration::from_millis(after)).await;
                drop(holds);
            }
            State::Wanted => {
                let wanted = wants.lock("k").wait(30 * MS).acquire().await;
                drop(wanted);
            }
            State::Cut(after) => {
                sleep(Duration::from_millis(after)).await;
                subject_wires(&world).cut("cut");
            }
            _ => {
                sleep(Duration::from_secs(1)).await;
                drop(holds);
            }
        }
    };
    let meanwhile = tokio::spawn(meanwhile);
    let future = (case.make)(subject.client.clone(), guard);
    let ended = match until {
        Until::Polls(polls) => polled(polls, future).await.is_some(),
        Until::Time(time) => tokio::time::timeout(time, future).await.is_ok(),
    };
    subject.world.calm_down();
    let _ = meanwhile.await;
    !ended
}

/// Takes the lock whatever replies get lost.
async fn quietly(world: &World, lock: lock_runtime::Lock) -> Guard {
    world.be_calm(true);
    let guard = lock.acquire().await.unwrap();
    world.be_calm(false);
    guard
}

fn subject_wires(world: &World) -> Arc<crate::network::Wires> {
    world.all_wires().remove(0)
}

/// Another client gets everything soon.
async fn all_is_free(other: &Service) {
    let client = &other.client;
    let soon = Duration::from_secs(8);
    let all: [(_, Result<Guard, LockError>); 4] = [
        ("k", client.lock("k").wait(soon).acquire().await),
        ("m", client.lock("m").wait(soon).acquire().await),
        (
            "rw",
            client.rw_lock("rw").write().wait(soon).acquire().await,
        ),
        (
            "sem",
            client
                .semaphore("sem", PERMITS)
                .acquire_many(PERMITS)
                .wait(soon)
                .acquire()
                .await,
        ),
    ];
    for (key, guard) in all {
        if let Err(error) = guard {
            let what = format!("{key} is not free: {error}");
            other.world.violated(crate::world::Check::Leftover, what);
        }
    }
}

/// For each number of polls and each millisecond, until the future ends by itself.
fn exhaustively(cases: &[Case], states: &[State]) {
    let mut runs = 0;
    for case in cases {
        for state in states {
            let polls = (0..).map(Until::Polls);
            // What waits for ever, or for a store that does not answer, does so in one way after a while.
            let times = (0..60).map(|ms| Until::Time(ms * MS));
            runs += polls
                .take(60)
                .take_while(|until| dropped(case, *state, *until))
                .count();
            runs += times
                .take_while(|until| dropped(case, *state, *until))
                .count();
        }
    }
    println!("{runs} futures dropped");
}

#[test]
fn on_free_locks() {
    for cases in [requests(), guards(), others()] {
        exhaustively(&cases, &[State::Free, State::Wanted]);
    }
}

#[test]
fn on_locks_that_others_hold() {
    exhaustively(&requests(), &[State::Held]);
    exhaustively(&others(), &[State::Held]);
}

#[test]
fn on_locks_that_are_handed_over() {
    let states: Vec<State> = (0..14).map(State::HandedOver).collect();
    exhaustively(&requests(), &states);
}

#[test]
fn with_a_slow_store() {
    for cases in [requests(), guards(), others()] {
        exhaustively(&cases, &[State::Slow]);
    }
}

#[test]
fn with_a_store_whose_replies_are_lost() {
    for cases in [requests(), guards(), others()] {
        exhaustively(&cases, &[State::NoReply]);
    }
}

#[test]
fn with_a_connection_that_is_cut() {
    let states: Vec<State> = (0..8).map(State::Cut).collect();
    for cases in [requests(), guards(), others()] {
        exhaustively(&cases, &states);
    }
}
