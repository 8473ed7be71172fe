//! What a key holds, and its end by force.

use lock_store::rules::MOST_HOLDERS;
use lock_store::{Failure, FoundHolder, Instant, LockFound, LockKey, Permits, Replied, StoreError};
use redis::{FromRedisValue, Value};

use super::RedissonStore;
use super::claim::script;
use super::names::{self, RedissonNames};
use crate::layouts::text_store::{SHEDLOCK, known_lock};
use crate::scripts;
use crate::store::RedisStore;
use crate::wire::{Reply, WrongType, remaining};

/// A hash of which a field is a holder's, and which is neither of the locks that are hashes.
const UNKNOWN_FORM: &str = "a lock of Redisson in a form that this version can't read,";

/// A key as the script describes it.
struct Described {
    kind: String,
    waiting: usize,
    /// Free permits of a semaphore, or what a key is that is no lock.
    state: String,
    /// Each with the rest of its lease.
    holders: Vec<(FoundHolder, i64)>,
}

impl Described {
    async fn of(store: &RedisStore, key: &LockKey, by: Instant) -> Replied<Option<Self>> {
        let names = RedissonNames::of(&store.namespace, key);
        let keys = [&*names.key, &names.taken(), &names.queue()];
        let inspect = script(store, &scripts::REDISSON_INSPECT, keys, |command| {
            command.arg(names.stem());
        });
        let reply: Reply<Vec<Value>> = store.call(key, by, &inspect).await?;
        Ok(reply.map(|value| value.ok().and_then(|reply| Self::read(store, reply))))
    }

    fn is_lock(&self) -> bool {
        !matches!(&*self.kind, "other" | "form")
    }

    fn read(store: &RedisStore, reply: Vec<Value>) -> Option<Self> {
        let mut reply = reply.into_iter();
        let kind = String::from_redis_value(reply.next()?).ok()?;
        let _lasts = reply.next()?;
        let waiting = usize::from_redis_value(reply.next()?).ok()?;
        let state = String::from_redis_value(reply.next()?).ok()?;
        let mut holders = Vec::new();
        while let (Some(holder), Some(rest)) = (reply.next(), reply.next()) {
            let holder = Vec::<u8>::from_redis_value(holder).ok()?;
            let text = || String::from_utf8_lossy(&holder);
            let holder = match &*kind {
                "permits" => names::holder_of_permit(store.client, &holder),
                "read_write" => {
                    let permits = match text().ends_with(":write") {
                        true => Permits::READ_WRITE,
                        false => 1,
                    };
                    names::parse_holder(&text(), Some(permits))
                }
                _ => names::parse_holder(&text(), None),
            };
            holders.push((holder, i64::from_redis_value(rest).ok()?));
        }
        Some(Self {
            state,
            kind,
            waiting,
            holders,
        })
    }
}

impl RedissonStore {
    pub(super) async fn inspect_now(
        &self,
        key: LockKey,
        by: Instant,
    ) -> Replied<Option<LockFound>> {
        let described = Described::of(&self.store, &key, by).await?;
        Ok(described.map(|described| {
            let found = described.filter(Described::is_lock)?;
            let mut lock = LockFound::free(found.waiting);
            let taken = u32::try_from(found.holders.len()).unwrap_or(u32::MAX);
            lock.holders = found.holders.len();
            let free = found.state.parse::<i64>().unwrap_or(0);
            lock.permits = match &*found.kind {
                "permits" if taken > 0 => Some(Permits {
                    count: taken,
                    of: taken.saturating_add(u32::try_from(free).unwrap_or(0)),
                }),
                "read_write" => Some(Permits {
                    count: match found.holders.iter().any(|(one, _)| writes(one)) {
                        true => Permits::READ_WRITE,
                        false => taken,
                    },
                    of: Permits::READ_WRITE,
                }),
                _ => None,
            };
            // One without an end is the last.
            let last = found
                .holders
                .into_iter()
                .max_by_key(|(_, rest)| match rest {
                    -1 => i64::MAX,
                    rest => *rest,
                });
            if let Some((holder, rest)) = last {
                self.names.note(&holder);
                lock.holder = Some(holder);
                lock.remaining = remaining(rest);
            }
            Some(lock)
        }))
    }

