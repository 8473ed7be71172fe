//! Taking a lock, and what a waiter does until it can.

use std::time::Duration;

use lock_store::timing::recheck_in;
use lock_store::{
    Acquire, Acquired, Answer, Busy, Failure, FencingToken, Granted, Instant, LockKey, Owner,
    Queue, Replied, StoreError, StoreErrorKind,
};
use redis::{FromRedisValue, Value};

use super::RedissonStore;
use super::claim::{RedissonKind, word};
use super::names::{self, RedissonNames};
use super::rivals::Sighting;
use crate::scripts;
use crate::transport::script_or_command::Request;
use crate::wire::{Reply, WrongType, millis, remaining};

/// How long this process lets others go first when it has had a key for its time.
const OTHERS_FIRST: Duration = Duration::from_millis(10);
/// A head of a queue that has not listened for this time has died. Redisson itself gives a
/// subscription 7.5 s.
const SILENT_FOR: Duration = Duration::from_secs(8);

/// A request for an `RLock`, the first time.
fn is_plain(request: &Acquire) -> bool {
    request.queue == Queue::Barge
        && request.tokens == 0
        && request.instead_of.is_none()
        && matches!(RedissonKind::of(&request.claim), RedissonKind::Lock)
}

/// Where a waiter hears of a release, and who alone is called there.
pub(super) fn channel_of(request: &Acquire, names: &RedissonNames) -> (String, Option<Owner>) {
    let owner = request.claim.owner;
    match RedissonKind::of(&request.claim) {
        RedissonKind::Lock if request.fair => {
            let channel = format!("{}:{}", names.channel(), names::field(owner));
            (channel, Some(owner))
        }
        RedissonKind::Lock => (names.channel(), None),
        RedissonKind::ReadWrite { .. } => (names.read_write_channel(), None),
        RedissonKind::Semaphore(_) => (names.semaphore_channel(), None),
    }
}

impl RedissonStore {
    pub(super) async fn take(&self, request: Acquire, until: Instant) -> Replied<Acquired> {
        let request = &request;
        let key = &request.claim.key;
        self.store.subscribe_view(key);
        let now = self.store.clock.now();
        let mut by = until.min(now + self.store.command_timeout);
        let names = self.names(key);
        // Where Redisson is, it has its head start.
        if is_plain(request)
            && !self.rivals.are_expected(key, now)
            && let Some(taken) = self.take_free(request, &names, by, until).await?
        {
            return Ok(taken);
        }
        let (channel, owner) = channel_of(request, &names);
        if !request.fair && self.give_head_start(request, &channel, now, until).await {
            by = until.min(self.store.clock.now() + self.store.command_timeout);
        }
        let joins = request.queue == Queue::Join;
        if joins {
            self.channels.note(&channel, key, owner, now);
        }
        let take = self.build_request(request, &names).repeated();
        let take = take.patient(Some(until));
        let take = take.listening(joins.then(|| channel.clone()));
        let taken = self.call(request, by, &take, &channel).await;
        // Who may have a place without knowing it asks again, or abandons it.
        let may_wait = match &taken {
            Ok(answer) => matches!(answer.value, Acquired::Busy(_)),
            Err(failure) => failure.unknown.is_some(),
        };
        if owner.is_some() && !may_wait {
            self.channels.forget(&channel);
        }
        taken
    }

    async fn call(
        &self,
        request: &Acquire,
        by: Instant,
        take: &Request,
        channel: &str,
    ) -> Replied<Acquired> {
        let reply: Reply<Vec<Value>> = self.store.call(&request.claim.key, by, take).await?;
        let Answer { value, link, .. } = reply;
        let acquired = match value {
            Err(WrongType) => Acquired::Conflict,
            Ok(reply) => match RedissonKind::of(&request.claim) {
                RedissonKind::Semaphore(_) => semaphore(reply, request)?,
                _ => self.acquired(request, reply, channel),
            },
        };
        Ok(Answer::new(acquired, link))
    }

    /// Takes an `RLock` if nobody has it. `None`: not taken. The general script then says by whom,
    /// and recognises a repeated grant.
    async fn take_free(
        &self,
        request: &Acquire,
        names: &RedissonNames,
        by: Instant,
        until: Instant,
    ) -> Result<Option<Answer<Acquired>>, Failure> {
        let claim = &request.claim;
        let take = self.script(&scripts::REDISSON_LOCK_FIRST, [&names.key], |command| {
            let field = names::field(claim.owner);
            command.arg(field).arg(millis(request.lease));
        });
        let take = take.repeated().patient(Some(until));
        let reply: Reply<i64> = self.store.call(&claim.key, by, &take).await?;
        let is_taken = matches!(reply.value, Ok(1));
        Ok(is_taken.then(|| reply.map(|_| Acquired::granted(None))))
    }

    /// Sleeps while Redisson may go first. False if it has no head start now.
    async fn give_head_start(
        &self,
        request: &Acquire,
        channel: &str,
        now: Instant,
        until: Instant,
    ) -> bool {
        let key = &request.claim.key;
        let heard = self.channels.heard(channel);
        let Some(head_start) = self.rivals.head_start(key, heard, now) else {
            return false;
        };
        let others = self
            .store
            .yield_to_others(now, head_start, request.lease, until);
        others.await;
        let heard = self.channels.heard(channel);
        if heard.is_some_and(|heard| heard > now) {
            self.rivals.note_came(key);
        }
        true
    }

