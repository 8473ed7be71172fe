//! Just enough of PostgreSQL's protocol to tell one request from the next.

use crate::resp::CompleteRequest;

/// Finds the requests in the bytes that a client sends: what it waits for an answer to.
#[derive(Debug, Default)]
pub(crate) struct PostgresRequests {
    /// The first message has no kind.
    has_started: bool,
    /// The kind and the length of the message that begins.
    head: Vec<u8>,
    /// What is left of its bytes.
    left: u32,
}

const LENGTH: usize = 4;

impl PostgresRequests {
    /// Reads a chunk. Returns the requests that are complete at its end.
    pub(crate) fn read(&mut self, chunk: &[u8]) -> Vec<CompleteRequest> {
        let mut complete = Vec::new();
        for (position, &byte) in chunk.iter().enumerate() {
            if self.left == 0 {
                self.begin(byte);
            } else {
                self.left -= 1;
            }
            if self.left == 0 && self.has_head() {
                let end = position + 1;
                let command = self.end();
                complete.extend(command.map(|command| CompleteRequest { command, end }));
            }
        }
        complete
    }

    fn has_head(&self) -> bool {
        self.head.len() == usize::from(self.has_started) + LENGTH
    }

    fn begin(&mut self, byte: u8) {
        self.head.push(byte);
        if self.has_head() {
            let length = self.head.last_chunk().copied().unwrap_or_default();
            // It counts itself.
            self.left = u32::from_be_bytes(length).saturating_sub(4);
        }
    }

    fn end(&mut self) -> Option<String> {
        let kind = self.head.first().copied().filter(|_| self.has_started);
        self.has_started = true;
        self.head.clear();
        match kind? {
            b'S' => Some("SYNC".to_owned()),
            b'Q' => Some("QUERY".to_owned()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_found_wherever_the_stream_is_cut() {
        let all = b"\0\0\0\x09\0\x03\0\0SQ\0\0\0\x06S\0P\0\0\0\x08SSSSS\0\0\0\x04";
        for cut in 0..=all.len() {
            let mut requests = PostgresRequests::default();
            let (first, second) = all.split_at(cut);
            let mut found = requests.read(first);
            for mut request in requests.read(second) {
                request.end += cut;
                found.push(request);
            }
            let found: Vec<_> = found
                .into_iter()
                .map(|one| (one.command, one.end))
                .collect();
            let expected = [("QUERY".to_owned(), 16), ("SYNC".to_owned(), 30)];
            assert_eq!(found, expected, "cut after {cut} bytes");
        }
    }
}
