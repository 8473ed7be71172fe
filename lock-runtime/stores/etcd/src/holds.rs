//! What this client has in the queues: its own children, and when they are to end.
//!
//! Servers end leases late, and one is for many holds. So the client itself ends its holds whose
//! lease is over, and its places whose wait is.

use std::collections::HashMap;
use std::time::Duration;

use lock_store::{Instant, Owner};

use crate::names::{Child, KeyNode};

/// What a child of ours is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnPart {
    /// A hold, until this.
    Holds(Instant),
    /// A place, until its wait ends.
    Waits {
        ends: Option<Instant>,
        /// The lease of the hold that is handed to it.
        first_lease: Duration,
        /// How many fencing tokens it is to have.
        tokens: u32,
    },
}

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

impl Own {
    fn ends(&self) -> Option<Instant> {
        match self.part {
            OwnPart::Holds(ends) => Some(ends),
            OwnPart::Waits { ends, .. } => ends,
        }
    }

    pub(crate) fn waits(&self) -> bool {
        matches!(self.part, OwnPart::Waits { .. })
    }
}

type OwnName = (KeyNode, Owner);

/// All of this client's.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    own: HashMap<OwnName, Own>,
    /// The nodes of keys that wait for a change of this path.
    watched: HashMap<String, Vec<KeyNode>>,
    /// Keys of no owner, which keep a lock taken for a while, with the revision that wrote them.
    kept: HashMap<String, (Instant, i64)>,
}

impl Holds {
    pub(crate) fn get(&mut self, node: &KeyNode, owner: Owner) -> Option<&mut Own> {
        self.own.get_mut(&(node.clone(), owner))
    }

    pub(crate) fn set(&mut self, node: &KeyNode, own: Own) {
        self.own.insert((node.clone(), own.child.owner), own);
    }

    pub(crate) fn remove(&mut self, node: &KeyNode, owner: Owner) -> Option<Own> {
        self.own.remove(&(node.clone(), owner))
    }

    /// Removes it if it is this child.
    pub(crate) fn forget(&mut self, node: &KeyNode, child: &Child) {
        let name = (node.clone(), child.owner);
        if self
            .own
            .get(&name)
            .is_some_and(|own| own.child.name == child.name)
        {
            self.own.remove(&name);
        }
    }

    /// The places at this key, in their order.
    pub(crate) fn waiting(&self, node: &KeyNode) -> Vec<Child> {
        let waits = self
            .own
            .iter()
            .filter(|((at, _), own)| at == node && own.waits());
        let mut waiting: Vec<Child> = waits.map(|(_, own)| own.child.clone()).collect();
        waiting.sort_by_key(|child| child.place);
        waiting
    }

    /// The keys at which there is a place.
    pub(crate) fn awaited(&self) -> Vec<KeyNode> {
        let waits = self.own.iter().filter(|(_, own)| own.waits());
        let mut nodes: Vec<KeyNode> = Vec::new();
        for ((node, _), _) in waits {
            if !nodes.contains(node) {
                nodes.push(node.clone());
            }
        }
        nodes
    }

    /// A place at this key waits for a change of the path. False if one did before.
    pub(crate) fn watch(&mut self, path: String, node: &KeyNode) -> bool {
        let nodes = self.watched.entry(path).or_default();
        let is_new = !nodes.contains(node);
        if is_new {
            nodes.push(node.clone());
        }
        is_new
    }

    /// The keys that waited for this.
    pub(crate) fn changed(&mut self, path: &str) -> Vec<KeyNode> {
        self.watched.remove(path).unwrap_or_default()
    }

    /// The connection is gone, and what was watched over it.
    pub(crate) fn unwatch(&mut self) {
        self.watched.clear();
    }

    /// Whether there is a hold.
    pub(crate) fn has_holds(&self) -> bool {
        self.own.values().any(|own| !own.waits())
    }

    /// Whether there is a hold under this lease.
    pub(crate) fn has_hold_on(&self, lease: i64) -> bool {
        let mut all = self.own.values();
        all.any(|own| own.child.lease == lease && !own.waits())
    }

    /// The lease is over, and all that was under it.
    pub(crate) fn end_lease(&mut self, lease: i64) {
        self.own.retain(|_, own| own.child.lease != lease);
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
        let own = self.own.values().filter_map(Own::ends);
        let kept = self.kept.values().map(|(until, _)| *until);
        own.chain(kept).min()
    }

    /// Removes those that have ended.
    pub(crate) fn take_ended(&mut self, now: Instant) -> Vec<EndedKey> {
        let has_ended = |own: &Own| own.ends().is_some_and(|ends| ends <= now);
        let mut ended = Vec::new();
        self.own.retain(|(node, _), own| {
            let is_over = has_ended(own);
            if is_over {
                let child = own.child.clone();
                ended.push(EndedKey::Request(node.clone(), child));
            }
            !is_over
        });
        self.kept.retain(|path, (until, revision)| {
            let is_over = *until <= now;
            if is_over {
                ended.push(EndedKey::Kept(path.clone(), *revision));
            }
            !is_over
        });
        ended
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
