//! Models of the protocols, and a checker that goes through every state that they can reach within small bounds.
//!
//! `cargo test -p lock-tests --test models` is the short form; `LOCK_MODEL_BOUNDS=large` goes further, which takes hours
//! without `--release`. Each model can be built with a deliberate mistake, which the checker has to find.
#![allow(missing_docs, reason = "a test target")]

use std::hash::Hash;
use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model};

use fence::Fence;
use queue::{Mistake, Queue};

mod fence;
mod queue;

/// Whether to go further than what every change has to pass.
fn large() -> bool {
    std::env::var("LOCK_MODEL_BOUNDS").is_ok_and(|bounds| bounds == "large")
}

/// Goes through every state: no property fails, and what must be possible is.
fn holds<M>(name: &str, model: M)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + PartialEq + Hash + Send + Sync + std::fmt::Debug,
    M::Action: Clone + PartialEq + std::fmt::Debug,
{
    let began = Instant::now();
    let checker = model
        .checker()
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    println!(
        "{name}: {} states, {} steps, depth {}, {:.1?}",
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        began.elapsed()
    );
    checker.assert_properties();
}

/// Goes on until this property fails.
fn fails<M>(model: M, property: &'static str)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + PartialEq + Hash + Send + Sync + std::fmt::Debug,
    M::Action: Clone + PartialEq + std::fmt::Debug,
{
    let began = Instant::now();
    let finish = HasDiscoveries::AnyOf([property].into());
    let checker = model.checker().finish_when(finish).spawn_bfs().join();
    let found = checker.discovery(property);
    let states = checker.unique_state_count();
    let Some(path) = found else {
        panic!("{property:?} holds in all {states} states, and must not");
    };
    let steps = path.into_actions();
    println!(
        "{property:?} fails after {} steps, {states} states, {:.1?}: {steps:?}",
        steps.len(),
        began.elapsed()
    );
}

/// Two clients, one request each, one fault.
fn queue() -> Queue {
    Queue {
        requests: vec![1, 1],
        faults: 1,
        fair: false,
        renews: false,
        lease: 3,
        first_lease: 2,
        poll: 1,
        mistake: None,
    }
}

/// Two clients, three acquires, two writes.
fn fence() -> Fence {
    Fence {
        clients: 2,
        acquires: 3,
        renewals: 0,
        writes: 2,
        losses: 0,
        drift: 0,
        set_backs: 0,
        lease: 3,
        mistake: None,
    }
}

#[test]
fn the_queue_keeps_its_promises() {
    holds(
        "q: three clients",
        Queue {
            faults: 0,
            requests: [1, 1, 1].to_vec(),
            ..queue()
        },
    );
    holds(
        "q: (2, 1) f1",
        Queue {
            faults: 1,
            requests: [2, 1].to_vec(),
            ..queue()
        },
    );
    holds(
        "q: (2, 2) f0 renews",
        Queue {
            faults: 0,
            renews: true,
            requests: [2, 2].to_vec(),
            ..queue()
        },
    );
}

#[test]
fn fencing_tokens_keep_their_promises() {
    holds(
        "fence: leases",
        Fence {
            renewals: 2,
            writes: 0,
            drift: 1,
            ..fence()
        },
    );
    holds(
        "fence: writes",
        Fence {
            losses: 1,
            ..fence()
        },
    );
    holds(
        "fence: clock set back",
        Fence {
            set_backs: 1,
            ..fence()
        },
    );
    if large() {
        holds(
            "fence: all",
            Fence {
                losses: 1,
                drift: 1,
                renewals: 1,
                clients: 3,
                ..fence()
            },
        );
    }
}
