//! The state of the network: the faults in force, and what has passed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::protocol::Protocol;

/// The proxy's settings and counts. All connections read it and wait for its changes.
///
/// Bytes are forwarded and connections are accepted under its lock ([`Network::change`]). So no
/// change can come between checking whether something may pass and passing it.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) state: watch::Sender<State>,
    pub(super) listener: TcpListener,
    admitted: mpsc::UnboundedSender<Admitted>,
    pub(super) protocol: Protocol,
}

/// A connection's number and its client side.
pub(super) type Admitted = (u64, TcpStream);

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) delay_requests: Duration,
    pub(super) delay_replies: Duration,
    pub(super) frozen: bool,
    pub(super) drop_replies: bool,
    /// The connections that have lost replies. Nothing comes over them any more, as in a network: a
    /// stream of bytes has no gaps.
    pub(super) deaf: BTreeSet<u64>,
    pub(super) refuse: bool,
    /// For how long a server that does not listen is asked again, for each connection.
    pub(super) patience: Duration,
    pub(super) cut_after: Option<CutAfter>,
    /// The connections that were not cut and have not ended.
    pub(super) open: BTreeSet<u64>,
    pub(super) connections: u64,
    pub(super) requests: BTreeMap<String, u64>,
    pub(super) bytes_to_server: u64,
    pub(super) bytes_to_client: u64,
}

/// The request after which a connection is cut: one with this name, or any.
#[derive(Debug)]
pub(super) struct CutAfter(pub(super) Option<String>);

impl CutAfter {
    pub(super) fn matches(&self, command: &str) -> bool {
        self.0.as_deref().is_none_or(|wanted| wanted == command)
    }
}

impl Network {
    pub(super) fn new(
        listener: TcpListener,
        protocol: Protocol,
    ) -> (Arc<Self>, mpsc::UnboundedReceiver<Admitted>) {
        listener
            .set_nonblocking(true)
            .expect("a listener can be made non-blocking");
        let (admitted, connections) = mpsc::unbounded_channel();
        let network = Self {
            state: watch::Sender::default(),
            listener,
            admitted,
            protocol,
        };
        (Arc::new(network), connections)
    }

    /// Accepts the connections that clients have already made. A client sees a connection as soon
    /// as the system has queued it, so a fault must include those.
    pub(super) fn admit_pending(&self, state: &mut State) {
        loop {
            match self.listener.accept() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                accepted => self.admit(state, accepted.map(|(client, _)| client)),
            }
        }
    }

    pub(super) fn admit(&self, state: &mut State, accepted: io::Result<TcpStream>) {
        let client = match accepted {
            Ok(client) => client,
            // The client has closed it already.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => return,
            Err(error) => panic!("the proxy cannot accept connections: {error}"),
        };
        if state.refuse {
            return;
        }
        state.connections += 1;
        state.open.insert(state.connections);
        // Sending fails only if the proxy's thread has ended. Then the connection must be closed.
        let _ = self.admitted.send((state.connections, client));
    }

    /// Changes the state and makes every connection check it again.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut result = None;
        self.state.send_modify(|state| result = Some(change(state)));
        result.expect("the change was made")
    }

    /// Changes what no connection waits for, such as a count. If `change` returns true, connections
    /// check the state again.
    pub(super) fn change_quietly<T>(&self, change: impl FnOnce(&mut State) -> (T, bool)) -> T {
        let mut result = None;
        self.state.send_if_modified(|state| {
            let (value, recheck) = change(state);
            result = Some(value);
            recheck
        });
        result.expect("the change was made")
    }

    pub(super) async fn wait_for(&self, condition: impl FnMut(&State) -> bool) {
        self.state
            .subscribe()
            .wait_for(condition)
            .await
            .expect("the sender lives as long as the network");
    }
}
