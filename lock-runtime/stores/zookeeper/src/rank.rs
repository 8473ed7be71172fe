//! The children of a key's node as places in their order. Who of them holds the key is for
//! [`lock_store::rules`].

use std::cmp::Ordering;

use lock_store::ordered::{self, PlacedRequest};
use lock_store::rules::RankedRequest;
use lock_store::{Owner, Permits};

use crate::names::Child;
use crate::wire::Stat;

/// The children of a key's node, and what the server says of that. `None`: there is no node.
pub(crate) type Listing = ordered::Listing<Child, Option<Stat>>;

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

    fn is_foreign(&self) -> bool {
        self.is_foreign
    }
}

impl PlacedRequest for Child {
    const SIGNALS: bool = true;

    fn is_same(&self, other: &Self) -> bool {
        self.name == other.name
    }

    fn order(&self, other: &Self) -> Ordering {
        self.place.order(other.place)
    }

    /// Of two children at the same place, each counts as behind the other: neither holds.
    fn is_before(&self, other: &Self) -> bool {
        match self.place.order(other.place) {
            Ordering::Less => true,
            Ordering::Equal => self.name != other.name,
            Ordering::Greater => false,
        }
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
            let owner = Owner::new(ClientId(1), request);
            let name = NodeLayout::Native.at_place(owner, None, false, ChildPlace(place));
            NodeLayout::Native.child(&name)
        };
        let standings = |places: &[i32]| {
            let children = (1..)
                .zip(places)
                .filter_map(|(request, place)| at(request, *place));
            let listing = Listing::new(children.collect(), None, false);
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
