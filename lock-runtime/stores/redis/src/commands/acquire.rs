//! `SET NX`, and the script that grants one lock or queues for it.

use std::iter::once;

use lock_store::timing::QUEUE_TTL;
use lock_store::{
    Acquire, Acquired, Answer, Busy, Failure, FencingToken, Granted, Holder, Instant, LockKey,
    Owner, Permits, Queue, Replied,
};
use redis::{FromRedisValue, ParsingError, Value};

use crate::resp::Command;
use crate::scripts;
use crate::store::{KEYS, RedisStore};
use crate::transport::script_or_command::Request;
use crate::wire::{Reply, WrongType, millis, remaining};

/// What merged requests have in common: lease, mode, channel prefix and the queue's time to live.
const SHARED_ARGUMENTS: usize = 4;

/// How a request goes on when programs without a queue had their turns.
struct TurnsTaken {
    /// The hold that it still replaces.
    instead_of: Option<Owner>,
    /// From when its own command's time counts.
    sent: Instant,
    /// Such a program may have the key first.
    is_after_others: bool,
}

impl RedisStore {
    pub(crate) async fn acquire_one(&self, request: Acquire, until: Instant) -> Replied<Acquired> {
        let key = &request.claim.key;
        self.subscribe_view(key);
        let TurnsTaken {
            instead_of,
            sent,
            is_after_others,
        } = self.take_turns(&request, until).await?;
        let by = until.min(sent + self.command_timeout);
        let queue = match request.queue {
            Queue::Barge if is_after_others => Queue::Respect,
            queue => queue,
        };
        let plain = request.claim.permits.is_none() && request.tokens == 0;
        if plain && queue == Queue::Barge && instead_of.is_none() {
            let answer = self.set_if_free(&request, by, until).await?;
            return self.note_and_confirm(&request, answer, by).await;
        }
        let by_script = self.acquire_by_script(&request, queue, instead_of, by, until);
        Box::pin(by_script).await
    }

    async fn acquire_by_script(
        &self,
        request: &Acquire,
        queue: Queue,
        instead_of: Option<Owner>,
        mut by: Instant,
        until: Instant,
    ) -> Replied<Acquired> {
        let key = &request.claim.key;
        let script = |may_be_merged| {
            let acquire = self.acquire_script(request, queue, instead_of, may_be_merged);
            let listens = request.queue == Queue::Join;
            let acquire = acquire.repeated().patient(Some(until));
            acquire.listening(listens.then(|| self.channel(key)))
        };
        // Only a first try, or a fair one, mostly finds the lock free; so only these are merged.
        let mostly_free = queue == Queue::Barge || request.fair;
        let may_be_merged = request.claim.permits.is_none()
            && mostly_free
            && instead_of.is_none()
            && !self.servers.is_cluster();
        let mut reply: Reply<AcquireReply> = self.call(key, by, &script(may_be_merged)).await?;
        if matches!(reply.value, Ok(AcquireReply::Undecided)) {
            by = until.min(self.clock.now() + self.command_timeout);
            let link = reply.link;
            let alone = self.call(key, by, &script(false)).await;
            // The first may have given it a place.
            reply = alone.map_err(|failure| {
                let unknown = failure.unknown.or(Some(link));
                Failure::new(failure.error, unknown)
            })?;
        }
        if let Ok(AcquireReply::Listed(list)) = &reply.value
            && let [Value::Int(1), _, _, Value::Int(rest)] = list[..]
        {
            self.serve_the_rest(key, rest, by).await;
        }
        let acquired = |reply| acquired(reply, request.tokens);
        let answer = reply.map(|value| value.map_or(Acquired::Conflict, acquired));
        self.note_and_confirm(request, answer, by).await
    }

