//! Who takes the mails, and refuses those of an earlier term.

use crate::line::{Line, What};

/// The mails of all replicas.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    /// The tokens of the terms, and when each began.
    terms: Vec<(u64, u64)>,
    /// The highest token seen.
    token: u64,
    pub(crate) taken: usize,
    /// Mails of a term after one of a later term: what a fencing token is for.
    pub(crate) refused: usize,
    /// Mails that were sent when a later term had begun.
    pub(crate) side_by_side: usize,
}

impl Mailbox {
    pub(crate) fn terms(&self) -> usize {
        self.terms.len()
    }

    pub(crate) fn note(&mut self, line: Line) {
        match line.what {
            What::Began => self.terms.push((line.token, line.at)),
            What::Mail => self.take(line),
            What::Ended => {}
        }
    }

    fn take(&mut self, mail: Line) {
        let is_later = |(token, began): &&(u64, u64)| *token > mail.token && *began < mail.at;
        self.side_by_side += usize::from(self.terms.iter().any(|term| is_later(&term)));
        if mail.token < self.token {
            self.refused += 1;
        } else {
            self.token = mail.token;
            self.taken += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_mail_is_refused_and_one_beside_another_leader_is_seen() {
        let mut mailbox = Mailbox::default();
        for (what, token, at) in [
            (What::Began, 7, 1),
            (What::Mail, 7, 2),
            (What::Began, 9, 5),
            (What::Mail, 9, 6),
            (What::Mail, 7, 4),
            (What::Mail, 7, 8),
            (What::Mail, 9, 9),
        ] {
            mailbox.note(Line { what, token, at });
        }
        let Mailbox { taken, refused, .. } = mailbox;
        assert_eq!((mailbox.terms(), taken, refused), (2, 3, 2));
        assert_eq!(mailbox.side_by_side, 1);
    }
}
