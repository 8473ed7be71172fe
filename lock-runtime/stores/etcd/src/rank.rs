//! Who holds a key and who waits, by the keys of its requests in their order.

use std::cmp::Ordering;

use lock_store::ordered::QueuedRequest;
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

impl QueuedRequest for Child {
    fn is_same(&self, other: &Self) -> bool {
        self.made == other.made
    }

    fn order(&self, other: &Self) -> Ordering {
        self.place.cmp(&other.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::of_request;
    use lock_store::ClientId;
    use lock_store::rules::{ChildStanding, Obstacle};

    const READ: Option<Permits> = Some(Permits::READ);
    const WRITE: Option<Permits> = Some(Permits::WRITE);

    fn part(count: u32, of: u32) -> Option<Permits> {
        Some(Permits { count, of })
    }

    fn listing(parts: &[Option<Permits>]) -> Listing {
        let children = parts.iter().zip(0..).map(|(permits, place)| {
            let owner = Owner {
                client: ClientId(1),
                request: u64::try_from(place).unwrap_or(0),
            };
            Child {
                name: of_request(owner),
                owner,
                permits: *permits,
                kept: false,
                place: ChildPlace(place),
                made: place,
                lease: 0,
            }
        });
        let mut children: Vec<Child> = children.collect();
        children.reverse();
        Listing::new(children, 9, false)
    }

    /// For each child, whether it holds the key.
    fn ranks(parts: &[Option<Permits>]) -> Vec<ChildStanding> {
        let listing = listing(parts);
        let rank = |child: &Child| listing.rank(child.permits, Some(child.place)).standing;
        listing.children.iter().map(rank).collect()
    }

    fn watches(listing: &Listing, at: usize) -> Obstacle {
        Obstacle::Child(listing.children[at].name.clone())
    }

    #[test]
    fn the_first_holds_and_each_watches_the_one_before() {
        let parts = [None, None, None];
        let all = listing(&parts);
        let expected = [
            ChildStanding::Holds,
            ChildStanding::Waits(watches(&all, 0)),
            ChildStanding::Waits(watches(&all, 1)),
        ];
        assert_eq!(ranks(&parts), expected);
        assert_eq!((all.holding().len(), all.found().waiting), (1, 2));
    }

    #[test]
    fn readers_wait_for_the_writer_before_them_and_writers_for_all() {
        let parts = [READ, READ, WRITE, READ, READ, WRITE];
        let all = listing(&parts);
        let expected = [
            ChildStanding::Holds,
            ChildStanding::Holds,
            ChildStanding::Waits(watches(&all, 1)),
            ChildStanding::Waits(watches(&all, 2)),
            ChildStanding::Waits(watches(&all, 2)),
            ChildStanding::Waits(watches(&all, 4)),
        ];
        assert_eq!(ranks(&parts), expected);
    }

    #[test]
    fn a_part_that_does_not_fit_blocks_all_behind_it() {
        let parts = [part(1, 3), part(3, 3), part(1, 3), part(1, 9)];
        let all = listing(&parts);
        let expected = [
            ChildStanding::Holds,
            ChildStanding::Waits(watches(&all, 0)),
            ChildStanding::Waits(Obstacle::Children),
            ChildStanding::Waits(Obstacle::Children),
        ];
        assert_eq!(ranks(&parts), expected);
        assert_eq!(all.found().permits, part(1, 3));
    }

    #[test]
    fn another_kind_conflicts_with_holders_and_lets_nobody_pass() {
        let parts = [part(1, 1), None, part(1, 1)];
        let standings = ranks(&parts);
        assert_eq!(standings[1], ChildStanding::OtherKind);
        assert!(matches!(standings[2], ChildStanding::Waits(_)));
    }
}
