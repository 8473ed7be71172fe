//! The operations on a latch as values, for tests that draw, repeat or tabulate them.

use std::time::Duration;

use lock_store::{
    Answer, Failure, Instant, LatchCall, LatchCounted, LatchFound, LatchSet, LatchState, LockKey,
    Owner, Store,
};

/// One operation on a latch.
#[derive(Clone, Debug)]
pub struct LatchRequest {
    /// The latch's key, without namespace.
    pub key: LockKey,
    /// The owner token of the call or the place.
    pub owner: Owner,
    /// The operation.
    pub verb: LatchVerb,
    /// When it was sent, on the store's clock; see [`LatchCall::made`].
    pub made: Option<u64>,
}

/// The operations of the store contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatchVerb {
    /// [`Store::latch_set`]
    Set {
        /// The number of counts.
        count: u32,
        /// How long the latch exists.
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

/// The reply to any of these operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latched {
    /// True if this call set the latch.
    Set(bool),
    /// The number of counts left.
    Counted(u32),
    /// The latch's state.
    Is(LatchState),
    /// The latch is not set.
    NotSet,
    /// The call was not valid at that time.
    Untimely {
        /// The store's time, in microseconds since 1970.
        now: u64,
    },
    /// The place was given up.
    Left,
    /// The key holds something else.
    Conflict,
}

impl LatchRequest {
    /// Sends it to this store.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn send(self, store: &dyn Store, by: Instant) -> Result<Answer<Latched>, Failure> {
        let Self {
            key,
            owner,
            verb,
            made,
        } = self;
        let call = LatchCall::new(key, owner, made);
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
