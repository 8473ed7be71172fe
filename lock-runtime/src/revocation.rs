//! [`Revocation`]: who has given up a lock, and who still has it.

use std::fmt;

/// What became of a [`revoke`](crate::LockClient::revoke).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "some holders may still run"]
pub struct Revocation {
    /// How many holders have released the lock: those that were asked, and those that ended
    /// meanwhile by themselves.
    pub released: usize,
    /// Those that still have it. None if all is done.
    pub left: Vec<StillHeld>,
}

/// A holder that has not given up its lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StillHeld {
    /// The name of its client, if that has answered.
    pub client: Option<Box<str>>,
    /// Why it still has the lock.
    pub why: WhyHeld,
}

/// Why a holder still has its lock after a [`revoke`](crate::LockClient::revoke).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhyHeld {
    /// Its client did not answer within the timeout: it is gone, cut off or stopped, and its lease
    /// ends. Or it is of an earlier version, lives, and renews.
    NoAnswer,
    /// It was told, its hold is lost, and its body or guard is still there: a body under `on_lost =
    /// "continue"`, one that blocks its thread, or a guard that was not dropped.
    Running,
    /// Its client refuses ([`revocable`](crate::LockClientBuilder::revocable)).
    Refused,
    /// Nobody runs: it was released, and stays taken for a while
    /// ([`hold_at_least`](crate::Lock::hold_at_least)).
    Kept,
    /// It is not of this library.
    Foreign,
}

impl Revocation {
    /// Whether nobody of them has the lock any more.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.left.is_empty()
    }
}

impl fmt::Display for WhyHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoAnswer => "did not answer",
            Self::Running => "was told, and still runs",
            Self::Refused => "refuses",
            Self::Kept => "has released it, and it stays taken for a while",
            Self::Foreign => "of another library can't be asked",
        })
    }
}

/// For an operator: `1 holder has released the lock; orders-7f9c was told, and still runs`.
impl fmt::Display for Revocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.released {
            0 => f.write_str("no holder has released the lock")?,
            1 => f.write_str("1 holder has released the lock")?,
            more => write!(f, "{more} holders have released the lock")?,
        }
        for StillHeld { client, why } in &self.left {
            let client = client.as_deref().unwrap_or("a holder");
            write!(f, "; {client} {why}")?;
        }
        Ok(())
    }
}
