//! What goes wrong in a run, how often, and a count of what did.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use crate::rng::Rng;

/// What can go wrong. Chances are per mille of messages. The other numbers are mean pauses between
/// events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) servers: usize,
    /// Decides which server each key belongs to.
    pub(crate) placement: u64,
    /// The network's delay may use up some leases.
    pub(crate) short_leases: bool,
    /// Requests that are not polled for a while, per mille.
    pub(crate) unpolled: u64,
    /// Nested requests leave their body, are made by other tasks, or are not polled.
    pub(crate) leaving: bool,
    /// This many requests of one client wait for shares behind one holder.
    pub(crate) group_of: Option<u32>,
    /// Ends of holds whose reply is lost, if it has a list of those whose turn has come: the client
    /// that ended its hold would tell them.
    pub(crate) lost_list: u64,
    /// A server is silent for a while.
    pub(crate) silence_every: Option<Duration>,
    /// A server has no memory, or takes a right away.
    pub(crate) refusal_every: Option<Duration>,
    /// In a cluster, a slot has half moved for a while.
    pub(crate) half_moved_every: Option<Duration>,
    /// The machines sleep, and their timers with them.
    pub(crate) suspend_every: Option<Duration>,
    /// The delay one way, in milliseconds.
    pub(crate) delay: (u64, u64),
    /// Messages that take up to ten times as long, beyond the command timeout.
    pub(crate) slow: u64,
    pub(crate) lost_request: u64,
    pub(crate) lost_reply: u64,
    pub(crate) lost_grant: u64,
    pub(crate) twice: u64,
    /// In this many per mille of cuts, what was under way over the connection arrives later.
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
    /// No fault and a short way.
    pub(crate) fn none() -> Self {
        Self {
            servers: 1,
            delay: (1, 3),
            ..Self::default()
        }
    }

    /// Draws some of them.
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
        let cut_every = now_and_then(400, 500, 20_000);
        let pause_every = now_and_then(400, 1_000, 20_000);
        let back_every = now_and_then(150, 2_000, 20_000);
        let forward_every = now_and_then(100, 5_000, 40_000);
        let silence_every = now_and_then(200, 3_000, 25_000);
        let refusal_every = now_and_then(150, 3_000, 30_000);
        let half_moved_every = now_and_then(400, 2_000, 20_000);
        let suspend_every = now_and_then(120, 5_000, 60_000);
        let servers = rng.pick(&[1, 1, 2, 3]);
        let short_leases = rng.chance(100);
        let delays: &[(u64, u64)] = if short_leases {
            &[(1, 40), (20, 80), (50, 150)]
        } else {
            &[(0, 0), (0, 2), (1, 10), (1, 40), (20, 80)]
        };
        Self {
            slow,
            lost_request,
            lost_reply,
            lost_grant,
            twice,
            late,
            cut_every,
            pause_every,
            // Tokens can't rise when both the data and the time are lost, and we do not promise
            // that.
            back_every: back_every.filter(|_| restart_every.is_none()),
            forward_every,
            restart_every,
            silence_every,
            refusal_every,
            half_moved_every: half_moved_every.filter(|_| servers > 1),
            suspend_every,
            servers,
            placement: rng.below(u64::MAX),
            short_leases,
            unpolled: rng.pick(&[0, 70, 70]),
            leaving: false,
            delay: rng.pick(delays),
            ..Self::default()
        }
        .with_groups()
    }

    /// In some worlds. Drawn apart: without a group, a seed is the run that it was before.
    fn with_groups(mut self) -> Self {
        let mut rng = Rng::new(self.placement);
        if rng.chance(250) {
            self.group_of = Some(rng.pick(&[4, 8, 12]));
            self.lost_list = rng.pick(&[0, 0, 300, 600]);
        }
        self
    }

    /// True if clients may not hear of their grants.
    pub(crate) fn loses_grants(&self) -> bool {
        self.lost_grant + self.lost_list > 0
    }

    /// True if no fault lets two hold at once.
    pub(crate) fn are_inside_the_model(&self) -> bool {
        self.restart_every.is_none() && self.forward_every.is_none()
    }

    /// Counts what kind of world this is.
    pub(crate) fn count(&self, counts: &Counts) {
        let kinds = [
            (self.servers > 1, "worlds: clusters"),
            (self.silence_every.is_some(), "worlds: silent servers"),
            (self.refusal_every.is_some(), "worlds: refusals"),
            (self.half_moved_every.is_some(), "worlds: half-moved slots"),
            (self.suspend_every.is_some(), "worlds: suspends"),
            (self.short_leases, "worlds: short leases"),
            (self.pause_every.is_some(), "worlds: stopped clients"),
            (self.unpolled > 0, "worlds: tasks that are not polled"),
            (self.leaving, "worlds: nested requests that leave"),
            (self.group_of.is_some(), "worlds: groups behind one holder"),
        ];
        for (_, kind) in kinds.iter().filter(|(is_so, _)| *is_so) {
            counts.add(kind);
        }
        if kinds.iter().all(|(is_so, _)| !is_so) {
            counts.add("worlds: none of the others");
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
