//! Holds by name, and in the order in which their leases end.

use std::collections::{BTreeMap, BTreeSet};

use crate::instant::Instant;
use crate::{Owner, Permits};

/// The owner of a hold. If it was released and stays taken for the rest of `hold_at_least`, also
/// how many permits stay; then it belongs to no owner.
pub(super) type HoldId = (Owner, Option<u64>);

#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    pub(super) permits: Option<Permits>,
    pub(super) expires: Instant,
}

/// Most keys have one hold or none.
#[derive(Debug, Default)]
pub(super) enum Leases {
    #[default]
    None,
    One(HoldId, Hold),
    Several {
        holds: BTreeMap<HoldId, Hold>,
        ends: BTreeSet<(Instant, HoldId)>,
    },
}

impl Leases {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::One(..) => 1,
            Self::Several { holds, .. } => holds.len(),
        }
    }

    pub(super) fn get(&self, name: HoldId) -> Option<&Hold> {
        match self {
            Self::One(one, hold) if *one == name => Some(hold),
            Self::None | Self::One(..) => None,
            Self::Several { holds, .. } => holds.get(&name),
        }
    }

    /// Adds a hold with a new name.
    pub(super) fn insert(&mut self, name: HoldId, hold: Hold) {
        match self {
            Self::None => *self = Self::One(name, hold),
            Self::One(one, first) => {
                let both = [(*one, *first), (name, hold)];
                *self = Self::Several {
                    ends: both.map(|(name, hold)| (hold.expires, name)).into(),
                    holds: both.into(),
                };
            }
            Self::Several { holds, ends } => {
                ends.insert((hold.expires, name));
                holds.insert(name, hold);
            }
        }
    }

    pub(super) fn remove(&mut self, name: HoldId) -> Option<Hold> {
        match self {
            Self::One(one, hold) if *one == name => {
                let hold = *hold;
                *self = Self::None;
                Some(hold)
            }
            Self::None | Self::One(..) => None,
            Self::Several { holds, ends } => {
                let hold = holds.remove(&name)?;
                ends.remove(&(hold.expires, name));
                Some(hold)
            }
        }
    }

    /// The hold whose lease ends first.
    pub(super) fn first(&self) -> Option<(Instant, HoldId)> {
        match self {
            Self::None => None,
            Self::One(name, hold) => Some((hold.expires, *name)),
            Self::Several { ends, .. } => ends.first().copied(),
        }
    }

    /// The hold whose lease ends last.
    pub(super) fn last(&self) -> Option<(HoldId, Hold)> {
        match self {
            Self::None => None,
            Self::One(name, hold) => Some((*name, *hold)),
            Self::Several { holds, ends } => {
                let (_, name) = ends.last()?;
                holds.get(name).map(|hold| (*name, *hold))
            }
        }
    }

    /// The number of holds whose lease ends after this time.
    pub(super) fn ending_after(&self, now: Instant) -> usize {
        match self {
            Self::None => 0,
            Self::One(_, hold) => usize::from(hold.expires > now),
            Self::Several { holds, .. } => holds.values().filter(|hold| hold.expires > now).count(),
        }
    }
}
