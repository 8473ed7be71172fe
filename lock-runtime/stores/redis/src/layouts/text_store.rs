//! [`TextStore`]: locks that are one text each, as old libraries keep them: alone, without a queue,
//! and nobody tells of a release.

use std::fmt;
use std::time::Duration;

use futures_util::future::join_all;
use lock_store::{
    Acquire, Acquired, Asked, Busy, Capabilities, Claim, ForeignNames, FoundHolder, Holder,
    Instant, Link, LockFound, LockKey, Owner, Release, Released, Renewal, Renewed, Replied, Store,
    StoreFuture,
};
use redis::{FromRedisValue, ParsingError, Value};

use crate::commands::by_slot::BatchOutcomes;
use crate::config::RELEASE_PATIENCE;
use crate::random;
use crate::resp::Command;
use crate::scripts::Text;
use crate::servers::Servers;
use crate::store::RedisStore;
use crate::topology::key_slot::slot_of;
use crate::transport::script_or_command::Request;
use crate::wire::{Reply, WrongType, millis, remaining, reply};

/// Those who wait ask again after this at the latest.
const LONGEST_PAUSE: Duration = Duration::from_millis(60);

/// How a library writes its locks.
pub(crate) trait TextLayout: fmt::Debug + Send + Sync + 'static {
    /// The library, in the errors of what it lacks.
    const LIBRARY: &'static str;

    /// The script. Its first argument is what to do.
    fn script(&self) -> &'static Text;

    /// The key in Redis.
    fn name(&self, key: &LockKey) -> String;

    /// What stands behind the operation in each call.
    fn put_settings(&self, _command: &mut Command) {}

    /// The script's keys, and before them their number.
    fn put_keys(&self, key: &LockKey, command: &mut Command) {
        command.arg(1).arg(self.name(key));
    }

    /// By which the script knows what is the owner's.
    fn own(&self, owner: Owner) -> String;

    /// What an acquire has more, before its lease.
    fn put_new_text(&self, _request: &Acquire, _command: &mut Command) {}

    /// What the key of a conflict is, by the script's word, if this layout knows more than others.
    fn conflict(&self, _word: &str) -> Option<&'static str> {
        None
    }

    fn holder(&self, text: &str) -> FoundHolder;

    /// How much longer than its lease a lock may last.
    fn rounds_up(&self) -> Duration;
}

/// What a script replies.
struct TextReply {
    code: i64,
    text: String,
    rest: i64,
}

impl FromRedisValue for TextReply {
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        let (code, text, rest): (i64, Vec<u8>, i64) = FromRedisValue::from_redis_value(value)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok(Self { code, text, rest })
    }
}

/// The code of a key that is no lock of this layout.
const CONFLICT: i64 = 2;
/// The code of what was done, or of a lock that somebody holds.
const DONE: i64 = 1;

pub(super) const SHEDLOCK: &str = "a lock of ShedLock";

/// What a conflict's key is, by the script's word: its type, or `text` and its text.
fn known(word: &str) -> &'static str {
    known_lock(word).unwrap_or(match word.starts_with("text ") {
        true => "a text that is no lock of this layout",
        false => "something that is no lock",
    })
}

/// The same, if it may be a lock.
pub(super) fn known_lock(word: &str) -> Option<&'static str> {
    Some(match word.split_once(' ').unwrap_or((word, "")) {
        ("hash", _) => "a hash, as a lock of Redisson is,",
        ("zset", _) => "a sorted set, as a lock in shares is in this library's own layout,",
        ("text", text) if Owner::parse(text).is_some() => "a lock of this library's own layout",
        ("text", text) if text.starts_with("ADDED:") => SHEDLOCK,
        ("text", text) if is_number(text) => "a number, as a lock of the layout `timestamp` is,",
        _ => return None,
    })
}

pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Locks in a layout, over the connections of a [`RedisStore`].
#[derive(Debug)]
pub(crate) struct TextStore<L> {
    store: RedisStore,
    layout: L,
    names: ForeignNames,
}

impl<L: TextLayout> TextStore<L> {
    pub(crate) fn new(store: RedisStore, layout: L) -> Self {
        Self {
            store,
            layout,
            names: ForeignNames::default(),
        }
    }

    /// The holder that a text tells of. If it is not ours, its name is remembered for people.
    fn holder(&self, text: &str) -> FoundHolder {
        let found = self.layout.holder(text);
        self.names.note(&found);
        found
    }

    fn request(
        &self,
        key: &LockKey,
        operation: &str,
        arguments: impl FnOnce(&mut Command),
    ) -> Request {
        Request::script(self.store.form(self.layout.script()), |command| {
            self.layout.put_keys(key, command);
            command.arg(operation);
            self.layout.put_settings(command);
            arguments(command);
        })
    }

    /// The slot of a lock, in a cluster. It is not that of its name in this library's own layout.
    fn slot_of(&self, key: &LockKey) -> u16 {
        match key.hash_tag() {
            Some(tag) => slot_of(tag),
            None => slot_of(&self.layout.name(key)),
        }
    }

    async fn ask(&self, key: &LockKey, by: Instant, request: Request) -> Replied<TextReply> {
        let servers = &self.store.servers;
        let slot = servers.is_cluster().then(|| self.slot_of(key));
        let answered = servers.exchange(slot, by, &request).await?;
        let reply: Reply<TextReply> = reply(answered.link, answered.result)?;
        Ok(reply.map(|value| {
            value.unwrap_or_else(|WrongType| TextReply {
                code: CONFLICT,
                text: String::new(),
                rest: -1,
            })
        }))
    }

