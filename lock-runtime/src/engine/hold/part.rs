//! The parts of a hold: its keys, and how they are renewed.

use std::sync::OnceLock;

use lock_store::{FencingToken, Instant, LockKey, Owner, Renewed};

/// One key of a hold.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) key: LockKey,
    pub(crate) owner: Owner,
    token: OnceLock<FencingToken>,
}

impl Part {
    pub(crate) fn new(key: LockKey, owner: Owner, token: Option<u64>) -> Self {
        Self {
            key,
            owner,
            token: token
                .map(|token| FencingToken::new(token).into())
                .unwrap_or_default(),
        }
    }

    /// Copies the part for another hold.
    pub(crate) fn again(&self) -> Self {
        Self {
            key: self.key.clone(),
            owner: self.owner,
            token: self.token.clone(),
        }
    }

    pub(crate) fn token(&self) -> Option<FencingToken> {
        self.token.get().copied()
    }

    /// Keeps the first token that a hold is given.
    pub(crate) fn set_token(&self, token: u64) -> FencingToken {
        *self.token.get_or_init(|| FencingToken::new(token))
    }
}

/// What the replies for all keys of a hold come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RenewedParts {
    /// All were renewed, and can be trusted until then, if the store has said so.
    All { until: Option<Instant> },
    /// Some were not answered, and none is gone. The others can be trusted until then, if the store
    /// has said so.
    Unanswered { until: Option<Instant> },
    /// A hold on several keys is lost with any of them. A reply too few is not a renewal.
    Gone,
}

impl RenewedParts {
    /// Takes the replies for the parts of one hold.
    pub(crate) fn of(parts: &[Part], replies: &mut impl Iterator<Item = Renewed>) -> Self {
        let mut all = Self::All { until: None };
        for _ in parts {
            all = match (all, replies.next()) {
                (all, Some(Renewed::Renewed)) => all,
                (all, Some(Renewed::Until(one))) => all.at_most(one),
                (Self::All { until } | Self::Unanswered { until }, Some(Renewed::Unanswered)) => {
                    Self::Unanswered { until }
                }
                _ => Self::Gone,
            };
        }
        all
    }

    /// One of them can be trusted until then.
    fn at_most(mut self, one: Instant) -> Self {
        if let Self::All { until } | Self::Unanswered { until } = &mut self {
            *until = Some(until.map_or(one, |until| until.min(one)));
        }
        self
    }
}
