//! Deliberate mistakes of a worker, to show that the checks find them.

/// A deliberate mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// Releases with a plain `DEL`, even if another owner has the lock by now.
    ReleaseByDel,
    /// Renews with `SET`, without checking that the lock is still its own.
    RenewBySet,
    /// Trusts a hold for a second longer than its lease.
    TrustPastDeadline,
    /// Learns of the loss, and works on.
    IgnoreLoss,
    /// The resource accepts every access.
    NoTokenCheck,
    /// The fencing token comes from a plain `INCR`.
    TokenByIncr,
    /// The lock has no lease.
    NoLease,
    /// A guard is leaked, and renewed for ever.
    ForgetGuard,
    /// Waits without end, whatever wait was agreed.
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
