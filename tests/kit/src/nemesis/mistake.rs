//! What a worker can be told to do wrong, to show that the checks find it.

/// A deliberate mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// Releases with a plain `DEL`, also what is somebody else's by now.
    ReleaseByDel,
    /// Renews with `SET`, without looking whether the lock is still its own.
    RenewBySet,
    /// Trusts a hold for a second longer than its lease.
    TrustPastDeadline,
    /// Is told of the loss, and works on.
    IgnoreLoss,
    /// The resource takes whatever it is sent.
    NoTokenCheck,
    /// The fencing token is what a plain `INCR` gives.
    TokenByIncr,
    /// The lock has no lease.
    NoLease,
    /// A guard is forgotten, and renewed for ever.
    ForgetGuard,
    /// Waits as long as it takes, whatever wait was agreed.
    WaitForever,
}

impl Mistake {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::ReleaseByDel,
        Self::RenewBySet,
        Self::TrustPastDeadline,
        Self::IgnoreLoss,
        Self::NoTokenCheck,
        Self::TokenByIncr,
        Self::NoLease,
        Self::ForgetGuard,
        Self::WaitForever,
    ];

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|mistake| format!("{mistake:?}") == name)
    }
}
