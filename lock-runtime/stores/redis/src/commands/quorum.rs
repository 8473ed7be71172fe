//! The scripts for one server of a quorum, for its part of a lock.

use std::iter::once;
use std::time::Duration;

use lock_store::{Failure, Instant, LockKey, Owner, Released, Replied, StoreError, StoreErrorKind};
use redis::{FromRedisValue, Value};

use super::acquire::token;
use crate::scripts;
use crate::store::RedisStore;
use crate::transport::script_or_command::Request;
use crate::wire::{Reply, WrongType, millis, released, remaining, reply};

/// The request for one server's part.
#[derive(Clone, Debug)]
pub(crate) struct Take {
    pub(crate) key: LockKey,
    pub(crate) owner: Owner,
    /// Zero takes nothing that the owner does not have.
    pub(crate) lease: Duration,
    /// True if the server must propose a fencing token.
    pub(crate) fenced: bool,
    /// True to listen from then on for messages that locks are free.
    pub(crate) listens: bool,
}

/// One server's reply.
#[derive(Clone, Debug)]
pub(crate) enum QuorumTaken {
    /// The owner has the part.
    Granted {
        /// The token that the server proposes.
        next: Option<u64>,
        /// True if the server counts.
        counts: bool,
    },
    /// Another owner has the part.
    Held {
        by: String,
        /// `None` means for ever.
        remaining: Option<Duration>,
    },
    /// The key holds something else.
    Conflict,
}

/// How to end a part of a lock.
#[derive(Clone, Debug)]
pub(crate) struct EndPart {
    pub(crate) key: LockKey,
    pub(crate) owner: Owner,
    /// How much longer the key stays taken.
    pub(crate) keep: Duration,
    /// True to tell waiting clients.
    pub(crate) tell: bool,
}

impl RedisStore {
    /// Takes this server's part of a lock, or returns the owner that has it.
    pub(crate) async fn take(
        &self,
        take: &Take,
        sent: Instant,
        by: Instant,
    ) -> Replied<QuorumTaken> {
        let request = Request::script(self.form(&scripts::QUORUM_TAKE), |command| {
            self.name(command, once(&take.key));
            command
                .arg(take.owner.to_string())
                .arg(millis(take.lease))
                .arg(u8::from(take.fenced));
        });
        let channel = take.listens.then(|| self.namespace.freed(&take.key));
        let (reply, counts): (Reply<Vec<Value>>, _) =
            self.ask(request.listening(channel), sent, by).await?;
        Ok(reply.map(|value| match value {
            Ok(reply) => taken(reply, counts),
            Err(WrongType) => QuorumTaken::Conflict,
        }))
    }

    /// Keeps fencing tokens here, if the owner still has its part and the counter is below them.
    /// Returns true if it did so. If the server does not count, that is an error instead.
    pub(crate) async fn confirm_token(
        &self,
        key: &LockKey,
        owner: Owner,
        token: u64,
        tokens: u32,
        sent: Instant,
        by: Instant,
    ) -> Result<bool, Failure> {
        let request = Request::script(self.form(&scripts::QUORUM_CONFIRM), |command| {
            self.name(command, once(key));
            command.arg(owner.to_string()).arg(token).arg(tokens);
        });
        let (reply, counts): (Reply<i64>, _) = self.ask(request, sent, by).await?;
        let kept = matches!(reply.value, Ok(1));
        if kept && !counts {
            return Err(Failure::without_effect(does_not_count_yet()));
        }
        Ok(kept)
    }

    /// Ends this server's part of a lock.
    pub(crate) async fn end(&self, end: &EndPart, by: Instant) -> Replied<Released> {
        let channel = end.tell.then(|| self.namespace.freed(&end.key));
        let reply: Reply<i64> = self
            .run_script(by, &scripts::QUORUM_END, once(&end.key), |command| {
                command
                    .arg(end.owner.to_string())
                    .arg(millis(end.keep))
                    .arg(channel.unwrap_or_default())
                    .arg(end.key.as_str());
            })
            .await?;
        Ok(reply.map(released))
    }

    /// Sends a request made at `sent`. Returns whether the server counted at that time.
    async fn ask<T: FromRedisValue>(
        &self,
        request: Request,
        sent: Instant,
        by: Instant,
    ) -> Result<(Reply<T>, bool), Failure> {
        let answered = self.servers.exchange(None, by, &request).await?;
        let counts = answered.counts_from.is_some_and(|from| sent >= from);
        Ok((reply(answered.link, answered.result)?, counts))
    }
}

fn taken(reply: Vec<Value>, counts: bool) -> QuorumTaken {
    let mut reply = reply.into_iter();
    let mut next = || reply.next().unwrap_or(Value::Nil);
    let granted = next() == Value::Int(1);
    let first = next();
    if granted {
        return QuorumTaken::Granted {
            next: token(first),
            counts,
        };
    }
    QuorumTaken::Held {
        by: match next() {
            Value::BulkString(holder) => String::from_utf8_lossy(&holder).into_owned(),
            _ => String::new(),
        },
        remaining: i64::from_redis_value(first).ok().and_then(remaining),
    }
}

/// The error if a server that was restarted recently grants.
pub(crate) fn does_not_count_yet() -> StoreError {
    let text = "it was started recently, and does not count yet";
    StoreError::new(StoreErrorKind::Loading, text)
}
