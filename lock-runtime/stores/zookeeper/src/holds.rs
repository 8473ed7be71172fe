//! What this client has in the queues: its own children, and when they are to end.
//!
//! No server ends a lease: a session lasts as long as its client lives. So the client itself ends
//! its holds whose lease is over, and its places whose wait is.

use std::collections::{HashMap, HashSet};
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
    /// Another name that it may have by now: the reply to its change is not there yet.
    pub(crate) renaming: Option<String>,
}

impl Own {
    fn ends(&self) -> Option<Instant> {
        match self.part {
            OwnPart::Holds(ends) => Some(ends),
            OwnPart::Waits { ends, .. } => ends,
        }
    }

    /// Its name, and the one that it may have by now.
    pub(crate) fn names(&self) -> Vec<String> {
        let names = [Some(&self.child.name), self.renaming.as_ref()];
        names.into_iter().flatten().cloned().collect()
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
    /// Children that have ended here and are being deleted. They may still be listed, and are
    /// never taken up again: the deletion would end what was granted with them.
    buried: HashSet<String>,
}

impl Holds {
    pub(crate) fn get(&mut self, node: &KeyNode, owner: Owner) -> Option<&mut Own> {
        self.own.get_mut(&(node.clone(), owner))
    }

    /// False if this child has ended.
    pub(crate) fn set(&mut self, node: &KeyNode, own: Own) -> bool {
        let is_there = !self.is_buried(&node.child(&own.child.name));
        if is_there {
            self.own.insert((node.clone(), own.child.owner), own);
        }
        is_there
    }

    pub(crate) fn is_buried(&self, path: &str) -> bool {
        self.buried.contains(path)
    }

    /// It is deleted.
    pub(crate) fn forget_buried(&mut self, path: &str) {
        self.buried.remove(path);
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

    /// Whether there is a hold or a place.
    pub(crate) fn has_own(&self) -> bool {
        !self.own.is_empty()
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
                for name in own.names() {
                    let path = node.child(&name);
                    self.buried.insert(path.clone());
                    paths.push((path, Some(own.session)));
                }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{ChildPlace, NodeLayout};
    use lock_store::ClientId;

    fn own(renaming: Option<String>) -> Own {
        let owner = Owner {
            client: ClientId(1),
            request: 1,
        };
        let name = NodeLayout::Native.at_place(owner, None, false, ChildPlace(0));
        Own {
            child: NodeLayout::Native
                .child(&name)
                .unwrap_or_else(|| unreachable!("{name}")),
            session: 1,
            part: OwnPart::Holds(Instant::from_nanos(5)),
            czxid: Some(3),
            window: None,
            renaming,
        }
    }

    fn node() -> KeyNode {
        KeyNode {
            namespace: "/n".to_owned(),
            path: "/n/k".to_owned(),
        }
    }

    #[test]
    fn what_has_ended_is_not_taken_up_again_while_it_is_deleted() {
        let (mut holds, node, own) = (Holds::default(), node(), own(None));
        assert!(holds.set(&node, own.clone()));
        let path = node.child(&own.child.name);
        let ended = holds.take_ended(Instant::from_nanos(5));
        assert_eq!(ended, [(path.clone(), Some(1))]);
        assert!(!holds.set(&node, own.clone()));
        assert!(holds.get(&node, own.child.owner).is_none());
        holds.forget_buried(&path);
        assert!(holds.set(&node, own));
    }

    #[test]
    fn what_ends_while_it_gets_another_name_ends_under_both() {
        let (mut holds, node, own) = (Holds::default(), node(), own(Some("other".to_owned())));
        let paths = [node.child(&own.child.name), node.child("other")];
        assert!(holds.set(&node, own));
        let ended = holds.take_ended(Instant::from_nanos(5));
        assert_eq!(ended, paths.map(|path| (path, Some(1))));
    }
}
