//! [`Command`]: one command, as it goes over the wire.

use std::io;

use redis::{RedisWrite, ToRedisArgs};

/// What the script of one lock takes.
const USUAL_BYTES: usize = 384;
/// The places of this many arguments are kept, so that nobody looks for them.
const KEPT_PLACES: usize = 12;

/// Text in pieces. They are written into a command as they are.
pub(crate) trait Pieces {
    fn pieces(&self, put: impl FnMut(&[u8]));
}

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
    /// Where the first of them begin.
    places: [u16; KEPT_PLACES],
    pub(super) order: CommandOrder,
}

impl Command {
    pub(crate) fn new(name: &str) -> Self {
        let mut command = Self {
            arguments: 0,
            bytes: Vec::with_capacity(USUAL_BYTES),
            places: [0; KEPT_PLACES],
            order: CommandOrder::Kept,
        };
        command.write_arg(name.as_bytes());
        command
    }

    /// A command that begins with the arguments of another.
    pub(crate) fn begin_like(other: &Self) -> Self {
        let mut bytes = Vec::with_capacity(USUAL_BYTES);
        bytes.extend_from_slice(&other.bytes);
        Self { bytes, ..*other }
    }

    fn begin_argument(&mut self) {
        if let Some(place) = self.places.get_mut(self.arguments) {
            *place = u16::try_from(self.bytes.len()).unwrap_or(u16::MAX);
        }
        self.arguments += 1;
    }

    pub(crate) fn arg(&mut self, argument: impl ToRedisArgs) -> &mut Self {
        argument.write_redis_args(self);
        self
    }

    /// Adds an argument that is made of pieces.
    #[inline]
    pub(crate) fn add_text(&mut self, text: impl Pieces) -> &mut Self {
        self.begin_argument();
        let at = self.bytes.len();
        // Mostly it has two digits.
        self.bytes.extend_from_slice(b"$00\r\n");
        let begin = self.bytes.len();
        text.pieces(|piece| self.bytes.extend_from_slice(piece));
        let length = self.bytes.len() - begin;
        self.bytes.extend_from_slice(b"\r\n");
        match self.bytes.get_mut(at..) {
            Some([_, tens, ones, ..]) if (10..100).contains(&length) => {
                (*tens, *ones) = (digit(length / 10), digit(length % 10));
            }
            _ => {
                let mut head = Vec::new();
                line(&mut head, b'$', length);
                self.bytes.splice(at..begin, head);
            }
        }
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
        let rest = other.place(skipped).and_then(|at| other.bytes.get(at..));
        self.bytes.extend_from_slice(rest.unwrap_or_default());
    }

    /// Where the argument of this number begins, if it is one of the first, and not another
    /// command's.
    fn place(&self, argument: usize) -> Option<usize> {
        let place = usize::from(*self.places.get(argument)?);
        (argument == 0 || place > 0).then_some(place)
    }

    /// Of a call with this many keys and arguments that others may have too. None if it is long.
    fn parts(&self, keys_of_each: usize, shared_arguments: usize) -> Option<CallParts> {
        // All places are below its length.
        u16::try_from(self.bytes.len()).ok()?;
        let begin = |argument| self.place(argument).and_then(|at| u16::try_from(at).ok());
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
        self.begin_argument();
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
    match number {
        0..10 => out.extend_from_slice(&[kind, digit(number), b'\r', b'\n']),
        10..100 => {
            let (tens, ones) = (digit(number / 10), digit(number % 10));
            out.extend_from_slice(&[kind, tens, ones, b'\r', b'\n']);
        }
        _ => {
            out.push(kind);
            out.extend_from_slice(number.to_string().as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// The last digit of a number.
fn digit(number: usize) -> u8 {
    b'0' + (number % 10) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    struct InPieces<'t>(&'t str);

    impl Pieces for InPieces<'_> {
        fn pieces(&self, put: impl FnMut(&[u8])) {
            self.0.as_bytes().chunks(7).for_each(put);
        }
    }

    #[test]
    fn a_command_is_what_the_redis_crate_writes() {
        let (mut ours, mut theirs) = (Command::new("SET"), redis::cmd("SET"));
        for length in [0, 1, 9, 10, 99, 100, 1000] {
            let argument = "x".repeat(length);
            ours.arg(&argument).arg(length).arg(-7).arg(1.5);
            ours.add_text(InPieces(&argument));
            theirs.arg(&argument).arg(length).arg(-7).arg(1.5);
            theirs.arg(&argument);
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
        // Where its parts begin is not known, so that it is merged with no other.
        command.mark_mergeable_release(1, 0, 0);
        assert!(!command.may_be_merged());
    }

    #[test]
    fn a_call_is_merged_if_its_parts_are_known_and_it_is_not_too_long() {
        let call = |length: usize| {
            let mut call = Command::new("EVALSHA");
            call.arg("hash").arg(1).arg("x".repeat(length)).arg("own");
            call
        };
        assert!(!call(1).may_be_merged());
        for (length, may_be_merged) in [(1, true), (65_400, true), (65_600, false)] {
            let (mut request, mut release) = (call(length), call(length));
            request.mark_mergeable_request(1, 1, 0);
            release.mark_mergeable_release(1, 1, 0);
            assert_eq!(request.may_be_merged(), may_be_merged);
            assert_eq!(release.may_be_merged(), may_be_merged);
        }
        let mut alone = call(1);
        alone.mark_request(1);
        assert!(!alone.may_be_merged());
    }

    #[test]
    fn a_number_is_an_argument_of_its_digits() {
        for number in [0, 9, 10, 99, 100, 1234] {
            let (mut out, mut as_text) = (Vec::new(), Command::new("X"));
            super::number(&mut out, number);
            as_text.bytes.clear();
            as_text.arg(number.to_string());
            assert_eq!(out, as_text.bytes);
        }
    }

    #[test]
    fn an_argument_of_unknown_length_is_written_when_it_is_whole() {
        use std::io::Write as _;
        let (mut command, mut out) = (Command::new("SET"), Vec::new());
        let mut argument = command.writer_for_next_arg();
        assert!(write!(argument, "{}-{}", 12, 3).is_ok());
        drop(argument);
        command.arg("x").write(&mut out);
        let mut same = Vec::new();
        Command::new("SET").arg("12-3").arg("x").write(&mut same);
        assert_eq!(out, same);
    }
}
