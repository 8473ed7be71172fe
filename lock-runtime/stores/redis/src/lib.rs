//! Locks in Redis (6.0 or later, or one that speaks its protocol, as Valkey).
//!
//! A lock is a plain string, the owner token, with a lease: what every client of the classic recipe
//! (`SET key token NX PX lease`, delete if it is still the token; Redis documentation, *Distributed locks with Redis*)
//! takes and respects. A lock that is held in shares is a sorted set. Waiters stand in another one beside it and get the
//! lock handed over by whoever releases it.

mod acquire;
mod batch;
mod cluster;
mod config;
mod connection;
mod diagnosis;
mod errors;
mod latch;
mod names;
mod node;
mod open;
mod options;
mod quorum;
mod rate;
mod replication;
mod request;
mod roster;
mod scripts;
mod sentinel;
mod slots;
mod target;
mod url;
mod verbs;

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use lock_store::timing::Timeouts;
use lock_store::{
    Acquire, Answer, ClientId, Clock, ConfigError, Failure, Link, Listener, LockKey, Renewal,
    Renewed, StoreError, StoreErrorKind,
};
use redis::{Cmd, FromRedisValue, RedisError};

use self::cluster::Cluster;
use self::connection::{Connected, Connection};
use self::names::{Channels, Prefix, Shown};
use self::replication::{Nobody, Replication};
use self::request::Request;
use self::scripts::{Form, Text};

pub use self::config::Replicas;
pub use self::open::{Settings, open};

/// A client's handle to its servers.
#[derive(Debug)]
struct RedisStore {
    servers: Servers,
    namespace: Prefix,
    client: ClientId,
    /// If replicas are to confirm holds.
    replication: Option<Arc<Replication>>,
    /// Whether what the servers say of themselves was logged.
    logged: tokio::sync::Mutex<bool>,
}

#[derive(Debug)]
enum Servers {
    /// Every lock is in the same one at a time.
    One(Arc<Connection>),
    /// Each slot's locks are in one node.
    Cluster(Arc<Cluster>),
}

impl Servers {
    fn open(
        url: &str,
        timeouts: Timeouts,
        clock: Clock,
        listener: Weak<dyn Listener>,
    ) -> Result<Self, ConfigError> {
        Ok(match url::Address::parse(url)? {
            url::Address::Cluster { seeds, template } => {
                let cluster = Cluster::open(seeds, template, timeouts, clock, listener);
                Self::Cluster(cluster)
            }
            address => {
                let (target, numbers) = (address.target(timeouts.connect)?, Arc::default());
                let connection = Connection::open(target, timeouts, numbers, clock, listener, None);
                Self::One(connection)
            }
        })
    }

    fn close(&self) {
        match self {
            Self::One(connection) => connection.close(),
            Self::Cluster(cluster) => cluster.close(),
        }
    }
}

impl RedisStore {
    /// Reads the URL and starts to connect, in the background. `replicas` can be in the URL instead.
    pub(crate) fn open(
        url: &str,
        timeouts: Timeouts,
        namespace: Prefix,
        client: ClientId,
        listener: Weak<dyn Listener>,
        clock: Clock,
        replicas: Option<Replicas>,
    ) -> Result<Self, ConfigError> {
        let (url, in_url) = options::split(url)?;
        if in_url.is_some() && replicas.is_some() {
            return Err(ConfigError::new(
                "`replicas` is given by the builder and in the store's URL; leave one of them out",
            ));
        }
        let replicas = replicas.or(in_url);
        let replicas = replicas.map(|replicas| replicas.check(timeouts.command));
        let open = |listener| Servers::open(&url, timeouts, clock.clone(), listener);
        let servers = open(listener)?;
        let replication = replicas.transpose()?.map(|policy| {
            let (servers, namespace) = (open(Nobody::listens())?, namespace.clone());
            let clock = clock.clone();
            Ok(Replication::new(
                policy, timeouts, clock, servers, namespace,
            ))
        });
        Ok(Self {
            servers,
            namespace,
            client,
            replication: replication.transpose()?,
            logged: tokio::sync::Mutex::default(),
        })
    }

    /// Waits until the first attempt to connect has succeeded or failed.
    pub(crate) async fn first_attempt(&self, by: Instant) -> Result<(), StoreError> {
        match &self.servers {
            Servers::One(connection) => connection.first_attempt(by).await,
            Servers::Cluster(cluster) => cluster.first_attempt(by).await,
        }
    }

