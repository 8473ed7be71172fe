//! [`Command`]: one command, as it goes over the wire.

use std::io;

use redis::{RedisWrite, ToRedisArgs};

/// What the script of one lock takes.
const USUAL_BYTES: usize = 384;

/// How a command stands to others that are not written yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum CommandOrder {
    /// Behind all that was added before, ahead of all that is added later.
    #[default]
    Kept,
    /// The request of this number asks for a lock or ends its hold.
    Free(u64, CommandRole),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum CommandRole {
    /// A call that can be merged with others and ends a hold.
    Release(CallParts),
    /// A call that can be merged with others and asks for a lock.
    Request(CallParts),
    /// A command that asks for a lock, and is not merged.
    Single,
}

/// Where the parts of a call begin: the script, the number of keys, the keys, what is said of all
/// locks, what is said of its own. Small numbers, since each command has room for them.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallParts {
    key_count_at: u16,
    keys_at: u16,
    pub(super) keys_of_each: u16,
    shared_at: u16,
    pub(super) shared_arguments: u16,
    own_at: u16,
    pub(super) own_arguments: u16,
}

impl CallParts {
    pub(super) fn script<'c>(&self, call: &'c Command) -> &'c [u8] {
        &call.bytes[..usize::from(self.key_count_at)]
    }

    pub(super) fn keys<'c>(&self, call: &'c Command) -> &'c [u8] {
        &call.bytes[usize::from(self.keys_at)..usize::from(self.shared_at)]
    }

    pub(super) fn shared<'c>(&self, call: &'c Command) -> &'c [u8] {
        &call.bytes[usize::from(self.shared_at)..usize::from(self.own_at)]
    }

    pub(super) fn own<'c>(&self, call: &'c Command) -> &'c [u8] {
        &call.bytes[usize::from(self.own_at)..]
    }
}

/// One command. It can be sent again.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    arguments: usize,
    /// The arguments, each with its length.
    bytes: Vec<u8>,
    pub(super) order: CommandOrder,
}

impl Command {
    pub(crate) fn new(name: &str) -> Self {
        let mut command = Self {
            arguments: 0,
            bytes: Vec::with_capacity(USUAL_BYTES),
            order: CommandOrder::Kept,
        };
        command.write_arg(name.as_bytes());
        command
    }

    pub(crate) fn arg(&mut self, argument: impl ToRedisArgs) -> &mut Self {
        argument.write_redis_args(self);
        self
    }

    /// Marks a command by which the request of this number asks for a lock.
    pub(crate) fn mark_request(&mut self, request: u64) {
        self.order = CommandOrder::Free(request, CommandRole::Single);
    }

    /// Marks a script's call by which the request of this number asks for a lock. Behind this many
    /// keys come arguments that are the same for all calls that are merged with it; the rest is the
    /// lock's own. The reply of the merged call is a list.
    pub(crate) fn mark_mergeable_request(&mut self, request: u64, keys: usize, shared: usize) {
        if let Some(parts) = self.parts(keys, shared) {
            self.order = CommandOrder::Free(request, CommandRole::Request(parts));
        }
    }

    /// Marks such a call by which the hold of the request of this number ends.
    pub(crate) fn mark_mergeable_release(&mut self, request: u64, keys: usize, shared: usize) {
        if let Some(parts) = self.parts(keys, shared) {
            self.order = CommandOrder::Free(request, CommandRole::Release(parts));
        }
    }

    /// Whether it may have been merged with others.
    pub(crate) fn may_be_merged(&self) -> bool {
        matches!(
            self.order,
            CommandOrder::Free(_, CommandRole::Request(_) | CommandRole::Release(_))
        )
    }

    /// Another command with the arguments that this one has behind the first `skipped`.
    pub(crate) fn with_rest_of(&mut self, other: &Self, skipped: usize) {
        self.arguments += other.arguments - skipped;
        let rest = other.bytes.get(other.begin_of(skipped)..);
        self.bytes.extend_from_slice(rest.unwrap_or_default());
    }

