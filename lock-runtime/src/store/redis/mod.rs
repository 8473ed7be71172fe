//! Locks in one Redis server (6.0 or later, or one that speaks its protocol, as Valkey).
//!
//! A lock is a plain string, the owner token, with a lease: what every client of the classic recipe
//! (`SET key token NX PX lease`, delete if it is still the token; Redis documentation, *Distributed locks with Redis*)
//! takes and respects. A lock that is held in shares is a sorted set. Waiters stand in another one beside it and get the
//! lock handed over by whoever releases it.

mod connection;
mod errors;
mod latch;
pub(crate) mod names;
mod rate;
mod scripts;
mod sentinel;
mod target;
mod url;
mod verbs;

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use redis::{Cmd, FromRedisValue, RedisError};

use self::connection::{Connected, Connection};
use self::names::Namespace;
use self::scripts::Text;
#[cfg(feature = "test-util")]
use super::Store;
use super::{Answer, ClientId, Failure, Listener};
use crate::clock::Clock;
use crate::config::Timeouts;
use crate::error::{LockError, StoreError};
use crate::key::LockKey;

/// A client's handle to one server.
#[derive(Debug)]
pub struct RedisStore {
    connection: Arc<Connection>,
    namespace: Namespace,
    channels: String,
}

impl RedisStore {
    /// A store for this project's own tests, without a client around it.
    ///
    /// # Errors
    /// [`LockError::Config`] for a bad URL or namespace.
    #[cfg(feature = "test-util")]
    pub fn connect(
        url: &str,
        namespace: &str,
        client: ClientId,
        listener: &Arc<dyn Listener>,
        clock: Clock,
    ) -> Result<Arc<dyn Store>, LockError> {
        let (timeouts, namespace) = (Timeouts::default(), Namespace::new(namespace)?);
        let store = Self::open(
            url,
            timeouts,
            namespace,
            client,
            Arc::downgrade(listener),
            clock,
        )?;
        Ok(Arc::new(store))
    }

    /// Reads the URL and starts to connect, in the background.
    pub(crate) fn open(
        url: &str,
        timeouts: Timeouts,
        namespace: Namespace,
        client: ClientId,
        listener: Weak<dyn Listener>,
        clock: Clock,
    ) -> Result<Self, LockError> {
        let target = url::Address::parse(url)?.target(timeouts.connect)?;
        let channel = namespace.channel(client);
        let connection = Connection::open(target, timeouts, channel, clock, listener);
        let channels = namespace.channels();
        Ok(Self {
            connection,
            namespace,
            channels,
        })
    }

    /// Waits until the first attempt to connect has succeeded or failed.
    pub(crate) async fn first_attempt(&self, by: Instant) -> Result<(), StoreError> {
        self.connection.first_attempt(by).await
    }

    /// Runs one command, or a script's two.
    async fn call<T: FromRedisValue>(
        &self,
        by: Instant,
        exchange: impl AsyncFnOnce(Connected) -> Result<T, RedisError>,
    ) -> Result<Reply<T>, Failure> {
        let (link, result) = self.connection.exchange(by, exchange).await?;
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

    /// Runs a script on the keys of some locks.
    async fn script<'k, T: FromRedisValue>(
        &self,
        by: Instant,
        script: &Text,
        keys: impl ExactSizeIterator<Item = &'k LockKey>,
        arguments: impl FnOnce(&mut Cmd),
    ) -> Result<Reply<T>, Failure> {
        self.call(by, async |mut up| {
            invoke(&mut up, script, |command| {
                self.name(command, keys);
                arguments(command);
            })
            .await
        })
        .await
    }

    /// The keys of some locks, as `lib.lua` expects them.
    fn name<'k>(&self, command: &mut Cmd, keys: impl ExactSizeIterator<Item = &'k LockKey>) {
        command.arg(3 * keys.len());
        for key in keys {
            let names = self.namespace.names(key);
            command.arg(names.lock).arg(names.queue).arg(names.fence);
        }
    }
}

/// What a script of a lock replied, and over which link.
type Reply<T> = Answer<Result<T, WrongType>>;

/// A key of ours holds another type, or a fence counter that is no number.
struct WrongType;

/// Runs a script by its hash, and by its text where the server does not know it.
async fn invoke<T: FromRedisValue>(
    up: &mut Connected,
    script: &Text,
    arguments: impl FnOnce(&mut Cmd),
) -> Result<T, RedisError> {
    let mut rest = Cmd::new();
    arguments(&mut rest);
    let command = |name: &str, script: &str| {
        let mut command = redis::cmd(name);
        command.arg(script);
        for argument in rest.args_iter() {
            if let redis::Arg::Simple(argument) = argument {
                command.arg(argument);
            }
        }
        command
    };
    match command("EVALSHA", &script.hash)
        .query_async(&mut up.connection)
        .await
    {
        Err(error) if errors::is_no_script(&error) => {
            command("EVAL", script.code)
                .query_async(&mut up.connection)
                .await
        }
        reply => reply,
    }
}

fn millis(duration: Duration) -> u64 {
    // Rounded up: a hold never has less than it asked for, and zero would delete the key.
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// `PTTL`'s reply: -1 is a key without TTL, -2 no key.
fn remaining(pttl: i64) -> Option<Duration> {
    u64::try_from(pttl).ok().map(Duration::from_millis)
}
