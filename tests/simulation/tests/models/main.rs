//! Models of the protocols. A checker visits every state that they can reach within small bounds.
//!
//! `cargo test -p lock-simulation --test models -- --nocapture` is the short form. It takes about a
//! minute of one core and prints the number of states. `LOCK_MODEL_BOUNDS=large`, with `--release`,
//! goes further. Two clients and two faults are 4.7 million states, and take minutes. Three
//! requests or three clients with a fault were not yet run to their end. Each model can be built
//! with a deliberate mistake, and the checker has to find it.
#![expect(
    clippy::panic,
    reason = "a property that does not hold must end the test"
)]

use std::hash::Hash;
use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model};

use fence::Fence;
use queue::Queue;
use quorum::{Quorum, Time};

mod fence;
mod queue;
mod quorum;

/// True for larger bounds than every change has to pass.
fn large() -> bool {
    std::env::var("LOCK_MODEL_BOUNDS").is_ok_and(|bounds| bounds == "large")
}

/// Visits every state: each property holds, and what must be possible happens.
fn check_holds<M>(name: &str, model: M)
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

/// Searches until this property fails.
fn check_fails<M>(model: M, property: &'static str)
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

/// Two clients with one request each, and one fault.
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
fn the_queue_keeps_its_promises_with_a_fault_and_renewals() {
    let renews = true;
    check_holds(
        "queue: two clients, a fault, renewals",
        Queue { renews, ..queue() },
    );
    if large() {
        let faults = 2;
        check_holds(
            "queue: two clients, two faults",
            Queue { faults, ..queue() },
        );
    }
}

#[test]
fn a_fair_queue_keeps_its_promises_with_a_fault() {
    let fair = true;
    check_holds(
        "queue: two clients, a fault, fair",
        Queue { fair, ..queue() },
    );
}

#[test]
fn the_queue_keeps_its_promises_to_three_clients() {
    let requests = vec![1, 1, 1];
    let short = Queue {
        requests,
        faults: 0,
        lease: 2,
        first_lease: 1,
        ..queue()
    };
    if large() {
        check_holds(
            "queue: three clients",
            Queue {
                lease: 3,
                first_lease: 2,
                ..short.clone()
            },
        );
        check_holds(
            "queue: three clients, a fault",
            Queue { faults: 1, ..short },
        );
    } else {
        check_holds("queue: three clients, short leases", short);
    }
}

#[test]
fn the_queue_keeps_its_promises_when_clients_come_again() {
    let (requests, faults) = (vec![2, 2], 0);
    check_holds(
        "queue: two requests each",
        Queue {
            requests,
            faults,
            ..queue()
        },
    );
    if large() {
        let (requests, faults) = (vec![2, 1], 1);
        check_holds(
            "queue: two requests and one, a fault",
            Queue {
                requests,
                faults,
                ..queue()
            },
        );
    }
}

/// One test for each deliberate mistake, named after it: the requests of each client, the faults,
/// the property.
macro_rules! found_in_queue {
    ($($name:ident: $mistake:ident, $requests:expr, $faults:expr => $property:ident;)*) => {$(
        #[test]
        fn $name() {
            let (requests, mistake) = ($requests.to_vec(), Some(queue::Mistake::$mistake));
            check_fails(Queue { requests, mistake, faults: $faults, ..queue() }, queue::$property);
        }
    )*};
}

found_in_queue! {
    a_release_without_owner_check_is_found: ReleaseWithoutOwnerCheck, [1, 1], 0 => OWNER;
    two_believe_after_a_release_without_owner_check:
        ReleaseWithoutOwnerCheck, [1, 1, 1], 0 => EXCLUSION;
    validity_counted_from_the_reply_is_found: ValidityFromTheReply, [1, 1], 0 => EXCLUSION;
    a_reply_trusted_after_its_deadline_is_found:
        ReplyTrustedAfterItsDeadline, [1, 1], 0 => EXCLUSION;
    a_grant_counted_from_its_message_is_found: GrantCountedFromItsMessage, [1, 1], 0 => EXCLUSION;
    a_stale_grant_that_is_kept_is_found: StaleGrantKept, [1, 1], 0 => EXCLUSION;
    grants_in_no_order_are_found: GrantsInNoOrder, [1, 1], 0 => EXCLUSION;
    an_old_connection_that_is_heard_is_found: OldConnectionHeard, [1, 1], 1 => EXCLUSION;
    no_undo_of_the_unknown_is_found: NoUndoOfUnknown, [1], 1 => NOTHING_LEFT;
    an_undo_done_only_once_is_found: UndoneOnlyOnce, [1], 2 => NOTHING_LEFT;
    a_release_that_counts_as_undo_is_found: ReleaseCountsAsUndo, [1, 1], 1 => NOTHING_LEFT;
    an_abandon_that_leaves_the_grant_is_found: AbandonLeavesTheGrant, [1, 1], 1 => NOTHING_LEFT;
    no_fallback_poll_is_found: NoFallbackPoll, [1, 1], 1 => HAND_OFF;
    looking_again_by_barging_is_found: LookingAgainBarges, [1, 1], 0 => ORDER;
    a_place_suspended_for_ever_is_found: SuspendedForEver, [1, 1, 1], 1 => ORDER;
}

#[test]
fn leases_and_renewals_exclude() {
    let small = Fence {
        writes: 0,
        drift: 1,
        ..fence()
    };
    check_holds(
        "fence: leases",
        Fence {
            renewals: 2,
            ..small.clone()
        },
    );
    if large() {
        check_holds(
            "fence: three clients",
            Fence {
                clients: 3,
                acquires: 4,
                renewals: 2,
                ..small
            },
        );
    }
}

#[test]
fn tokens_rise_and_keep_stale_writes_out_also_after_a_loss_of_the_data() {
    check_holds(
        "fence: writes, data lost",
        Fence {
            losses: 1,
            ..fence()
        },
    );
    if large() {
        let all = Fence {
            losses: 1,
            drift: 1,
            renewals: 1,
            ..fence()
        };
        check_holds("fence: everything", Fence { writes: 3, ..all });
    }
}

#[test]
fn tokens_rise_also_when_the_clock_is_set_back() {
    check_holds(
        "fence: clock set back",
        Fence {
            set_backs: 1,
            ..fence()
        },
    );
}

/// A documented limit: both faults together.
#[test]
fn tokens_may_repeat_after_a_loss_of_the_data_with_the_clock_set_back() {
    check_fails(
        Fence {
            losses: 1,
            set_backs: 1,
            ..fence()
        },
        fence::TOKENS,
    );
}

/// The same, for leases and tokens: renewals, losses of the data, ticks of the store's clock alone,
/// writes.
macro_rules! found_in_fence {
    ($(
        $name:ident: $mistake:ident, $renewals:expr, $losses:expr, $drift:expr, $writes:expr
            => $property:ident;
    )*) => {$(
        #[test]
        fn $name() {
            let (renewals, losses, drift, writes) = ($renewals, $losses, $drift, $writes);
            let mistake = Some(fence::Mistake::$mistake);
            let model = Fence { mistake, renewals, losses, drift, writes, ..fence() };
            check_fails(model, fence::$property);
        }
    )*};
}

found_in_fence! {
    a_lease_trusted_as_a_whole_is_found: NoMargin, 0, 0, 1, 0 => EXCLUSION;
    a_deadline_counted_from_the_reply_is_found: ValidityFromTheReply, 0, 0, 0, 0 => EXCLUSION;
    a_grant_trusted_after_its_deadline_is_found:
        ReplyTrustedAfterItsDeadline, 0, 0, 0, 0 => EXCLUSION;
    a_lost_renewal_that_is_trusted_is_found: LostRenewalTrusted, 2, 0, 0, 0 => EXCLUSION;
    a_renewal_by_set_is_found: RenewalBySet, 1, 0, 0, 0 => EXCLUSION;
    a_token_by_plain_increment_is_found: TokenByPlainIncrement, 0, 1, 0, 0 => TOKENS;
    a_stale_write_after_plain_increments_is_found: TokenByPlainIncrement, 0, 1, 0, 2 => STALE;
    a_resource_that_checks_nothing_is_found: ResourceChecksNothing, 0, 0, 0, 2 => STALE;
}

/// Three nodes, and rounds of two or three clients.
fn quorum(rounds: usize, time: Time) -> Quorum {
    Quorum {
        rounds,
        time,
        fenced: time == Time::AnyMoment,
        restarts: 0,
        mistake: None,
    }
}

/// Clocks that tick together, except for this many extra ticks of single nodes.
fn ticks(drift: u8) -> Time {
    Time::Ticks {
        lease: 2 + u8::from(large()),
        drift,
        skew: 0,
    }
}

#[test]
fn tokens_of_a_quorum_rise_whenever_leases_end_and_whatever_is_lost() {
    check_holds("quorum: two rounds, no clocks", quorum(2, Time::AnyMoment));
    if large() {
        check_holds(
            "quorum: three rounds, no clocks",
            quorum(3, Time::AnyMoment),
        );
    }
}

#[test]
fn holders_of_a_quorum_exclude_each_other() {
    check_holds("quorum: two rounds", quorum(2, ticks(1)));
    let fenced = true;
    if large() {
        let two = quorum(2, ticks(1));
        check_holds("quorum: two rounds, fenced", Quorum { fenced, ..two });
        check_holds("quorum: three rounds", quorum(3, ticks(1)));
    }
}

#[test]
fn a_quorum_whose_node_came_back_empty_keeps_its_promises() {
    let (restarts, fenced) = (1, true);
    let two = Quorum {
        restarts,
        ..quorum(2, ticks(0))
    };
    check_holds("quorum: two rounds, a restart", two.clone());
    check_holds(
        "quorum: two rounds, a restart, fenced",
        Quorum { fenced, ..two },
    );
    if large() {
        // The servers' clocks may differ by as long as a restarted node stays out.
        let (lease, drift, skew) = (2, 0, 1);
        let time = Time::Ticks { lease, drift, skew };
        check_holds(
            "quorum: two rounds, a restart, fenced, clocks apart",
            Quorum {
                restarts,
                fenced,
                ..quorum(2, time)
            },
        );
    }
}

/// The same for the quorum: rounds, time, restarts, and whether there are tokens.
macro_rules! found_in_quorum {
    ($(
        $name:ident: $mistake:ident, $rounds:expr, $time:expr, $restarts:expr, $fenced:expr
            => $property:ident;
    )*) => {$(
        #[test]
        fn $name() {
            let (restarts, fenced, mistake) = ($restarts, $fenced, Some(quorum::Mistake::$mistake));
            let made = Quorum { restarts, fenced, mistake, ..quorum($rounds, $time) };
            check_fails(made, quorum::$property);
        }
    )*};
}

found_in_quorum! {
    the_naive_token_of_a_quorum_is_found:
        HighestReplyIsTheToken, 2, Time::AnyMoment, 0, true => TOKENS;
    a_token_confirmed_by_one_node_is_found: ConfirmedByOne, 2, Time::AnyMoment, 0, true => TOKENS;
    a_token_confirmed_twice_is_found: ConfirmsTheSameToken, 2, Time::AnyMoment, 0, true => TOKENS;
    confirmations_of_nodes_that_others_have_are_found:
        BusyCountsAsConfirmed, 2, Time::AnyMoment, 0, true => TOKENS;
    tokens_of_restarted_nodes_without_the_time_as_floor_are_found:
        RestartedWithoutFloor, 2, ticks(0), 1, true => TOKENS;
    a_quorum_that_counts_from_the_reply_is_found:
        ValidityFromTheReply, 2, ticks(0), 0, false => EXCLUSION;
    a_quorum_that_trusts_the_whole_lease_is_found: NoMargin, 2, ticks(1), 0, false => EXCLUSION;
    a_release_of_the_nodes_heard_of_alone_is_found:
        ReleasedWhereGranted, 1, ticks(0), 0, false => NOTHING_LEFT;
    a_restarted_node_that_counts_at_once_is_found:
        RestartedCountsAtOnce, 2, ticks(0), 1, false => EXCLUSION;
    rounds_that_share_an_owner_token_are_found:
        RoundsShareAToken, 3, ticks(0), 0, false => EXCLUSION;
}
