//! Who holds a key and who waits, by the children of its node in their order.

use std::cmp::Ordering;

use lock_store::ordered::PlacedRequest;
use lock_store::rules::{self, Rank, RankedRequest, is_part};
use lock_store::{FoundHolder, LockFound, Owner, Permits};

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

impl Listing {
    pub(crate) fn new(mut children: Vec<Child>, stat: Stat, is_foreign: bool) -> Self {
        children.sort_by(Child::order);
        Self {
            children,
            stat: Some(stat),
            is_foreign,
        }
    }

    /// The rank of a request with this child, or of one that comes now.
    pub(crate) fn rank(&self, permits: Option<Permits>, me: Option<&Child>) -> Rank {
        let is_before = |child: &&Child| me.is_none_or(|me| child.is_before(me));
        let before: Vec<&Child> = self.children.iter().filter(is_before).collect();
        let is_able = me.is_none_or(RankedRequest::is_able);
        rules::rank(&before, permits, is_able, true)
    }

    /// The children that hold the key.
    pub(crate) fn holding(&self) -> &[Child] {
        rules::holding(&self.children)
    }

    pub(crate) fn found(&self) -> LockFound {
        rules::found(&self.children)
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

    fn is_able(&self) -> bool {
        !self.is_spent()
    }

    fn holder(&self) -> FoundHolder {
        match self.is_foreign {
            true => FoundHolder::Foreign(self.name.clone()),
            false => FoundHolder::Owner {
                owner: self.owner,
                kept: self.kept,
                permits: self.permits.map(|permits| permits.count),
            },
        }
    }
}

impl PlacedRequest for Child {
    fn is_same(&self, other: &Self) -> bool {
        self.name == other.name
    }

    fn order(&self, other: &Self) -> Ordering {
        self.place.order(other.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{ChildPlace, NodeLayout};
    use lock_store::ClientId;
    use lock_store::rules::ChildStanding;

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
}
