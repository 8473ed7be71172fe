//! [`Decoder`]: the replies and messages in what a connection has read.

use redis::{ErrorKind, RedisError, Value, parse_redis_value};

use super::scanner::{MOST_BYTES, Scanner, Unreadable, integer};

/// What is read at once. A buffer that had to grow for a long reply goes back to it.
const USUAL: usize = 16 << 10;

/// What a server sends.
#[derive(Debug, PartialEq)]
pub(super) enum Received {
    /// The reply to the first command that awaits one.
    Reply(Value),
    /// What a server says on its own, and about subscriptions: its word for it, and two more
    /// values, the channel and the message. Ranges of the [`message`](Decoder::message).
    Push,
}

/// The bytes that were read and not decoded yet.
#[derive(Debug)]
pub(super) struct Decoder {
    buffer: Vec<u8>,
    /// The bytes to decode begin and end here.
    from: usize,
    to: usize,
    scanner: Scanner,
    /// Of the last push.
    parts: [(usize, usize); 3],
}

impl Decoder {
    pub(super) fn new() -> Self {
        Self {
            buffer: vec![0; USUAL],
            from: 0,
            to: 0,
            scanner: Scanner::default(),
            parts: [(0, 0); 3],
        }
    }

    /// Where to read to. There is always room.
    pub(super) fn room(&mut self) -> &mut [u8] {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
            if self.buffer.len() > USUAL {
                self.buffer = vec![0; USUAL];
            }
        } else if self.to == self.buffer.len() {
            if self.from > 0 {
                self.buffer.copy_within(self.from..self.to, 0);
                (self.from, self.to) = (0, self.to - self.from);
            }
            // The scanner ends what is longer than a reply may be.
            if self.to > self.buffer.len() / 2 {
                let most = MOST_BYTES + USUAL;
                self.buffer.resize((2 * self.buffer.len()).min(most), 0);
            }
        }
        &mut self.buffer[self.to..]
    }

    /// `bytes` more were read.
    pub(super) fn add(&mut self, bytes: usize) {
        self.to += bytes;
    }

    /// Whether what comes next is no reply.
    pub(super) fn is_at_push(&self) -> bool {
        self.buffer[self.from..self.to].first() == Some(&b'>')
    }

    /// The next reply or message that is complete.
    pub(super) fn next(&mut self) -> Result<Option<Received>, RedisError> {
        let bytes = &self.buffer[self.from..self.to];
        if bytes.is_empty() {
            return Ok(None);
        }
        let scanned = self.scanner.scan(bytes).map_err(unreadable)?;
        let Some(length) = scanned else {
            return Ok(None);
        };
        let from = self.from;
        self.from += length;
        let bytes = &self.buffer[from..self.from];
        if bytes.first() == Some(&b'>')
            && let Some(parts) = parts(bytes)
        {
            self.parts = parts.map(|(part, end)| (from + part, from + end));
            return Ok(Some(Received::Push));
        }
        if let Some(value) = usual(bytes, &mut 0) {
            return Ok(Some(Received::Reply(value)));
        }
        let parsed = parse_redis_value(bytes);
        let value = match parsed.map_err(|_| unreadable(Unreadable::NoResp))? {
            // It is about the reply, and nobody asked for it.
            Value::Attribute { data, .. } => *data,
            value => value,
        };
        Ok(Some(match value {
            Value::Push { .. } => {
                // Of a shape that none of ours has.
                self.parts = [(0, 0); 3];
                Received::Push
            }
            value => Received::Reply(value),
        }))
    }

    /// The parts of the last push: a word, a channel and a message.
    pub(super) fn message(&self) -> [&[u8]; 3] {
        self.parts.map(|(from, to)| &self.buffer[from..to])
    }
}

/// It ends a connection.
fn unreadable(why: Unreadable) -> RedisError {
    (ErrorKind::Io, "what came can't be read", why.to_string()).into()
}