    pub(super) async fn holders_now(
        &self,
        key: LockKey,
        by: Instant,
    ) -> Replied<Option<Vec<FoundHolder>>> {
        let described = Described::of(&self.store, &key, by).await?;
        Ok(described.map(|described| {
            let found = described.filter(Described::is_lock)?;
            let holders = found.holders.into_iter().map(|(holder, _)| holder);
            Some(holders.take(MOST_HOLDERS).collect())
        }))
    }

    pub(super) async fn force_release_now(
        &self,
        key: LockKey,
        by: Instant,
    ) -> Replied<Option<bool>> {
        let names = self.names(&key);
        let (queue, timeouts) = (names.queue(), names.timeouts());
        let keys = [&*names.key, &names.taken(), &queue, &timeouts];
        let force = self.script(&scripts::REDISSON_FORCE_RELEASE, keys, |command| {
            command.arg(names.stem()).arg(names.channel());
            command.arg(names.read_write_channel());
            command.arg(names.semaphore_channel());
        });
        let reply: Reply<i64> = self.store.call(&key, by, &force).await?;
        Ok(reply.map(|value| match value {
            Ok(ended) => Some(ended == 1),
            Err(WrongType) => None,
        }))
    }

    /// What a lock of Redisson is that was asked for as one of another kind.
    pub(super) async fn other_kind(
        &self,
        key: LockKey,
        by: Instant,
    ) -> Result<Option<&'static str>, StoreError> {
        let described = Described::of(&self.store, &key, by)
            .await
            .map_err(|failure| failure.error)?;
        Ok(described.value.and_then(|found| match &*found.kind {
            "lock" => Some("an `RLock` of Redisson"),
            "read_write" => Some("an `RReadWriteLock` of Redisson"),
            "permits" => Some("an `RPermitExpirableSemaphore` or another number of Redisson"),
            "form" => Some(UNKNOWN_FORM),
            _ if found.state.starts_with("text ") => {
                known_lock(&found.state).or(Some("a text, as a lock of `SET NX PX` is,"))
            }
            _ => known_lock(&found.state).filter(|_| found.state != "hash"),
        }))
    }
}

/// What a lock of another layout is that this library's own has met. Any other text may be the
/// owner of a lock of `SET NX PX`, also a number.
pub(crate) async fn lock_of_another_layout(
    store: &RedisStore,
    key: LockKey,
    by: Instant,
) -> Result<Option<&'static str>, StoreError> {
    let names = RedissonNames::of(&store.namespace, &key);
    // The keys beside it are outside of what this client may need rights for.
    let inspect = script(store, &scripts::REDISSON_INSPECT, [&names.key], |_| ());
    let reply: Result<Reply<Vec<Value>>, Failure> = store.call(&key, by, &inspect).await;
    let described = reply.map_err(|failure| failure.error)?;
    let described = described.value.ok();
    let described = described.and_then(|reply| Described::read(store, reply));
    Ok(described.and_then(|found| match &*found.kind {
        "lock" => Some("a lock as Redisson keeps it (`RLock`, `layout=redisson`)"),
        "read_write" => Some("a lock as Redisson keeps it (`RReadWriteLock`, `layout=redisson`)"),
        "form" => Some(UNKNOWN_FORM),
        _ => known_lock(&found.state).filter(|what| *what == SHEDLOCK),
    }))
}

fn writes(holder: &FoundHolder) -> bool {
    match holder {
        FoundHolder::Owner { permits, .. } => *permits == Some(Permits::READ_WRITE),
        FoundHolder::Foreign(text) => text.ends_with(", writing"),
    }
}
