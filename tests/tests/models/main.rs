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

fn small_queue() -> Queue {
    Queue {
        requests: vec![1, 1],
        faults: 1,
        fair: false,
        renews: true,
        lease: 3,
        first_lease: 2,
        poll: 1,
        mistake: None,
    }
}

#[test]
fn the_queue_keeps_its_promises() {
    holds("queue", small_queue());
}

fn mistaken(mistake: Mistake, requests: &[u8], faults: u8) -> Queue {
    Queue {
        requests: requests.to_vec(),
        faults,
        mistake: Some(mistake),
        ..small_queue()
    }
}

/// One test for each deliberate mistake, named after it: the requests of each client, the faults, the property.
macro_rules! found {
    ($($name:ident: $mistake:ident, $requests:expr, $faults:expr => $property:ident;)*) => {$(
        #[test]
        fn $name() {
            fails(mistaken(Mistake::$mistake, &$requests, $faults), queue::$property);
        }
    )*};
}

found! {
    a_release_without_owner_check_is_found: ReleaseWithoutOwnerCheck, [1, 1], 0 => OWNER;
    validity_counted_from_the_reply_is_found: ValidityFromTheReply, [1, 1], 0 => EXCLUSION;
    a_reply_trusted_after_its_deadline_is_found: ReplyTrustedAfterItsDeadline, [1, 1], 0 => EXCLUSION;
    a_grant_counted_from_its_message_is_found: GrantCountedFromItsMessage, [1, 1], 0 => EXCLUSION;
    a_stale_grant_that_is_kept_is_found: StaleGrantKept, [1, 1], 0 => EXCLUSION;
    grants_in_no_order_are_found: GrantsInNoOrder, [1, 1], 0 => EXCLUSION;
    an_old_connection_that_is_heard_is_found: OldConnectionHeard, [1, 1], 1 => EXCLUSION;
    no_undo_of_the_unknown_is_found: NoUndoOfUnknown, [1, 1], 2 => NOTHING_LEFT;
    an_undo_done_only_once_is_found: UndoneOnlyOnce, [1, 1], 2 => NOTHING_LEFT;
    a_release_that_counts_as_undo_is_found: ReleaseCountsAsUndo, [1, 1], 1 => NOTHING_LEFT;
    an_abandon_that_leaves_the_grant_is_found: AbandonLeavesTheGrant, [1, 1], 1 => NOTHING_LEFT;
    no_fallback_poll_is_found: NoFallbackPoll, [1, 1], 1 => HAND_OFF;
    looking_again_by_barging_is_found: LookingAgainBarges, [1, 1, 1], 0 => ORDER;
}

fn small_fence() -> Fence {
    Fence {
        clients: 2,
        acquires: 3,
        renewals: 1,
        writes: 2,
        losses: 1,
        drift: 1,
        set_backs: 0,
        lease: 3,
        mistake: None,
    }
}

#[test]
fn fencing_tokens_keep_their_promises() {
    holds("fence", small_fence());
}
