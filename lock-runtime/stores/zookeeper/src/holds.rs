//! What this client has in the queues: its own children, and when they are to end.
//!
//! No server ends a lease: a session lasts as long as its client lives. So the client itself ends
//! its holds whose lease is over, and its places whose wait is.

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

/// The tokens of one transaction, of which there are [`WINDOW`](crate::tokens::WINDOW).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ZxidWindow {
    pub(crate) zxid: i64,
    pub(crate) used: u32,
}

/// The tokens that this client has given in a namespace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GivenTokens {
    pub(crate) highest: u64,
    /// How often servers had forgotten something when it was last looked after.
    pub(crate) restored: u64,
}

/// A child of ours.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    pub(crate) child: Child,
    pub(crate) session: i64,
    pub(crate) part: OwnPart,
    /// The transaction that made it. `None`: it is not known.
    pub(crate) czxid: Option<i64>,
    /// `None`: it has had no token yet.
    pub(crate) window: Option<ZxidWindow>,
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
    /// Children of no owner, which keep a key taken for a while.
    kept: HashMap<String, Option<Instant>>,
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
        waiting.sort_by(|one, other| one.place.order(other.place));
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

    /// The session is over, and all that was in it.
    pub(crate) fn end_session(&mut self, session: i64) {
        self.own.retain(|_, own| own.session != session);
    }

    /// This path keeps its key taken until then, if that is known yet.
    pub(crate) fn keep(&mut self, path: String, until: Option<Instant>) {
        self.kept.insert(path, until);
    }

    pub(crate) fn is_kept(&self, path: &str) -> bool {
        self.kept.contains_key(path)
    }

    pub(crate) fn kept_until(&self, path: &str) -> Option<Instant> {
        self.kept.get(path).copied().flatten()
    }

    /// It is no longer waited for.
    pub(crate) fn unkeep(&mut self, path: &str) {
        self.kept.remove(path);
    }

    /// Those whose paths begin with this are no longer waited for.
    pub(crate) fn unkeep_all(&mut self, begin: &str) -> Vec<String> {
        let paths = self.kept.extract_if(|path, _| path.starts_with(begin));
        paths.map(|(path, _)| path).collect()
    }

    /// When the next one ends.
    pub(crate) fn next_end(&self) -> Option<Instant> {
        let own = self.own.values().filter_map(Own::ends);
        own.chain(self.kept.values().copied().flatten()).min()
    }

    /// Removes those that have ended: the paths of their children, with the session that they are
    /// of. Those without a session do not end by themselves.
    pub(crate) fn take_ended(&mut self, now: Instant) -> Vec<(String, Option<i64>)> {
        let has_ended = |own: &Own| own.ends().is_some_and(|ends| ends <= now);
        let mut paths = Vec::new();
        self.own.retain(|(node, _), own| {
            let ended = has_ended(own);
            if ended {
                paths.push((node.child(&own.child.name), Some(own.session)));
            }
            !ended
        });
        self.kept.retain(|path, until| {
            let ended = until.is_some_and(|until| until <= now);
            if ended {
                paths.push((path.clone(), None));
            }
            !ended
        });
        paths
    }
}
