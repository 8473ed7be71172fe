//! [`OwnRequests`]: what a client has in the queues, and when it is to end.
//!
//! No server ends the lease of a single hold: a session lasts as long as its client lives, and a
//! lease of the servers is for many. So the client itself ends its holds whose lease is over, and
//! its places whose wait is.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::names::KeyNode;
use crate::instant::Instant;
use crate::owner::Owner;
use crate::request::{Acquire, Claim};
use crate::rules::{RankedRequest, is_same_share};

/// What a request of this client has in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnStanding {
    /// A hold, until this.
    Holds(Instant),
    /// A place.
    Waits {
        /// Of its wait.
        ends: Option<Instant>,
        /// The lease of the hold that is handed to it.
        first_lease: Duration,
        /// How many fencing tokens it is to have.
        tokens: u32,
    },
}

impl OwnStanding {
    /// The place of this request.
    #[must_use]
    pub fn place_of(request: &Acquire, now: Instant) -> Self {
        Self::Waits {
            ends: request.wait.map(|wait| now + wait),
            first_lease: request.first_lease,
            tokens: request.tokens,
        }
    }

    /// A hold until then at least.
    #[must_use]
    pub fn held_until(self, ends: Instant) -> Self {
        Self::Holds(match self {
            Self::Holds(before) => before.max(ends),
            Self::Waits { .. } => ends,
        })
    }

    /// When it ends here. `None`: it is a place whose wait has no end.
    #[must_use]
    pub fn end(self) -> Option<Instant> {
        match self {
            Self::Holds(ends) => Some(ends),
            Self::Waits { ends, .. } => ends,
        }
    }

    /// Whether it is a place.
    #[must_use]
    pub fn is_place(self) -> bool {
        matches!(self, Self::Waits { .. })
    }
}

/// A request in a queue.
pub trait PlacedRequest: RankedRequest + Clone {
    /// Whether a part of a semaphore [tells when it holds](crate::rules::rank).
    const SIGNALS: bool;

    /// Whether it is the same, and not another one of its owner.
    fn is_same(&self, other: &Self) -> bool;

    /// By their places.
    fn order(&self, other: &Self) -> Ordering;

    /// Whether it stands in the queue before this one.
    fn is_before(&self, other: &Self) -> bool {
        self.order(other).is_lt()
    }
}

/// A client's own request. `D` is what its engine knows of it besides.
#[derive(Clone, Debug)]
pub struct OwnRequest<C, D> {
    /// As it is at the servers.
    pub child: C,
    /// A hold or a place.
    pub standing: OwnStanding,
    /// What its engine knows of it.
    pub details: D,
}

/// A place that has become a hold.
#[derive(Clone, Copy, Debug)]
pub struct PlaceBecameHold {
    place: OwnStanding,
    hold: OwnStanding,
    /// The lease that it has at first.
    pub first_lease: Duration,
    /// How many fencing tokens it is to have.
    pub tokens: u32,
}

/// All requests of a client.
#[derive(Debug)]
pub struct OwnRequests<C, D> {
    own: HashMap<(KeyNode, Owner), OwnRequest<C, D>>,
    /// The keys that wait for a change of this path.
    watched: HashMap<String, Vec<KeyNode>>,
    /// Paths of no owner, which keep a key taken until then, if that is known yet.
    kept: HashMap<String, KeptPath>,
    /// Children that have ended here and are being deleted. They may still be listed, and are
    /// never taken up again: the deletion would end what was granted with them.
    buried: HashSet<String>,
}

/// What keeps a key taken after a release.
#[derive(Clone, Copy, Debug)]
struct KeptPath {
    /// `None`: that is not known yet.
    until: Option<Instant>,
    /// What has written it, where servers number that.
    revision: i64,
}

/// What is over, and is to be deleted at the servers.
#[derive(Clone, Debug)]
pub enum EndedRequest<C, D> {
    /// A request of this client.
    Own(KeyNode, OwnRequest<C, D>),
    /// A path that kept its key taken, and what has written it.
    Kept(String, i64),
}

impl<C, D> Default for OwnRequests<C, D> {
    fn default() -> Self {
        Self {
            own: HashMap::default(),
            watched: HashMap::default(),
            kept: HashMap::default(),
            buried: HashSet::default(),
        }
    }
}

impl<C: PlacedRequest, D> OwnRequests<C, D> {
    /// The owner's request.
    pub fn get(&mut self, node: &KeyNode, owner: Owner) -> Option<&mut OwnRequest<C, D>> {
        self.own.get_mut(&(node.clone(), owner))
    }

    /// The request that is this child, and no later one of its owner.
    pub fn same(&mut self, node: &KeyNode, child: &C) -> Option<&mut OwnRequest<C, D>> {
        let own = self.get(node, child.owner());
        own.filter(|own| own.child.is_same(child))
    }

