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

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: u64 = 500;

    fn at(millis: i64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// A request that is late, over and out of patience then, in milliseconds.
    struct Request(Deadline);

    impl Request {
        fn new(late: i64, by: i64, patience: i64) -> Self {
            let [late, by, patience] = [late, by, patience].map(at);
            Self(Deadline::new(Limits {
                by,
                late,
                patience,
                is_repeated: false,
            }))
        }

        /// When it is looked at next, and whether the connection is doubted; none if it is over.
        fn look(&mut self, now: i64, reads: u64, is_written: bool) -> Option<(u64, bool)> {
            self.look_of(now, reads, is_written, false)
        }

        fn look_of(
            &mut self,
            now: i64,
            reads: u64,
            is_written: bool,
            is_slow: bool,
        ) -> Option<(u64, bool)> {
            let look = Look {
                now: at(now),
                reads,
                is_slow,
                command_timeout: Duration::from_millis(TIMEOUT),
            };
            match self.0.look(look, is_written) {
                Outlook::TimedOut => None,
                Outlook::Waits { until, doubts } => {
                    let until = until.saturating_duration_since(at(0)).as_millis();
                    Some((u64::try_from(until).unwrap_or_default(), doubts))
                }
            }
        }
    }

    #[test]
    fn a_reply_is_late_after_a_quarter_of_a_commands_time() {
        let quarter = Duration::from_millis(125);
        assert_eq!(late(Duration::from_millis(TIMEOUT)), quarter);
    }

    #[test]
    fn a_request_ends_in_time_if_nothing_is_read() {
        let mut request = Request::new(125, 500, 2000);
        assert_eq!(request.look(124, 3, true), Some((125, false)));
        // The connection is doubted once.
        assert_eq!(request.look(125, 3, true), Some((500, true)));
        assert_eq!(request.look(499, 3, true), Some((500, false)));
        assert_eq!(request.look(500, 3, true), None);
        // One that is looked at late is over at once, and no doubt is left.
        assert_eq!(Request::new(500, 500, 2000).look(500, 3, true), None);
        assert_eq!(
            Request::new(600, 500, 2000).look(499, 3, true),
            Some((500, false))
        );
        let mut late = Request::new(500, 600, 2000);
        assert_eq!(late.look(500, 3, true), Some((600, true)));
    }

    #[test]
    fn a_patient_request_goes_on_as_long_as_anything_is_read() {
        let mut request = Request::new(125, 500, 1700);
        assert_eq!(request.look(125, 0, true), Some((500, true)));
        assert_eq!(request.look(500, 1, true), Some((1000, false)));
        assert_eq!(request.look(999, 1, true), Some((1000, false)));
        assert_eq!(request.look(1000, 2, true), Some((1500, false)));
        // Its patience ends first.
        assert_eq!(request.look(1500, 3, true), Some((1700, false)));
        assert_eq!(request.look(1700, 4, true), None);

        let mut silent_later = Request::new(125, 500, 1700);
        assert_eq!(silent_later.look(125, 0, true), Some((500, true)));
        assert_eq!(silent_later.look(500, 1, true), Some((1000, false)));
        assert_eq!(silent_later.look(1000, 1, true), None);

        let mut impatient = Request::new(125, 500, 300);
        assert_eq!(impatient.look(125, 0, true), Some((500, true)));
        assert_eq!(impatient.look(500, 1, true), None);
    }

    #[test]
    fn a_process_that_is_slow_itself_blames_no_server() {
        let mut request = Request::new(125, 500, 2000);
        assert_eq!(request.look(125, 0, true), Some((500, true)));
        assert_eq!(request.look_of(510, 0, true, true), Some((1000, false)));
        assert_eq!(request.look(1000, 0, true), None);
        // Nor is a connection doubted of which no reply can be late.
        let mut never_late = Request::new(500, 500, 2000);
        assert_eq!(never_late.look_of(500, 0, true, true), Some((1000, false)));
    }

    #[test]
    fn the_time_of_a_request_counts_from_when_it_was_written() {
        let mut request = Request::new(125, 500, 5000);
        assert_eq!(request.look(125, 0, false), Some((625, false)));
        // Nothing was sent, so nobody is silent.
        assert_eq!(request.look(625, 0, false), Some((1125, false)));
        assert_eq!(request.look(1000, 0, true), Some((1125, true)));
        assert_eq!(request.look(1001, 0, true), Some((1125, false)));
        assert_eq!(request.look(1125, 0, true), None);

        let mut never_written = Request::new(125, 500, 600);
        assert_eq!(never_written.look(125, 0, false), Some((600, false)));
        assert_eq!(never_written.look(600, 0, false), None);
    }
}