    /// A script as these servers want it.
    fn form(&self, script: &'static Text) -> &'static Form {
        script.form(matches!(self.servers, Servers::Cluster(_)))
    }

    /// What the channels begin with on which the clients hear of this lock.
    fn channels(&self, key: &LockKey) -> Shown<Channels<'_>> {
        Shown(self.namespace.channels(self.slot(key)))
    }

    /// The channel on which this client hears of this lock.
    fn channel(&self, key: &LockKey) -> String {
        format!("{}{:032x}", self.channels(key), self.client.0)
    }

    /// Sends a request to the server that has the lock, over the caller's link.
    async fn call<T: FromRedisValue>(
        &self,
        key: &LockKey,
        by: Instant,
        request: &Request,
    ) -> Result<Reply<T>, Failure> {
        self.call_via(None, key, by, request).await
    }

    /// The same over this link, if it is still there.
    async fn call_via<T: FromRedisValue>(
        &self,
        via: Option<Link>,
        key: &LockKey,
        by: Instant,
        request: &Request,
    ) -> Result<Reply<T>, Failure> {
        let (link, result) = match &self.servers {
            Servers::One(connection) => {
                let exchange = async |mut up: Connected| request.run(&mut up, false).await;
                let via = match via {
                    Some(via) => via,
                    None if request.listens() => connection.link(),
                    None => connection.link_here(false),
                };
                connection.exchange(via, by, exchange).await?
            }
            Servers::Cluster(cluster) => {
                let slot = self.namespace.slot(key);
                Box::pin(cluster.exchange(slot, by, request)).await?
            }
        };
        reply(link, result)
    }

    /// Has enough replicas confirm holds that were just granted over a link, if that is asked for. All of one slot.
    async fn confirm(
        &self,
        holds: impl Iterator<Item = &Acquire>,
        link: Link,
        by: Instant,
    ) -> Result<(), Failure> {
        let Some(replication) = &self.replication else {
            return Ok(());
        };
        let renewal = |request: &Acquire| Renewal {
            claim: request.claim.clone(),
            lease: request.lease,
        };
        let holds: Vec<Renewal> = holds.map(renewal).collect();
        let slot = holds.first().and_then(|hold| self.slot(&hold.claim.key));
        let error = match replication.renew(slot, holds, by).await {
            Ok(replies) if replies.iter().all(|one| *one == Renewed::Renewed) => return Ok(()),
            Ok(_) => StoreError::new(
                StoreErrorKind::NotReplicated,
                "it was gone before they had it",
            ),
            Err(failure) => failure.error,
        };
        // The hold is there and must be ended, over the link that it came over.
        let unknown = Some(link);
        Err(Failure { error, unknown })
    }

    /// The keys of some locks, as `lib.lua` expects them.
    fn name<'k>(&self, command: &mut Cmd, keys: impl ExactSizeIterator<Item = &'k LockKey>) {
        command.arg(3 * keys.len());
        for key in keys {
            let names = self.namespace.names(key);
            command.arg(Shown(names.lock));
            command.arg(Shown(names.queue)).arg(Shown(names.fence));
        }
    }
}

/// What a server's answer means.
fn reply<T>(link: Link, result: Result<T, RedisError>) -> Result<Reply<T>, Failure> {
    match result {
        Ok(value) => Ok(Answer {
            value: Ok(value),
            link,
        }),
        Err(error) if errors::is_wrong_type(&error) => Ok(Answer {
            value: Err(WrongType),
            link,
        }),
        Err(error) => {
            let unknown = errors::may_have_acted(&error).then_some(link);
            Err(Failure {
                error: errors::store_error(&error),
                unknown,
            })
        }
    }
}

/// What a script of a lock replied, and over which link.
type Reply<T> = Answer<Result<T, WrongType>>;

/// A key of ours holds another type, or a fence counter that is no number.
struct WrongType;

fn millis(duration: Duration) -> u64 {
    // Rounded up: a hold never has less than it asked for, and zero would delete the key.
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// `PTTL`'s reply: -1 is a key without TTL, -2 no key.
fn remaining(pttl: i64) -> Option<Duration> {
    u64::try_from(pttl).ok().map(Duration::from_millis)
}
