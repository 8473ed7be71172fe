//! Mends that a simulation takes out, to see that it would find what they mend.

/// Something that was wrong once.
#[cfg_attr(
    not(feature = "__internals"),
    expect(unreachable_pub, reason = "public for simulations")
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mend {
    /// A task that is not polled is passed over.
    Patrol,
    /// A wait without end ends by the store's answers to waiters of the same key, not by its
    /// answers about other keys.
    PatienceOfTheKey,
    /// Whether a key is busy is judged by the store's answers about that key.
    VerdictOfTheKey,
    /// What a guard has lent to nested requests is lost when it ends.
    OuterEnds,
    /// A call chain is that of one task, and not of each task that is polled in it.
    ChainOfOneTask,
    /// A nested request that is not polled is passed over.
    PatrolOfNested,
    /// A release is repeated for as long as the store may have the hold.
    ReleaseOfWhatMayBeStored,
    /// Who follows one that was granted a share when it asked, asks at once.
    TurnOfTheNext,
}

/// What is taken out of a client. Of no size, and nothing, without the feature.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TakenOut {
    #[cfg(feature = "__internals")]
    mend: Option<Mend>,
}

impl TakenOut {
    #[cfg(feature = "__internals")]
    pub(crate) fn only(mend: Mend) -> Self {
        Self { mend: Some(mend) }
    }

    #[cfg(feature = "__internals")]
    pub(crate) fn has(self, mend: Mend) -> bool {
        self.mend == Some(mend)
    }

    #[cfg(not(feature = "__internals"))]
    #[inline(always)]
    pub(crate) const fn has(self, _: Mend) -> bool {
        false
    }

    #[cfg(test)]
    pub(crate) const NOTHING: Self = Self {
        #[cfg(feature = "__internals")]
        mend: None,
    };
}