    /// The request for all cases.
    fn build_request(&self, request: &Acquire, names: &RedissonNames) -> Request {
        let owner = request.claim.owner;
        let field = names::field(owner);
        match RedissonKind::of(&request.claim) {
            RedissonKind::Lock => self.build_lock_request(request, names, &field),
            RedissonKind::ReadWrite { writes } => {
                let keys = [&*names.key, &names.reader(&field)];
                self.script(&scripts::REDISSON_READ_WRITE, keys, |command| {
                    command.arg(&*field).arg(millis(request.lease));
                    command.arg(word(writes));
                })
            }
            RedissonKind::Semaphore(count) => {
                let keys = [&*names.key, &names.taken()];
                self.script(&scripts::REDISSON_PERMITS, keys, |command| {
                    command.arg(millis(request.lease));
                    command.arg(names.semaphore_channel());
                    for id in names::permits(owner, count, false) {
                        command.arg(&id[..]);
                    }
                })
            }
        }
    }

    fn build_lock_request(&self, request: &Acquire, names: &RedissonNames, field: &str) -> Request {
        let joins = request.queue == Queue::Join;
        let now = self.store.clock.now();
        let keys = [
            &*names.key,
            &names.counter(),
            &names.queue(),
            &names.timeouts(),
        ];
        self.script(&scripts::REDISSON_LOCK, keys, |command| {
            command.arg(field).arg(millis(request.lease));
            command.arg(if request.tokens > 0 { "1" } else { "" });
            command.arg(names.channel());
            command.arg(request.instead_of.map_or(String::new(), names::field));
            // A client that sleeps between its tries does not listen: a listener of ours is enough.
            let expects = self.rivals.are_expected(&request.claim.key, now);
            command.arg(u8::from(joins && !request.fair && !expects));
            command.arg(match (request.fair, joins) {
                (false, _) => "",
                (true, false) => "try",
                (true, true) => "join",
            });
            command.arg(self.silent_head(&request.claim.key));
        })
    }

    /// The head of this queue, if nobody has listened for it for long.
    fn silent_head(&self, key: &LockKey) -> String {
        let now = self.store.clock.now();
        let silent = self.silent.lock();
        match silent.get(key) {
            Some((head, since)) if *since + SILENT_FOR <= now => head.clone(),
            _ => String::new(),
        }
    }

    /// Notes the head of this queue for whom nobody listens; none if it is empty.
    fn note_silent(&self, key: &LockKey, head: String) {
        let now = self.store.clock.now();
        let mut silent = self.silent.lock();
        silent.sweep(|(_, since)| *since + 4 * SILENT_FOR > now);
        match silent.get(key) {
            Some((before, _)) if *before == head => {}
            _ if head.is_empty() => _ = silent.remove(key),
            _ => _ = silent.insert(key.clone(), (head, now)),
        }
    }

    fn acquired(&self, request: &Acquire, reply: Vec<Value>, channel: &str) -> Acquired {
        let mut reply = reply.into_iter();
        let mut next = || reply.next().unwrap_or(Value::Nil);
        if next() == Value::Int(1) {
            let now = self.store.clock.now();
            self.rivals.note_granted(&request.claim.key, now);
            if request.fair {
                // Whoever was the head has had its turn.
                self.note_silent(&request.claim.key, String::new());
            }
            let token = text(next()).parse().ok();
            let token = token.filter(|token| FencingToken::is_valid(*token));
            return Acquired::granted(token);
        }
        let rest = i64::from_redis_value(next()).ok().and_then(remaining);
        let (holder, state) = (text(next()), next());
        let mut busy = Busy::new(rest, state == Value::Int(1));
        if request.fair {
            self.note_silent(&request.claim.key, text(next()));
        }
        let mut look_early = None;
        if !holder.is_empty() {
            let permits = request.claim.permits.map(|permits| permits.count);
            let found = names::parse_holder(&holder, permits);
            self.names.note(&found);
            let holder = found.who();
            busy.holder = Some(holder);
            let key = &request.claim.key;
            let looks = request.queue == Queue::Join && request.claim.permits.is_none();
            let (heard, now) = (self.channels.heard(channel), self.store.clock.now());
            let ends = rest.map(|rest| now + rest);
            let look = looks.then_some(Sighting { now, ends, heard });
            look_early = self.rivals.note_busy(key, holder, look, now);
        }
        busy.look_in = look_early.into_iter().chain([recheck_in(rest)]).min();
        if state == Value::Int(2) {
            let now = self.store.clock.now();
            self.rivals.note_released(&request.claim.key, now);
            self.channels.be_quiet(channel, now + OTHERS_FIRST);
            busy.look_in = Some(OTHERS_FIRST);
        }
        Acquired::Busy(busy)
    }
}

/// What the script for permits has replied.
fn semaphore(reply: Vec<Value>, request: &Acquire) -> Result<Acquired, Failure> {
    let mut reply = reply
        .into_iter()
        .map(|one| i64::from_redis_value(one).unwrap_or(-1));
    let mut next = || reply.next().unwrap_or(-1);
    let differs = |all: i64| {
        let own = request.claim.permits.map(|permits| permits.of);
        u32::try_from(all).ok().filter(|all| Some(*all) != own)
    };
    match next() {
        1 => {
            let mut granted = Granted::new(None, 0);
            granted.limit = differs(next());
            Ok(Acquired::Granted(granted))
        }
        2 => {
            let text = "the number of permits of this semaphore is not set; its limit is in the \
                        store, set it in Redisson (`trySetPermits`)";
            let error = StoreError::new(StoreErrorKind::Refused, text);
            Err(Failure::without_effect(error))
        }
        _ => {
            let rest = remaining(next());
            let mut busy = Busy::new(rest, false);
            busy.limit = differs(next());
            busy.look_in = Some(recheck_in(rest));
            Ok(Acquired::Busy(busy))
        }
    }
}

fn text(value: Value) -> String {
    String::from_redis_value(value).unwrap_or_default()
}
