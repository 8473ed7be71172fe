//! How many servers decide, and the error if too few did.

use std::fmt::Write as _;

use lock_store::{StoreError, StoreErrorKind};

use crate::errors;
use crate::topology::members::Members;

/// The number of servers that decide.
pub(crate) fn majority(servers: usize) -> usize {
    servers / 2 + 1
}

/// The answers of a quorum's servers to one question, counted.
#[derive(Clone)]
pub(super) struct Tally {
    servers: usize,
    /// How many said no, and how many yes.
    said: [usize; 2],
}

impl Tally {
    pub(super) fn of(servers: usize) -> Self {
        let said = [0; 2];
        Self { servers, said }
    }

    /// Counts one answer. Returns what is decided then.
    pub(super) fn count(&mut self, answer: bool) -> Option<bool> {
        self.said[usize::from(answer)] += 1;
        self.verdict()
    }

    /// True if a majority says yes, false if none can any more. `None` as long as it is open.
    pub(super) fn verdict(&self) -> Option<bool> {
        let ([no, yes], enough) = (self.said, majority(self.servers));
        match yes >= enough {
            true => Some(true),
            false => (no > self.servers - enough).then_some(false),
        }
    }
}

/// The error if too few servers agreed: which did not answer, which refused, and why. Without any
/// failure, the client was shut down before it asked.
pub(crate) fn too_few(
    members: &Members,
    servers: usize,
    failures: &[(usize, StoreError)],
) -> StoreError {
    let enough = majority(servers);
    // The kind is that of a lasting error only if the other servers alone are too few.
    let lasting = |error: &StoreError| !error.kind().is_transient();
    let lasting_ones = failures.iter().filter(|(_, error)| lasting(error)).count();
    let tells =
        |(_, error): &&(usize, StoreError)| lasting(error) == (servers - lasting_ones < enough);
    let Some((_, told)) = failures.iter().find(tells).or(failures.first()) else {
        return errors::shut_down();
    };
    let silent = |error: &StoreError| {
        use StoreErrorKind::{Disconnected, Timeout};
        matches!(error.kind(), Disconnected | Timeout)
    };
    let mut text = format!("of {servers} servers {enough} must answer");
    for (what, is_silent) in [("did not", true), ("refused", false)] {
        let those = failures
            .iter()
            .filter(|(_, error)| silent(error) == is_silent);
        let details = those.map(|(at, error)| error.of(members.name(*at)).detail().to_owned());
        let details: Vec<String> = details.collect();
        if !details.is_empty() {
            // Writing to a string does not fail.
            let _ = write!(text, "; {} {what}: {}", details.len(), details.join(", "));
        }
    }
    errors::advised(StoreError::new(told.kind(), text))
}
