//! Locks in one Redis server (6.0 or later, or one that speaks its protocol, as Valkey).
//!
//! A lock is a plain string, the owner token, with a lease: what every client of the classic recipe
//! (`SET key token NX PX lease`, delete if it is still the token; Redis documentation, *Distributed locks with Redis*)
//! takes and respects. Waiters stand in a sorted set beside it and get the lock handed over by whoever releases it.

mod connection;
mod errors;
mod latch;
pub(crate) mod names;
mod scripts;
mod url;

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use redis::{Client, Cmd, FromRedisValue, RedisError};

use self::connection::{Connected, Connection};
use self::names::Namespace;
use self::scripts::Text;
use super::{
    Acquire, Acquired, Answer, ClientId, Failure, Fenced, Inspection, LatchRequest, Latched, Link,
    Listener, Owner, Queue, Release, Released, Renewal, Renewed, Store, StoreFuture,
};
use crate::clock::Clock;
use crate::config::{QUEUE_TTL, Timeouts};
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
        let info = url::connection_info(url)?;
        let opened = Client::open(info).map_err(|error| {
            LockError::config(format!(
                "the store's URL can't be used: {}",
                errors::store_error(&error)
            ))
        })?;
        let channel = namespace.channel(client);
        let connection = Connection::open(opened, timeouts, channel, clock, listener);
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

    /// Runs a script on the keys of one lock.
    async fn script<T: FromRedisValue>(
        &self,
        by: Instant,
        script: &Text,
        key: &LockKey,
        arguments: impl FnOnce(&mut Cmd),
    ) -> Result<Reply<T>, Failure> {
        let names = self.namespace.names(key);
        self.call(by, async |mut up| {
            invoke(&mut up, script, |command| {
                command
                    .arg(3)
                    .arg(names.lock)
                    .arg(names.queue)
                    .arg(names.fence);
                arguments(command);
            })
            .await
        })
        .await
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

fn released(answer: Reply<i64>) -> Answer<Released> {
    let released = matches!(answer.value, Ok(1));
    Answer {
        value: if released {
            Released::Released
        } else {
            Released::NotHeld
        },
        link: answer.link,
    }
}

impl Store for RedisStore {
    fn acquire(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Acquired> {
        Box::pin(async move {
            if request.queue == Queue::Barge && !request.fence {
                return self.set_if_free(&request, by).await;
            }
            let owner = request.owner.to_string();
            let mode = match request.queue {
                Queue::Barge => "barge",
                Queue::Respect => "respect",
                Queue::Join => "join",
            };
            let names = self.namespace.names(&request.key);
            let answer: Reply<(i64, redis::Value, Option<i64>)> = self
                .call(by, async |mut up| {
                    if request.queue == Queue::Join {
                        self.connection.subscribe(&mut up).await?;
                    }
                    let reply: Vec<redis::Value> = invoke(&mut up, &scripts::ACQUIRE, |command| {
                        command
                            .arg(3)
                            .arg(names.lock)
                            .arg(names.queue)
                            .arg(names.fence);
                        command
                            .arg(owner)
                            .arg(millis(request.lease))
                            .arg(millis(request.first_lease));
                        command.arg(u8::from(request.fence)).arg(mode);
                        command.arg(&self.channels).arg(millis(QUEUE_TTL));
                    })
                    .await?;
                    let mut reply = reply.into_iter();
                    let granted = i64::from_redis_value(reply.next().unwrap_or(redis::Value::Nil))?;
                    let second = reply.next().unwrap_or(redis::Value::Nil);
                    let third = reply.next().map(i64::from_redis_value).transpose()?;
                    Ok((granted, second, third))
                })
                .await?;
            let value = match answer.value {
                Err(WrongType) => Acquired::Conflict,
                Ok((1, token, _)) => {
                    let token = String::from_redis_value(token)
                        .ok()
                        .and_then(|token| token.parse().ok());
                    Acquired::Granted { token }
                }
                Ok((_, pttl, queued)) => Acquired::Busy {
                    remaining: remaining(i64::from_redis_value(pttl).unwrap_or(-1)),
                    queued: queued == Some(1),
                },
            };
            Ok(Answer {
                value,
                link: answer.link,
            })
        })
    }

    fn renew(&self, holds: Vec<Renewal>, by: Instant) -> StoreFuture<'_, Vec<Renewed>> {
        Box::pin(async move {
            let answer: Reply<Vec<i64>> = self
                .call(by, async |mut up| {
                    invoke(&mut up, &scripts::RENEW, |command| {
                        command.arg(holds.len());
                        for hold in &holds {
                            command.arg(self.namespace.lock(&hold.key));
                        }
                        for hold in &holds {
                            command.arg(hold.owner.to_string()).arg(millis(hold.lease));
                        }
                    })
                    .await
                })
                .await?;
            let renewed = |one: &i64| {
                if *one == 1 {
                    Renewed::Renewed
                } else {
                    Renewed::Gone
                }
            };
            let replies = answer
                .value
                .unwrap_or_else(|WrongType| vec![0; holds.len()]);
            Ok(Answer {
                value: replies.iter().map(renewed).collect(),
                link: answer.link,
            })
        })
    }

    fn fence(&self, key: LockKey, owner: Owner, by: Instant) -> StoreFuture<'_, Fenced> {
        Box::pin(async move {
            let answer: Reply<Option<String>> = self
                .script(by, &scripts::FENCE, &key, |command| {
                    _ = command.arg(owner.to_string())
                })
                .await?;
            let value = match answer.value {
                Err(WrongType) => Fenced::Conflict,
                Ok(None) => Fenced::Gone,
                Ok(Some(token)) => token.parse().map_or(Fenced::Conflict, Fenced::Token),
            };
            Ok(Answer {
                value,
                link: answer.link,
            })
        })
    }

    fn release(&self, request: Release, by: Instant) -> StoreFuture<'_, Released> {
        Box::pin(async move {
            let arguments = |command: &mut Cmd| {
                command
                    .arg(request.owner.to_string())
                    .arg(millis(request.keep))
                    .arg(&self.channels);
            };
            self.script(by, &scripts::RELEASE, &request.key, arguments)
                .await
                .map(released)
        })
    }

    fn abandon(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Released> {
        Box::pin(async move {
            let arguments = |command: &mut Cmd| {
                command
                    .arg(request.owner.to_string())
                    .arg(millis(request.first_lease));
                command.arg(u8::from(request.fence)).arg(&self.channels);
            };
            self.script(by, &scripts::ABANDON, &request.key, arguments)
                .await
                .map(released)
        })
    }

    fn inspect(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<Inspection>> {
        Box::pin(async move {
            let answer: Reply<(Option<Vec<u8>>, i64, usize)> =
                self.script(by, &scripts::INSPECT, &key, |_| ()).await?;
            let value = answer.value.ok().map(|(holder, pttl, waiting)| Inspection {
                holder: holder.map(|value| String::from_utf8_lossy(&value).into_owned()),
                remaining: remaining(pttl),
                waiting,
            });
            Ok(Answer {
                value,
                link: answer.link,
            })
        })
    }

    fn force_release(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<bool>> {
        Box::pin(async move {
            let answer: Reply<i64> = self
                .script(by, &scripts::FORCE_RELEASE, &key, |command| {
                    _ = command.arg(&self.channels)
                })
                .await?;
            Ok(Answer {
                value: answer.value.ok().map(|ended| ended == 1),
                link: answer.link,
            })
        })
    }

    fn latch(&self, request: LatchRequest, by: Instant) -> StoreFuture<'_, Latched> {
        Box::pin(async move { self.latch_now(&request, by).await })
    }

    fn ping(&self, by: Instant) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let answer: Reply<String> = self
                .call(by, async |mut up| {
                    redis::cmd("PING").query_async(&mut up.connection).await
                })
                .await?;
            Ok(Answer {
                value: (),
                link: answer.link,
            })
        })
    }

    fn link(&self) -> Link {
        self.connection.link()
    }

    fn close(&self) {
        self.connection.close();
    }

    fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }
}

impl RedisStore {
    /// The classic recipe's one command. A repeat must not come this way: it would say "busy" to the owner itself.
    async fn set_if_free(
        &self,
        request: &Acquire,
        by: Instant,
    ) -> Result<Answer<Acquired>, Failure> {
        let mut set = redis::cmd("SET");
        set.arg(self.namespace.lock(&request.key))
            .arg(request.owner.to_string());
        set.arg("NX").arg("PX").arg(millis(request.lease));
        let answer: Reply<Option<String>> = self
            .call(by, async |mut up| set.query_async(&mut up.connection).await)
            .await?;
        let value = match answer.value {
            Err(WrongType) => Acquired::Conflict,
            Ok(Some(_)) => Acquired::Granted { token: None },
            Ok(None) => Acquired::Busy {
                remaining: None,
                queued: false,
            },
        };
        Ok(Answer {
            value,
            link: answer.link,
        })
    }
}
