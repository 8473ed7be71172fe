//! Who holds a key and who waits, by the keys of its requests in their order.

use std::cmp::Ordering;

use lock_store::ordered::PlacedRequest;
use lock_store::rules::{self, Rank, RankedRequest};
use lock_store::{LockFound, Owner, Permits};

use crate::base::{Base, TokenSource};
use crate::names::{Child, ChildPlace};

/// The requests for a key, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing {
    pub(crate) children: Vec<Child>,
    /// When it was read.
    pub(crate) revision: i64,
    /// The base of tokens at that revision, unless that must be made or raised.
    pub(crate) base: Option<Base>,
    /// There is something that is not ours.
    pub(crate) is_foreign: bool,
}

impl Listing {
    pub(crate) fn new(mut children: Vec<Child>, revision: i64, is_foreign: bool) -> Self {
        children.sort_by(Child::order);
        Self {
            children,
            revision,
            base: None,
            is_foreign,
        }
    }

    /// What the tokens of those are made of who hold the key.
    pub(crate) fn source(&self) -> TokenSource {
        TokenSource {
            revision: self.revision,
            base: self.base,
        }
    }

    /// The rank of a request with this place, or of one that comes now.
    pub(crate) fn rank(&self, permits: Option<Permits>, place: Option<ChildPlace>) -> Rank {
        let is_before = |child: &&Child| place.is_none_or(|me| child.place < me);
        let before: Vec<&Child> = self.children.iter().filter(is_before).collect();
        rules::rank(&before, permits, true, false)
    }

    /// The children that hold the key.
    pub(crate) fn holding(&self) -> &[Child] {
        rules::holding(&self.children)
    }

    pub(crate) fn found(&self) -> LockFound {
        rules::found(&self.children)
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Child> {
        self.children.iter().find(|child| child.name == name)
    }
}

impl RankedRequest for Child {
    fn name(&self) -> &str {
        &self.name
    }

    fn owner(&self) -> Owner {
        self.owner
    }

    fn permits(&self) -> Option<Permits> {
        self.permits
    }

    fn is_kept(&self) -> bool {
        self.kept
    }
}

impl PlacedRequest for Child {
    fn is_same(&self, other: &Self) -> bool {
        self.made == other.made
    }

    fn order(&self, other: &Self) -> Ordering {
        self.place.cmp(&other.place)
    }
}
