//! Which behaviours run on which engine.

use std::collections::BTreeMap;

use lock_store::{Capabilities, Wish};

use super::engine::Engine;
use super::{
    Behaviour, cancellation, exclusion, fencing, holders, keys, latch, latch_verbs, leaders,
    leaving, limits, losing, multi_hold, multi_lock, multi_verbs, outages, rates, reentrancy,
    releasing, revoking, runtimes, rw_lock, rw_lock_holds, semaphore, semaphore_holds, shares,
    stored, stored_latch, tasks, together, turns, unpolled, verbs, views, waiting,
};

const SHARES: &[Wish] = &[Wish::Shares, Wish::Fair, Wish::Fencing];
const LATCH: &[Wish] = &[Wish::Latch];
const RATE: &[Wish] = &[Wish::Rate];
const LIMIT: &[Wish] = &[Wish::ExactRate];
/// A queue in the store, in the order of arrival.
const QUEUE: &[Wish] = &[Wish::Fair, Wish::Fencing];
const ALL: &[Wish] = &[
    Wish::Shares,
    Wish::Fair,
    Wish::Fencing,
    Wish::Latch,
    Wish::Rate,
];

/// The behaviours of each module, those of them that need none of what follows, and what the others
/// need.
const MODULES: &[(&[Behaviour], &[Behaviour], &[Wish])] = &[
    (
        cancellation::BEHAVIOURS,
        cancellation::WITHOUT_A_QUEUE,
        QUEUE,
    ),
    (exclusion::BEHAVIOURS, exclusion::WITHOUT_A_QUEUE, QUEUE),
    (fencing::BEHAVIOURS, fencing::WITHOUT_A_QUEUE, QUEUE),
    (holders::BEHAVIOURS, holders::WITHOUT_A_QUEUE, QUEUE),
    (keys::BEHAVIOURS, keys::WITHOUT_A_QUEUE, ALL),
    (latch::BEHAVIOURS, &[], LATCH),
    (latch_verbs::BEHAVIOURS, &[], LATCH),
    (leaders::BEHAVIOURS, leaders::WITHOUT_A_QUEUE, QUEUE),
    (leaving::BEHAVIOURS, leaving::WITHOUT_A_QUEUE, QUEUE),
    (limits::BEHAVIOURS, &[], LIMIT),
    (losing::BEHAVIOURS, losing::WITHOUT_A_QUEUE, QUEUE),
    (multi_hold::BEHAVIOURS, multi_hold::WITHOUT_A_QUEUE, QUEUE),
    (multi_lock::BEHAVIOURS, multi_lock::WITHOUT_A_QUEUE, QUEUE),
    (multi_verbs::BEHAVIOURS, &[], QUEUE),
    (outages::BEHAVIOURS, outages::BEHAVIOURS, &[]),
    (rates::BEHAVIOURS, &[], RATE),
    (reentrancy::BEHAVIOURS, reentrancy::WITHOUT_A_QUEUE, QUEUE),
    (releasing::BEHAVIOURS, releasing::WITHOUT_A_QUEUE, QUEUE),
    (revoking::BEHAVIOURS, revoking::WITHOUT_A_QUEUE, SHARES),
    (runtimes::BEHAVIOURS, runtimes::WITHOUT_A_QUEUE, QUEUE),
    (rw_lock::BEHAVIOURS, &[], SHARES),
    (rw_lock_holds::BEHAVIOURS, &[], SHARES),
    (semaphore::BEHAVIOURS, &[], SHARES),
    (semaphore_holds::BEHAVIOURS, &[], SHARES),
    (shares::BEHAVIOURS, &[], SHARES),
    (tasks::BEHAVIOURS, tasks::WITHOUT_A_QUEUE, QUEUE),
    (together::BEHAVIOURS, &[], SHARES),
    (turns::BEHAVIOURS, turns::WITHOUT_A_QUEUE, QUEUE),
    (unpolled::BEHAVIOURS, unpolled::WITHOUT_A_QUEUE, QUEUE),
    (verbs::BEHAVIOURS, verbs::WITHOUT_A_QUEUE, QUEUE),
    (views::BEHAVIOURS, views::WITHOUT_A_QUEUE, QUEUE),
    (waiting::BEHAVIOURS, waiting::WITHOUT_A_QUEUE, QUEUE),
];