    async fn take(&self, request: Acquire, until: Instant) -> Replied<Acquired> {
        let claim = &request.claim;
        self.store.subscribe_view(&claim.key);
        if let Some(owner) = request.instead_of {
            let before = Claim::new(claim.key.clone(), owner, None);
            let ended = self.end(&before, Duration::ZERO, until).await?;
            // Other processes have their turn: they ask until this one asks again.
            if ended.value == Released::Released {
                let mut busy = Busy::new(None, false);
                busy.look_in = Some(LONGEST_PAUSE);
                return Ok(ended.map(|_| Acquired::Busy(busy)));
            }
        }
        let by = until.min(self.store.clock.now() + self.store.command_timeout);
        let acquire = self.request(&claim.key, "acquire", |command| {
            command.arg(self.layout.own(claim.owner));
            self.layout.put_new_text(&request, command);
            command.arg(millis(request.lease));
        });
        let acquire = acquire.repeated().patient(Some(until));
        let answer = self.ask(&claim.key, by, acquire).await?;
        Ok(answer.map(|TextReply { code, text, rest }| match code {
            DONE => Acquired::granted(None),
            CONFLICT => Acquired::Conflict,
            _ => {
                let mut busy = Busy::new(remaining(rest), false);
                busy.holder = Some(self.holder(&text).who());
                // Clients that wait do not ask all at once.
                busy.look_in = Some(LONGEST_PAUSE / 3 + random::below(LONGEST_PAUSE * 2 / 3));
                Acquired::Busy(busy)
            }
        }))
    }

    async fn renew_one(&self, hold: &Renewal, by: Instant) -> Replied<Renewed> {
        let claim = &hold.claim;
        let renew = self.request(&claim.key, "renew", |command| {
            let own = self.layout.own(claim.owner);
            command.arg(own).arg(millis(hold.lease));
        });
        let answer = self.ask(&claim.key, by, renew).await?;
        Ok(answer.map(|reply| match reply.code {
            DONE => Renewed::Renewed,
            _ => Renewed::Gone,
        }))
    }

    /// Ends a hold. The key stays taken for `keep`.
    async fn end(&self, claim: &Claim, keep: Duration, by: Instant) -> Replied<Released> {
        let release = self.request(&claim.key, "release", |command| {
            command.arg(self.layout.own(claim.owner)).arg(millis(keep));
        });
        let release = release.patient(Some(by + RELEASE_PATIENCE));
        let answer = self.ask(&claim.key, by, release).await?;
        Ok(answer.map(|reply| match reply.code {
            DONE => Released::Released,
            _ => Released::NotHeld,
        }))
    }
}

impl<L: TextLayout> Store for TextStore<L> {
    lock_store::boxed! { acquire: take }

    fn renew(&self, holds: Vec<Renewal>, by: Instant) -> StoreFuture<'_, Vec<Renewed>> {
        Box::pin(async move {
            let each = holds.iter().map(|hold| self.renew_one(hold, by));
            BatchOutcomes::of(join_all(each).await, self.store.link()).renewed()
        })
    }

    fn release(&self, requests: Vec<Release>, by: Instant) -> StoreFuture<'_, Vec<Released>> {
        Box::pin(async move {
            let ends = requests.iter();
            let ends = ends.map(|request| self.end(&request.claim, request.keep, by));
            BatchOutcomes::of(join_all(ends).await, self.store.link()).all()
        })
    }

    fn abandon(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Released> {
        Box::pin(async move { self.end(&request.claim, Duration::ZERO, by).await })
    }

    fn inspect(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<LockFound>> {
        Box::pin(async move {
            let look = self.request(&key, "look", |_| ());
            let answer = self.ask(&key, by, look).await?;
            Ok(answer.map(|TextReply { code, text, rest }| match code {
                CONFLICT => None,
                DONE => {
                    let holder = self.holder(&text);
                    Some(LockFound::held(holder, remaining(rest), 0))
                }
                _ => Some(LockFound::free(0)),
            }))
        })
    }

    fn force_release(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<bool>> {
        Box::pin(async move {
            let free = self.request(&key, "free", |_| ());
            let answer = self.ask(&key, by, free).await?;
            Ok(answer.map(|reply| match reply.code {
                CONFLICT => None,
                code => Some(code == DONE),
            }))
        })
    }

    fn foreign_name(&self, holder: Holder) -> Option<String> {
        self.names.of(holder)
    }

    fn foreign_lock(&self, key: LockKey, by: Instant) -> Asked<'_, Option<&'static str>> {
        Box::pin(async move {
            let look = self.request(&key, "look", |_| ());
            let found = self.ask(&key, by, look).await;
            let TextReply { code, text, .. } = found.map_err(|failure| failure.error)?.value;
            let what = || self.layout.conflict(&text).unwrap_or_else(|| known(&text));
            Ok((code == CONFLICT).then(what))
        })
    }

    fn capabilities(&self) -> Capabilities {
        let mut can = Capabilities::none(L::LIBRARY);
        can.namespaces = true;
        can.rounds_up = self.layout.rounds_up();
        can.tells = true;
        can.tells_slow = true;
        can.fails_over = self.store.fails_over;
        can
    }

    lock_store::delegate! {
        tell forget_unused_views ping await_connection is_connected servers log_findings link close
        is_closed
    }

    fn link_of(&self, key: &LockKey) -> Link {
        match &self.store.servers {
            Servers::One(connection) => connection.link(),
            Servers::Cluster(cluster) => cluster.link(self.slot_of(key)),
        }
    }
}
