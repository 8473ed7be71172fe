//! [`LostReason`], and the message of a lock that was lost.

use std::fmt;

use lock_store::LockKey;

lock_store::named! {
    "Its name in metrics and traces",
    /// How a hold came to its end before it was released.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum LostReason {
        /// Its fixed lease ended on this machine's monotonic clock: too short for the body.
        Expired = "expired",
        /// Its lease ended, and the renewals sent before got no answer.
        NotRenewed = "not_renewed",
        /// Its lease ended and no renewal was sent: the process was stopped or starved, or the
        /// machine suspended.
        Stalled = "stalled",
        /// The store said that the hold is gone: it lost its data, evicted the key, or an operator
        /// took the lock away.
        Gone = "gone",
        /// Another client asked for its end ([`revoke`](crate::LockClient::revoke)). The store has
        /// the hold until the body or guard has been dropped.
        Revoked = "revoked",
        /// `max_hold` was reached.
        MaxHold = "max_hold",
        /// The client was shut down and its timeout ran out.
        Shutdown = "shutdown",
        /// A nested call or guard was kept beyond the outer body or guard whose hold it shared.
        OuterEnded = "outer_ended",
    }
}

impl LostReason {
    /// Whether its lease has ended. Then the store has nothing left of it.
    pub(crate) fn is_end_of_lease(self) -> bool {
        matches!(self, Self::Expired | Self::NotRenewed | Self::Stalled)
    }
}

impl fmt::Display for LostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => {
                "its fixed lease ended; write a longer `lease`, or `renew = true` to have it \
                 renewed"
            }
            Self::NotRenewed => {
                "its lease ended: the store confirmed no renewal; check store, network and rights"
            }
            Self::Stalled => {
                "its lease ended while this process stood still (stopped, starved, or its machine \
                 asleep)"
            }
            Self::Gone => {
                "the store no longer has it (data lost, key evicted or deleted, or released by \
                 force)"
            }
            Self::Revoked => "an operator revoked it (`revoke`)",
            Self::MaxHold => "`max_hold` was reached",
            Self::Shutdown => "the client was shut down",
            Self::OuterEnded => {
                "it was shared by a nested call, and the outer body or guard has ended; await \
                 nested calls inside the outer body"
            }
        })
    }
}

/// The key, how it was lost, and whether its body had ended by itself.
pub(super) struct WasLost<'e>(
    pub(super) &'e LockKey,
    pub(super) LostReason,
    pub(super) bool,
);

impl fmt::Display for WasLost<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(key, reason, body_ended) = self;
        let key = key.shortened();
        match body_ended {
            false => write!(
                f,
                "the lock {key} was lost: {reason}. Its work may be half done: check it before a \
                 retry"
            ),
            true => write!(
                f,
                "the lock {key} was lost: {reason}. The body went on to its end, perhaps beside \
                 another holder: all of its work is done, and a retry does it again"
            ),
        }
    }
}