/// What most replies are, which needs no parser of all shapes: integers, bulk strings and `OK`, and
/// arrays of these.
fn usual(bytes: &[u8], at: &mut usize) -> Option<Value> {
    let rest = bytes.get(*at..)?;
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let (kind, line) = rest.get(..end)?.strip_suffix(b"\r")?.split_first()?;
    let from = *at + end + 1;
    *at = from;
    match kind {
        b'+' if line == b"OK" => Some(Value::Okay),
        b':' => integer(line).map(Value::Int),
        b'_' if line.is_empty() => Some(Value::Nil),
        b'$' | b'*' if line == b"-1" => Some(Value::Nil),
        b'$' => {
            let to = from.checked_add(usize::try_from(integer(line)?).ok()?)?;
            *at = to.checked_add(2)?;
            Some(Value::BulkString(bytes.get(from..to)?.to_vec()))
        }
        b'*' => {
            let values = (0..integer(line)?).map(|_| usual(bytes, at));
            values.collect::<Option<_>>().map(Value::Array)
        }
        _ => None,
    }
}

/// Where the text of the bulk string is that begins here.
fn bulk(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let rest = bytes.get(at..)?.strip_prefix(b"$")?;
    let digits = rest.iter().position(|byte| *byte == b'\r')?;
    let length = usize::try_from(integer(&rest[..digits])?).ok()?;
    let from = at + 1 + digits + 2;
    (from + length + 2 <= bytes.len()).then_some((from, from + length))
}

/// Where the first parts of a push are, if they are bulk strings. The third may be a number.
fn parts(bytes: &[u8]) -> Option<[(usize, usize); 3]> {
    let head = bytes.iter().position(|byte| *byte == b'\n')? + 1;
    let word = bulk(bytes, head)?;
    let Some(channel) = bulk(bytes, word.1 + 2) else {
        return Some([word, (0, 0), (0, 0)]);
    };
    let payload = bulk(bytes, channel.1 + 2).unwrap_or((0, 0));
    Some([word, channel, payload])
}

#[cfg(test)]
mod tests {
    use super::super::scanner::{MOST_BYTES, Scanner};
    use super::*;

