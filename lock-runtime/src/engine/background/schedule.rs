//! [`Schedule`]: when the watchdog acts on which hold.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lock_store::Instant;

use crate::engine::hold::Hold;

/// Renewals that fall due within this time travel together.
const TOGETHER: Duration = Duration::from_millis(20);

/// Each live hold has exactly one event.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    pub(super) events: BTreeMap<(Instant, u64), Scheduled>,
    /// The time that the task sleeps until. It is not woken for a later one.
    pub(super) armed: Option<Instant>,
    /// Somebody waits until at most this many holds are left.
    pub(super) awaited: Option<usize>,
    pub(super) closed: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Scheduled {
    pub(super) hold: Arc<Hold>,
    pub(super) failed: FailedTries,
    /// A renewal is due; otherwise the deadline is.
    pub(super) renew: bool,
}

/// Renewals of a hold that failed in a row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FailedTries {
    pub(super) count: u32,
    /// When the first of them was due, or the next one is.
    pub(super) due: Option<Instant>,
    /// It was logged why one of them failed.
    pub(super) is_told: bool,
}

impl Schedule {
    /// The holds that are due now, and renewals that may as well travel with them. They stay
    /// scheduled until they are set anew.
    pub(super) fn take_due(&self, now: Instant) -> Vec<Scheduled> {
        let soon = self.events.range(..(now + TOGETHER, u64::MAX));
        soon.filter(|((at, _), event)| *at <= now || event.renew)
            .map(|(_, event)| event.clone())
            .collect()
    }
}
