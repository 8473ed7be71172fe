//! Histories of what processes did with locks, and what must be true of each.
//!
//! Every process writes a [`Record`] for everything it asks, gets, believes and gives back, with
//! the machine's monotonic clock, which is the same in all of them. [`History::merge`] puts them
//! together, and the checks, each named by a [`Check`], go through the whole:
//!
//! - [`History::overlaps`]: no two believe at the same time that they hold what excludes each
//!   other;
//! - [`History::token_faults`]: fencing tokens are unique and rise in real time;
//! - [`stale_accesses`]: a resource that refuses older tokens never let a stale one in;
//! - [`History::endless_waits`]: every attempt came to its end in the time it was given.
//!
//! What a process believes is what it acts upon: from the grant to the moment when it gives the
//! lock back or is told of its loss, and no longer than its own deadline, also if it is stopped or
//! killed meanwhile.

mod attempts;
mod disturbance;
mod exclusion;
mod record;
mod resource;
mod tokens;
mod waiting;

use std::fmt;

pub use self::attempts::{Attempt, History, Hold};
pub use self::disturbance::{Disturbance, Effect};
pub use self::record::{Kind, Operation, Outcome, Record, Recorder, read_records};
pub use self::resource::{Access, stale_accesses};

/// What can be wrong with a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    /// Two held at once what excludes each other.
    Exclusion,
    /// A token was given twice, or a later hold got a lower one.
    TokenOrder,
    /// The guarded resource let somebody in who had been overtaken.
    StaleAccess,
    /// An attempt did not end in its time.
    Waiting,
    /// After the faults, somebody did not get a lock that nobody else needed for long.
    Progress,
    /// Something stayed in the store, or in a client, that nobody uses any more.
    Leftovers,
    /// An answer that no fault explains, such as a key conflict where all use the key alike.
    Answer,
}

/// Something that must not have happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which check found it.
    pub check: Check,
    /// Whether it happened under faults that the lock promises to bear.
    pub in_model: bool,
    /// What happened, to whom and when.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.in_model { "in" } else { "outside" };
        write!(f, "{:?} ({place} the model): {}", self.check, self.text)
    }
}