    /// Numbers that look random, the same in each run.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % end as u64) as usize
        }
    }

    /// Writes a value of any shape.
    fn write(random: &mut Random, depth: usize, out: &mut Vec<u8>) {
        let text = |random: &mut Random| "x\u{fc}\r\n:$ ".repeat(random.below(4));
        let line =
            |out: &mut Vec<u8>, line: String| out.extend([line.as_bytes(), b"\r\n"].concat());
        let number = |random: &mut Random| {
            let number = random.below(usize::MAX) as i64 >> random.below(64);
            if random.below(2) == 0 {
                -number
            } else {
                number
            }
        };
        let kinds = if depth == 0 { 11 } else { 16 };
        match random.below(kinds) {
            0 => line(out, format!(":{}", number(random))),
            1 => line(out, "+OK".to_owned()),
            2 => line(out, format!("+{}", text(random).replace("\r\n", "\r."))),
            3 => line(out, format!("-ERR {}", text(random).replace("\r\n", "\n"))),
            4 => line(out, ["_", "$-1", "*-1"][random.below(3)].to_owned()),
            5 => line(out, format!("#{}", ["t", "f"][random.below(2)])),
            6 => line(out, format!(",{}", number(random) as f64 / 8.0)),
            7 => line(out, format!("({}", number(random))),
            8 => {
                let text = format!("txt:{}", text(random));
                line(out, format!("={}\r\n{text}", text.len()));
            }
            9 => {
                let text = format!("OOM {}", text(random));
                line(out, format!("!{}\r\n{text}", text.len()));
            }
            10 => {
                let text = text(random);
                line(out, format!("${}\r\n{text}", text.len()));
            }
            kind => {
                let length = random.below(4);
                let (sign, inside) = match kind {
                    11 | 12 => ('*', length),
                    13 => ('~', length),
                    14 => ('%', 2 * length),
                    _ => ('|', 2 * length + 1),
                };
                line(out, format!("{sign}{length}"));
                for _ in 0..inside {
                    write(random, depth - 1, out);
                }
            }
        }
    }

    fn decode(decoder: &mut Decoder, bytes: &[u8]) -> Result<Vec<Received>, RedisError> {
        let mut received = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = decoder.room();
            let some = rest.len().min(room.len());
            room[..some].copy_from_slice(&rest[..some]);
            decoder.add(some);
            rest = &rest[some..];
            while let Some(one) = decoder.next()? {
                received.push(one);
            }
        }
        Ok(received)
    }

    #[test]
    fn values_of_any_shape_are_what_the_redis_crate_reads_wherever_they_are_cut() {
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        for _ in 0..400 {
            let (mut bytes, mut ends) = (Vec::new(), Vec::new());
            for _ in 0..2 {
                write(&mut random, 3, &mut bytes);
                ends.push(bytes.len());
            }
            let values = [&bytes[..ends[0]], &bytes[ends[0]..]];
            let values = values.map(|one| match parse_redis_value(one).unwrap() {
                Value::Attribute { data, .. } => Received::Reply(*data),
                value => Received::Reply(value),
            });
            for cut in 0..bytes.len() {
                let mut decoder = Decoder::new();
                let mut received = decode(&mut decoder, &bytes[..cut]).unwrap();
                received.extend(decode(&mut decoder, &bytes[cut..]).unwrap());
                assert_eq!(received, values, "{:?}", String::from_utf8_lossy(&bytes));
            }
        }
    }

    /// Where it ends is its length, whatever stands in it.
    #[test]
    fn a_text_may_look_like_a_reply() {
        let mut decoder = Decoder::new();
        let bytes = b"*2\r\n$4\r\n:5\r\n\r\n:6\r\n";
        let text = Value::BulkString(b":5\r\n".to_vec());
        let value = Value::Array(vec![text, Value::Int(6)]);
        assert_eq!(
            decode(&mut decoder, bytes).unwrap(),
            [Received::Reply(value)]
        );
    }

    #[test]
    fn most_replies_need_no_parser_of_all_shapes() {
        let text = Value::BulkString(b"a\r\nb".to_vec());
        let array = |values: &[Value]| Value::Array(values.to_vec());
        for (bytes, value) in [
            ("+OK\r\n", Value::Okay),
            (":-7\r\n", Value::Int(-7)),
            ("_\r\n", Value::Nil),
            ("$-1\r\n", Value::Nil),
            ("*-1\r\n", Value::Nil),
            ("$4\r\na\r\nb\r\n", text.clone()),
            ("*0\r\n", array(&[])),
            (
                "*3\r\n$4\r\na\r\nb\r\n*1\r\n:1\r\n_\r\n",
                array(&[text, array(&[Value::Int(1)]), Value::Nil]),
            ),
        ] {
            assert_eq!(usual(bytes.as_bytes(), &mut 0), Some(value), "{bytes:?}");
        }
        for bytes in [
            "+PONG\r\n",
            "-ERR x\r\n",
            "_x\r\n",
            "*1\r\n#t\r\n",
            "$2\r\nx",
        ] {
            assert_eq!(usual(bytes.as_bytes(), &mut 0), None, "{bytes:?}");
        }
        // A text that is not there whole is none.
        assert_eq!(bulk(b"$3\r\nabc", 0), None);
        assert_eq!(bulk(b"$3\r\nabc\r\n", 0), Some((4, 7)));
    }

    #[test]
    fn what_is_read_of_broken_bytes_the_redis_crate_reads_the_same() {
        let (mut random, mut refused) = (Random(7), 0);
        for _ in 0..20_000 {
            let mut bytes = Vec::new();
            write(&mut random, 2, &mut bytes);
            for _ in 0..=random.below(2) {
                let at = random.below(bytes.len());
                bytes[at] = b"*$:+-~%|>_#,(!=019\r\nx"[random.below(21)];
            }
            let scanned = Scanner::default().scan(&bytes);
            refused += u32::from(scanned.is_err());
            if let Ok(Some(length)) = scanned
                && let Ok(theirs) = parse_redis_value(&bytes)
            {
                if let Some(ours) = usual(&bytes, &mut 0) {
                    assert_eq!(ours, theirs, "{bytes:?}");
                }
                assert_eq!(parse_redis_value(&bytes[..length]), Ok(theirs), "{bytes:?}");
            }
        }
        assert!(refused > 1000, "{refused}");
    }

    #[test]
    fn a_reply_is_bounded_and_what_is_announced_takes_no_memory() {
        let deep = "*1\r\n".repeat(17);
        let long_line = format!("+{}", "x".repeat(1 << 17));
        for (bytes, says) in [
            ("$16777217\r\n", "16777216 bytes"),
            ("*1048577\r\n", "1048576 values"),
            ("%9223372036854775807\r\n", "1048576 values"),
            ("*99999999999999999999\r\n", "not in the Redis protocol"),
            (&*deep, "16 values in values"),
            (&*long_line, "65536 bytes in a line"),
            ("HTTP/1.1 400 Bad Request\r\n", "not in the Redis protocol"),
            ("\x15\x03\x03", "not in the Redis protocol"),
            ("$?\r\n", "not in the Redis protocol"),
            ("$1\r\nab\r\n", "not in the Redis protocol"),
            (":1x\r\n", "not in the Redis protocol"),
            ("\r\n", "not in the Redis protocol"),
        ] {
            let mut decoder = Decoder::new();
            let said = decode(&mut decoder, bytes.as_bytes()).unwrap_err();
            assert!(said.to_string().contains(says), "{bytes:.20}: {said}");
            assert!(decoder.buffer.len() <= 1 << 17);
        }
    }

    #[test]
    fn endless_replies_end_at_the_bound() {
        for (begin, more) in [
            ("$16777000\r\n", "x"),
            ("*1048576\r\n", "$16000\r\n"),
            ("*1048576\r\n", "+xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n"),
        ] {
            let mut decoder = Decoder::new();
            decode(&mut decoder, begin.as_bytes()).unwrap();
            let mut bytes = begin.len();
            let more = match more.len() {
                8 => format!("{more}{}\r\n", "x".repeat(16000)),
                _ => more.repeat(64),
            };
            while decode(&mut decoder, more.as_bytes()).is_ok() {
                bytes += more.len();
                assert!(bytes <= MOST_BYTES + more.len());
            }
            assert!(decoder.buffer.len() <= MOST_BYTES + USUAL);
        }
    }

    #[test]
    fn a_buffer_that_has_grown_for_a_reply_is_given_back_after_it() {
        let mut decoder = Decoder::new();
        let text = "x".repeat(10 * USUAL);
        let long = format!("+OK\r\n${}\r\n{text}\r\n", text.len());
        assert_eq!(decode(&mut decoder, long.as_bytes()).unwrap().len(), 2);
        assert!(decoder.buffer.len() > 10 * USUAL);
        assert_eq!(decoder.room().len(), USUAL);
        // What is left of one read moves to the front, and takes no more room.
        let short = format!("${}\r\n{}\r\n", USUAL / 3, "x".repeat(USUAL / 3));
        let received = decode(&mut decoder, short.repeat(30).as_bytes()).unwrap();
        assert_eq!(received.len(), 30);
        assert_eq!(decoder.buffer.len(), USUAL);
        // A buffer of the usual size is used again.
        let before = decoder.buffer.as_ptr();
        assert_eq!(decoder.room().as_ptr(), before);
        // It grows only if more than half of it is left.
        for (left, grown) in [(USUAL / 2, USUAL), (USUAL / 2 + 1, 2 * USUAL)] {
            let mut decoder = Decoder::new();
            (decoder.from, decoder.to) = (USUAL - left, USUAL);
            assert_eq!(decoder.room().len(), grown - left);
        }
    }

    #[test]
    fn a_push_of_another_shape_has_no_parts() {
        let mut decoder = Decoder::new();
        let message = b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nm1\r\n";
        assert_eq!(decode(&mut decoder, message).unwrap(), [Received::Push]);
        assert_eq!(decoder.message(), [&b"message"[..], b"c", b"m1"]);
        assert_eq!(
            decode(&mut decoder, b">2\r\n+other\r\n:1\r\n").unwrap(),
            [Received::Push]
        );
        assert_eq!(decoder.message(), [b"", b"", b""]);
    }
}
