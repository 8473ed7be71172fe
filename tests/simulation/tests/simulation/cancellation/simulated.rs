//! Exhaustively, in simulation.

use std::sync::Arc;
use std::time::Duration;

use lock_runtime::{Guard, LockClient, LockError};
use lock_testkit_core::polled;

use super::subjects::{Case, LEASE, MS, PERMITS, guards, others, requests, wait_for_ever};
use crate::faults::Faults;
use crate::rng::Rng;
use crate::run::{clean_up, connect, in_simulation};
use crate::users::Service;
use crate::world::{Check, World, sleep};
use crate::wrong::Mistake;

/// The situation in which the future runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    /// Another client has the lock until the future is dropped.
    Held,
    /// Another client has the lock for this many milliseconds. Then it is handed over.
    HandedOver(u64),
    /// Another client waits for the lock.
    Wanted,
    /// Every message takes 60 ms, one way.
    Slow,
    /// No reply arrives until the future is dropped.
    NoReply,
    /// The connection is cut after this many milliseconds. What was under way arrives later.
    Cut(u64),
}

/// When the future is dropped.
#[derive(Clone, Copy, Debug)]
enum Until {
    Polls(usize),
    Time(Duration),
}

/// The result of one run.
struct Outcome {
    /// False if the future ended before its drop.
    dropped: bool,
    violations: Vec<(Check, String)>,
    lines: Vec<String>,
}

fn drop_one(case: &Case, state: State, until: Until, mistake: Option<Mistake>) -> Outcome {
    in_simulation(async {
        let mut faults = Faults::none();
        match state {
            State::Slow => faults.delay = (60, 60),
            State::NoReply => faults.lost_reply = 1000,
            State::Cut(_) => faults.late = 1000,
            _ => {}
        }
        let world = World::new(faults, mistake, true);
        let mut rng = Rng::new(7);
        let timeout = Duration::from_millis(200);
        let subject = connect(&world, 0, &mut rng, timeout, LEASE).await;
        let other = connect(&world, 1, &mut rng, timeout, LEASE).await;
        // Sooner than a grant that is not picked up ends, except where the undo itself has to be
        // repeated.
        let soon = match state {
            State::NoReply | State::Cut(_) => 8000 * MS,
            _ => 1000 * MS,
        };
        let dropped = play(case, state, until, &subject, &other).await;
        for (key, guard) in all_of(&other.client, soon).await {
            if let Err(error) = guard {
                let what = format!("{key} is not free: {error}");
                world.violated(Check::Leftover, what);
            }
        }
        clean_up(&world, vec![subject, other]).await;
        Outcome {
            dropped,
            violations: world.violations(),
            lines: world.lines(),
        }
    })
}

/// True if the future was dropped before its end, and left nothing.
fn dropped(case: &Case, state: State, until: Until) -> bool {
    let outcome = drop_one(case, state, until, None);
    if !outcome.violations.is_empty() {
        outcome.lines.iter().for_each(|line| println!("{line}"));
        panic!(
            "{}, {state:?}, {until:?}: {:?}",
            case.name, outcome.violations
        );
    }
    outcome.dropped
}

async fn play(case: &Case, state: State, until: Until, subject: &Service, other: &Service) -> bool {
    let world = Arc::clone(&subject.world);
    // What is held before is not under test.
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
        held.push(semaphore.permits(PERMITS).await.unwrap());
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

/// Takes the lock, however many replies get lost.
async fn quietly(world: &World, lock: lock_runtime::Lock) -> Guard {
    world.be_calm(true);
    let guard = lock.acquire().await.unwrap();
    world.be_calm(false);
    guard
}

fn subject_wires(world: &World) -> Arc<crate::wires::Wires> {
    world.all_wires().remove(0)
}

/// Another client asks for everything, and soon gets it.
pub(super) async fn all_of(
    client: &LockClient,
    soon: Duration,
) -> [(&'static str, Result<Guard, LockError>); 4] {
    let permits = client.semaphore("sem", PERMITS).permits(PERMITS);
    [
        ("k", client.lock("k").wait(soon).acquire().await),
        ("m", client.lock("m").wait(soon).acquire().await),
        (
            "rw",
            client.rw_lock("rw").write().wait(soon).acquire().await,
        ),
        ("sem", permits.wait(soon).acquire().await),
    ]
}

/// For each number of polls and each millisecond, until the future ends by itself.
fn exhaustively(cases: &[Case], states: &[State]) {
    let mut runs = 0;
    for case in cases {
        for state in states {
            let polls = (0..).map(Until::Polls);
            // A future that waits for ever, or for a silent store, behaves the same after a while.
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
    let states: Vec<State> = (0..14).step_by(2).map(State::HandedOver).collect();
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
    let states = [1, 3, 5].map(State::Cut);
    for cases in [requests(), guards(), others()] {
        exhaustively(&cases, &states);
    }
}

/// A fuzzer that finds nothing where something is left is wrong itself.
#[test]
fn an_undo_that_is_not_carried_out_is_found() {
    for mistake in [Mistake::NeverUndoes, Mistake::LeavesThePlace] {
        // A place whose wait has ended is dropped anyway.
        let acquire = wait_for_ever();
        let found = (0..60).any(|ms| {
            let until = Until::Time(ms * MS);
            let outcome = drop_one(&acquire, State::Held, until, Some(mistake));
            let left = |(check, _): &(Check, String)| *check == Check::Leftover;
            outcome.violations.iter().any(left)
        });
        assert!(found, "{mistake:?}");
    }
}
