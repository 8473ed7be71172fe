//! The commands.

use std::time::Duration;

use futures_util::future::join_all;
use lock_store::{
    Acquire, Acquired, Answer, Busy, Claim, Failure, Fenced, FencingToken, Granted, Instant, Link,
    LockKey, Permits, Queue, Release, Released, Renewal, Renewed, StoreError, StoreErrorKind,
};
use redis::{FromRedisValue, Value};

use super::RedissonStore;
use super::names::{self, RedissonNames};
use super::rivals::Sighting;
use crate::commands::renew::renewed_each;
use crate::errors::without_effect;
use crate::resp::Command;
use crate::scripts::{self, Text};
use crate::transport::request::Request;
use crate::wire::{Reply, WrongType, millis, remaining};

/// How long this process lets others go first when it has had a key for its time.
const OTHERS_FIRST: Duration = Duration::from_millis(10);
/// How often a waiter asks that nobody has called. It also keeps its place and its subscription.
const ASKS_AGAIN: Duration = Duration::from_secs(1);
/// A head of a queue that has not listened for this time has died. Redisson itself gives a
/// subscription 7.5 s.
const SILENT_FOR: Duration = Duration::from_secs(8);
/// How much longer a release may take if the server is slow but answers.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a claim is for.
#[derive(Clone, Copy)]
enum Kind {
    Lock,
    ReadWrite { writes: bool },
    Semaphore(u32),
}

fn kind(claim: &Claim) -> Kind {
    match claim.permits {
        None => Kind::Lock,
        Some(permits) if permits.is_read_write() => Kind::ReadWrite {
            writes: permits == Permits::WRITE,
        },
        Some(permits) => Kind::Semaphore(permits.count),
    }
}

fn word(writes: bool) -> &'static str {
    match writes {
        true => "write",
        false => "read",
    }
}

/// A request for an `RLock`, the first time.
fn is_plain(request: &Acquire) -> bool {
    request.queue == Queue::Barge
        && request.tokens == 0
        && request.instead_of.is_none()
        && matches!(kind(&request.claim), Kind::Lock)
}

/// A script with these keys.
fn script<const KEYS: usize>(
    script: &'static Text,
    keys: [&str; KEYS],
    arguments: impl FnOnce(&mut Command),
) -> Request {
    Request::script(script.form(false), |command| {
        command.arg(KEYS);
        for key in keys {
            command.arg(key);
        }
        arguments(command);
    })
}

impl RedissonStore {
    pub(super) fn names(&self, key: &LockKey) -> RedissonNames {
        RedissonNames::of(&self.store.namespace, key)
    }

    async fn done(
        &self,
        key: &LockKey,
        by: Instant,
        request: &Request,
    ) -> Result<Answer<Released>, Failure> {
        let reply: Reply<i64> = self.store.call(key, by, request).await?;
        Ok(reply.map(|value| match value {
            Ok(1) => Released::Released,
            _ => Released::NotHeld,
        }))
    }