    /// Notes a child of this client. False: it has ended here.
    pub fn put(&mut self, node: &KeyNode, child: C, standing: OwnStanding, details: D) -> bool {
        let is_there = self.buried.is_empty() || !self.is_buried(&node.child(child.name()));
        if is_there {
            let at = (node.clone(), child.owner());
            let own = OwnRequest {
                child,
                standing,
                details,
            };
            self.own.insert(at, own);
        }
        is_there
    }

    /// Notes a child of this client that was read as a place. False: it has ended here.
    pub fn put_place(&mut self, node: &KeyNode, child: &C, place: OwnStanding, details: D) -> bool {
        match self.same(node, child) {
            // A hold is no place again: that reading was overtaken.
            Some(own) if !own.standing.is_place() => true,
            Some(own) => {
                own.standing = place;
                true
            }
            None => self.put(node, child.clone(), place, details),
        }
    }

    /// The owner's, if it is a hold of this part of the lock.
    pub fn held(
        &mut self,
        node: &KeyNode,
        claim: &Claim,
        now: Instant,
    ) -> Option<&mut OwnRequest<C, D>> {
        let own = self.get(node, claim.owner)?;
        let is_held = matches!(own.standing, OwnStanding::Holds(ends) if ends > now);
        (is_held && is_same_share(own.child.permits(), claim.permits)).then_some(own)
    }

    /// Whether this child has ended here, and is being deleted.
    pub fn is_buried(&self, path: &str) -> bool {
        self.buried.contains(path)
    }

    /// This child has ended here.
    pub fn bury(&mut self, path: String) {
        self.buried.insert(path);
    }

    /// This child is deleted at the servers.
    pub fn forget_buried(&mut self, path: &str) {
        self.buried.remove(path);
    }

    /// This path keeps its key taken until then, if that is known yet.
    pub fn keep(&mut self, path: String, until: Option<Instant>, revision: i64) {
        self.kept.insert(path, KeptPath { until, revision });
    }

    /// Whether this path is known to keep its key taken.
    pub fn is_kept(&self, path: &str) -> bool {
        self.kept.contains_key(path)
    }

    /// This path no longer keeps its key taken.
    pub fn unkeep(&mut self, path: &str) {
        self.kept.remove(path);
    }

    /// The paths that begin so no longer keep their key taken.
    pub fn unkeep_all(&mut self, begin: &str) -> Vec<String> {
        let paths = self.kept.extract_if(|path, _| path.starts_with(begin));
        paths.map(|(path, _)| path).collect()
    }

    /// Removes the owner's request.
    pub fn remove(&mut self, node: &KeyNode, owner: Owner) -> Option<OwnRequest<C, D>> {
        self.own.remove(&(node.clone(), owner))
    }

    /// Removes it if it is this child.
    pub fn forget(&mut self, node: &KeyNode, child: &C) {
        if self.same(node, child).is_some() {
            self.remove(node, child.owner());
        }
    }

    /// Removes all but these.
    pub fn retain(&mut self, stays: impl Fn(&OwnRequest<C, D>) -> bool) {
        self.own.retain(|_, own| stays(own));
    }

