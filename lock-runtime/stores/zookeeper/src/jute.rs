//! Jute, the encoding of ZooKeeper's messages: numbers in network order, and what has a length
//! after it.

/// Writes one message.
#[derive(Debug, Default)]
pub(crate) struct JuteWriter(Vec<u8>);

impl JuteWriter {
    pub(crate) fn int(mut self, value: i32) -> Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub(crate) fn long(mut self, value: i64) -> Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub(crate) fn bool(mut self, value: bool) -> Self {
        self.0.push(value.into());
        self
    }

    pub(crate) fn bytes(self, value: &[u8]) -> Self {
        let len = i32::try_from(value.len()).unwrap_or(i32::MAX);
        let mut longer = self.int(len);
        longer.0.extend_from_slice(value);
        longer
    }

    pub(crate) fn text(self, value: &str) -> Self {
        self.bytes(value.as_bytes())
    }

    /// What another writer has written.
    pub(crate) fn raw(mut self, value: &[u8]) -> Self {
        self.0.extend_from_slice(value);
        self
    }

    pub(crate) fn done(self) -> Vec<u8> {
        self.0
    }
}

/// Reads one message. `None` is the end where none should be.
#[derive(Debug)]
pub(crate) struct JuteReader<'m>(&'m [u8]);

impl<'m> JuteReader<'m> {
    pub(crate) fn new(message: &'m [u8]) -> Self {
        Self(message)
    }

    fn take(&mut self, len: usize) -> Option<&'m [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn int(&mut self) -> Option<i32> {
        self.take(4)?.try_into().ok().map(i32::from_be_bytes)
    }

    pub(crate) fn long(&mut self) -> Option<i64> {
        self.take(8)?.try_into().ok().map(i64::from_be_bytes)
    }

    pub(crate) fn bool(&mut self) -> Option<bool> {
        self.take(1)?.first().map(|byte| *byte != 0)
    }

    /// A length below zero stands for nothing.
    pub(crate) fn bytes(&mut self) -> Option<&'m [u8]> {
        match usize::try_from(self.int()?) {
            Ok(len) => self.take(len),
            Err(_) => Some(&[]),
        }
    }

    pub(crate) fn text(&mut self) -> Option<String> {
        Some(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    pub(crate) fn texts(&mut self) -> Option<Vec<String>> {
        let count = self.int()?.max(0);
        (0..count).map(|_| self.text()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let message = JuteWriter::default()
            .int(-3)
            .long(1 << 40)
            .bool(true)
            .text("käse")
            .int(-1)
            .done();
        let mut reader = JuteReader::new(&message);
        assert_eq!(reader.int(), Some(-3));
        assert_eq!(reader.long(), Some(1 << 40));
        assert_eq!(reader.bool(), Some(true));
        assert_eq!(reader.text().as_deref(), Some("käse"));
        assert_eq!(reader.bytes(), Some(&[][..]));
        assert_eq!(reader.int(), None);
    }

    #[test]
    fn a_message_that_is_cut_off_is_no_message() {
        let message = JuteWriter::default().text("abcdef").done();
        for len in 0..message.len() {
            assert_eq!(JuteReader::new(&message[..len]).text(), None, "{len}");
        }
    }
}
