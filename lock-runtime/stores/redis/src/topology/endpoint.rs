//! [`Endpoint`]: the target of a connection, and the check that the connection still leads there.

use std::sync::Arc;
use std::time::Duration;

use lock_store::{ConfigError, Instant, StoreError, StoreErrorKind};
use redis::{Client, ConnectionInfo, ErrorKind};

use super::address::name_of;
use super::dial::{Dialed, dial};
use super::hello::Hello;
use super::identity::{DataHistory, KnownServer};
use super::members::{Member, ServerRun};
use super::progress::{AnnouncedAddress, AnnouncedBy, ConnectStep, Progress};
use super::sentinel::{NamedMaster, Sentinels};
use super::server::{self, Addresses, OneAddress};
use super::unreached;
use crate::config::MASTER_CHECK;
use crate::context::ClientContext;
use crate::errors;
use crate::resp::ConnectionEvents;

/// The target of a connection, looked up again for each attempt.
pub(crate) enum Endpoint {
    /// One server. Its name may have several addresses.
    Server(Client, KnownServer),
    /// One node of a cluster, with its address in the cluster's map unless the URL has it.
    Node(Client, Option<AnnouncedAddress>),
    /// The server that the sentinels name as master.
    Master(Sentinels),
    /// One server of a quorum.
    Member(Client, Member),
}

/// A new connection, and the master that it leads to.
pub(crate) struct Reached {
    pub(crate) dialed: Dialed,
    /// Makes another connection to the same server.
    pub(crate) client: Arc<Client>,
    master: Option<NamedMaster>,
    /// For a server of a quorum: the time from which it counts.
    pub(crate) counts_from: Option<Instant>,
    /// Of a server whose name has several addresses.
    identity: Option<DataHistory>,
}

impl Endpoint {
    pub(crate) fn server(server: ConnectionInfo) -> Result<Self, ConfigError> {
        Ok(Self::Server(client(server)?, KnownServer::default()))
    }

    /// The master that sentinels name. `connect` limits connecting as a whole.
    pub(crate) fn master(
        sentinels: Vec<ConnectionInfo>,
        name: &str,
        template: ConnectionInfo,
        connect: Duration,
    ) -> Result<Self, ConfigError> {
        let clients = sentinels.into_iter().map(client);
        let clients = clients.collect::<Result<_, _>>()?;
        // The rest of the time is for the master.
        let limit = connect / 2;
        Ok(Self::Master(Sentinels::new(clients, name, template, limit)))
    }

    pub(crate) fn member(server: ConnectionInfo, member: Member) -> Result<Self, ConfigError> {
        Ok(Self::Member(client(server)?, member))
    }