    /// Where the argument of this number begins.
    pub(super) fn begin_of(&self, argument: usize) -> usize {
        let mut at = 0;
        for _ in 0..argument {
            let rest = self.bytes.get(at..).unwrap_or_default();
            let Some(line) = rest.iter().position(|byte| *byte == b'\n') else {
                break;
            };
            // Written by `write_arg`: a `$`, digits, `\r\n`.
            at += line + 1 + number_in(&rest[1..line - 1]) + 2;
        }
        at
    }

    /// Of a call with this many keys and arguments that others may have too. None if it is long.
    fn parts(&self, keys_of_each: usize, shared_arguments: usize) -> Option<CallParts> {
        let begin = |argument| u16::try_from(self.begin_of(argument)).ok();
        let number = |number| u16::try_from(number).ok();
        let own = 3 + keys_of_each + shared_arguments;
        Some(CallParts {
            key_count_at: begin(2)?,
            keys_at: begin(3)?,
            keys_of_each: number(keys_of_each)?,
            shared_at: begin(3 + keys_of_each)?,
            shared_arguments: number(shared_arguments)?,
            own_at: begin(own)?,
            own_arguments: number(self.arguments.checked_sub(own)?)?,
        })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        line(out, b'*', self.arguments);
        out.extend_from_slice(&self.bytes);
    }
}

impl RedisWrite for Command {
    fn write_arg(&mut self, argument: &[u8]) {
        self.arguments += 1;
        line(&mut self.bytes, b'$', argument.len());
        self.bytes.extend_from_slice(argument);
        self.bytes.extend_from_slice(b"\r\n");
    }

    fn writer_for_next_arg(&mut self) -> impl io::Write + '_ {
        let written = Vec::new();
        NextArgument {
            command: self,
            written,
        }
    }
}

/// An argument whose length is not known yet.
struct NextArgument<'c> {
    command: &'c mut Command,
    written: Vec<u8>,
}

impl io::Write for NextArgument<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.written.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for NextArgument<'_> {
    fn drop(&mut self) {
        self.command.write_arg(&self.written);
    }
}

/// A number as an argument.
pub(super) fn number(out: &mut Vec<u8>, number: usize) {
    let digits = number.checked_ilog10().unwrap_or(0) as usize + 1;
    line(out, b'$', digits);
    let kind = out.len();
    line(out, b'$', number);
    out.remove(kind);
}

/// A line with a number.
pub(super) fn line(out: &mut Vec<u8>, kind: u8, number: usize) {
    // 20 digits, between the kind and the end.
    let (mut text, mut at, mut rest) = ([b'\n'; 23], 21, number);
    text[21] = b'\r';
    loop {
        at -= 1;
        text[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    text[at - 1] = kind;
    out.extend_from_slice(&text[at - 1..]);
}

fn number_in(digits: &[u8]) -> usize {
    let digit = |number: usize, digit: &u8| number * 10 + usize::from(digit - b'0');
    digits.iter().fold(0, digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_what_the_redis_crate_writes() {
        let (mut ours, mut theirs) = (Command::new("SET"), redis::cmd("SET"));
        for length in [0, 1, 9, 10, 99, 100, 1000] {
            let argument = "x".repeat(length);
            ours.arg(&argument).arg(length).arg(-7).arg(1.5);
            theirs.arg(&argument).arg(length).arg(-7).arg(1.5);
        }
        let (mut out, pieces) = (Vec::new(), ["a", "b"]);
        ours.arg(&pieces[..]).write(&mut out);
        assert_eq!(out, theirs.arg(&pieces[..]).get_packed_command());
    }

    #[test]
    fn the_arguments_of_another_are_taken_over() {
        let mut other = Command::new("EVALSHA");
        other.arg("hash").arg("a\r\nb").arg("");
        let (mut command, mut out) = (Command::new("EVAL"), Vec::new());
        command.arg("code").with_rest_of(&other, 2);
        command.write(&mut out);
        assert_eq!(
            out,
            b"*4\r\n$4\r\nEVAL\r\n$4\r\ncode\r\n$4\r\na\r\nb\r\n$0\r\n\r\n"
        );
    }
}
