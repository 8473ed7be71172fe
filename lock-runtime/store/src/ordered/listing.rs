//! [`Listing`]: who holds a lock and who waits, by its requests in their order.

use super::own_requests::PlacedRequest;
use crate::owner::Owner;
use crate::request::{AcquiredAll, LockFound, Permits};
use crate::rules::{self, ChildStanding, Rank, is_same_share};

/// The requests for a lock, in their order. `R` is what was read with them.
#[derive(Clone, Debug)]
pub struct Listing<C, R> {
    /// The requests.
    pub children: Vec<C>,
    /// What was read with them.
    pub read: R,
    /// There is something that is not ours.
    pub is_foreign: bool,
}

impl<C, R: Default> Default for Listing<C, R> {
    fn default() -> Self {
        Self {
            children: Vec::new(),
            read: R::default(),
            is_foreign: false,
        }
    }
}

impl<C: PlacedRequest, R> Listing<C, R> {
    /// These requests.
    pub fn new(mut children: Vec<C>, read: R, is_foreign: bool) -> Self {
        children.sort_by(C::order);
        Self {
            children,
            read,
            is_foreign,
        }
    }

    /// The rank of this request, or of one for this part that comes now.
    pub fn rank(&self, permits: Option<Permits>, me: Option<&C>) -> Rank {
        let is_before = |child: &&C| me.is_none_or(|me| child.is_before(me));
        let before: Vec<&C> = self.children.iter().filter(is_before).collect();
        let is_able = me.is_none_or(C::is_able);
        rules::rank(&before, permits, is_able, C::SIGNALS)
    }

    /// Whether this request holds the lock.
    pub fn is_holding(&self, me: &C) -> bool {
        self.rank(me.permits(), Some(me)).standing == ChildStanding::Holds
    }

    /// Why a request for this part does not get the lock, the one at this place among several.
    /// `me`: it is there already.
    pub fn refusal(
        &self,
        at: usize,
        permits: Option<Permits>,
        me: Option<&C>,
    ) -> Option<AcquiredAll> {
        if self.is_foreign {
            return Some(AcquiredAll::Conflict(at));
        }
        match self.rank(permits, me).standing {
            ChildStanding::Holds => None,
            ChildStanding::OtherKind => Some(AcquiredAll::Conflict(at)),
            ChildStanding::Waits(_) => Some(AcquiredAll::Busy(at)),
        }
    }

    /// The requests that hold the lock.
    pub fn holding(&self) -> &[C] {
        rules::holding(&self.children)
    }

    /// For those who ask who holds the lock.
    pub fn found(&self) -> LockFound {
        rules::found(&self.children)
    }

    /// The requests of a claim, in their order: one, unless replies were lost.
    pub fn claimed(&self, owner: Owner, permits: Option<Permits>) -> impl Iterator<Item = &C> {
        let is_it = move |child: &&C| {
            let is_ours = !child.is_kept() && !child.is_foreign();
            is_ours && child.owner() == owner && is_same_share(child.permits(), permits)
        };
        self.children.iter().filter(is_it)
    }

    /// The request with this name.
    pub fn named(&self, name: &str) -> Option<&C> {
        self.children.iter().find(|child| child.name() == name)
    }
}
