//! [`LateAcquire`]: a command whose outcome is unknown, and when it is undone for sure.

use lock_store::{Instant, Link};

/// An acquire that may be carried out late. It is undone for sure when the same link has
/// acknowledged the undo, or at `until`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LateAcquire {
    pub(crate) link: Link,
    pub(crate) until: Instant,
}

impl LateAcquire {
    /// Whether an undo that was acknowledged over `link` at `now` has undone it for sure.
    pub(crate) fn is_undone(&self, link: Link, now: Instant) -> bool {
        (self.link == link && link != Link::SEVERAL) || now >= self.until
    }

    /// Whether a release that was answered over `link` at `now` has undone it for sure. A late
    /// acquire that found the lock taken has a place in the store's queue. A release that found no
    /// hold leaves it there.
    pub(crate) fn is_undone_by_release(&self, was_held: bool, link: Link, now: Instant) -> bool {
        was_held && self.is_undone(link, now)
    }

    pub(crate) fn merge(earlier: Option<Self>, link: Link, until: Instant) -> Self {
        earlier.map_or(Self { link, until }, |earlier| Self {
            // An acknowledgement over one of them says nothing about the other.
            link: earlier.link.merge(link),
            until: earlier.until.max(until),
        })
    }
}