/// What single behaviours need besides.
const BESIDES: &[(&str, Needs)] = &[
    ("fenc", Needs::Wish(Wish::Fencing)),
    ("token", Needs::Wish(Wish::Fencing)),
    ("views::a_view_has_the_locks", Needs::Wish(Wish::Fencing)),
    ("views::every_kind", Needs::Wish(Wish::Latch)),
    ("outages::", Needs::Failures),
    ("holders::a_request_that_has_waited", Needs::Messages),
    ("holders::an_inspection_tells", Needs::Messages),
    ("leaders::a_revoked_leader", Needs::Messages),
    ("holders::the_clients_of_a_view", Needs::Messages),
    ("revoking::", Needs::Messages),
    ("turns::a_passed_hold_lives", Needs::ExactLeases),
    ("runtimes::every_route", Needs::Wish(Wish::Shares)),
    ("runtimes::every_route", Needs::Wish(Wish::Latch)),
    ("runtimes::every_route", Needs::Wish(Wish::Rate)),
];

/// What not every engine has.
#[derive(Clone, Copy, Debug)]
enum Needs {
    Wish(Wish),
    /// Between clients.
    Messages,
    /// Of the server, on purpose.
    Failures,
    /// That last in the store as long as was asked, and no longer.
    ExactLeases,
}

impl Needs {
    fn are_met(self, engine: &Engine, can: &Capabilities) -> bool {
        match self {
            Self::Wish(wish) => can.refusal(wish).is_none(),
            Self::Messages => can.tells,
            Self::Failures => engine.fails,
            Self::ExactLeases => can.rounds_up.is_zero(),
        }
    }
}

/// What scripts leave in a server. Scripts know no topology.
const ON_ONE_SERVER: &[&[Behaviour]] = &[
    stored::found::ON_ONE_SERVER,
    stored::heard::ON_ONE_SERVER,
    stored::portions::ON_ONE_SERVER,
    stored::short_ways::ON_ONE_SERVER,
    stored::times::ON_ONE_SERVER,
    stored::tokens::ON_ONE_SERVER,
    stored_latch::ON_ONE_SERVER,
];

/// The behaviours for an engine, and how many are left out for what it lacks.
pub(super) fn of(engine: &Engine) -> (Vec<Behaviour>, BTreeMap<String, usize>) {
    for (name, _) in BESIDES {
        let has = |all: &[Behaviour]| all.iter().any(|behaviour| behaviour.name.contains(name));
        assert!(
            MODULES.iter().any(|(all, ..)| has(all)),
            "no behaviour is called {name}"
        );
    }
    let can = (engine.can)();
    let (mut runs, mut left_out) = (Vec::new(), BTreeMap::new());
    for (all, light, needs) in MODULES {
        for behaviour in *all {
            let is_light = light.iter().any(|one| one.name == behaviour.name);
            let needs = if is_light { &[][..] } else { *needs };
            let besides = BESIDES
                .iter()
                .filter(|(name, _)| behaviour.name.contains(name));
            let besides = besides.map(|(_, needs)| *needs);
            let mut needs = needs.iter().copied().map(Needs::Wish).chain(besides);
            match needs.find(|needs| !needs.are_met(engine, &can)) {
                None => runs.push(*behaviour),
                Some(lacks) => *left_out.entry(format!("{lacks:?}")).or_default() += 1,
            }
        }
    }
    if engine.is_one_redis {
        runs.extend(ON_ONE_SERVER.iter().copied().flatten());
    }
    (runs, left_out)
}
