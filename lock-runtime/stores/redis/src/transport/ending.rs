//! [`Ending`]: the subscriptions whose end was asked for.
//!
//! A server says of itself when a subscription has ended because its slot went to another node, in
//! the words of a reply. The redis crate takes them for the reply to whatever was sent first, and
//! each reply after that goes to the wrong command. So it must be known whether such words are a
//! reply. Before each channel a mark is given up: another channel of its slot, on which nobody
//! listens. Only the reply to that names it, and right behind it comes the reply for the channel.

use std::collections::VecDeque;

/// Channels and their marks, in the order of the replies.
#[derive(Debug, Default)]
pub(super) struct Ending {
    expected: VecDeque<Expected>,
}

#[derive(Debug)]
enum Expected {
    Mark(String),
    Channel(String),
}

impl Ending {
    /// Notes that the end of these channels is asked for. What is to be given up, in this order.
    pub(super) fn expect(&mut self, channels: Vec<String>) -> Vec<String> {
        let mut names = Vec::new();
        for channel in channels {
            let mark = format!("{channel}-");
            names.extend([mark.clone(), channel.clone()]);
            let pair = [Expected::Mark(mark), Expected::Channel(channel)];
            self.expected.extend(pair);
        }
        names
    }

    /// Whether this end is the reply that comes next. Marks that are refused have no such reply,
    /// and their channels neither.
    pub(super) fn take(&mut self, ended: &[u8]) -> bool {
        let mut expected = self.expected.iter();
        let at = match expected.next() {
            Some(Expected::Channel(channel)) if channel.as_bytes() == ended => Some(0),
            _ => self
                .expected
                .iter()
                .position(|one| matches!(one, Expected::Mark(mark) if mark.as_bytes() == ended)),
        };
        at.is_some_and(|at| self.expected.drain(..=at).count() > 0)
    }

    /// All replies have come.
    pub(super) fn forget(&mut self) {
        self.expected.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked_for(channels: [&str; 2]) -> Ending {
        let mut ending = Ending::default();
        let names = ending.expect(channels.map(str::to_owned).to_vec());
        assert_eq!(names, ["a-", "a", "b-", "b"]);
        ending
    }

    #[test]
    fn replies_come_in_pairs_and_may_be_refused_in_pairs() {
        for replies in [&["a-", "a", "b-", "b"][..], &["b-", "b"], &["a-", "a"], &[]] {
            let mut ending = asked_for(["a", "b"]);
            assert!(replies.iter().all(|one| ending.take(one.as_bytes())));
            ending.forget();
            assert!(!ending.take(b"b"));
        }
    }

    #[test]
    fn what_the_server_says_of_itself_is_no_reply() {
        assert!(!asked_for(["a", "b"]).take(b"a"), "before the mark's reply");
        let mut ending = asked_for(["a", "b"]);
        assert!(ending.take(b"a-"));
        assert!(!ending.take(b"b"), "of another channel");
        assert!(ending.take(b"a"));
        assert!(!ending.take(b"a"), "twice");
        assert!(!Ending::default().take(b"a"));
    }
}
