//! Renewing a hold, and ending it.

use std::ops::Range;
use std::time::Duration;

use futures_util::future::join_all;
use lock_store::{
    Acquire, Answer, Claim, Fenced, Instant, LockKey, Release, Released, Renewal, Renewed, Replied,
};

use super::RedissonStore;
use super::claim::{RedissonKind, word};
use super::names::{self, RedissonNames};
use super::take::channel_of;
use crate::commands::by_slot::BatchOutcomes;
use crate::config::RELEASE_PATIENCE;
use crate::scripts;
use crate::transport::script_or_command::Request;
use crate::wire::{Reply, WrongType, millis};

impl RedissonStore {
    pub(super) async fn renew_each(
        &self,
        holds: Vec<Renewal>,
        by: Instant,
    ) -> Replied<Vec<Renewed>> {
        let each = holds.iter().map(|hold| self.renew_one(hold, by));
        BatchOutcomes::of(join_all(each).await, self.store.servers.link()).renewed()
    }

    async fn renew_one(&self, hold: &Renewal, by: Instant) -> Replied<Renewed> {
        let claim = &hold.claim;
        let (names, field) = (self.names(&claim.key), names::field(claim.owner));
        let (word, second) = match RedissonKind::of(claim) {
            RedissonKind::Lock => ("lock", names.key.clone()),
            RedissonKind::ReadWrite { .. } => ("read_write", names.reader(&field)),
            RedissonKind::Semaphore(_) => ("permits", names.taken()),
        };
        let keys = [&*names.key, &second];
        let renew = self.script(&scripts::REDISSON_RENEW, keys, |command| {
            command.arg(word).arg(millis(hold.lease));
            match RedissonKind::of(claim) {
                RedissonKind::Semaphore(count) => {
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

    /// For an `RLock`. The engine asks for no token of a lock in shares: see `capabilities`.
    pub(super) async fn fence_now(&self, claim: Claim, by: Instant) -> Replied<Fenced> {
        let names = self.names(&claim.key);
        let keys = [&*names.key, &names.counter()];
        let fence = self.script(&scripts::REDISSON_FENCE, keys, |command| {
            command.arg(names::field(claim.owner));
        });
        let reply: Reply<String> = self.store.call(&claim.key, by, &fence).await?;
        Ok(reply.map(|value| match value {
            Err(WrongType) => Fenced::Conflict,
            Ok(token) => token.parse().map_or(Fenced::Gone, Fenced::Token),
        }))
    }

    pub(super) async fn release_each(
        &self,
        requests: Vec<Release>,
        by: Instant,
    ) -> Replied<Vec<Released>> {
        let each = requests
            .iter()
            .map(|one| self.end(&one.claim, one.keep, false, by));
        BatchOutcomes::of(join_all(each).await, self.store.servers.link()).all()
    }

    pub(super) async fn abandon_request(&self, request: Acquire, by: Instant) -> Replied<Released> {
        if let (channel, Some(_)) = channel_of(&request, &self.names(&request.claim.key)) {
            self.channels.forget(&channel);
        }
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
    ) -> Replied<Released> {
        let names = self.names(&claim.key);
        let end = match RedissonKind::of(claim) {
            RedissonKind::Lock => self.end_lock(&names, claim, keep, leaves),
            RedissonKind::ReadWrite { writes } => {
                self.end_read_write(&names, claim, writes, keep, false)
            }
            RedissonKind::Semaphore(count) => self.end_permits(&names, claim, 0..count, keep),
        };
        self.rivals
            .note_released(&claim.key, self.store.clock.now());
        self.done(&claim.key, by, &end.patient(Some(by + RELEASE_PATIENCE)))
            .await
    }

    pub(super) async fn shrink_to(
        &self,
        claim: Claim,
        rest: u32,
        by: Instant,
    ) -> Replied<Released> {
        let names = self.names(&claim.key);
        let shrink = match RedissonKind::of(&claim) {
            RedissonKind::Lock => {
                return Ok(Answer::new(Released::NotHeld, self.store.servers.link()));
            }
            RedissonKind::ReadWrite { writes } => {
                self.end_read_write(&names, &claim, writes, Duration::ZERO, true)
            }
            RedissonKind::Semaphore(count) => {
                // It replies that it is done if it was before.
                let shrink = self.end_permits(&names, &claim, rest..count, Duration::ZERO);
                let shrunk = self.done(&claim.key, by, &shrink).await?;
                return Ok(Answer::new(Released::Released, shrunk.link));
            }
        };
        self.done(&claim.key, by, &shrink).await
    }

    async fn done(&self, key: &LockKey, by: Instant, request: &Request) -> Replied<Released> {
        let reply: Reply<i64> = self.store.call(key, by, request).await?;
        Ok(reply.map(|value| match value {
            Ok(1) => Released::Released,
            _ => Released::NotHeld,
        }))
    }

    fn end_lock(
        &self,
        names: &RedissonNames,
        claim: &Claim,
        keep: Duration,
        leaves: bool,
    ) -> Request {
        let keys = [&*names.key, &names.queue(), &names.timeouts()];
        self.script(&scripts::REDISSON_RELEASE, keys, |command| {
            command.arg(names::field(claim.owner));
            command.arg(names.channel()).arg(millis(keep));
            command.arg(match keep.is_zero() {
                true => String::new(),
                false => names::kept(claim.owner),
            });
            command.arg(if leaves { "1" } else { "" });
        })
    }

    fn end_read_write(
        &self,
        names: &RedissonNames,
        claim: &Claim,
        writes: bool,
        keep: Duration,
        becomes_reader: bool,
    ) -> Request {
        let (field, kept) = (names::field(claim.owner), names::kept(claim.owner));
        let keys = [&*names.key, &names.reader(&field), &names.reader(&kept)];
        self.script(&scripts::REDISSON_READ_WRITE_END, keys, |command| {
            command.arg(&*field).arg(word(writes)).arg(millis(keep));
            command.arg(&*kept).arg(names.stem());
            command.arg(names.read_write_channel());
            command.arg(if becomes_reader { "1" } else { "" });
        })
    }

    fn end_permits(
        &self,
        names: &RedissonNames,
        claim: &Claim,
        which: Range<u32>,
        keep: Duration,
    ) -> Request {
        let count = which.len();
        let ids = |kept| {
            let ids = names::permits(claim.owner, which.end, kept);
            ids.skip(usize::try_from(which.start).unwrap_or(usize::MAX))
        };
        let keys = [&*names.key, &names.taken()];
        self.script(&scripts::REDISSON_PERMITS_END, keys, |command| {
            command.arg(names.semaphore_channel());
            command.arg(millis(keep)).arg(count);
            for id in ids(false).chain(ids(true)) {
                command.arg(&id[..]);
            }
        })
    }
}