    /// All requests.
    pub fn all(&self) -> impl Iterator<Item = &OwnRequest<C, D>> {
        self.own.values()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// The places at this key, in their order.
    pub fn waiting(&self, node: &KeyNode) -> Vec<C> {
        let own = self.own.iter();
        let waits = own.filter(|((at, _), own)| at == node && own.standing.is_place());
        let mut waiting: Vec<C> = waits.map(|(_, own)| own.child.clone()).collect();
        waiting.sort_by(C::order);
        waiting
    }

    /// The keys at which there is a place.
    pub fn awaited(&self) -> Vec<KeyNode> {
        let waits = self.own.iter().filter(|(_, own)| own.standing.is_place());
        let mut nodes: Vec<KeyNode> = Vec::new();
        for ((node, _), _) in waits {
            if !nodes.contains(node) {
                nodes.push(node.clone());
            }
        }
        nodes
    }

    /// A place at this key waits for a change of the path. False if one did before.
    pub fn watch(&mut self, path: String, node: &KeyNode) -> bool {
        let nodes = self.watched.entry(path).or_default();
        let is_new = !nodes.contains(node);
        if is_new {
            nodes.push(node.clone());
        }
        is_new
    }

    /// The keys that waited for this.
    pub fn take_watchers(&mut self, path: &str) -> Vec<KeyNode> {
        self.watched.remove(path).unwrap_or_default()
    }

    /// The connection is gone, and what was watched over it. The keys at which there is a place.
    pub fn unwatch(&mut self) -> Vec<KeyNode> {
        self.watched.clear();
        self.awaited()
    }

    /// A place has become a hold. `None`: it is no place any more.
    pub fn hand_over(
        &mut self,
        node: &KeyNode,
        child: &C,
        now: Instant,
    ) -> Option<PlaceBecameHold> {
        let standing = &mut self.same(node, child)?.standing;
        let place = *standing;
        let OwnStanding::Waits {
            first_lease,
            tokens,
            ..
        } = place
        else {
            return None;
        };
        let hold = OwnStanding::Holds(now + first_lease);
        *standing = hold;
        Some(PlaceBecameHold {
            place,
            hold,
            first_lease,
            tokens,
        })
    }

    /// Nobody was told of that hold. It is a place again, unless it has asked itself meanwhile.
    pub fn take_back(&mut self, node: &KeyNode, child: &C, handed: &PlaceBecameHold) {
        if let Some(own) = self.same(node, child)
            && own.standing == handed.hold
        {
            own.standing = handed.place;
        }
    }

    /// A hold that was found at the servers lasts until then at least. `None`: it has ended here.
    pub fn prolong(
        &mut self,
        node: &KeyNode,
        child: &C,
        now: Instant,
        ends: Instant,
    ) -> Option<&mut OwnRequest<C, D>> {
        let own = self.same(node, child)?;
        match own.standing {
            OwnStanding::Holds(before) if before > now => {
                own.standing = own.standing.held_until(ends)
            }
            OwnStanding::Holds(_) | OwnStanding::Waits { .. } => return None,
        }
        Some(own)
    }

    /// When this child ends: a hold of this client, or what stays taken after a release.
    pub fn end_of(&mut self, node: &KeyNode, child: &C) -> Option<Instant> {
        if child.is_kept() {
            return self.kept.get(&node.child(child.name()))?.until;
        }
        match self.same(node, child)?.standing {
            OwnStanding::Holds(ends) => Some(ends),
            OwnStanding::Waits { .. } => None,
        }
    }

    /// When the next hold, wait or kept path ends.
    pub fn next_end(&self) -> Option<Instant> {
        let own = self.all().filter_map(|own| own.standing.end());
        own.chain(self.kept.values().filter_map(|kept| kept.until))
            .min()
    }

    /// Removes those that have ended.
    pub fn take_ended(&mut self, now: Instant) -> Vec<EndedRequest<C, D>> {
        let has_ended = |ends: Option<Instant>| ends.is_some_and(|ends| ends <= now);
        let own = self.own.extract_if(|_, own| has_ended(own.standing.end()));
        let own = own.map(|((node, _), own)| EndedRequest::Own(node, own));
        let kept = self.kept.extract_if(|_, kept| has_ended(kept.until));
        own.chain(kept.map(|(path, kept)| EndedRequest::Kept(path, kept.revision)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owner::ClientId;
    use crate::request::Permits;

    #[derive(Clone, Debug)]
    struct Child(i64);

    impl RankedRequest for Child {
        fn name(&self) -> &'static str {
            "c"
        }

        fn owner(&self) -> Owner {
            Owner::new(ClientId(1), 1)
        }

        fn permits(&self) -> Option<Permits> {
            None
        }

        fn is_kept(&self) -> bool {
            false
        }
    }

    impl PlacedRequest for Child {
        const SIGNALS: bool = false;

        fn is_same(&self, other: &Self) -> bool {
            self.0 == other.0
        }

        fn order(&self, other: &Self) -> Ordering {
            self.0.cmp(&other.0)
        }
    }

    /// A poll was read before, and its answer came after the hand-over.
    #[test]
    fn a_place_that_has_become_a_hold_stays_one_whatever_was_read_before() {
        let node = KeyNode {
            namespace: "n/".to_owned(),
            path: "n/k".to_owned(),
        };
        let place = OwnStanding::Waits {
            ends: None,
            first_lease: Duration::from_secs(2),
            tokens: 0,
        };
        let mut requests = OwnRequests::<Child, ()>::default();
        let stands = |requests: &mut OwnRequests<Child, ()>, child| {
            requests.same(&node, child).map(|own| own.standing)
        };
        let child = &Child(7);
        assert!(requests.put_place(&node, child, place, ()));
        let handed = requests.hand_over(&node, child, Instant::now());
        let handed = handed.unwrap();
        assert!(requests.put_place(&node, child, place, ()));
        assert_eq!(stands(&mut requests, child), Some(handed.hold));
        // Nobody was told of it.
        requests.take_back(&node, child, &handed);
        assert_eq!(stands(&mut requests, child), Some(place));
        // Another request of that owner.
        requests.hand_over(&node, child, Instant::now());
        let later = &Child(8);
        assert!(requests.put_place(&node, later, place, ()));
        assert_eq!(stands(&mut requests, later), Some(place));
    }
}
