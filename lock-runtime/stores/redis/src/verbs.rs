//! The verbs of the contract, as commands and scripts.

use std::iter::once;
use std::pin::Pin;
use std::time::{Duration, Instant};

use lock_store::{
    Acquire, Acquired, AcquiredAll, Answer, Asked, Claim, Failure, Fenced, Inspection, LatchCall,
    LatchCounted, LatchFound, LatchSet, Link, LockKey, Queue, RateRequest, Rated, Release,
    Released, Renewal, Renewed, ServerHealth, Share, Store, StoreFuture,
};
use redis::{Cmd, FromRedisValue};

use super::connection::Connected;
use super::names::Shown;
use super::request::Request;
use super::scripts::Text;
use super::{RedisStore, Reply, Servers, WrongType, errors, millis, remaining, scripts};

impl Store for RedisStore {
    fn acquire(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Acquired> {
        Box::pin(async move { self.acquire_one(&request, by).await })
    }

    fn acquire_all(&self, requests: Vec<Acquire>, by: Instant) -> StoreFuture<'_, AcquiredAll> {
        Box::pin(async move { self.acquire_together(&requests, by).await })
    }

    fn renew(&self, holds: Vec<Renewal>, by: Instant) -> StoreFuture<'_, Vec<Renewed>> {
        Box::pin(async move {
            let batch: Vec<&Renewal> = holds.iter().collect();
            if self.is_together(batch.iter().map(|hold| &hold.claim.key)) {
                return self.renew_together(&batch, by).await;
            }
            let parts = self.by_slot(
                &holds,
                |hold| &hold.claim.key,
                |group| Box::pin(async move { self.renew_together(&group, by).await }),
            );
            let parts = parts.await;
            // Those of a node that does not answer must not take the others with them.
            let failed = parts.outcomes.iter().find_map(|one| one.as_ref().err());
            if let Some(failure) = failed
                && parts.outcomes.iter().all(Result::is_err)
            {
                return Err(failure.clone());
            }
            let renewed = |one: Result<Renewed, Failure>| one.unwrap_or(Renewed::Unanswered);
            Ok(Answer {
                value: parts.outcomes.into_iter().map(renewed).collect(),
                link: parts.link,
            })
        })
    }

    fn fence(&self, claim: Claim, by: Instant) -> StoreFuture<'_, Fenced> {
        Box::pin(async move {
            let reply: Reply<Option<String>> = self
                .one(by, &scripts::FENCE, &claim.key, |command| {
                    command.arg(Shown(claim.owner)).arg(permits(claim.share));
                })
                .await?;
            Ok(reply.map(|value| match value {
                Err(WrongType) => Fenced::Conflict,
                Ok(None) => Fenced::Gone,
                Ok(Some(token)) => token.parse().map_or(Fenced::Conflict, Fenced::Token),
            }))
        })
    }

    fn release(&self, requests: Vec<Release>, by: Instant) -> StoreFuture<'_, Vec<Released>> {
        Box::pin(async move {
            let batch: Vec<&Release> = requests.iter().collect();
            if self.is_together(batch.iter().map(|request| &request.claim.key)) {
                return self.release_together(&batch, by).await;
            }
            let parts = self.by_slot(
                &requests,
                |request| &request.claim.key,
                |group| Box::pin(async move { self.release_together(&group, by).await }),
            );
            let parts = parts.await;
            let released: Result<Vec<_>, _> = parts.outcomes.into_iter().collect();
            Ok(Answer {
                value: released?,
                link: parts.link,
            })
        })
    }

    fn shrink(&self, claim: Claim, rest: u32, by: Instant) -> StoreFuture<'_, Released> {
        Box::pin(async move {
            let reply: Reply<i64> = self
                .one(by, &scripts::SHRINK, &claim.key, |command| {
                    command
                        .arg(Shown(claim.owner))
                        .arg(permits(claim.share))
                        .arg(rest)
                        .arg(self.channels(&claim.key));
                })
                .await?;
            Ok(reply.map(|value| value.map_or(Released::NotHeld, released)))
        })
    }

    fn resize(&self, key: LockKey, of: u32, by: Instant) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            let reply: Reply<i64> = self
                .one(by, &scripts::RESIZE, &key, |command| {
                    command.arg(of).arg(self.channels(&key));
                })
                .await?;
            Ok(reply.map(|value| matches!(value, Ok(1))))
        })
    }

    fn abandon(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Released> {
        Box::pin(async move {
            let reply: Reply<i64> = self
                .script(
                    Some(request.via),
                    by,
                    &scripts::ABANDON,
                    once(&request.claim.key),
                    |command| {
                        command
                            .arg(Shown(request.claim.owner))
                            .arg(millis(request.first_lease))
                            .arg(request.tokens)
                            .arg(self.channels(&request.claim.key))
                            .arg(permits(request.claim.share))
                            .arg(request.claim.share.map_or(0, |share| share.of));
                    },
                )
                .await?;
            Ok(reply.map(|value| value.map_or(Released::NotHeld, released)))
        })
    }

    fn inspect(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<Inspection>> {
        Box::pin(async move {
            let reply: Reply<(Option<Vec<u8>>, i64, usize, usize)> =
                self.one(by, &scripts::INSPECT, &key, |_| ()).await?;
            Ok(reply.map(|value| {
                let (holder, pttl, waiting, holders) = value.ok()?;
                Some(Inspection {
                    holder: holder.map(|value| String::from_utf8_lossy(&value).into_owned()),
                    holders,
                    remaining: remaining(pttl),
                    waiting,
                })
            }))
        })
    }

    fn force_release(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<bool>> {
        Box::pin(async move {
            let reply: Reply<i64> = self
                .one(by, &scripts::FORCE_RELEASE, &key, |command| {
                    _ = command.arg(self.channels(&key))
                })
                .await?;
            Ok(reply.map(|value| value.ok().map(|ended| ended == 1)))
        })
    }

    fn rate(&self, request: RateRequest, by: Instant) -> StoreFuture<'_, Rated> {
        Box::pin(self.take_tokens(request, by))
    }

    fn latch_set(
        &self,
        call: LatchCall,
        count: u32,
        ttl: Duration,
        by: Instant,
    ) -> StoreFuture<'_, LatchSet> {
        Box::pin(async move { self.set_latch(&call, count, ttl, by).await })
    }

    fn latch_count_down(&self, call: LatchCall, by: Instant) -> StoreFuture<'_, LatchCounted> {
        Box::pin(async move { self.count_down(&call, by).await })
    }

    fn latch_look(&self, key: LockKey, by: Instant) -> StoreFuture<'_, LatchFound> {
        Box::pin(async move { self.look_at_latch(&key, None, by).await })
    }

    fn latch_wait(&self, place: LatchCall, by: Instant) -> StoreFuture<'_, LatchFound> {
        Box::pin(async move { self.look_at_latch(&place.key, Some(place.owner), by).await })
    }

    fn latch_leave(&self, place: LatchCall, by: Instant) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.leave_latch(&place, by).await })
    }

    fn ping(&self, by: Instant) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let link = match &self.servers {
                Servers::Cluster(cluster) => cluster.ping(by).await?,
                Servers::One(connection) => {
                    let ping = async |mut up: Connected| {
                        redis::cmd("PING").query_async(&mut up.connection).await
                    };
                    let (link, reply) = connection
                        .exchange::<String>(connection.link(), by, ping)
                        .await?;
                    reply.map_err(|error| Failure {
                        error: errors::store_error(&error),
                        unknown: None,
                    })?;
                    link
                }
            };
            Ok(Answer { value: (), link })
        })
    }

    fn connected(&self, by: Instant) -> Asked<'_, ()> {
        Box::pin(self.first_attempt(by))
    }

    fn servers(&self, by: Instant) -> Asked<'_, Vec<ServerHealth>> {
        Box::pin(self.diagnose(by))
    }

    fn log_findings(&self, by: Instant) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(async move {
            if !self.is_diagnosed().await {
                // A failure is told by the first request.
                let _ = self.diagnose(by).await.map(drop);
            }
            self.is_diagnosed().await
        })
    }

    fn link(&self) -> Link {
        match &self.servers {
            Servers::One(connection) => connection.link(),
            Servers::Cluster(_) => Link(0),
        }
    }

    fn link_of(&self, key: &LockKey, queue: Queue) -> Link {
        match &self.servers {
            Servers::One(connection) => connection.link_here(queue == Queue::Join),
            Servers::Cluster(cluster) => cluster.link(self.namespace.slot(key)),
        }
    }

    fn only_hints(&self) -> bool {
        self.replication.is_some()
    }

    fn close(&self) {
        self.servers.close();
        if let Some(replication) = &self.replication {
            replication.close();
        }
    }

    fn is_closed(&self) -> bool {
        match &self.servers {
            Servers::One(connection) => connection.is_closed(),
            Servers::Cluster(cluster) => cluster.is_closed(),
        }
    }
}

