//! The verbs that grant.

use std::iter::once;
use std::time::Instant;

use lock_store::timing::QUEUE_TTL;
use lock_store::{Acquire, Acquired, AcquiredAll, Answer, Failure, Link, Queue, Store};
use redis::{Cmd, FromRedisValue, Value};

use super::names::Shown;
use super::request::Request;
use super::verbs::permits;
use super::{RedisStore, Reply, WrongType, millis, remaining, scripts};

impl RedisStore {
    pub(super) async fn acquire_one(
        &self,
        request: &Acquire,
        by: Instant,
    ) -> Result<Answer<Acquired>, Failure> {
        let plain = request.tokens == 0 && request.claim.share.is_none();
        if plain && request.queue == Queue::Barge && request.instead_of.is_none() {
            let answer = self.set_if_free(request, by).await?;
            return self.confirmed(request, answer, by).await;
        }
        let key = &request.claim.key;
        let listens = request.queue == Queue::Join;
        let acquire = Request::script(self.form(&scripts::ACQUIRE), |command| {
            self.name(command, once(key));
            command
                .arg(Shown(request.claim.owner))
                .arg(millis(request.lease))
                .arg(millis(request.first_lease))
                .arg(request.tokens)
                .arg(mode(request.queue))
                .arg(self.channels(key))
                .arg(millis(QUEUE_TTL));
            if request.claim.share.is_none() && request.instead_of.is_none() {
                return;
            }
            let instead_of = request.instead_of.map(|owner| owner.to_string());
            command
                .arg(permits(request.claim.share))
                .arg(request.claim.share.map_or(0, |share| share.of))
                .arg(instead_of.unwrap_or_default());
        });
        let acquire = acquire.listening(listens.then(|| self.channel(key)));
        let reply: Reply<Vec<Value>> = self.call_via(Some(request.via), key, by, &acquire).await?;
        let answer = reply.map(|value| value.map_or(Acquired::Conflict, acquired));
        self.confirmed(request, answer, by).await
    }

    pub(super) async fn acquire_together(
        &self,
        requests: &[Acquire],
        by: Instant,
    ) -> Result<Answer<AcquiredAll>, Failure> {
        let Some(first) = requests.first() else {
            return Ok(Answer {
                value: AcquiredAll::Granted { tokens: Vec::new() },
                link: self.link(),
            });
        };
        let key = &first.claim.key;
        let keys = requests.iter().map(|request| &request.claim.key);
        if !self.is_together(keys.clone()) {
            return Ok(Answer {
                value: AcquiredAll::Apart,
                link: Link::SEVERAL,
            });
        }
        let reply: Reply<Vec<Value>> = self
            .script(
                Some(first.via),
                by,
                &scripts::ACQUIRE_ALL,
                keys,
                |command| {
                    command
                        .arg(millis(first.lease))
                        .arg(first.tokens)
                        .arg(mode(first.queue))
                        .arg(self.channels(key));
                    for request in requests {
                        command.arg(Shown(request.claim.owner));
                    }
                },
            )
            .await?;
        let answer = reply.map(|value| value.map_or(AcquiredAll::Conflict(0), acquired_all));
        if let AcquiredAll::Granted { .. } = answer.value {
            self.confirm(requests.iter(), answer.link, by).await?;
        }
        Ok(answer)
    }

    /// The classic recipe's one command. A repeat must not come this way: it would say "busy" to the owner itself.
    async fn set_if_free(
        &self,
        request: &Acquire,
        by: Instant,
    ) -> Result<Answer<Acquired>, Failure> {
        let mut set = Cmd::with_capacity(6, 128);
        set.arg("SET")
            .arg(Shown(self.namespace.lock(&request.claim.key)))
            .arg(Shown(request.claim.owner));
        set.arg("NX").arg("PX").arg(millis(request.lease));
        let set = Request::command(set);
        let key = &request.claim.key;
        let reply: Reply<Option<String>> = self.call_via(Some(request.via), key, by, &set).await?;
        Ok(reply.map(|value| match value {
            Err(WrongType) => Acquired::Conflict,
            Ok(Some(_)) => Acquired::Granted { token: None },
            Ok(None) => Acquired::Busy {
                remaining: None,
                queued: false,
            },
        }))
    }

    /// A grant counts when enough replicas have it, if that is asked for.
    async fn confirmed(
        &self,
        request: &Acquire,
        answer: Answer<Acquired>,
        by: Instant,
    ) -> Result<Answer<Acquired>, Failure> {
        if let Acquired::Granted { .. } = answer.value {
            self.confirm(once(request), answer.link, by).await?;
        }
        Ok(answer)
    }
}

fn mode(queue: Queue) -> &'static str {
    match queue {
        Queue::Barge => "barge",
        Queue::Respect => "respect",
        Queue::Join => "join",
    }
}

/// A token is text, because Redis has no number for all of them; an empty one is none.
fn token(value: Value) -> Option<u64> {
    String::from_redis_value(value).ok()?.parse().ok()
}

fn acquired(reply: Vec<Value>) -> Acquired {
    let mut reply = reply.into_iter();
    let mut next = || reply.next().unwrap_or(Value::Nil);
    match next() {
        Value::Int(1) => Acquired::Granted {
            token: token(next()),
        },
        _ => Acquired::Busy {
            remaining: i64::from_redis_value(next()).ok().and_then(remaining),
            queued: next() == Value::Int(1),
        },
    }
}

fn acquired_all(reply: Vec<Value>) -> AcquiredAll {
    let mut reply = reply.into_iter();
    let outcome = reply.next();
    if outcome == Some(Value::Int(1)) {
        return AcquiredAll::Granted {
            tokens: reply.map(token).collect(),
        };
    }
    // Lua counts from one.
    let at = reply.next().and_then(|at| usize::from_redis_value(at).ok());
    let at = at.unwrap_or(1).saturating_sub(1);
    match outcome {
        Some(Value::Int(2)) => AcquiredAll::Conflict(at),
        _ => AcquiredAll::Busy(at),
    }
}