    pub(super) async fn take(
        &self,
        request: &Acquire,
        until: Instant,
    ) -> Result<Answer<Acquired>, Failure> {
        let key = &request.claim.key;
        self.store.hear_view(key);
        let now = self.store.clock.now();
        let mut by = until.min(now + self.store.command_timeout);
        let names = self.names(key);
        let field = names::field(request.claim.owner);
        // Where Redisson is, it has its head start.
        if is_plain(request) && !self.rivals.are_expected(key, now) {
            let take = script(&scripts::REDISSON_LOCK_FIRST, [&names.key], |command| {
                command.arg(&*field).arg(millis(request.lease));
            });
            let take = take.repeated().patient(Some(until));
            let reply: Reply<i64> = self.store.call(key, by, &take).await?;
            // If it was not free, who has it is told below; also to a repeat of what was done.
            if matches!(reply.value, Ok(1)) {
                return Ok(reply.map(|_| Acquired::granted(None)));
            }
        }
        let joins = request.queue == Queue::Join;
        let (channel, owner) = match kind(&request.claim) {
            Kind::Lock if request.fair => (
                format!("{}:{field}", names.channel()),
                Some(request.claim.owner),
            ),
            Kind::Lock => (names.channel(), None),
            Kind::ReadWrite { .. } => (names.read_write_channel(), None),
            Kind::Semaphore(_) => (names.semaphore_channel(), None),
        };
        if !request.fair
            && let Some(head_start) = self.rivals.head_start(key, now)
        {
            let most = request.lease.min(until.saturating_duration_since(now)) / 4;
            let sleeps = self.store.clock.sleep_until(now + head_start.min(most));
            sleeps.await;
            by = until.min(self.store.clock.now() + self.store.command_timeout);
            if self
                .channels
                .heard(&channel)
                .is_some_and(|heard| heard > now)
            {
                self.rivals.came(key);
            }
        }
        let take = match kind(&request.claim) {
            Kind::Lock => self.lock(request, &names, &field),
            Kind::ReadWrite { writes } => script(
                &scripts::REDISSON_READ_WRITE,
                [&names.key, &names.reader(&field)],
                |command| {
                    command
                        .arg(&*field)
                        .arg(millis(request.lease))
                        .arg(word(writes));
                },
            ),
            Kind::Semaphore(count) => script(
                &scripts::REDISSON_PERMITS,
                [&names.key, &names.taken()],
                |command| {
                    command
                        .arg(millis(request.lease))
                        .arg(names.semaphore_channel());
                    for id in names::permits(request.claim.owner, count, false) {
                        command.arg(&id[..]);
                    }
                },
            ),
        };
        if joins {
            self.channels.note(&channel, key, owner, now);
        }
        let take = take.repeated().patient(Some(until));
        let take = take.listening(joins.then(|| channel.clone()));
        let reply: Reply<Vec<Value>> = self.store.call(key, by, &take).await?;
        let Answer { value, link, .. } = reply;
        let acquired = match value {
            Err(WrongType) => Acquired::Conflict,
            Ok(reply) => match kind(&request.claim) {
                Kind::Semaphore(_) => semaphore(reply, request)?,
                _ => self.acquired(request, reply, &channel),
            },
        };
        Ok(Answer::new(acquired, link))
    }

