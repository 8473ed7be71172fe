//! [`RedisStore`]: a client's handle to its servers. It sends each request to the server that has
//! the lock.

use std::fmt::Write;
use std::iter::once;
use std::sync::Arc;
use std::time::Duration;

use lock_store::{
    Acquire, Answer, ClientId, Clock, ConfigError, Failure, Instant, Link, LockKey, Renewal,
    Renewed, StoreError, StoreErrorKind,
};
use redis::{ConnectionInfo, FromRedisValue};

use crate::config::{Needs, Replicas};
use crate::context::ClientContext;
use crate::diagnosis::findings_log::FindingsLog;
use crate::names::{AsText, GrantChannels, Prefix};
use crate::pollers::Pollers;
use crate::replicas::replication::{Nobody, Replication};
use crate::resp::Command;
use crate::scripts::{Form, Text};
use crate::servers::Servers;
use crate::topology::endpoint::Endpoint;
use crate::topology::members::Member;
use crate::topology::url::Topology;
use crate::transport::client_channels::ClientChannels;
use crate::transport::script_or_command::Request;
use crate::wire::{Reply, WrongType, reply};

/// A longer one takes another allocation.
const USUAL_CHANNEL: usize = 96;

/// The number of keys that a script has for each lock.
pub(crate) const KEYS: usize = 3;

/// A client's handle to its servers.
#[derive(Debug)]
pub(crate) struct RedisStore {
    pub(crate) servers: Servers,
    pub(crate) namespace: Prefix,
    pub(crate) client: ClientId,
    /// The channels on which it hears other clients.
    pub(crate) channels_of_client: Option<Arc<ClientChannels>>,
    /// True if another server takes over when one fails.
    pub(crate) fails_over: bool,
    /// Present if replicas must confirm holds.
    pub(crate) replication: Option<Arc<Replication>>,
    pub(crate) clock: Clock,
    pub(crate) command_timeout: Duration,
    pub(crate) pollers: Pollers,
    /// The findings about the servers' settings that were logged.
    pub(crate) logged: tokio::sync::Mutex<FindingsLog>,
}

impl RedisStore {
    /// Starts to connect, in the background.
    pub(crate) fn open(
        topology: Topology,
        replicas: Option<Replicas>,
        namespace: Prefix,
        client: ClientId,
        context: ClientContext,
    ) -> Result<Self, ConfigError> {
        let channels_of_client = context.channels.clone();
        let (clock, command_timeout) = (context.clock.clone(), context.timeouts.command);
        let servers = Servers::open(topology.clone(), context.clone())?;
        let fails_over = !matches!(topology, Topology::Server(_));
        let replication = replicas.map(|replicas| {
            let policy = replicas.check(context.timeouts.command)?;
            let listener = Nobody::listener();
            let context = ClientContext {
                listener,
                needs: Needs::Confirmation,
                channels: None,
                ..context
            };
            let (clock, timeouts) = (context.clock.clone(), context.timeouts);
            let servers = Servers::open(topology, context)?;
            let namespace = namespace.clone();
            Ok(Replication::new(
                policy, timeouts, clock, servers, namespace,
            ))
        });
        Ok(Self {
            servers,
            namespace,
            client,
            channels_of_client,
            fails_over,
            replication: replication.transpose()?,
            clock,
            command_timeout,
            pollers: Pollers::default(),
            logged: tokio::sync::Mutex::default(),
        })
    }

    /// The handle to one server of a quorum. Starts to connect, in the background.
    pub(crate) fn member(
        server: ConnectionInfo,
        member: Member,
        namespace: Prefix,
        client: ClientId,
        context: ClientContext,
    ) -> Result<Self, ConfigError> {
        let endpoint = Endpoint::member(server, member)?;
        Ok(Self {
            channels_of_client: context.channels.clone(),
            clock: context.clock.clone(),
            command_timeout: context.timeouts.command,
            servers: Servers::one(endpoint, context),
            namespace,
            client,
            fails_over: false,
            replication: None,
            pollers: Pollers::default(),
            // The quorum logs for all of its servers.
            logged: tokio::sync::Mutex::new(FindingsLog::of_another()),
        })
    }

    /// Waits until the first attempt to connect has succeeded or failed; of confirmations, too.
    pub(crate) async fn await_first_attempt(&self, by: Instant) -> Result<(), StoreError> {
        self.servers.await_first_attempt(by).await?;
        match &self.replication {
            Some(replication) => replication.await_first_attempt(by).await,
            None => Ok(()),
        }
    }

