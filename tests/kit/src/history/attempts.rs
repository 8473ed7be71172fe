//! Records put together to attempts and holds.

use std::collections::HashMap;

use super::record::{Kind, Operation, Outcome, Record};

/// What one process did about one key, from the request to the end.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Which process.
    pub process: u32,
    /// Which attempt of it.
    pub number: u64,
    /// What was to be locked.
    pub key: String,
    /// As what.
    pub kind: Kind,
    /// When it was asked for.
    pub asked: u64,
    /// When the request must have ended.
    pub by: Option<u64>,
    /// When the request ended, and how; `None` if the process never came so far.
    pub answer: Option<(u64, Outcome)>,
    /// The fencing token, if it was granted with one.
    pub token: Option<u64>,
    /// When the process believed that it holds the lock.
    pub hold: Option<Hold>,
}

/// A period in which a process believes that it holds a lock: `from` counts, `to` does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// When the process was told that it holds the lock.
    pub from: u64,
    /// When it gave it back, was told that it is lost, or could trust it no longer.
    pub to: u64,
}

/// What all processes did.
#[derive(Clone, Debug, Default)]
pub struct History {
    attempts: Vec<Attempt>,
    end: u64,
}

impl History {
    /// Puts the records of several processes together, in whatever order they come.
    #[must_use]
    pub fn merge(records: impl IntoIterator<Item = Record>) -> Self {
        let mut records: Vec<Record> = records.into_iter().collect();
        // Stable: what one process recorded within a nanosecond stays in order.
        records.sort_by_key(|record| record.at);
        let end = records.last().map_or(0, |record| record.at);
        let mut found: HashMap<(u32, u64, String), usize> = HashMap::new();
        let mut attempts: Vec<Attempt> = Vec::new();
        for record in records {
            let name = (record.process, record.attempt, record.key.clone());
            let at = *found.entry(name).or_insert_with(|| {
                attempts.push(Attempt {
                    process: record.process,
                    number: record.attempt,
                    key: record.key.clone(),
                    kind: record.kind,
                    asked: record.at,
                    by: None,
                    answer: None,
                    token: None,
                    hold: None,
                });
                attempts.len() - 1
            });
            attempts[at].add(&record);
        }
        Self { attempts, end }
    }

    /// All attempts, in the order in which they were asked for.
    #[must_use]
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// When the last record was written.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The attempts of each key.
    pub(super) fn by_key(&self) -> HashMap<&str, Vec<&Attempt>> {
        let mut keys: HashMap<&str, Vec<&Attempt>> = HashMap::new();
        for attempt in &self.attempts {
            keys.entry(&attempt.key).or_default().push(attempt);
        }
        keys
    }
}

impl Attempt {
    fn add(&mut self, record: &Record) {
        match (record.operation, record.outcome) {
            (Operation::Acquire, Outcome::Asked) => self.by = record.deadline,
            (Operation::Acquire, outcome) => {
                self.answer = Some((record.at, outcome));
                if outcome == Outcome::Ok {
                    self.token = record.token;
                    self.hold = Some(Hold {
                        from: record.at,
                        to: record.deadline.unwrap_or(record.at),
                    });
                }
            }
            (Operation::Hold, Outcome::Ok) => {
                // It acts now, whatever its deadline was, and trusts the hold that long.
                if let Some(hold) = &mut self.hold {
                    hold.to = hold.to.max(record.at).max(record.deadline.unwrap_or(0));
                }
            }
            (Operation::Hold | Operation::Release, Outcome::Asked | Outcome::Failed) => {
                if let Some(hold) = &mut self.hold {
                    hold.to = hold.to.min(record.at);
                }
            }
            // How a release ended says nothing more about what the process believes.
            (Operation::Hold | Operation::Release, _) => {}
        }
    }
}

/// What the tests of the checks write histories with.
#[cfg(test)]
pub(super) mod by_hand {
    use super::*;

    /// One process's line of a history: times, in whatever unit, of one attempt.
    pub(crate) struct Line {
        records: Vec<Record>,
    }

    pub(crate) fn attempt(process: u32, number: u64, key: &str, kind: Kind) -> Line {
        let record = Record {
            at: 0,
            process,
            attempt: number,
            key: key.to_owned(),
            kind,
            operation: Operation::Acquire,
            outcome: Outcome::Asked,
            token: None,
            deadline: None,
        };
        Line {
            records: vec![record],
        }
    }

    impl Line {
        fn and(mut self, at: u64, operation: Operation, outcome: Outcome) -> Self {
            let mut record = self.records[0].clone();
            (record.at, record.operation, record.outcome) = (at, operation, outcome);
            (record.token, record.deadline) = (None, None);
            self.records.push(record);
            self
        }

        pub(crate) fn asked(mut self, at: u64, by: u64) -> Self {
            self.records[0].at = at;
            self.records[0].deadline = Some(by);
            self
        }

        pub(crate) fn granted(self, at: u64, token: Option<u64>, deadline: u64) -> Self {
            let mut line = self.and(at, Operation::Acquire, Outcome::Ok);
            if let Some(last) = line.records.last_mut() {
                (last.token, last.deadline) = (token, Some(deadline));
            }
            line
        }

        pub(crate) fn works(self, at: u64, deadline: u64) -> Self {
            let mut line = self.and(at, Operation::Hold, Outcome::Ok);
            if let Some(last) = line.records.last_mut() {
                last.deadline = Some(deadline);
            }
            line
        }

        pub(crate) fn lost(self, at: u64) -> Self {
            self.and(at, Operation::Hold, Outcome::Failed)
        }

        pub(crate) fn released(self, at: u64) -> Self {
            self.and(at, Operation::Release, Outcome::Asked).and(
                at + 1,
                Operation::Release,
                Outcome::Ok,
            )
        }

        pub(crate) fn ended(self, at: u64, outcome: Outcome) -> Self {
            self.and(at, Operation::Acquire, outcome)
        }
    }

    pub(crate) fn history(lines: impl IntoIterator<Item = Line>) -> History {
        History::merge(lines.into_iter().flat_map(|line| line.records))
    }
}
