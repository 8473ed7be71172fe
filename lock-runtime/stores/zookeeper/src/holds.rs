//! What this client has in the queues, and what keeps a key taken after a release.

use std::collections::{HashMap, HashSet};
use std::ops::{Deref, DerefMut};

use lock_store::Instant;
use lock_store::ordered::{KeyNode, OwnPart, OwnRequest, OwnRequests};

use crate::names::Child;

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
    /// Its name, and the one that it may have by now.
    pub(crate) fn names(&self) -> Vec<String> {
        let names = [Some(&self.child.name), self.renaming.as_ref()];
        names.into_iter().flatten().cloned().collect()
    }
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
    /// Children of no owner, which keep a key taken for a while.
    kept: HashMap<String, Option<Instant>>,
    /// Children that have ended here and are being deleted. They may still be listed, and are
    /// never taken up again: the deletion would end what was granted with them.
    buried: HashSet<String>,
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
    /// False if this child has ended.
    pub(crate) fn set(&mut self, node: &KeyNode, own: Own) -> bool {
        let is_there = !self.is_buried(&node.child(&own.child.name));
        if is_there {
            self.own.put(node, own);
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
        let kept = self.kept.values().copied().flatten();
        kept.chain(self.own.next_end()).min()
    }

    /// Removes those that have ended: the paths of their children, with the session that they are
    /// of. Those without a session do not end by themselves.
    pub(crate) fn take_ended(&mut self, now: Instant) -> Vec<(String, Option<i64>)> {
        let mut paths = Vec::new();
        for (node, own) in self.own.take_ended(now) {
            for name in own.names() {
                let path = node.child(&name);
                self.buried.insert(path.clone());
                paths.push((path, Some(own.session)));
            }
        }
        let ended = |until: &mut Option<Instant>| until.is_some_and(|until| until <= now);
        let kept = self.kept.extract_if(|_, until| ended(until));
        paths.extend(kept.map(|(path, _)| (path, None)));
        paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{ChildPlace, NodeLayout};
    use lock_store::{ClientId, Owner};

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
