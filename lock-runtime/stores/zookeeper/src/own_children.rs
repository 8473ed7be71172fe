//! What this client knows of its requests.

use lock_store::Instant;
use lock_store::ordered::{EndedRequest, OwnRequest, OwnRequests};

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

/// What is known of a child of ours.
#[derive(Clone, Debug)]
pub(crate) struct OwnDetails {
    pub(crate) session: i64,
    /// The transaction that made it. `None`: it is not known.
    pub(crate) czxid: Option<i64>,
    /// `None`: it has had no token yet.
    pub(crate) window: Option<ZxidWindow>,
    /// Another name that it may have by now: the reply to its change is not there yet.
    pub(crate) renaming: Option<String>,
}

impl OwnDetails {
    pub(crate) fn new(session: i64, czxid: Option<i64>) -> Self {
        Self {
            session,
            czxid,
            window: None,
            renaming: None,
        }
    }
}

pub(crate) type Own = OwnRequest<Child, OwnDetails>;
pub(crate) type OwnChildren = OwnRequests<Child, OwnDetails>;
/// What is over, and is to be deleted.
pub(crate) type EndedChild = EndedRequest<Child, OwnDetails>;

/// A child's name, and the one that it may have by now.
pub(crate) fn names_of(own: &Own) -> Vec<String> {
    let names = [Some(&own.child.name), own.details.renaming.as_ref()];
    names.into_iter().flatten().cloned().collect()
}

/// Removes those that have ended. They are not taken up again while they are deleted.
pub(crate) fn take_ended(own: &mut OwnChildren, now: Instant) -> Vec<EndedChild> {
    let ended = own.take_ended(now);
    for path in ended.iter().flat_map(paths_of) {
        own.bury(path);
    }
    ended
}

/// The paths of what is over.
pub(crate) fn paths_of(ended: &EndedChild) -> Vec<String> {
    match ended {
        EndedRequest::Own(node, own) => {
            let names = names_of(own).into_iter();
            names.map(|name| node.child(&name)).collect()
        }
        EndedRequest::Kept(path, _) => vec![path.clone()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{ChildPlace, NodeLayout};
    use lock_store::ordered::{KeyNode, OwnStanding};
    use lock_store::{ClientId, Owner};

    fn put(own: &mut OwnChildren, renaming: Option<String>) -> Option<Child> {
        let owner = Owner::new(ClientId(1), 1);
        let name = NodeLayout::Native.at_place(owner, None, false, ChildPlace(0));
        let child = NodeLayout::Native.child(&name);
        let child = child.unwrap_or_else(|| unreachable!("{name}"));
        let mut details = OwnDetails::new(1, Some(3));
        details.renaming = renaming;
        let standing = OwnStanding::Holds(Instant::from_nanos(5));
        let is_there = own.put(&node(), child.clone(), standing, details);
        is_there.then_some(child)
    }

    fn node() -> KeyNode {
        KeyNode {
            namespace: "/n".to_owned(),
            path: "/n/k".to_owned(),
        }
    }

    fn ended(own: &mut OwnChildren) -> Vec<String> {
        let ended = take_ended(own, Instant::from_nanos(5));
        ended.iter().flat_map(paths_of).collect()
    }

    #[test]
    fn what_has_ended_is_not_taken_up_again_while_it_is_deleted() {
        let mut own = OwnChildren::default();
        let child = put(&mut own, None).unwrap_or_else(|| unreachable!("nothing has ended"));
        let path = node().child(&child.name);
        assert_eq!(ended(&mut own), std::slice::from_ref(&path));
        assert!(put(&mut own, None).is_none());
        assert!(own.get(&node(), child.owner).is_none());
        own.forget_buried(&path);
        assert!(put(&mut own, None).is_some());
    }

    #[test]
    fn what_ends_while_it_gets_another_name_ends_under_both() {
        let mut own = OwnChildren::default();
        let child = put(&mut own, Some("other".to_owned()));
        let child = child.unwrap_or_else(|| unreachable!("nothing has ended"));
        let paths = [node().child(&child.name), node().child("other")];
        assert_eq!(ended(&mut own), paths);
    }
}
