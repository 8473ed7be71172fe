//! Requests that hear of a hand-over by the store, and how old one can be at most.

use std::collections::BTreeMap;
use std::sync::Arc;

use lock_store::{Instant, Link};

use super::state::Signal;

#[derive(Debug, Default)]
pub(super) struct ExpectedGrants {
    /// By the numbers of their requests.
    pub(super) expected: BTreeMap<u64, ExpectedGrant>,
    /// For each link over which the store was changed since a request waits: the send time of the
    /// newest command that did so. They are few, the latest at the end.
    written: Vec<(Link, Instant)>,
}

#[derive(Debug)]
pub(super) struct ExpectedGrant {
    pub(super) signal: Arc<Signal>,
    /// The link that tells the grant, if it is known. News over another link may be old.
    pub(super) over: Option<Link>,
}

/// So many links are remembered.
const WRITTEN_LINKS: usize = 16;

impl ExpectedGrants {
    pub(super) fn written_over(&self, link: Link) -> Option<Instant> {
        let found = self.written.iter().find(|(one, _)| *one == link);
        found.map(|(_, sent)| *sent)
    }

    /// See [`LocalQueues::wrote`](super::queues::LocalQueues::wrote).
    pub(super) fn wrote(&mut self, link: Link, sent: Instant) {
        if self.expected.is_empty() || link == Link::SEVERAL {
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
