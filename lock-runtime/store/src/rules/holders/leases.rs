//! Holds by name, and in the order in which their leases end.

use std::collections::{BTreeMap, BTreeSet};

use crate::instant::Instant;
use crate::{Owner, Permits};

/// The name of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HoldId {
    /// Who has it, or had it.
    pub owner: Owner,
    /// Zero, or the number of permits that stay taken after a release for the rest of
    /// `hold_at_least`. Such a rest belongs to no owner.
    pub kept: u32,
}

/// One hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldPart {
    /// The part of the key; `None` is all of it, alone.
    pub permits: Option<Permits>,
    /// The end of its lease.
    pub expires: Instant,
}

/// Most keys have one hold or none.
#[derive(Clone, Debug, Default)]
pub(super) enum Leases {
    #[default]
    None,
    One(HoldId, HeldPart),
    Several {
        holds: BTreeMap<HoldId, HeldPart>,
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

    pub(super) fn get(&self, name: HoldId) -> Option<&HeldPart> {
        match self {
            Self::One(one, hold) if *one == name => Some(hold),
            Self::None | Self::One(..) => None,
            Self::Several { holds, .. } => holds.get(&name),
        }
    }

    /// In the order of the names.
    pub(super) fn iter(&self) -> impl Iterator<Item = (HoldId, HeldPart)> {
        let (one, several) = match self {
            Self::None => (None, None),
            Self::One(name, hold) => (Some((*name, *hold)), None),
            Self::Several { holds, .. } => (None, Some(holds)),
        };
        let several = several.into_iter().flatten();
        one.into_iter()
            .chain(several.map(|(name, hold)| (*name, *hold)))
    }

    /// Adds a hold with a new name.
    pub(super) fn insert(&mut self, name: HoldId, hold: HeldPart) {
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

    pub(super) fn remove(&mut self, name: HoldId) -> Option<HeldPart> {
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
    pub(super) fn last(&self) -> Option<(HoldId, HeldPart)> {
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
        self.iter().filter(|(_, hold)| hold.expires > now).count()
    }
}
