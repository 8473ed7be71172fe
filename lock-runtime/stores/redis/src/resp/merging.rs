//! [`MergedCall`]: calls of one script that are written as one, each for a lock of its own.
//!
//! A server spends as much time on a script's call as on what the script does. So the releases that
//! are ready when a connection is written become one call: the keys of each lock, then what is said
//! of all, then one argument for each. The reply is a list, or an error for all.
//!
//! The merged call stands where the first of them was added. So a release may be written ahead of
//! what was added before it. It passes only requests of other owners that ask for a lock: they are
//! under way at the same time, so either order is right. Any other command closes the call, and
//! stays behind it.

use super::command::{Command, line, number};

/// Other clients wait for the end of a script.
const MOST_CALLS: usize = 32;

/// What may be written ahead of a command that is not written yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Order {
    /// Nothing that is added later.
    #[default]
    Kept,
    /// It asks for a lock, as the request of this number. Ends of other holds may pass it.
    Asks(u64),
    /// It ends the hold of the request of this number, and may be merged with others.
    Ends(u64, Parts),
}

/// Where the parts of a call begin. In front is the script.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    /// The number of keys.
    count: usize,
    keys: usize,
    keys_of_each: usize,
    /// What is said of all.
    shared: usize,
    /// What is said of the call's own lock.
    own: usize,
}

impl Parts {
    /// Of a call that has this many keys, and two arguments behind them.
    pub(super) fn of(call: &Command, keys_of_each: usize) -> Self {
        let begin = |argument| call.begin_of(argument);
        Self {
            count: begin(2),
            keys: begin(3),
            keys_of_each,
            shared: begin(3 + keys_of_each),
            own: begin(4 + keys_of_each),
        }
    }
}

/// The calls that are written as one. There may be none.
#[derive(Debug, Default)]
pub(super) struct MergedCall {
    script: Vec<u8>,
    keys: Vec<u8>,
    keys_of_each: usize,
    shared: Vec<u8>,
    own: Vec<u8>,
    /// The numbers of their requests.
    pub(super) calls: Vec<usize>,
    /// Where the call is written.
    pub(super) at: usize,
    /// The requests behind it, with the numbers of their owners.
    pub(super) behind: Vec<(usize, u64)>,
}

impl MergedCall {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Whether this call can be one of them.
    pub(super) fn fits(&self, call: &Command, owner: u64, parts: &Parts) -> bool {
        let bytes = call.bytes();
        self.calls.len() < MOST_CALLS
            && self.keys_of_each == parts.keys_of_each
            && self.script == bytes[..parts.count]
            && self.shared == bytes[parts.shared..parts.own]
            && self.behind.iter().all(|(_, asking)| *asking != owner)
    }

    /// Begins anew, with a call like this.
    pub(super) fn begin(&mut self, call: &Command, parts: &Parts, at: usize) {
        let bytes = call.bytes();
        self.script.extend_from_slice(&bytes[..parts.count]);
        self.shared
            .extend_from_slice(&bytes[parts.shared..parts.own]);
        (self.keys_of_each, self.at) = (parts.keys_of_each, at);
    }

    /// Adds a call that fits.
    pub(super) fn add(&mut self, call: &Command, parts: &Parts, request: usize) {
        let bytes = call.bytes();
        self.keys
            .extend_from_slice(&bytes[parts.keys..parts.shared]);
        self.own.extend_from_slice(&bytes[parts.own..]);
        self.calls.push(request);
    }

    /// Writes the call to where it stands.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let keys = self.keys_of_each * self.calls.len();
        let behind = out.split_off(self.at);
        line(out, b'*', 4 + keys + self.calls.len());
        out.extend_from_slice(&self.script);
        number(out, keys);
        for part in [&self.keys, &self.shared, &self.own, &behind] {
            out.extend_from_slice(part);
        }
    }

    /// Forgets the calls.
    pub(super) fn clear(&mut self) {
        for part in [
            &mut self.script,
            &mut self.keys,
            &mut self.shared,
            &mut self.own,
        ] {
            part.clear();
        }
        self.calls.clear();
        self.behind.clear();
    }
}
