//! Who hears of a hand-over by the store, and how old one can be at most.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use lock_store::Link;

use super::Signal;

#[derive(Debug, Default)]
pub(super) struct Queued {
    pub(super) expecting: BTreeMap<u64, Expecting>,
    /// Of links over which the store was changed since somebody waits: when the newest command was sent that did so. There
    /// are few, the latest at the end.
    written: Vec<(Link, Instant)>,
}

/// So many links are remembered.
const WRITTEN_LINKS: usize = 16;

impl Queued {
    pub(super) fn written_over(&self, link: Link) -> Option<Instant> {
        let found = self.written.iter().find(|(one, _)| *one == link);
        found.map(|(_, sent)| *sent)
    }

    /// See [`Lines::wrote`](super::Lines::wrote).
    pub(super) fn wrote(&mut self, link: Link, sent: Instant) {
        if self.expecting.is_empty() || link == Link::SEVERAL {
            return;
        }
        let written = &mut self.written;
        let before = match written.iter().position(|(one, _)| *one == link) {
            Some(at) => written.remove(at).1,
            None => sent,
        };
        if written.len() == WRITTEN_LINKS {
            written.remove(0);
        }
        written.push((link, sent.max(before)));
    }
}

#[derive(Debug)]
pub(super) struct Expecting {
    pub(super) signal: Arc<Signal>,
    /// The link over which it is told, if that is known: what is heard over another one may be old.
    pub(super) over: Option<Link>,
}
