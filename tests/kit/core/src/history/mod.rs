//! Histories of what processes did with locks, and the checks on them.
//!
//! Every process writes a [`Record`] of everything that it requests, gets, believes and gives back.
//! Times are those of the machine's monotonic clock, which all processes share. [`History::merge`]
//! combines the records. The checks, each named by a [`Check`], examine the whole:
//!
//! - [`History::overlaps`]: no two processes believe at the same time that they hold locks that
//!   exclude each other;
//! - [`History::token_faults`]: fencing tokens are unique and rise in real time;
//! - [`stale_accesses`]: a resource that refuses older tokens never let a stale one in;
//! - [`History::endless_waits`]: every attempt ended within its time.
//!
//! What a process believes is what it acts upon: from the grant until it gives the lock back or
//! learns of its loss. The belief never outlasts the process's own deadline, even if the process is
//! stopped or killed meanwhile.

mod attempts;
mod disturbance;
mod exclusion;
mod record;
mod resource;
mod tokens;
mod waiting;

use std::fmt;

pub use self::attempts::{Attempt, BelievedHold, History};
pub use self::disturbance::{Disturbance, Effect};
pub use self::record::{Kind, Operation, Outcome, Record, Recorder, read_records};
pub use self::resource::{Access, stale_accesses};

/// A violated promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    /// Two processes held at once what excludes each other.
    Exclusion,
    /// A token was given twice, or a later hold got a lower token.
    TokenOrder,
    /// The guarded resource accepted an access by a holder that was overtaken.
    StaleAccess,
    /// An attempt did not end in its time.
    Waiting,
    /// After the faults, a process did not get a lock that no other needed for long.
    Progress,
    /// Something unused stayed in the store or in a client.
    Leftovers,
    /// An answer that no fault explains, such as a key conflict although all use the key alike.
    Answer,
}

/// Something that must not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The check that found it.
    pub check: Check,
    /// True if a lock must survive the faults that were in force.
    pub in_model: bool,
    /// What happened, where and when.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.in_model { "in" } else { "outside" };
        write!(f, "{:?} ({place} the model): {}", self.check, self.text)
    }
}