    /// Its name in errors.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Server(client, _) | Self::Node(client, _) | Self::Member(client, _) => {
                name_of(client.get_connection_info())
            }
            Self::Master(sentinels) => sentinels.names(),
        }
    }

    /// Connects as this client, at the first of the server's addresses where the right server
    /// answers. `prepare` makes, for each attempt, the receiver of its events and what the caller
    /// keeps with the connection.
    pub(crate) async fn connect<P>(
        &self,
        prepare: &impl Fn() -> (Box<dyn ConnectionEvents>, P),
        addresses: &Addresses,
        context: &ClientContext,
        progress: &Arc<Progress>,
    ) -> Result<(Reached, P), StoreError> {
        let by = context.clock.now() + context.timeouts.connect;
        progress.at(ConnectStep::Reaching);
        let (client, master) = match self {
            Self::Server(client, _) | Self::Member(client, _) => (client.clone(), None),
            Self::Node(client, announced) => {
                progress.note_announced(announced.clone());
                (client.clone(), None)
            }
            Self::Master(sentinels) => {
                progress.note_announced(None);
                let master = sentinels.master(context).await?;
                let reachable = context.addresses.reachable(&master.announced);
                let client = server::client_at(sentinels.template(), &reachable)?;
                progress.note_announced(Some(AnnouncedAddress {
                    by: AnnouncedBy::Sentinels,
                    announced: master.announced.clone(),
                    reachable,
                }));
                (client, Some(master))
            }
        };
        let attempt = |one: OneAddress| {
            let client = &client;
            async move {
                let (events, prepared) = prepare();
                let (reached, run) = self.attempt(client, &one, events, context).await?;
                Ok((reached, run, prepared))
            }
        };
        let made = server::at_one_address(&client, addresses, context, progress, by, attempt);
        let admitted = made.await.and_then(|(mut reached, run, prepared)| {
            if let (Self::Member(_, member), Some(run)) = (self, run) {
                reached.counts_from = Some(member.admit(run)?);
            }
            if let (Self::Server(_, known), Some(found)) = (self, reached.identity.take()) {
                known.note(found);
            }
            reached.master = master;
            Ok((reached, prepared))
        });
        admitted.map_err(|error| error.of(&name_of(client.get_connection_info())))
    }

    /// Connects at one address, and looks whether the right server is there. One that stands still
    /// accepts connections, too.
    async fn attempt(
        &self,
        client: &Client,
        one: &OneAddress,
        events: Box<dyn ConnectionEvents>,
        context: &ClientContext,
    ) -> Result<(Reached, Option<ServerRun>), StoreError> {
        let (events, asking) = (Some(events), context.asking());
        let dialed = dial(client, one.at, events, context, asking, &one.progress).await?;
        let connection = &dialed.connection;
        let hello = Hello::greet(connection, &context.name).await;
        let hello = hello.map_err(|error| match error.kind() {
            ErrorKind::UnexpectedReturnType => {
                unreached::without_resp3("it answers `HELLO 3` with something else")
            }
            _ => errors::store_error(&error),
        })?;
        match self {
            Self::Node(..) => hello.expect_cluster(connection).await?,
            _ => hello.expect_standalone(connection).await?,
        }
        match self {
            Self::Master(_) if hello.is_replica => return Err(demoted()),
            // Without another address it is what the URL names.
            Self::Server(..) | Self::Member(..) if hello.is_replica && !one.is_only() => {
                let error = StoreError::new(StoreErrorKind::ReadOnly, "it is a replica");
                return Err(errors::advised(error));
            }
            _ => {}
        }
        let mut identity = None;
        if let Self::Server(_, known) = self
            && !one.is_only()
        {
            identity = DataHistory::of(connection, one.at).await;
            if let Some(found) = &identity {
                known.check(found, &one.all)?;
            }
        }
        let run = match self {
            Self::Member(_, member) => Some(member.run(connection).await?),
            _ => None,
        };
        let reached = Reached {
            dialed,
            client: Arc::new(server::pinned(client, one.at)?),
            master: None,
            counts_from: None,
            identity,
        };
        Ok((reached, run))
    }

    /// Resolves when a working connection should be given up: the sentinels have chosen another
    /// master, or the connection leads to a replica. A master that was stopped and continues does
    /// not know its successor. It neither reports one nor closes the connection.
    pub(crate) async fn outdated(&self, reached: &Reached, context: &ClientContext) -> StoreError {
        let (clock, command_timeout) = (&context.clock, context.timeouts.command);
        let (Self::Master(sentinels), Some(master)) = (self, &reached.master) else {
            return std::future::pending().await;
        };
        let (reachable, mut silent) = (context.addresses.reachable(&master.announced), false);
        loop {
            clock.sleep_until(clock.now() + MASTER_CHECK).await;
            let by = clock.now() + command_timeout;
            let hello = clock.by(by, Hello::of(&reached.dialed.connection));
            let named = clock.by(by, sentinels.master(context));
            let (hello, named) = tokio::join!(hello, named);
            match named {
                Some(Ok(named)) if !named.is(master) => {
                    let address = context.addresses.reachable(&named.announced);
                    let same = clock.by(by, server::is_one_server(&address, &reachable));
                    // One that can't be resolved is another one.
                    if same.await != Some(true) {
                        let (new, old) = (named.announced, &master.announced);
                        let text =
                            format!("the sentinels have a new master, {new}, instead of {old}");
                        return StoreError::new(StoreErrorKind::Disconnected, text);
                    }
                }
                // Unless a sentinel names another master, the connection may be good.
                _ => {}
            }
            match hello {
                Some(Ok(hello)) if hello.is_replica => return demoted().of(&reachable.to_string()),
                Some(Err(error)) if errors::kind(&error) == StoreErrorKind::Disconnected => {
                    return errors::store_error(&error).of(&reachable.to_string());
                }
                None if silent => {
                    let text = format!("the master {reachable} does not answer");
                    return StoreError::new(StoreErrorKind::Timeout, text);
                }
                None => silent = true,
                Some(_) => silent = false,
            }
        }
    }
}

fn client(info: ConnectionInfo) -> Result<Client, ConfigError> {
    Client::open(info).map_err(|error| {
        let error = errors::store_error(&error);
        ConfigError::new(format!("the store's URL can't be used: {error}"))
    })
}

fn demoted() -> StoreError {
    let text = "it is a replica, and its sentinels have not named a new master yet";
    errors::advised(StoreError::new(StoreErrorKind::ReadOnly, text))
}
