//! [`OpenSegment`]: commands that are not written yet and whose order among each other is free.
//!
//! A server spends as much time on a script's call as on what the script does. So the releases that
//! are ready when a connection is written become one call: the keys of each lock, then what is said
//! of all, then what is said of each. So do requests for locks that need a script. The reply is a
//! list, or an error for all.
//!
//! Releases are written first, then what asks for a lock. They belong to different requests that
//! are all under way, so each order is right. Any other command ends the segment, and stays behind
//! it, and so does a second command of one request: its first comes first.

use super::command::{CallParts, Command, CommandRole, line, number};

/// Other clients wait for the end of a script.
const MOST_CALLS: usize = 32;
/// A buffer that has grown beyond this is not kept.
pub(super) const LARGEST_KEPT_BUFFER: usize = 64 << 10;
/// Each new command is compared with these.
const MOST_COMMANDS: usize = 128;

/// Calls of one script that are written as one. There may be none.
#[derive(Debug, Default)]
pub(super) struct MergedCall {
    script: Vec<u8>,
    keys: Vec<u8>,
    keys_of_each: u16,
    shared: Vec<u8>,
    shared_arguments: u16,
    own: Vec<u8>,
    own_arguments: u16,
    pub(super) requests: Vec<usize>,
}

impl MergedCall {
    /// Whether this call can be one of them.
    fn fits(&self, call: &Command, parts: &CallParts) -> bool {
        self.requests.is_empty()
            || self.requests.len() < MOST_CALLS
                && self.keys_of_each == parts.keys_of_each
                && self.own_arguments == parts.own_arguments
                && self.script == parts.script(call)
                && self.shared == parts.shared(call)
    }

    fn add(&mut self, call: &Command, parts: &CallParts, request: usize) {
        if self.requests.is_empty() {
            self.script.extend_from_slice(parts.script(call));
            self.shared.extend_from_slice(parts.shared(call));
            self.keys_of_each = parts.keys_of_each;
            self.shared_arguments = parts.shared_arguments;
            self.own_arguments = parts.own_arguments;
        }
        self.keys.extend_from_slice(parts.keys(call));
        self.own.extend_from_slice(parts.own(call));
        self.requests.push(request);
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let calls = self.requests.len();
        let keys = usize::from(self.keys_of_each) * calls;
        let own = usize::from(self.own_arguments) * calls;
        let arguments = usize::from(self.shared_arguments) + own;
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
            empty(part);
        }
        self.requests.clear();
    }
}

/// A buffer that has grown is not kept.
fn empty(part: &mut Vec<u8>) {
    if part.capacity() > LARGEST_KEPT_BUFFER {
        *part = Vec::new();
    }
    part.clear();
}

/// Commands of different requests.
#[derive(Debug, Default)]
pub(super) struct OpenSegment {
    pub(super) releases: MergedCall,
    pub(super) requests_by_script: MergedCall,
    pub(super) singles: Vec<u8>,
    pub(super) single_requests: Vec<usize>,
    /// By their numbers at the store.
    owners: Vec<u64>,
}

impl OpenSegment {
    pub(super) fn len(&self) -> usize {
        self.owners.len()
    }

    /// Whether this command can be one of them.
    pub(super) fn fits(&self, command: &Command, owner: u64, role: &CommandRole) -> bool {
        let has_room = self.owners.len() < MOST_COMMANDS && !self.owners.contains(&owner);
        has_room
            && match role {
                CommandRole::Release(parts) => self.releases.fits(command, parts),
                CommandRole::Request(parts) => self.requests_by_script.fits(command, parts),
                CommandRole::Single => true,
            }
    }

    pub(super) fn add(
        &mut self,
        command: &Command,
        owner: u64,
        role: &CommandRole,
        request: usize,
    ) {
        self.owners.push(owner);
        match role {
            CommandRole::Release(parts) => self.releases.add(command, parts, request),
            CommandRole::Request(parts) => self.requests_by_script.add(command, parts, request),
            CommandRole::Single => {
                command.write(&mut self.singles);
                self.single_requests.push(request);
            }
        }
    }

    /// The numbers of their requests on this connection.
    pub(super) fn requests(&self) -> impl Iterator<Item = usize> {
        let calls = self
            .releases
            .requests
            .iter()
            .chain(&self.requests_by_script.requests);
        calls.chain(&self.single_requests).copied()
    }

    pub(super) fn clear(&mut self) {
        self.releases.clear();
        self.requests_by_script.clear();
        empty(&mut self.singles);
        self.single_requests.clear();
        self.owners.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_of_the_largest_size_is_kept() {
        for (capacity, kept) in [
            (LARGEST_KEPT_BUFFER, LARGEST_KEPT_BUFFER),
            (LARGEST_KEPT_BUFFER + 1, 0),
        ] {
            let mut part = Vec::with_capacity(capacity);
            part.push(1);
            empty(&mut part);
            assert_eq!((part.len(), part.capacity()), (0, kept));
        }
    }
}