    /// Lets programs without a queue have their turns at the key.
    async fn take_turns(&self, request: &Acquire, until: Instant) -> Result<TurnsTaken, Failure> {
        let (key, now) = (&request.claim.key, self.clock.now());
        let mut instead_of = request.instead_of;
        if self.is_shared(key) {
            if request.fair {
                self.pollers.note_fair(key, now);
            }
            if instead_of.is_some() {
                self.pollers.note_wanted(key, now);
            }
        }
        let mut sent = now;
        if let Some(owner) = instead_of
            && let Some(free_until) = self.pollers.end_turn(key, now)
        {
            let by = until.min(now + self.command_timeout);
            Box::pin(self.leave_free(key, owner, free_until, by, until)).await?;
            instead_of = None;
            sent = self.clock.now();
        }
        let is_after_others = self.leave_alone(key, request.lease, until).await;
        if is_after_others {
            sent = self.clock.now();
        }
        Ok(TurnsTaken {
            instead_of,
            sent,
            is_after_others,
        })
    }

    fn acquire_script(
        &self,
        request: &Acquire,
        queue: Queue,
        instead_of: Option<Owner>,
        may_be_merged: bool,
    ) -> Request {
        let (key, owner) = (&request.claim.key, request.claim.owner);
        Request::script(self.form(&scripts::ACQUIRE), |command| {
            self.name(command, once(key));
            command
                .arg(millis(request.lease))
                .arg(mode(queue))
                .add_text(self.channel_prefix(key))
                .arg(millis(QUEUE_TTL))
                .arg(rest_of_place(request))
                .add_text(owner);
            match instead_of {
                Some(owner) => _ = command.add_text(owner),
                None if may_be_merged => {
                    command.mark_mergeable_request(owner.request, KEYS, SHARED_ARGUMENTS)
                }
                None => command.mark_request(owner.request),
            }
        })
    }

    /// Whether other programs may have locks of this name.
    fn is_shared(&self, key: &LockKey) -> bool {
        self.namespace.of(key).as_str().is_empty()
    }

    /// Notes whose turn it is at the key, beside clients without a queue.
    fn note_turns(&self, request: &Acquire, acquired: &Acquired) {
        let key = &request.claim.key;
        match acquired {
            _ if request.claim.permits.is_some() => {}
            Acquired::Granted(_) if !self.pollers.has_any() => {}
            Acquired::Granted(_) => self.pollers.note_granted(key, self.clock.now()),
            Acquired::Busy(busy) => {
                if let Some(holder) = busy.holder {
                    let now = self.clock.now();
                    self.pollers
                        .note_busy(key, holder, self.is_shared(key), now);
                }
            }
            Acquired::Conflict => {}
        }
    }

    /// The single command of the classic recipe. A repeated request must not use it: the owner
    /// itself would be told "busy".
    async fn set_if_free(
        &self,
        request: &Acquire,
        by: Instant,
        until: Instant,
    ) -> Replied<Acquired> {
        let mut set = Command::new("SET");
        set.add_text(self.namespace.lock(&request.claim.key))
            .add_text(request.claim.owner);
        set.arg("NX").arg("PX").arg(millis(request.lease));
        set.mark_request(request.claim.owner.request);
        let set = Request::command(set);
        let set = set.repeated().patient(Some(until));
        let key = &request.claim.key;
        let reply: Reply<IsSet> = self.call(key, by, &set).await?;
        Ok(reply.map(|value| match value {
            Err(WrongType) => Acquired::Conflict,
            Ok(IsSet(true)) => Acquired::granted(None),
            Ok(IsSet(false)) => Acquired::busy(None, false),
        }))
    }

    /// Notes whose turn it is. A grant counts when enough replicas confirm it, if the client asks
    /// for that.
    async fn note_and_confirm(
        &self,
        request: &Acquire,
        answer: Answer<Acquired>,
        by: Instant,
    ) -> Replied<Acquired> {
        self.note_turns(request, &answer.value);
        if let (Acquired::Granted(_), true) = (&answer.value, self.replication.is_some()) {
            Box::pin(self.confirm(once(request), answer.link, by)).await?;
        }
        Ok(answer)
    }
}

