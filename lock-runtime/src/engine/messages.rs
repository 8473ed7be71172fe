//! [`Messages`]: what the store says on its own, and whom it concerns.

use std::sync::Arc;

use lock_store::{
    ClientMessage, Ended, HandedOver, Link, Listener, Mutex, StoreError, StoreErrorKind, WakeUp,
};

use super::grants::Grants;
use super::holder_names::HolderNames;
use super::local_queue::LocalQueues;
use super::observed::Observed;
use super::request_numbers::RequestNumbers;
use super::revocation_inbox::Revocations;
use crate::observe::{Events, What};

/// Hears the store for a client.
#[derive(Debug)]
pub(crate) struct Messages {
    pub(super) grants: Arc<Grants>,
    pub(super) local_queues: Arc<LocalQueues>,
    pub(super) numbers: Arc<RequestNumbers>,
    pub(super) names: Arc<HolderNames>,
    pub(super) revocations: Arc<Revocations>,
    pub(super) observed: Arc<Observed>,
    connected: Mutex<ConnectedServers>,
}

/// The servers with a connection, each as often as it has some.
#[derive(Debug, Default)]
struct ConnectedServers {
    servers: Vec<String>,
    /// After a shutdown: what a store says then is late.
    closed: bool,
}

impl Messages {
    pub(crate) fn new(
        local_queues: LocalQueues,
        numbers: RequestNumbers,
        names: HolderNames,
        revocations: Revocations,
        events: Events,
    ) -> Self {
        Self {
            grants: Arc::default(),
            local_queues: Arc::new(local_queues),
            numbers: Arc::new(numbers),
            names: Arc::new(names),
            revocations: Arc::new(revocations),
            observed: Arc::new(Observed::new(events)),
            connected: Mutex::default(),
        }
    }

    /// The client was shut down: records each connection as ended, and no new one.
    pub(super) fn disconnect_all(&self) {
        let mut connected = self.connected.lock();
        connected.closed = true;
        let text = "the client was shut down";
        let error = StoreError::new(StoreErrorKind::Disconnected, text);
        for server in std::mem::take(&mut connected.servers) {
            self.record_disconnected(server, error.clone());
        }
    }

    fn record_disconnected(&self, server: String, error: StoreError) {
        self.observed.events.record_later(None, move |recorder| {
            let (server, error) = (server.as_str(), &error);
            recorder.record(What::Disconnected { server, error });
        });
    }
}

impl Listener for Messages {
    fn on_granted(&self, grant: HandedOver) -> WakeUp {
        self.grants.on_granted(grant)
    }

    fn recheck(&self) {
        // Before anybody asks again over a new connection.
        self.numbers.draw();
        self.grants.recheck();
    }

    fn on_lost(&self, link: Link) {
        self.grants.on_lost(link);
    }

    fn on_connected(&self, server: &str) {
        // Under the lock, so that observers are told in this order.
        let mut connected = self.connected.lock();
        if connected.closed {
            return;
        }
        connected.servers.push(server.to_owned());
        let server = server.to_owned();
        self.observed.events.record_later(None, move |recorder| {
            let server = server.as_str();
            recorder.record(What::Connected { server });
        });
    }

    fn on_disconnected(&self, server: &str, error: &StoreError) {
        let mut connected = self.connected.lock();
        let mut servers = connected.servers.iter();
        if let Some(at) = servers.position(|one| one == server) {
            let server = connected.servers.swap_remove(at);
            self.record_disconnected(server, error.clone());
        }
    }

    fn on_message(&self, message: ClientMessage) {
        match message {
            ClientMessage::WhoHolds { .. } | ClientMessage::Holds { .. } => {
                self.names.on_message(message);
            }
            ClientMessage::Revoke { .. } | ClientMessage::Revoking { .. } => {
                self.revocations.on_message(message);
            }
        }
    }

    fn on_freed(&self, ended: Ended) {
        self.local_queues.on_freed(&ended.key);
    }
}

#[cfg(test)]
mod tests {
    use lock_store::{ClientId, Clock};
    use tokio::runtime::Handle;

    use super::*;

    /// Before the first request over a new connection: a copy of a virtual machine has no other
    /// sign of what it is.
    #[tokio::test]
    async fn two_copies_of_a_client_have_different_numbers_when_messages_may_be_lost() {
        let original = RequestNumbers::new(ClientId(7), true);
        let copies = [original.copied(), original].map(|numbers| {
            let (names, _) = HolderNames::new(Clock::new(Handle::current()), "me".into());
            let (revocations, _) = Revocations::new();
            let (queues, events) = (LocalQueues::default(), Events::default());
            Messages::new(queues, numbers, names, revocations, events)
        });
        let next = || copies.each_ref().map(|one| one.numbers.next_owner());
        let [one, other] = next();
        assert_eq!(one, other);
        copies.iter().for_each(Messages::recheck);
        let [one, other] = next();
        assert_ne!(one, other);
    }
}
