//! One line of a history.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::str::FromStr;

/// The kind of lock on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An exclusive lock.
    Exclusive,
    /// A read lock.
    Read,
    /// A write lock.
    Write,
    /// Some permits of a semaphore.
    Permits {
        /// The number of permits taken.
        take: u32,
        /// The semaphore's capacity.
        of: u32,
    },
}

impl Kind {
    /// What it takes, and the total.
    pub(super) fn share(self) -> (u64, u64) {
        const READERS: u64 = 1 << 32;
        match self {
            Self::Exclusive => (1, 1),
            Self::Read => (1, READERS),
            Self::Write => (READERS, READERS),
            Self::Permits { take, of } => (take.into(), of.into()),
        }
    }
}

/// The operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Acquiring the lock.
    Acquire,
    /// Working under the lock.
    Hold,
    /// Releasing the lock.
    Release,
}

/// The outcome of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The operation begins, and its outcome is not known yet.
    Asked,
    /// Done. For a hold: it still lasts.
    Ok,
    /// Another holder has the lock.
    Busy,
    /// Not done. For a hold: it is lost.
    Failed,
    /// Given up without an answer.
    Unknown,
}

/// Something that one process did or learned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The time, in nanoseconds of [`monotonic_nanos`](crate::monotonic_nanos).
    pub at: u64,
    /// The process. The number is unique in a history, even if process ids are used again.
    pub process: u32,
    /// The attempt's number in its process. An attempt at several keys has a record for each of
    /// them.
    pub attempt: u64,
    /// The key.
    pub key: String,
    /// The kind of lock.
    pub kind: Kind,
    /// The operation.
    pub operation: Operation,
    /// The outcome.
    pub outcome: Outcome,
    /// The fencing token of a grant.
    pub token: Option<u64>,
    /// For a requested attempt: the time by which it must have ended. For a hold: the time until
    /// which it is trusted.
    pub deadline: Option<u64>,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exclusive => f.write_str("exclusive"),
            Self::Read => f.write_str("read"),
            Self::Write => f.write_str("write"),
            Self::Permits { take, of } => write!(f, "{take}/{of}"),
        }
    }
}

impl FromStr for Kind {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "exclusive" => Ok(Self::Exclusive),
            "read" => Ok(Self::Read),
            "write" => Ok(Self::Write),
            permits => {
                let (take, of) = permits.split_once('/').ok_or(())?;
                Ok(Self::Permits {
                    take: take.parse().map_err(drop)?,
                    of: of.parse().map_err(drop)?,
                })
            }
        }
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = match self.operation {
            Operation::Acquire => "acquire",
            Operation::Hold => "hold",
            Operation::Release => "release",
        };
        let outcome = match self.outcome {
            Outcome::Asked => "asked",
            Outcome::Ok => "ok",
            Outcome::Busy => "busy",
            Outcome::Failed => "failed",
            Outcome::Unknown => "unknown",
        };
        let number = |number: Option<u64>| number.map_or("-".to_owned(), |n| n.to_string());
        write!(
            f,
            "{} {} {} {} {} {operation} {outcome} {} {}",
            self.at,
            self.process,
            self.attempt,
            self.key,
            self.kind,
            number(self.token),
            number(self.deadline)
        )
    }
}

impl FromStr for Record {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let words: Vec<&str> = line.split(' ').collect();
        let [
            at,
            process,
            attempt,
            key,
            kind,
            operation,
            outcome,
            token,
            deadline,
        ] = words[..]
        else {
            return Err(());
        };
        let number = |word: &str| match word {
            "-" => Ok(None),
            digits => digits.parse().map(Some).map_err(drop),
        };
        Ok(Self {
            at: at.parse().map_err(drop)?,
            process: process.parse().map_err(drop)?,
            attempt: attempt.parse().map_err(drop)?,
            key: key.to_owned(),
            kind: kind.parse()?,
            operation: match operation {
                "acquire" => Operation::Acquire,
                "hold" => Operation::Hold,
                "release" => Operation::Release,
                _ => return Err(()),
            },
            outcome: match outcome {
                "asked" => Outcome::Asked,
                "ok" => Outcome::Ok,
                "busy" => Outcome::Busy,
                "failed" => Outcome::Failed,
                "unknown" => Outcome::Unknown,
                _ => return Err(()),
            },
            token: number(token)?,
            deadline: number(deadline)?,
        })
    }
}

/// Writes the history of one process. Records stay, whatever happens to the process next.
#[derive(Debug)]
pub struct Recorder {
    file: File,
}

impl Recorder {
    /// Appends to a file, and makes it if it does not exist.
    ///
    /// # Panics
    /// If the file can't be opened.
    #[must_use]
    pub fn append_to(path: &Path) -> Self {
        let file = OpenOptions::new().create(true).append(true).open(path);
        Self {
            file: file.unwrap_or_else(|error| panic!("no history at {path:?}: {error}")),
        }
    }

    /// Writes one record.
    ///
    /// # Panics
    /// If the record can't be written.
    pub fn record(&self, record: &Record) {
        // One write, so that records of several threads do not mix and a kill leaves only whole
        // lines.
        let line = format!("{record}\n");
        (&self.file)
            .write_all(line.as_bytes())
            .expect("the history can be written");
    }
}

/// The records of a file. An unfinished line of a killed process is ignored.
///
/// # Panics
/// If there is no such file, or a whole line is no record.
#[must_use]
pub fn read_records(path: &Path) -> Vec<Record> {
    let text = std::fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("no history at {path:?}: {error}"));
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let records = whole.lines().map(|line| {
        line.parse()
            .unwrap_or_else(|()| panic!("{path:?} has a line that is no record: {line:?}"))
    });
    records.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_and_half_a_line_is_not_read() {
        let record = |kind, token, deadline| Record {
            at: 17,
            process: 3,
            attempt: 5,
            key: "m:{a}".to_owned(),
            kind,
            operation: Operation::Hold,
            outcome: Outcome::Ok,
            token,
            deadline,
        };
        let records = [
            record(Kind::Exclusive, None, Some(9)),
            record(Kind::Read, Some(1 << 52), None),
            record(Kind::Write, None, None),
            record(Kind::Permits { take: 2, of: 3 }, Some(0), Some(0)),
        ];
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history");
        let recorder = Recorder::append_to(&path);
        for record in &records {
            recorder.record(record);
        }
        (&recorder.file).write_all(b"17 3 5 half").expect("written");
        assert_eq!(read_records(&path), records);
    }
}
