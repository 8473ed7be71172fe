//! Who holds a key and who waits, by the children of its node in their order.
//!
//! The children that come first hold the key, as long as what they ask for fits
//! ([`Holders`]). The first that does not fit blocks all behind it. A child that holds goes on to
//! do so whatever happens to the others: those before it can only become fewer.

use lock_store::rules::{HeldPart, HoldId, Holders};
use lock_store::{FoundHolder, Holder, Instant, LockFound, Owner, Permits};

use crate::names::Child;
use crate::wire::Stat;

/// The children of a key's node, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing {
    pub(crate) children: Vec<Child>,
    /// Of the node itself. `None`: there is no node.
    pub(crate) stat: Option<Stat>,
    /// It has data or children that are not ours.
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
    pub(crate) fn new(mut children: Vec<Child>, stat: Stat, is_foreign: bool) -> Self {
        children.sort_by(|one, other| one.place.order(other.place));
        Self {
            children,
            stat: Some(stat),
            is_foreign,
        }
    }

    /// Those that hold the key, of these children, and whether all of them do.
    fn holders<'l>(&self, children: impl Iterator<Item = &'l Child>) -> (Holders, bool) {
        let mut holders = Holders::default();
        for (at, child) in children.enumerate() {
            if child.is_spent() || !holders.fits(child.permits) {
                return (holders, false);
            }
            enter(&mut holders, at, child);
        }
        (holders, true)
    }

    fn before<'l>(&'l self, me: Option<&'l Child>) -> impl DoubleEndedIterator<Item = &'l Child> {
        let is_before = move |child: &&Child| me.is_none_or(|me| child.is_before(me));
        self.children.iter().filter(is_before)
    }

    /// The rank of a request with this child, or of one that comes now.
    pub(crate) fn rank(&self, permits: Option<Permits>, me: Option<&Child>) -> Rank {
        let (holders, all) = self.holders(self.before(me));
        let first = self.before(me).next().filter(|_| !holders.is_empty());
        let is_spent = me.is_some_and(Child::is_spent);
        let standing = if holders.is_other_kind(permits) {
            ChildStanding::OtherKind
        } else if all && !is_spent && holders.fits(permits) {
            ChildStanding::Holds
        } else {
            ChildStanding::Waits(self.obstacle(permits, me))
        };
        Rank {
            standing,
            limit: holders.other_limit(permits),
            holder: first.map(|child| found_holder(child).who()),
        }
    }

    fn obstacle(&self, permits: Option<Permits>, me: Option<&Child>) -> Obstacle {
        let is_whole = |permits: Option<Permits>| permits.is_none_or(|part| part.count >= part.of);
        let nearest = match permits {
            _ if is_whole(permits) => self.before(me).next_back(),
            Some(part) if part.is_read_write() => {
                self.before(me).rfind(|child| is_whole(child.permits))
            }
            // A part of a semaphore has room when any of those that hold the key leaves. So the
            // first that waits watches them all, and each other one the waiting one before it,
            // which writes to its child when its turn has come.
            _ => {
                let (holders, _) = self.holders(self.before(me));
                self.before(me).skip(holders.len()).last()
            }
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

    /// The children of a claim, in their order: one, unless replies were lost.
    pub(crate) fn claimed(
        &self,
        owner: Owner,
        permits: Option<Permits>,
    ) -> impl Iterator<Item = &Child> {
        let is_it = move |child: &&Child| {
            let is_ours = !child.kept && !child.is_foreign;
            is_ours && child.owner == owner && is_part(child.permits, permits)
        };
        self.children.iter().filter(is_it)
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Child> {
        self.children.iter().find(|child| child.name == name)
    }
}

/// Whether a claim on `says` is one on what `has`: a downgrade may run before or after a command
/// that was sent around the same time.
pub(crate) fn is_part(has: Option<Permits>, says: Option<Permits>) -> bool {
    match (has, says) {
        (Some(has), Some(says)) if has.is_read_write() => has.of == says.of,
        (Some(has), Some(says)) => has.count == says.count,
        (has, says) => has == says,
    }
}

pub(crate) fn found_holder(child: &Child) -> FoundHolder {
    if child.is_foreign {
        return FoundHolder::Foreign(child.name.clone());
    }
    FoundHolder::Owner {
        owner: child.owner,
        kept: child.kept,
        permits: child.permits.map(|permits| permits.count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{ChildPlace, NodeLayout};
    use lock_store::ClientId;

    const READ: Option<Permits> = Some(Permits::READ);
    const WRITE: Option<Permits> = Some(Permits::WRITE);

    fn part(count: u32, of: u32) -> Option<Permits> {
        Some(Permits { count, of })
    }

    fn listing(parts: &[Option<Permits>]) -> Listing {
        let children = parts.iter().zip(0..).filter_map(|(permits, place)| {
            let owner = Owner {
                client: ClientId(1),
                request: u64::try_from(place).unwrap_or(0),
            };
            let name = NodeLayout::Native.at_place(owner, *permits, false, ChildPlace(place));
            NodeLayout::Native.child(&name)
        });
        let mut children: Vec<Child> = children.collect();
        children.reverse();
        Listing::new(children, Stat::default(), false)
    }

    /// For each child, whether it holds the key.
    fn ranks(parts: &[Option<Permits>]) -> Vec<ChildStanding> {
        let listing = listing(parts);
        let rank = |child: &Child| listing.rank(child.permits, Some(child)).standing;
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
    fn where_the_servers_counter_has_ended_nobody_holds() {
        let at = |request, place| {
            let owner = Owner {
                client: ClientId(1),
                request,
            };
            let name = NodeLayout::Native.at_place(owner, None, false, ChildPlace(place));
            NodeLayout::Native.child(&name)
        };
        let standings = |places: &[i32]| {
            let children = (1..)
                .zip(places)
                .filter_map(|(request, place)| at(request, *place));
            let listing = Listing::new(children.collect(), Stat::default(), false);
            let rank = |child: &Child| listing.rank(child.permits, Some(child)).standing;
            let standings: Vec<ChildStanding> = listing.children.iter().map(rank).collect();
            let holding = listing.holding().len();
            (standings, holding)
        };
        // Both have the same number: neither holds.
        let (both, holding) = standings(&[i32::MAX, i32::MAX]);
        assert!(!both.contains(&ChildStanding::Holds), "{both:?}");
        assert_eq!(holding, 0);
        let (same, _) = standings(&[7, 7]);
        assert!(!same.contains(&ChildStanding::Holds), "{same:?}");
        // Who holds goes on, whatever comes behind it.
        let (all, holding) = standings(&[5, i32::MAX, i32::MAX, i32::MIN + 9]);
        let holds = all.iter().map(|standing| *standing == ChildStanding::Holds);
        assert_eq!(holds.collect::<Vec<_>>(), [true, false, false, false]);
        assert_eq!(holding, 1);
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
            ChildStanding::Waits(watches(&all, 1)),
            ChildStanding::Waits(watches(&all, 2)),
        ];
        assert_eq!(ranks(&parts), expected);
        assert_eq!(all.found().permits, part(1, 3));
        let full = listing(&[part(2, 3), part(1, 3), part(1, 3), part(1, 3)]);
        let watched = |at: usize| {
            let child = &full.children[at];
            full.rank(child.permits, Some(child)).standing
        };
        assert_eq!(watched(2), ChildStanding::Waits(Obstacle::Children));
        assert_eq!(watched(3), ChildStanding::Waits(watches(&full, 2)));
    }

    #[test]
    fn another_kind_conflicts_with_holders_and_lets_nobody_pass() {
        let parts = [part(1, 1), None, part(1, 1)];
        let standings = ranks(&parts);
        assert_eq!(standings[1], ChildStanding::OtherKind);
        assert!(matches!(standings[2], ChildStanding::Waits(_)));
    }
}
