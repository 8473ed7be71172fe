//! What this client has in the queues, and what keeps a lock taken after a release.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};

use lock_store::Instant;
use lock_store::ordered::{KeyNode, OwnPart, OwnRequest, OwnRequests};

use crate::names::Child;

/// The tokens of one revision, of which there are [`WINDOW`](crate::base::WINDOW).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RevisionWindow {
    pub(crate) first: u64,
    pub(crate) used: u32,
}

/// A child of ours.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    pub(crate) child: Child,
    pub(crate) part: OwnPart,
    /// Its end was asked for. The answer may have been lost.
    pub(crate) end_sent: bool,
    /// `None`: it has had no token yet.
    pub(crate) window: Option<RevisionWindow>,
}

impl OwnRequest for Own {
    type Child = Child;

    fn child(&self) -> &Child {
        &self.child
    }

    fn part(&mut self) -> &mut OwnPart {
        &mut self.part
    }

    fn is(&self) -> OwnPart {
        self.part
    }
}

/// All of this client's.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    own: OwnRequests<Own>,
    /// Keys of no owner, which keep a lock taken for a while, with the revision that wrote them.
    kept: HashMap<String, (Instant, i64)>,
}

impl Deref for Holds {
    type Target = OwnRequests<Own>;

    fn deref(&self) -> &OwnRequests<Own> {
        &self.own
    }
}

impl DerefMut for Holds {
    fn deref_mut(&mut self) -> &mut OwnRequests<Own> {
        &mut self.own
    }
}

impl Holds {
    /// Whether there is a hold.
    pub(crate) fn has_holds(&self) -> bool {
        self.own.all().any(|own| !own.part.waits())
    }

    /// Whether there is a hold under this lease.
    pub(crate) fn has_hold_on(&self, lease: i64) -> bool {
        let mut all = self.own.all();
        all.any(|own| own.child.lease == lease && !own.part.waits())
    }

    /// The lease is over, and all that was under it.
    pub(crate) fn end_lease(&mut self, lease: i64) {
        self.own.retain(|own| own.child.lease != lease);
    }

    /// This path keeps its key taken until then.
    pub(crate) fn keep(&mut self, path: String, until: Instant, revision: i64) {
        self.kept.insert(path, (until, revision));
    }

    /// It is no longer waited for.
    pub(crate) fn unkeep(&mut self, path: &str) {
        self.kept.remove(path);
    }

    /// When the next one ends.
    pub(crate) fn next_end(&self) -> Option<Instant> {
        let kept = self.kept.values().map(|(until, _)| *until);
        kept.chain(self.own.next_end()).min()
    }

    /// Removes those that have ended.
    pub(crate) fn take_ended(&mut self, now: Instant) -> Vec<EndedKey> {
        let own = self.own.take_ended(now).into_iter();
        let own = own.map(|(node, own)| EndedKey::Request(node, own.child));
        let kept = self.kept.extract_if(|_, (until, _)| *until <= now);
        let kept = kept.map(|(path, (_, revision))| EndedKey::Kept(path, revision));
        own.chain(kept).collect()
    }
}

/// What is over, and is to be deleted.
#[derive(Clone, Debug)]
pub(crate) enum EndedKey {
    /// A request of this client.
    Request(KeyNode, Child),
    /// A key that kept a lock taken, and the revision that wrote it.
    Kept(String, i64),
}
