//! The verbs of a latch as values, for tests that draw, repeat or tabulate them.

use std::time::Duration;

use lock_store::{
    Answer, Failure, Instant, LatchCall, LatchCounted, LatchFound, LatchSet, LatchState, LockKey,
    Owner, Store,
};

/// Something to do with a latch.
#[derive(Clone, Debug)]
pub struct LatchRequest {
    /// The latch, without namespace.
    pub key: LockKey,
    /// The call, or the place.
    pub owner: Owner,
    /// What to do.
    pub verb: LatchVerb,
    /// When it was sent, by the store's clock; see [`LatchCall::made`].
    pub made: Option<u64>,
}

/// The verbs of the store contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatchVerb {
    /// [`Store::latch_set`]
    Set {
        /// How often it must be counted down.
        count: u32,
        /// How long it exists.
        ttl: Duration,
    },
    /// [`Store::latch_count_down`]
    CountDown,
    /// [`Store::latch_look`]
    Look,
    /// [`Store::latch_wait`]
    Wait,
    /// [`Store::latch_leave`]
    Leave,
}

/// The reply to any of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latched {
    /// Whether this call set it.
    Set(bool),
    /// How many are left to count.
    Counted(u32),
    /// What it is.
    Is(LatchState),
    /// It is not there.
    NotSet,
    /// It came at a time at which it is not valid.
    Untimely {
        /// The store's time, in microseconds since 1970.
        now: u64,
    },
    /// The place is given up.
    Left,
    /// The key is something else.
    Conflict,
}

impl LatchRequest {
    /// Sends it to this store.
    ///
    /// # Errors
    /// The store's own.
    pub async fn send(self, store: &dyn Store, by: Instant) -> Result<Answer<Latched>, Failure> {
        let Self {
            key,
            owner,
            verb,
            made,
        } = self;
        let call = LatchCall { key, owner, made };
        Ok(match verb {
            LatchVerb::Set { count, ttl } => {
                let answer = store.latch_set(call, count, ttl, by).await?;
                answer.map(|set| match set {
                    LatchSet::Set => Latched::Set(true),
                    LatchSet::SetBefore => Latched::Set(false),
                    LatchSet::Untimely { now } => Latched::Untimely { now },
                    LatchSet::Conflict => Latched::Conflict,
                })
            }
            LatchVerb::CountDown => {
                let answer = store.latch_count_down(call, by).await?;
                answer.map(|counted| match counted {
                    LatchCounted::Left(left) => Latched::Counted(left),
                    LatchCounted::NotSet => Latched::NotSet,
                    LatchCounted::Untimely { now } => Latched::Untimely { now },
                    LatchCounted::Conflict => Latched::Conflict,
                })
            }
            LatchVerb::Look => store.latch_look(call.key, by).await?.map(Latched::from),
            LatchVerb::Wait => store.latch_wait(call, by).await?.map(Latched::from),
            LatchVerb::Leave => store.latch_leave(call, by).await?.map(|()| Latched::Left),
        })
    }
}

impl From<LatchFound> for Latched {
    fn from(found: LatchFound) -> Self {
        match found {
            LatchFound::Is(state) => Self::Is(state),
            LatchFound::NotSet => Self::NotSet,
            LatchFound::Conflict => Self::Conflict,
        }
    }
}