    fn lock(&self, request: &Acquire, names: &RedissonNames, field: &str) -> Request {
        let joins = request.queue == Queue::Join;
        let keys = [
            &*names.key,
            &names.counter(),
            &names.queue(),
            &names.timeouts(),
        ];
        script(&scripts::REDISSON_LOCK, keys, |command| {
            command.arg(field).arg(millis(request.lease));
            command.arg(if request.tokens > 0 { "1" } else { "" });
            command.arg(names.channel());
            command.arg(request.instead_of.map_or(String::new(), names::field));
            command.arg(u8::from(joins && !request.fair));
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
            let holder = self.told(&names::holder(&holder, permits));
            busy.holder = Some(holder);
            let key = &request.claim.key;
            let looks = request.queue == Queue::Join && request.claim.permits.is_none();
            let (heard, now) = (self.channels.heard(channel), self.store.clock.now());
            let ends = rest.map(|rest| now + rest);
            let look = looks.then_some(Sighting { now, ends, heard });
            look_early = self.rivals.busy(key, holder, look, now);
        }
        let look_in = rest.map_or(ASKS_AGAIN, |rest| rest + Duration::from_millis(1));
        busy.look_in = Some(look_early.unwrap_or(ASKS_AGAIN).min(look_in));
        if state == Value::Int(2) {
            let now = self.store.clock.now();
            self.rivals.released(&request.claim.key, now);
            self.channels.be_quiet(channel, now + OTHERS_FIRST);
            busy.look_in = Some(OTHERS_FIRST);
        }
        Acquired::Busy(busy)
    }

    pub(super) async fn renew_each(
        &self,
        holds: Vec<Renewal>,
        by: Instant,
    ) -> Result<Answer<Vec<Renewed>>, Failure> {
        let each = holds.iter().map(|hold| self.renew_one(hold, by));
        let each: Vec<Result<Answer<Renewed>, Failure>> = join_all(each).await;
        let link = one_link(&each, self.store.servers.link());
        let each = each.into_iter().map(|one| one.map(|answer| answer.value));
        Ok(Answer::new(renewed_each(each.collect())?, link))
    }

    async fn renew_one(&self, hold: &Renewal, by: Instant) -> Result<Answer<Renewed>, Failure> {
        let claim = &hold.claim;
        let (names, field) = (self.names(&claim.key), names::field(claim.owner));
        let (word, second) = match kind(claim) {
            Kind::Lock => ("lock", names.key.clone()),
            Kind::ReadWrite { .. } => ("read_write", names.reader(&field)),
            Kind::Semaphore(_) => ("permits", names.taken()),
        };
        let renew = script(&scripts::REDISSON_RENEW, [&names.key, &second], |command| {
            command.arg(word).arg(millis(hold.lease));
            match kind(claim) {
                Kind::Semaphore(count) => {
                    for id in names::permits(claim.owner, count, false) {
                        command.arg(&id[..]);
                    }
                }
                _ => _ = command.arg(&*field),
            }
        });
        let reply: Reply<i64> = self.store.call(&claim.key, by, &renew.repeated()).await?;
        Ok(reply.map(|value| match value {
            Ok(1) => Renewed::Renewed,
            _ => Renewed::Gone,
        }))
    }

    pub(super) async fn release_each(
        &self,
        requests: Vec<Release>,
        by: Instant,
    ) -> Result<Answer<Vec<Released>>, Failure> {
        if let [one] = &*requests {
            let ended = self.end(&one.claim, one.keep, false, by).await?;
            return Ok(ended.map(|released| vec![released]));
        }
        let each = requests
            .iter()
            .map(|one| self.end(&one.claim, one.keep, false, by));
        let each = join_all(each).await;
        let link = one_link(&each, self.store.servers.link());
        let each: Result<Vec<_>, _> = each.into_iter().map(|one| one.map(|it| it.value)).collect();
        Ok(Answer::new(each?, link))
    }

    pub(super) async fn abandon_request(
        &self,
        request: Acquire,
        by: Instant,
    ) -> Result<Answer<Released>, Failure> {
        self.end(&request.claim, Duration::ZERO, request.fair, by)
            .await
    }

    /// Ends a hold, and leaves the queue if it may have a place there.
    async fn end(
        &self,
        claim: &Claim,
        keep: Duration,
        leaves: bool,
        by: Instant,
    ) -> Result<Answer<Released>, Failure> {
        let (names, field) = (self.names(&claim.key), names::field(claim.owner));
        let kept = match keep.is_zero() {
            true => String::new(),
            false => names::kept(claim.owner),
        };
        let end = match kind(claim) {
            Kind::Lock => script(
                &scripts::REDISSON_RELEASE,
                [&names.key, &names.queue(), &names.timeouts()],
                |command| {
                    command.arg(&*field).arg(names.channel()).arg(millis(keep));
                    command.arg(&*kept).arg(if leaves { "1" } else { "" });
                },
            ),
            Kind::ReadWrite { writes } => end_read_write(&names, claim, writes, keep, false),
            Kind::Semaphore(count) => end_permits(&names, claim, 0..count, keep),
        };
        self.rivals.released(&claim.key, self.store.clock.now());
        self.done(&claim.key, by, &end.patient(Some(by + PATIENCE)))
            .await
    }

    pub(super) async fn shrink_to(
        &self,
        claim: Claim,
        rest: u32,
        by: Instant,
    ) -> Result<Answer<Released>, Failure> {
        let names = self.names(&claim.key);
        let shrink = match kind(&claim) {
            Kind::Lock => return Ok(Answer::new(Released::NotHeld, self.store.servers.link())),
            Kind::ReadWrite { writes } => {
                end_read_write(&names, &claim, writes, Duration::ZERO, true)
            }
            Kind::Semaphore(count) => {
                // It replies that it is done if it was before.
                let shrink = end_permits(&names, &claim, rest..count, Duration::ZERO);
                let shrunk = self.done(&claim.key, by, &shrink).await?;
                return Ok(Answer::new(Released::Released, shrunk.link));
            }
        };
        self.done(&claim.key, by, &shrink).await
    }

    pub(super) async fn fence_now(
        &self,
        claim: Claim,
        by: Instant,
    ) -> Result<Answer<Fenced>, Failure> {
        let names = self.names(&claim.key);
        if !matches!(kind(&claim), Kind::Lock) {
            let text = "Redisson has no fencing tokens for locks in shares; take an exclusive lock";
            let error = StoreError::new(StoreErrorKind::Refused, text);
            return Err(without_effect(error));
        }
        let fence = script(
            &scripts::REDISSON_FENCE,
            [&names.key, &names.counter()],
            |command| _ = command.arg(names::field(claim.owner)),
        );
        let reply: Reply<String> = self.store.call(&claim.key, by, &fence).await?;
        Ok(reply.map(|value| match value {
            Err(WrongType) => Fenced::Conflict,
            Ok(token) => token.parse().map_or(Fenced::Gone, Fenced::Token),
        }))
    }
}

fn end_read_write(
    names: &RedissonNames,
    claim: &Claim,
    writes: bool,
    keep: Duration,
    becomes_reader: bool,
) -> Request {
    let (field, kept) = (names::field(claim.owner), names::kept(claim.owner));
    script(
        &scripts::REDISSON_READ_WRITE_END,
        [&names.key, &names.reader(&field), &names.reader(&kept)],
        |command| {
            command.arg(&*field).arg(word(writes)).arg(millis(keep));
            command
                .arg(&*kept)
                .arg(names.stem())
                .arg(names.read_write_channel());
            command.arg(if becomes_reader { "1" } else { "" });
        },
    )
}

fn end_permits(
    names: &RedissonNames,
    claim: &Claim,
    which: std::ops::Range<u32>,
    keep: Duration,
) -> Request {
    let count = which.len();
    let ids = |kept| {
        let ids = names::permits(claim.owner, which.end, kept);
        ids.skip(usize::try_from(which.start).unwrap_or(usize::MAX))
    };
    script(
        &scripts::REDISSON_PERMITS_END,
        [&names.key, &names.taken()],
        |command| {
            command
                .arg(names.semaphore_channel())
                .arg(millis(keep))
                .arg(count);
            for id in ids(false).chain(ids(true)) {
                command.arg(&id[..]);
            }
        },
    )
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
            Err(without_effect(error))
        }
        _ => {
            let rest = remaining(next());
            let mut busy = Busy::new(rest, false);
            busy.limit = differs(next());
            let look_in = rest.map_or(ASKS_AGAIN, |rest| rest + Duration::from_millis(1));
            busy.look_in = Some(look_in.min(ASKS_AGAIN));
            Ok(Acquired::Busy(busy))
        }
    }
}

fn text(value: Value) -> String {
    String::from_redis_value(value).unwrap_or_default()
}

/// The link of all answers, if they came over one.
fn one_link<T>(answers: &[Result<Answer<T>, Failure>], of_none: Link) -> Link {
    let mut links = answers.iter().flatten().map(|answer| answer.link);
    let Some(first) = links.next() else {
        return of_none;
    };
    match links.all(|link| link == first) {
        true => first,
        false => Link::SEVERAL,
    }
}
