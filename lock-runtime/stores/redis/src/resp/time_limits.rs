//! [`Limits`]: how long a request waits for its reply.
//!
//! One task looks at the requests of a connection, a few times in a command's time: a timer for
//! each would cost more than the command. It reads what has come before it looks.

use std::time::Duration;

use lock_store::Instant;

/// A reply is late after this part of the command timeout.
const LATE: u32 = 4;

/// How long a request waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) by: Instant,
    /// When its reply is late: then the connection is doubted.
    pub(crate) late: Instant,
    /// If the server is slow but answers, the request waits until then.
    pub(crate) patience: Instant,
    /// Its sender sends it again, so it does not wait for a connection that was replaced.
    pub(crate) is_repeated: bool,
}

impl Limits {
    /// When the request is looked at first.
    pub(super) fn first(&self) -> Instant {
        self.late.min(self.by)
    }
}

/// After how long a reply is late.
pub(crate) fn late(command_timeout: Duration) -> Duration {
    command_timeout / LATE
}

/// A request's time.
#[derive(Debug)]
pub(super) struct Deadline {
    limits: Limits,
    /// Once it is late: when it ends, unless there is a reason to wait longer.
    ends: Option<Instant>,
    was_written: bool,
    reads: u64,
}

/// The state of a connection when its requests are looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) now: Instant,
    /// How often something was read so far.
    pub(super) reads: u64,
    /// Whether this process is slow itself.
    pub(super) is_slow: bool,
    pub(super) command_timeout: Duration,
}

/// What becomes of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outlook {
    /// It is looked at again then. `doubts` if the connection may be dead.
    Waits {
        until: Instant,
        doubts: bool,
    },
    TimedOut,
}

impl Deadline {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            ends: None,
            was_written: false,
            reads: 0,
        }
    }

    pub(super) fn is_repeated(&self) -> bool {
        self.limits.is_repeated
    }

    /// Its time counts from when it was written. If the sender is patient, it goes on as long as
    /// anything is read.
    pub(super) fn look(&mut self, look: Look, is_written: bool) -> Outlook {
        let Limits { by, late, .. } = self.limits;
        let patience = self.limits.patience.max(by);
        let mut doubts = false;
        let mut ends = match self.ends {
            Some(ends) => ends,
            None if look.now < self.limits.first() => {
                let until = self.limits.first();
                return Outlook::Waits { until, doubts };
            }
            None => {
                (self.was_written, self.reads) = (is_written, look.reads);
                doubts = is_written && late < by;
                match is_written {
                    true => by,
                    false => patience.min(look.now + look.command_timeout),
                }
            }
        };
        if look.now >= ends {
            let is_silent = self.was_written && look.reads == self.reads && !look.is_slow;
            if ends >= patience || is_silent {
                return Outlook::TimedOut;
            }
            self.reads = look.reads;
            ends = patience.min(ends + look.command_timeout);
        }
        if is_written && !self.was_written {
            (self.was_written, doubts) = (true, true);
        }
        self.ends = Some(ends);
        let until = ends;
        Outlook::Waits { until, doubts }
    }
}
