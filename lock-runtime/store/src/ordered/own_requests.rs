//! [`OwnRequests`]: what a client has in the queues, and when it is to end.
//!
//! No server ends the lease of a single hold: a session lasts as long as its client lives, and a
//! lease of the servers is for many. So the client itself ends its holds whose lease is over, and
//! its places whose wait is.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::time::Duration;

use super::names::KeyNode;
use crate::instant::Instant;
use crate::owner::Owner;
use crate::request::Acquire;
use crate::rules::RankedRequest;

/// What a request of this client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnPart {
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

impl OwnPart {
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

    fn ends(self) -> Option<Instant> {
        match self {
            Self::Holds(ends) => Some(ends),
            Self::Waits { ends, .. } => ends,
        }
    }

    /// Whether it is a place.
    #[must_use]
    pub fn waits(self) -> bool {
        matches!(self, Self::Waits { .. })
    }
}

/// A request in a queue.
pub trait PlacedRequest: RankedRequest + Clone {
    /// Whether it is the same, and not another one of its owner.
    fn is_same(&self, other: &Self) -> bool;

    /// By their places.
    fn order(&self, other: &Self) -> Ordering;
}

/// What a client knows of its own request.
pub trait OwnRequest {
    /// As it is at the servers.
    type Child: PlacedRequest;

    /// As it is at the servers.
    fn child(&self) -> &Self::Child;

    /// A hold or a place.
    fn part(&mut self) -> &mut OwnPart;

    /// A hold or a place.
    fn is(&self) -> OwnPart;
}

/// A place that has become a hold.
#[derive(Clone, Copy, Debug)]
pub struct HandOver {
    place: OwnPart,
    hold: OwnPart,
    /// The lease that it has at first.
    pub first_lease: Duration,
    /// How many fencing tokens it is to have.
    pub tokens: u32,
}

/// All of a client's.
#[derive(Debug)]
pub struct OwnRequests<O> {
    own: HashMap<(KeyNode, Owner), O>,
    /// The keys that wait for a change of this path.
    watched: HashMap<String, Vec<KeyNode>>,
}

impl<O> Default for OwnRequests<O> {
    fn default() -> Self {
        Self {
            own: HashMap::default(),
            watched: HashMap::default(),
        }
    }
}

impl<O: OwnRequest> OwnRequests<O> {
    /// The owner's.
    pub fn get(&mut self, node: &KeyNode, owner: Owner) -> Option<&mut O> {
        self.own.get_mut(&(node.clone(), owner))
    }

    /// The one that is this child.
    pub fn same(&mut self, node: &KeyNode, child: &O::Child) -> Option<&mut O> {
        let own = self.get(node, child.owner());
        own.filter(|own| own.child().is_same(child))
    }

    /// Notes it.
    pub fn put(&mut self, node: &KeyNode, own: O) {
        self.own.insert((node.clone(), own.child().owner()), own);
    }

    /// Removes the owner's.
    pub fn remove(&mut self, node: &KeyNode, owner: Owner) -> Option<O> {
        self.own.remove(&(node.clone(), owner))
    }

    /// Removes it if it is this child.
    pub fn forget(&mut self, node: &KeyNode, child: &O::Child) {
        if self.same(node, child).is_some() {
            self.remove(node, child.owner());
        }
    }

    /// Removes all but these.
    pub fn retain(&mut self, stays: impl Fn(&O) -> bool) {
        self.own.retain(|_, own| stays(own));
    }

    /// All.
    pub fn all(&self) -> impl Iterator<Item = &O> {
        self.own.values()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// The places at this key, in their order.
    pub fn waiting(&self, node: &KeyNode) -> Vec<O::Child> {
        let own = self.own.iter();
        let waits = own.filter(|((at, _), own)| at == node && own.is().waits());
        let mut waiting: Vec<O::Child> = waits.map(|(_, own)| own.child().clone()).collect();
        waiting.sort_by(O::Child::order);
        waiting
    }

    /// The keys at which there is a place.
    pub fn awaited(&self) -> Vec<KeyNode> {
        let waits = self.own.iter().filter(|(_, own)| own.is().waits());
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
        child: &O::Child,
        now: Instant,
    ) -> Option<HandOver> {
        let part = self.same(node, child)?.part();
        let place = *part;
        let OwnPart::Waits {
            first_lease,
            tokens,
            ..
        } = place
        else {
            return None;
        };
        let hold = OwnPart::Holds(now + first_lease);
        *part = hold;
        Some(HandOver {
            place,
            hold,
            first_lease,
            tokens,
        })
    }

    /// Nobody was told of that hold. It is a place again, unless it has asked itself meanwhile.
    pub fn take_back(&mut self, node: &KeyNode, child: &O::Child, handed: &HandOver) {
        if let Some(own) = self.same(node, child)
            && own.is() == handed.hold
        {
            *own.part() = handed.place;
        }
    }

    /// A hold that was found at the servers lasts until then at least. `None`: it has ended here.
    pub fn prolong(
        &mut self,
        node: &KeyNode,
        child: &O::Child,
        now: Instant,
        ends: Instant,
    ) -> Option<&mut O> {
        let own = self.same(node, child)?;
        match own.is() {
            OwnPart::Holds(before) if before > now => *own.part() = own.is().held_until(ends),
            OwnPart::Holds(_) | OwnPart::Waits { .. } => return None,
        }
        Some(own)
    }

    /// When this hold ends.
    pub fn end_of(&mut self, node: &KeyNode, child: &O::Child) -> Option<Instant> {
        match self.same(node, child)?.is() {
            OwnPart::Holds(ends) => Some(ends),
            OwnPart::Waits { .. } => None,
        }
    }

    /// When the next one ends.
    pub fn next_end(&self) -> Option<Instant> {
        self.all().filter_map(|own| own.is().ends()).min()
    }

    /// Removes those that have ended.
    pub fn take_ended(&mut self, now: Instant) -> Vec<(KeyNode, O)> {
        let has_ended = |own: &mut O| own.is().ends().is_some_and(|ends| ends <= now);
        let ended = self.own.extract_if(|_, own| has_ended(own));
        ended.map(|((node, _), own)| (node, own)).collect()
    }
}
