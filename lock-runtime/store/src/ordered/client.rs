//! [`OrderedClient`]: what each client knows.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};

use tokio::sync::Notify;

use super::burials::Burials;
use super::names::KeyNode;
use super::own_requests::{OwnRequests, OwnStanding, PlacedRequest};
use crate::clock::Clock;
use crate::context::StoreContext;
use crate::letter::Letter;
use crate::listener::Listener;
use crate::mutex::Mutex;
use crate::namespace::Namespace;
use crate::owner::ClientId;
use crate::request::Acquire;

/// What each client knows.
pub struct OrderedClient<C, D> {
    /// The client's clock.
    pub clock: Clock,
    /// Who it is.
    pub client: ClientId,
    /// Where its keys are.
    pub namespace: Namespace,
    /// Hears what happens.
    pub listener: Weak<dyn Listener>,
    /// What it has in the queues.
    pub own: Arc<Mutex<OwnRequests<C, D>>>,
    /// Wakes the task that ends what is over.
    pub ends: Notify,
    /// What is being deleted that nobody waits for.
    pub burials: Burials,
    /// The keys that are looked at.
    pub(super) looks: Looks,
}

impl<C, D> fmt::Debug for OrderedClient<C, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("OrderedClient");
        debug.field("namespace", &self.namespace);
        debug.field("client", &self.client).finish_non_exhaustive()
    }
}

impl<C: PlacedRequest, D> OrderedClient<C, D> {
    /// Without any requests.
    #[must_use]
    pub fn new(context: &StoreContext) -> Self {
        Self {
            clock: context.clock.clone(),
            client: context.client,
            namespace: context.namespace.clone(),
            listener: context.listener.clone(),
            own: Arc::default(),
            ends: Notify::new(),
            burials: Burials::new(context.clock.clone()),
            looks: Looks::default(),
        }
    }

    /// Notes that this child was read as a place. False: it has ended meanwhile.
    pub fn note_place(&self, node: &KeyNode, request: &Acquire, child: &C, details: D) -> bool {
        let place = OwnStanding::place_of(request, self.clock.now());
        let is_there = self.own.lock().put_place(node, child, place, details);
        self.ends.notify_one();
        is_there
    }

    /// Tells the listener of a letter's message, if it is for this namespace.
    pub fn deliver(&self, letter: &[u8]) {
        let message = Letter::read(letter);
        if let Some(message) = message.and_then(|letter| letter.message_for(&self.namespace)) {
            self.listener.on_message(message);
        }
    }
}

/// The keys that are looked at, and whether they have changed since.
#[derive(Debug, Default)]
pub(super) struct Looks(Mutex<HashMap<KeyNode, bool>>);

impl Looks {
    /// True if nobody looks at this key: the caller does so now. Else whoever does looks again.
    pub(super) fn begin(&self, node: &KeyNode) -> bool {
        let mut looks = self.0.lock();
        match looks.get_mut(node) {
            Some(again) => *again = true,
            None => {
                looks.insert(node.clone(), false);
                return true;
            }
        }
        false
    }

    /// Whether the one who looks is to look again.
    pub(super) fn look_again(&self, node: &KeyNode) -> bool {
        let mut looks = self.0.lock();
        match looks.get_mut(node) {
            Some(again) if *again => *again = false,
            _ => {
                looks.remove(node);
                return false;
            }
        }
        true
    }
}
