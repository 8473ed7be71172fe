//! Just enough of the Redis protocol to tell one request from the next.

/// Finds the requests in the bytes that a client sends, however they are split into chunks.
#[derive(Debug, Default)]
pub(crate) struct RequestParser {
    state: State,
    /// The line being read, without its end.
    line: Vec<u8>,
    /// The number of the current request's arguments that are still to come.
    arguments: u64,
    /// The first argument, once it is known.
    command: Option<String>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// `*3` or an inline command: the beginning of a request.
    #[default]
    Start,
    /// `$5`: the length of an argument.
    Length,
    /// An argument's bytes, gathered in `line`, and the two bytes that end its line.
    Argument { left: u64 },
}

/// A request that ended within a chunk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CompleteRequest {
    /// The command's name in upper case.
    pub(crate) command: String,
    /// The end of this request within the chunk, in bytes.
    pub(crate) end: usize,
}

impl RequestParser {
    /// Reads a chunk. Returns the requests that are complete at its end.
    ///
    /// # Panics
    ///
    /// At bytes that no Redis client sends.
    pub(crate) fn read(&mut self, chunk: &[u8]) -> Vec<CompleteRequest> {
        let mut complete = Vec::new();
        for (position, &byte) in chunk.iter().enumerate() {
            if let Some(command) = self.read_byte(byte) {
                let end = position + 1;
                complete.push(CompleteRequest { command, end });
            }
        }
        complete
    }

    fn read_byte(&mut self, byte: u8) -> Option<String> {
        if let State::Argument { left } = self.state {
            // Only the command's name matters. Keys and values can have any size.
            if self.command.is_none() {
                self.line.push(byte);
            }
            self.state = State::Argument { left: left - 1 };
            return if left == 1 { self.end_argument() } else { None };
        }
        if byte != b'\n' {
            self.line.push(byte);
            return None;
        }
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.line))
            .trim_end()
            .to_owned();
        match self.state {
            State::Start => match line.strip_prefix('*') {
                Some(count) => {
                    // Like Redis, ignore an array without elements.
                    let count: i64 = number(count);
                    if let Some(arguments) = u64::try_from(count).ok().filter(|count| *count > 0) {
                        self.arguments = arguments;
                        self.state = State::Length;
                    }
                    None
                }
                None => line.split_whitespace().next().map(str::to_uppercase),
            },
            State::Length => {
                let length = line
                    .strip_prefix('$')
                    .unwrap_or_else(|| panic!("not a request of the Redis protocol: {line:?}"));
                let length: u64 = number(length);
                self.state = State::Argument { left: length + 2 };
                None
            }
            State::Argument { .. } => unreachable!("handled above"),
        }
    }

    fn end_argument(&mut self) -> Option<String> {
        let argument = std::mem::take(&mut self.line);
        let command = self
            .command
            .take()
            .unwrap_or_else(|| String::from_utf8_lossy(&argument).trim_end().to_uppercase());
        self.arguments -= 1;
        if self.arguments == 0 {
            self.state = State::Start;
            return Some(command);
        }
        self.command = Some(command);
        self.state = State::Length;
        None
    }
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse()
        .unwrap_or_else(|_| panic!("not a number of the Redis protocol: {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::{CompleteRequest, RequestParser};

    /// A value that looks like a request, an empty array, an inline command, an empty line.
    const REQUESTS: &[u8] = b"*3\r\n$3\r\nset\r\n$1\r\nk\r\n$14\r\n*1\r\n$4\r\nPING\r\n\r\n\
        *0\r\nping hello\r\n\r\n*2\r\n$3\r\nGET\r\n$0\r\n\r\n";

    #[test]
    fn requests_are_found_wherever_the_stream_is_cut() {
        let ends_with = |needle: &[u8]| {
            let found = REQUESTS.windows(needle.len()).rposition(|w| w == needle);
            found.expect("is in there") + needle.len()
        };
        let expected = [
            ("SET", ends_with(b"PING\r\n\r\n")),
            ("PING", ends_with(b"ping hello\r\n")),
            ("GET", REQUESTS.len()),
        ];
        for cut in 0..=REQUESTS.len() {
            let (first, second) = REQUESTS.split_at(cut);
            let mut parser = RequestParser::default();
            let found: Vec<_> = std::iter::empty()
                .chain(parser.read(first).into_iter().map(|r| (r.command, r.end)))
                .chain({
                    let rest = parser.read(second).into_iter();
                    rest.map(|r| (r.command, r.end + cut))
                })
                .collect();
            let found: Vec<_> = found.iter().map(|(c, end)| (c.as_str(), *end)).collect();
            assert_eq!(found, expected, "cut after {cut} bytes");
        }
    }

    #[test]
    fn a_request_is_complete_with_its_last_byte_and_not_before() {
        let mut parser = RequestParser::default();
        let (all_but_one, last) = REQUESTS.split_at(REQUESTS.len() - 1);
        assert_eq!(parser.read(all_but_one).len(), 2);
        let get = CompleteRequest {
            command: "GET".to_owned(),
            end: 1,
        };
        assert_eq!(parser.read(last), [get]);
    }
}
