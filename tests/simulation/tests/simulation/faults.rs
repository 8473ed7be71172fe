//! What goes wrong in a run, how often, and a count of what did.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use crate::rng::Rng;

/// What can go wrong. Chances are per mille of messages; the other numbers are mean pauses between events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    /// One way, in milliseconds.
    pub(crate) delay: (u64, u64),
    /// Messages that take up to ten times as long, and beyond the command timeout.
    pub(crate) slow: u64,
    pub(crate) lost_request: u64,
    pub(crate) lost_reply: u64,
    pub(crate) lost_grant: u64,
    pub(crate) twice: u64,
    /// What was under way over a connection that is cut arrives later, of this many per mille of cuts.
    pub(crate) late: u64,
    pub(crate) cut_every: Option<Duration>,
    pub(crate) pause_every: Option<Duration>,
    /// The clock of the store is set back by up to two seconds.
    pub(crate) back_every: Option<Duration>,
    /// Outside the model: the store loses its data.
    pub(crate) restart_every: Option<Duration>,
    /// Outside the model: the clock of the store is set forward, so that leases end early.
    pub(crate) forward_every: Option<Duration>,
}

impl Faults {
    /// Nothing but a short way.
    pub(crate) fn none() -> Self {
        Self {
            delay: (1, 3),
            ..Self::default()
        }
    }

    /// Some of them.
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let mut some = |most: u64| {
            if rng.chance(500) {
                1 + rng.below(most)
            } else {
                0
            }
        };
        let (slow, lost_request, lost_reply) = (some(60), some(40), some(60));
        let (lost_grant, twice, late) = (some(300), some(100), some(1000));
        let mut now_and_then = |per_mille: u64, from: u64, to: u64| {
            rng.chance(per_mille)
                .then(|| Duration::from_millis(from + rng.below(to - from)))
        };
        let restart_every = now_and_then(150, 5_000, 40_000);
        Self {
            slow,
            lost_request,
            lost_reply,
            lost_grant,
            twice,
            late,
            cut_every: now_and_then(400, 500, 20_000),
            pause_every: now_and_then(400, 1_000, 20_000),
            // Tokens can't rise when the data and the time are both lost, and nobody promises that they do.
            back_every: now_and_then(150, 2_000, 20_000).filter(|_| restart_every.is_none()),
            forward_every: now_and_then(100, 5_000, 40_000),
            restart_every,
            delay: rng.pick(&[(0, 0), (0, 2), (1, 10), (1, 40), (20, 80)]),
        }
    }
}

/// How often each thing happened.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<BTreeMap<&'static str, u64>>);

impl Counts {
    pub(crate) fn add(&self, what: &'static str) {
        *self.0.lock().unwrap().entry(what).or_default() += 1;
    }

    pub(crate) fn all(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().unwrap().clone()
    }
}
