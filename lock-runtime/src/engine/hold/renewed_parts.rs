//! [`RenewedParts`]: what the replies for all keys of a hold come to.

use lock_store::{Instant, Renewed};

use super::Hold;

/// What the replies for all keys of a hold come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RenewedParts {
    /// All were renewed, and can be trusted until then, if the store has said so.
    All { until: Option<Instant> },
    /// Some were not answered, and none is gone.
    Unanswered,
    /// A hold on several keys is lost with any of them. A reply too few is not a renewal.
    Gone,
}

impl RenewedParts {
    /// Takes the replies for this hold.
    pub(crate) fn of(hold: &Hold, replies: &mut impl Iterator<Item = Renewed>) -> Self {
        let mut all = Self::All { until: None };
        for _ in hold.parts() {
            all = match (all, replies.next()) {
                (all, Some(Renewed::Renewed)) => all,
                (Self::All { until }, Some(Renewed::Until(one))) => Self::All {
                    until: Some(until.map_or(one, |until| until.min(one))),
                },
                (all, Some(Renewed::Until(_))) => all,
                (Self::All { .. } | Self::Unanswered, Some(Renewed::Unanswered)) => {
                    Self::Unanswered
                }
                _ => Self::Gone,
            };
        }
        all
    }
}
