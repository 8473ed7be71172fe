//! Who holds a key and who waits, by the keys of its requests in their order.
//!
//! The children that come first hold the key, as long as what they ask for fits
//! ([`Holders`]). The first that does not fit blocks all behind it. A child that holds goes on to
//! do so whatever happens to the others: those before it can only become fewer.

use lock_store::rules::{HeldPart, HoldId, Holders};
use lock_store::{FoundHolder, Holder, Instant, LockFound, Permits};

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

/// What a request may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChildStanding {
    Holds,
    /// Until this changes.
    Waits(Obstacle),
    /// The key is held as another kind of lock.
    OtherKind,
}

/// What a waiting request watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// The child with this name, the nearest that stands in its way.
    Child(String),
    /// All children: any that leaves can make room for a part of a semaphore.
    Children,
}

/// A request's place among the others.
#[derive(Clone, Debug)]
pub(crate) struct Rank {
    pub(crate) standing: ChildStanding,
    /// The capacity by the holders' requests, if it is another.
    pub(crate) limit: Option<u32>,
    /// One of the holders.
    pub(crate) holder: Option<Holder>,
}

fn hold_of(child: &Child) -> HoldId {
    let count = child.permits.map_or(1, |permits| permits.count);
    HoldId {
        owner: child.owner,
        kept: if child.kept { count } else { 0 },
    }
}

/// Holds have no end that others know. Their order stands for it.
fn enter(holders: &mut Holders, at: usize, child: &Child) {
    let expires = Instant::from_nanos(i64::try_from(at).unwrap_or(i64::MAX));
    let permits = child.permits;
    holders.add(hold_of(child), HeldPart { permits, expires });
}

impl Listing {
    pub(crate) fn new(mut children: Vec<Child>, revision: i64, is_foreign: bool) -> Self {
        children.sort_by_key(|child| child.place);
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

    /// Those that hold the key, of these children, and whether all of them do.
    fn holders<'l>(&self, children: impl Iterator<Item = &'l Child>) -> (Holders, bool) {
        let mut holders = Holders::default();
        for (at, child) in children.enumerate() {
            if !holders.fits(child.permits) {
                return (holders, false);
            }
            enter(&mut holders, at, child);
        }
        (holders, true)
    }

    fn before(&self, place: Option<ChildPlace>) -> impl DoubleEndedIterator<Item = &Child> {
        let is_before = move |child: &&Child| place.is_none_or(|me| child.place < me);
        self.children.iter().filter(is_before)
    }

    /// The rank of a request with this place, or of one that comes now.
    pub(crate) fn rank(&self, permits: Option<Permits>, place: Option<ChildPlace>) -> Rank {
        let (holders, all) = self.holders(self.before(place));
        let standing = if holders.is_other_kind(permits) {
            ChildStanding::OtherKind
        } else if all && holders.fits(permits) {
            ChildStanding::Holds
        } else {
            ChildStanding::Waits(self.obstacle(permits, place))
        };
        Rank {
            standing,
            limit: holders.other_limit(permits),
            holder: holders.first().map(|(holder, _)| holder),
        }
    }

    fn obstacle(&self, permits: Option<Permits>, place: Option<ChildPlace>) -> Obstacle {
        let is_whole = |permits: Option<Permits>| permits.is_none_or(|part| part.count >= part.of);
        let nearest = match permits {
            _ if is_whole(permits) => self.before(place).next_back(),
            Some(part) if part.is_read_write() => {
                self.before(place).rfind(|child| is_whole(child.permits))
            }
            _ => None,
        };
        nearest.map_or(Obstacle::Children, |child| {
            Obstacle::Child(child.name.clone())
        })
    }

    /// The children that hold the key.
    pub(crate) fn holding(&self) -> &[Child] {
        let (holders, _) = self.holders(self.children.iter());
        self.children.get(..holders.len()).unwrap_or_default()
    }

    pub(crate) fn found(&self) -> LockFound {
        let (holders, _) = self.holders(self.children.iter());
        let holding = self.holding();
        let mut found = LockFound::free(self.children.len() - holding.len());
        found.holders = holding.len();
        found.holder = holding.last().map(found_holder);
        found.permits = holders.permits();
        found
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Child> {
        self.children.iter().find(|child| child.name == name)
    }
}

pub(crate) fn found_holder(child: &Child) -> FoundHolder {
    FoundHolder::Owner {
        owner: child.owner,
        kept: child.kept,
        permits: child.permits.map(|permits| permits.count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::of_request;
    use lock_store::{ClientId, Owner};

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