pub(super) fn mode(queue: Queue) -> &'static str {
    match queue {
        Queue::Barge => "barge",
        Queue::Respect => "respect",
        Queue::Join => "join",
    }
}

/// A token is text, because Redis numbers can't hold every token. Empty text means no token.
pub(super) fn token(value: Value) -> Option<u64> {
    // The redis crate would make a long text of why it is none.
    if value == Value::Nil {
        return None;
    }
    let token = String::from_redis_value(value).ok()?.parse().ok();
    token.filter(|token| FencingToken::is_valid(*token))
}

/// A place without its owner, see `lib.lua`.
pub(super) fn rest_of_place(request: &Acquire) -> String {
    let first_lease = millis(request.first_lease);
    // Zero means without end.
    let wait = request.wait.map_or(0, |wait| millis(wait).max(1));
    match (request.claim.permits, request.tokens) {
        (None, 0) => format!("{first_lease}:{wait}"),
        (None, tokens) => format!("{first_lease}:{wait}:{tokens}"),
        (Some(Permits { count, of }), tokens) => {
            format!("{first_lease}:{wait}:{tokens}:{count}:{of}")
        }
    }
}

/// The reply of `SET NX`. A proxy may send its `OK` as a bulk string.
#[derive(Debug, PartialEq)]
struct IsSet(bool);

impl FromRedisValue for IsSet {
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        match value {
            Value::BulkString(text) if text == b"OK" => Ok(Self(true)),
            value => bool::from_redis_value(value).map(Self),
        }
    }
}

/// The reply of the script that grants one lock.
enum AcquireReply {
    /// The lock was free, and nobody waited. The token, or nil.
    Free(Value),
    Listed(Vec<Value>),
    /// It was asked for together with others, and was not free. It may have a place.
    Undecided,
}

impl FromRedisValue for AcquireReply {
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        match value {
            Value::Int(1) => Ok(Self::Free(Value::Nil)),
            Value::BulkString(_) => Ok(Self::Free(value)),
            Value::Nil => Ok(Self::Undecided),
            list => Vec::from_redis_value(list).map(Self::Listed),
        }
    }
}

fn acquired(reply: AcquireReply, reserved: u32) -> Acquired {
    let mut reply = match reply {
        AcquireReply::Free(value) => {
            return Acquired::Granted(Granted::new(token(value), reserved));
        }
        AcquireReply::Listed(list) => list.into_iter(),
        AcquireReply::Undecided => return Acquired::busy(None, false),
    };
    let mut next = || reply.next().unwrap_or(Value::Nil);
    match next() {
        Value::Int(1) => {
            let mut granted = Granted::new(token(next()), reserved);
            granted.limit = limit(&next());
            Acquired::Granted(granted)
        }
        _ => {
            let remaining = i64::from_redis_value(next()).ok().and_then(remaining);
            let mut busy = Busy::new(remaining, next() == Value::Int(1));
            busy.holder = holder(next());
            busy.limit = limit(&next());
            Acquired::Busy(busy)
        }
    }
}

/// An empty value means no holder.
fn holder(value: Value) -> Option<Holder> {
    let value = Vec::<u8>::from_redis_value(value).ok()?;
    (!value.is_empty()).then(|| Holder::parse(&value))
}

/// Mostly there is none.
fn limit(value: &Value) -> Option<u32> {
    match value {
        Value::Int(limit) => u32::try_from(*limit).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ok_is_a_grant_as_a_simple_string_and_as_a_bulk_string() {
        for (reply, is_set) in [
            (Value::Okay, Some(true)),
            (Value::BulkString(b"OK".to_vec()), Some(true)),
            (Value::Nil, Some(false)),
            (Value::BulkString(b"QUEUED".to_vec()), None),
        ] {
            let read = IsSet::from_redis_value(reply.clone()).ok();
            assert_eq!(read, is_set.map(IsSet), "{reply:?}");
        }
    }
}