impl RedisStore {
    /// Runs a script on the keys of some locks that are together; at least one.
    pub(super) async fn script<'k, T: FromRedisValue>(
        &self,
        via: Option<Link>,
        by: Instant,
        script: &'static Text,
        keys: impl ExactSizeIterator<Item = &'k LockKey> + Clone,
        arguments: impl FnOnce(&mut Cmd),
    ) -> Result<Reply<T>, Failure> {
        let Some(first) = keys.clone().next() else {
            return Ok(Answer {
                value: Err(WrongType),
                link: self.link(),
            });
        };
        let script = Request::script(self.form(script), |command| {
            self.name(command, keys);
            arguments(command);
        });
        self.call_via(via, first, by, &script).await
    }

    /// Runs a script on the keys of one lock.
    async fn one<T: FromRedisValue>(
        &self,
        by: Instant,
        script: &'static Text,
        key: &LockKey,
        arguments: impl FnOnce(&mut Cmd),
    ) -> Result<Reply<T>, Failure> {
        self.script(None, by, script, once(key), arguments).await
    }
}

/// As the scripts have it: none is an exclusive lock.
pub(super) fn permits(share: Option<Share>) -> u32 {
    share.map_or(0, |share| share.permits)
}

pub(super) fn released(reply: i64) -> Released {
    match reply {
        1 => Released::Released,
        _ => Released::NotHeld,
    }
}
