//! Attempts and holds, made from records.

use std::collections::HashMap;

use super::record::{Kind, Operation, Outcome, Record};

/// What one process did with one key, from the request to the end.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The process.
    pub process: u32,
    /// The number of this attempt in its process.
    pub number: u64,
    /// The key to lock.
    pub key: String,
    /// The kind of lock.
    pub kind: Kind,
    /// The time of the request.
    pub asked: u64,
    /// The time by which the request must have ended.
    pub by: Option<u64>,
    /// When and how the request ended; `None` if the process ended first.
    pub answer: Option<(u64, Outcome)>,
    /// The fencing token, if the grant had one.
    pub token: Option<u64>,
    /// When the process believed that it held the lock.
    pub hold: Option<BelievedHold>,
}

/// A period in which a process believes that it holds a lock, from `from` to before `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BelievedHold {
    /// When the process learned that it holds the lock.
    pub from: u64,
    /// When the process gave the lock back, learned of its loss, or could no longer trust it.
    pub to: u64,
}

/// The actions of all processes.
#[derive(Clone, Debug, Default)]
pub struct History {
    attempts: Vec<Attempt>,
    end: u64,
}

impl History {
    /// Merges the records of several processes, in any order.
    #[must_use]
    pub fn merge(records: impl IntoIterator<Item = Record>) -> Self {
        let mut records: Vec<Record> = records.into_iter().collect();
        // The sort is stable: records of one process with the same time stay in order.
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

    /// All attempts, in the order of their requests.
    #[must_use]
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// The time of the last record.
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
                    self.hold = Some(BelievedHold {
                        from: record.at,
                        to: record.deadline.unwrap_or(record.at),
                    });
                }
            }
            (Operation::Hold, Outcome::Ok) => {
                // The process acts now, whatever its deadline was, and trusts the hold until its
                // new deadline.
                if let Some(hold) = &mut self.hold {
                    hold.to = hold.to.max(record.at).max(record.deadline.unwrap_or(0));
                }
            }
            (Operation::Hold | Operation::Release, Outcome::Asked | Outcome::Failed) => {
                if let Some(hold) = &mut self.hold {
                    hold.to = hold.to.min(record.at);
                }
            }
            // How a release ended tells nothing more about what the process believes.
            (Operation::Hold | Operation::Release, _) => {}
        }
    }
}

/// Helpers with which the tests of the checks write histories.
#[cfg(test)]
pub(super) mod by_hand {
    use super::*;

    /// One process's attempt in a history, with times in any unit.
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

        pub(crate) fn work(self, at: u64, deadline: u64) -> Self {
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