    /// Waits until the one server can be reached. An error that waiting does not cure is returned
    /// at once.
    pub(crate) async fn wait_until_reached(&self, by: Instant) -> Result<(), StoreError> {
        match &self.servers {
            Servers::One(connection) => {
                let got = connection.get(by).await;
                got.map(drop).map_err(|failure| failure.error)
            }
            Servers::Cluster(_) => Ok(()),
        }
    }

    /// The slot of a lock, in a cluster.
    pub(crate) fn slot(&self, key: &LockKey) -> Option<u16> {
        self.servers.is_cluster().then(|| self.namespace.slot(key))
    }

    /// True if one command can name all these keys.
    pub(crate) fn is_together<'k>(&self, mut keys: impl Iterator<Item = &'k LockKey>) -> bool {
        let first = keys.next().map(|key| self.slot(key));
        keys.all(|key| Some(self.slot(key)) == first)
    }

    /// The form of a script for these servers.
    pub(crate) fn form(&self, script: &'static Text) -> &'static Form {
        script.form(self.servers.is_cluster())
    }

    /// The common prefix of the channels on which clients hear of this lock.
    pub(crate) fn channel_prefix<'n>(&'n self, key: &'n LockKey) -> GrantChannels<'n> {
        self.namespace.channel_prefix(key, self.slot(key))
    }

    /// The channel on which this client hears of this lock.
    pub(crate) fn channel(&self, key: &LockKey) -> String {
        let mut channel = String::with_capacity(USUAL_CHANNEL);
        let _ = write!(
            channel,
            "{}{:032x}",
            AsText(self.channel_prefix(key)),
            self.client.0
        );
        channel
    }

    /// Adds the keys of some locks to a command, as `lib.lua` expects them.
    pub(crate) fn name<'k>(
        &self,
        command: &mut Command,
        keys: impl ExactSizeIterator<Item = &'k LockKey>,
    ) {
        command.arg(KEYS * keys.len());
        for key in keys {
            let names = self.namespace.names(key);
            command.add_text(names.lock);
            command.add_text(names.queue).add_text(names.fence);
        }
    }

    /// Sends a request to the server that has the lock.
    pub(crate) async fn call<T: FromRedisValue>(
        &self,
        key: &LockKey,
        by: Instant,
        request: &Request,
    ) -> Result<Reply<T>, Failure> {
        let answered = self.servers.exchange(self.slot(key), by, request).await?;
        reply(answered.link, answered.result)
    }

    /// Runs a script on the keys of one lock.
    pub(crate) async fn run_on_lock<T: FromRedisValue>(
        &self,
        by: Instant,
        script: &'static Text,
        key: &LockKey,
        arguments: impl FnOnce(&mut Command),
    ) -> Result<Reply<T>, Failure> {
        self.run_script(by, script, once(key), arguments).await
    }

    /// Runs a script on the keys of some locks that are in one place; at least one lock.
    pub(crate) async fn run_script<'k, T: FromRedisValue>(
        &self,
        by: Instant,
        script: &'static Text,
        keys: impl ExactSizeIterator<Item = &'k LockKey> + Clone,
        arguments: impl FnOnce(&mut Command),
    ) -> Result<Reply<T>, Failure> {
        let Some(first) = keys.clone().next() else {
            return Ok(Answer::new(Err(WrongType), self.servers.link()));
        };
        let script = Request::script(self.form(script), |command| {
            self.name(command, keys);
            arguments(command);
        });
        self.call(first, by, &script).await
    }

    /// Has enough replicas confirm holds that were just granted over a link, if the client asks for
    /// that. All holds are of one slot.
    pub(crate) async fn confirm(
        &self,
        holds: impl Iterator<Item = &Acquire>,
        link: Link,
        by: Instant,
    ) -> Result<(), Failure> {
        let Some(replication) = &self.replication else {
            return Ok(());
        };
        let renewal = |request: &Acquire| Renewal::new(request.claim.clone(), request.lease);
        let holds: Vec<Renewal> = holds.map(renewal).collect();
        let slot = holds.first().and_then(|hold| self.slot(&hold.claim.key));
        let error = match replication.renew(slot, holds, by).await {
            Ok(replies) if replies.iter().all(|one| *one == Renewed::Renewed) => return Ok(()),
            Ok(_) => StoreError::new(
                StoreErrorKind::NotReplicated,
                "it was gone before they confirmed it",
            ),
            Err(failure) => failure.error,
        };
        // The hold exists, and must be ended over the link that it came over.
        Err(Failure::unknown(error, link))
    }
}
