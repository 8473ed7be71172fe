//! [`Segment`]: commands that are not written yet and whose order among each other is free.
//!
//! A server spends as much time on a script's call as on what the script does. So the releases that
//! are ready when a connection is written become one call: the keys of each lock, then what is said
//! of all, then what is said of each. So do requests for locks that need a script. The reply is a
//! list, or an error for all.
//!
//! Releases are written first, then what asks for a lock. They belong to different requests that
//! are all under way, so each order is right. Any other command ends the segment, and stays behind
//! it, and so does a second command of one request: its first comes first.

use super::command::{Command, line, number};

/// Other clients wait for the end of a script.
const MOST_CALLS: usize = 32;
/// Each new command is compared with these.
const MOST_COMMANDS: usize = 128;

/// How a command stands to others that are not written yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Order {
    /// Behind all that was added before, ahead of all that is added later.
    #[default]
    Kept,
    /// The request of this number asks for a lock or ends its hold.
    Free(u64, Role),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    /// A call that ends a hold.
    Ends(Parts),
    /// A call that asks for a lock.
    Asks(Parts),
    /// A command that asks for a lock.
    Sets,
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
    shared_arguments: usize,
    /// What is said of the call's own lock.
    own: usize,
    own_arguments: usize,
}

impl Parts {
    pub(super) fn of(call: &Command, keys_of_each: usize, shared_arguments: usize) -> Self {
        let begin = |argument| call.begin_of(argument);
        Self {
            count: begin(2),
            keys: begin(3),
            keys_of_each,
            shared: begin(3 + keys_of_each),
            shared_arguments,
            own: begin(3 + keys_of_each + shared_arguments),
            own_arguments: call.arguments() - 3 - keys_of_each - shared_arguments,
        }
    }
}

/// Calls of one script that are written as one. There may be none.
#[derive(Debug, Default)]
pub(super) struct MergedCall {
    script: Vec<u8>,
    keys: Vec<u8>,
    keys_of_each: usize,
    shared: Vec<u8>,
    shared_arguments: usize,
    own: Vec<u8>,
    own_arguments: usize,
    pub(super) requests: Vec<usize>,
}

impl MergedCall {
    /// Whether this call can be one of them.
    fn fits(&self, call: &Command, parts: &Parts) -> bool {
        let bytes = call.bytes();
        self.requests.is_empty()
            || self.requests.len() < MOST_CALLS
                && self.keys_of_each == parts.keys_of_each
                && self.own_arguments == parts.own_arguments
                && self.script == bytes[..parts.count]
                && self.shared == bytes[parts.shared..parts.own]
    }

    fn add(&mut self, call: &Command, parts: &Parts, request: usize) {
        let bytes = call.bytes();
        if self.requests.is_empty() {
            self.script.extend_from_slice(&bytes[..parts.count]);
            self.shared
                .extend_from_slice(&bytes[parts.shared..parts.own]);
            self.keys_of_each = parts.keys_of_each;
            self.shared_arguments = parts.shared_arguments;
            self.own_arguments = parts.own_arguments;
        }
        self.keys
            .extend_from_slice(&bytes[parts.keys..parts.shared]);
        self.own.extend_from_slice(&bytes[parts.own..]);
        self.requests.push(request);
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let calls = self.requests.len();
        let keys = self.keys_of_each * calls;
        let arguments = self.shared_arguments + self.own_arguments * calls;
        line(out, b'*', 3 + keys + arguments);
        out.extend_from_slice(&self.script);
        number(out, keys);
        for part in [&self.keys, &self.shared, &self.own] {
            out.extend_from_slice(part);
        }
    }

    fn clear(&mut self) {
        for part in [
            &mut self.script,
            &mut self.keys,
            &mut self.shared,
            &mut self.own,
        ] {
            part.clear();
        }
        self.requests.clear();
    }
}

/// Commands of different requests.
#[derive(Debug, Default)]
pub(super) struct Segment {
    pub(super) ends: MergedCall,
    pub(super) asks: MergedCall,
    pub(super) sets: Vec<u8>,
    pub(super) set_requests: Vec<usize>,
    /// By their numbers at the store.
    owners: Vec<u64>,
}

impl Segment {
    pub(super) fn len(&self) -> usize {
        self.owners.len()
    }

    /// Whether this command can be one of them.
    pub(super) fn fits(&self, command: &Command, owner: u64, role: &Role) -> bool {
        let has_room = self.owners.len() < MOST_COMMANDS && !self.owners.contains(&owner);
        has_room
            && match role {
                Role::Ends(parts) => self.ends.fits(command, parts),
                Role::Asks(parts) => self.asks.fits(command, parts),
                Role::Sets => true,
            }
    }

    pub(super) fn add(&mut self, command: &Command, owner: u64, role: &Role, request: usize) {
        self.owners.push(owner);
        match role {
            Role::Ends(parts) => self.ends.add(command, parts, request),
            Role::Asks(parts) => self.asks.add(command, parts, request),
            Role::Sets => {
                command.write(&mut self.sets);
                self.set_requests.push(request);
            }
        }
    }

    /// The numbers of their requests on this connection.
    pub(super) fn requests(&self) -> impl Iterator<Item = usize> {
        let calls = self.ends.requests.iter().chain(&self.asks.requests);
        calls.chain(&self.set_requests).copied()
    }

    pub(super) fn clear(&mut self) {
        self.ends.clear();
        self.asks.clear();
        self.sets.clear();
        self.set_requests.clear();
        self.owners.clear();
    }
}
