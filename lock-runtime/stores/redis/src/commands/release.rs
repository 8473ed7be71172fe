//! The scripts that end holds, or parts of them, and hand their locks to the next in the queue.

use std::borrow::Borrow;
use std::iter::once;
use std::slice;

use lock_store::{Acquire, Answer, Claim, Failure, Instant, LockKey, Release, Released, Replied};
use redis::{FromRedisValue, ParsingError, Value};

use super::acquire::rest_of_place;
use crate::config::RELEASE_PATIENCE;
use crate::resp::Command;
use crate::scripts::{self, Text};
use crate::store::{KEYS, RedisStore};
use crate::transport::script_or_command::Request;
use crate::wire::{
    Reply, WrongType, is_done, leaves_more, millis, one_for_each, permits, released,
};

impl RedisStore {
    /// Ends holds: one command if it can name all keys.
    pub(crate) async fn release_batch(
        &self,
        requests: Vec<Release>,
        by: Instant,
    ) -> Replied<Vec<Released>> {
        if self.is_together(requests.iter().map(|request| &request.claim.key)) {
            return self.release_together(&requests, by).await;
        }
        let parts = self.by_slot(
            &requests,
            |request| &request.claim.key,
            |group| Box::pin(async move { self.release_together(&group, by).await }),
        );
        Box::pin(parts).await.all()
    }

    /// Ends holds of one slot.
    async fn release_together<R: Borrow<Release> + Sync>(
        &self,
        requests: &[R],
        by: Instant,
    ) -> Replied<Vec<Released>> {
        let Some(first) = requests.first().map(R::borrow) else {
            return Ok(Answer::new(Vec::new(), self.servers.link()));
        };
        if requests.len() == 1
            && is_plain(first)
            && self.pollers.has_any()
            && let Some(until) = self.pollers.end_turn(&first.claim.key, self.clock.now())
        {
            let Claim { key, owner, .. } = &first.claim;
            let left = self.leave_free(key, *owner, until, by, by + RELEASE_PATIENCE);
            let left = Box::pin(left).await?;
            return Ok(left.map(|released| vec![released]));
        }
        let release = self.release_script(requests);
        let release = release.patient(Some(by + RELEASE_PATIENCE));
        let key = &first.claim.key;
        let reply: Reply<Each> = self.call(key, by, &release).await?;
        let replies = reply.value.as_ref().map_or(&[][..], Each::all);
        if reply.value.is_ok() {
            one_for_each("release", requests.len(), replies.len(), reply.link)?;
        }
        for (request, reply) in requests.iter().zip(replies) {
            if leaves_more(*reply) {
                let rest =
                    self.serve_the_rest(&request.borrow().claim.key, *reply, by + RELEASE_PATIENCE);
                Box::pin(rest).await;
            }
        }
        Ok(reply.map(|value| match value {
            Ok(each) => each.all().iter().map(|one| released(Ok(*one))).collect(),
            Err(WrongType) => vec![Released::NotHeld; requests.len()],
        }))
    }

    /// For holds of one slot.
    fn release_script<R: Borrow<Release>>(&self, requests: &[R]) -> Request {
        let requests = requests.iter().map(R::borrow);
        let keys = requests.clone().map(|request| &request.claim.key);
        Request::script(self.form(&scripts::RELEASE), |command| {
            self.name(command, keys.clone());
            if let Some(key) = keys.clone().next() {
                command.add_text(self.channel_prefix(key));
            }
            if let (1, Some(one)) = (requests.len(), requests.clone().next())
                && is_plain(one)
            {
                command.add_text(one.claim.owner);
                // In a cluster, the keys of one call are in one slot.
                if !self.servers.is_cluster() {
                    command.mark_mergeable_release(one.claim.owner.request, KEYS, 1);
                }
                return;
            }
            for request in requests {
                command
                    .add_text(request.claim.owner)
                    .arg(permits(request.claim.permits))
                    .arg(millis(request.keep));
            }
        })
    }

    /// Gives back some permits of a hold.
    pub(crate) async fn shrink_to(
        &self,
        claim: Claim,
        rest: u32,
        by: Instant,
    ) -> Replied<Released> {
        let end = |command: &mut Command| {
            command
                .add_text(claim.owner)
                .arg(permits(claim.permits))
                .arg(rest)
                .add_text(self.channel_prefix(&claim.key));
        };
        let reply = self.run_and_serve_the_rest(by, &scripts::SHRINK, &claim.key, end);
        Ok(reply.await?.map(released))
    }

    /// Leaves the queue, or ends a grant that came meanwhile.
    pub(crate) async fn abandon_request(&self, request: Acquire, by: Instant) -> Replied<Released> {
        let key = &request.claim.key;
        let end = |command: &mut Command| {
            command
                .add_text(request.claim.owner)
                .arg(rest_of_place(&request))
                .add_text(self.channel_prefix(key))
                .arg(permits(request.claim.permits));
        };
        let reply = self.run_and_serve_the_rest(by, &scripts::ABANDON, key, end);
        Ok(reply.await?.map(released))
    }

    /// Ends every hold of a lock.
    pub(crate) async fn force_release_now(
        &self,
        key: LockKey,
        by: Instant,
    ) -> Replied<Option<bool>> {
        let end = |command: &mut Command| _ = command.add_text(self.channel_prefix(&key));
        let reply = self.run_and_serve_the_rest(by, &scripts::FORCE_RELEASE, &key, end);
        Ok(reply.await?.map(|value| value.ok().map(is_done)))
    }

    /// Runs a script that frees a lock or a part of it, and serves the waiters that it has left.
    async fn run_and_serve_the_rest(
        &self,
        by: Instant,
        script: &'static Text,
        key: &LockKey,
        arguments: impl FnOnce(&mut Command),
    ) -> Result<Reply<i64>, Failure> {
        let reply: Reply<i64> = self.run_on_lock(by, script, key, arguments).await?;
        if let Ok(reply) = reply.value {
            self.serve_the_rest(key, reply, by).await;
        }
        Ok(reply)
    }

    /// The release of an owner that holds no lock, neither of ours nor of another library.
    pub(super) fn hand_over_only(&self, key: &LockKey) -> Request {
        Request::script(self.form(&scripts::RELEASE), |command| {
            self.name(command, once(key));
            command.add_text(self.channel_prefix(key)).arg("%");
        })
    }

    /// Serves the waiters that a script has left. Each script serves few of them, to stay short. If
    /// this fails, they get their turn when one of them asks again.
    pub(crate) async fn serve_the_rest(&self, key: &LockKey, mut reply: i64, by: Instant) {
        while leaves_more(reply) {
            let next = self.call(key, by, &self.hand_over_only(key)).await;
            let next: Result<Reply<Each>, Failure> = next;
            let next = next.ok().and_then(|next| next.value.ok());
            reply = next
                .and_then(|each| each.all().first().copied())
                .unwrap_or(0);
        }
    }
}

/// One exclusive lock whose key is not kept.
fn is_plain(release: &Release) -> bool {
    release.claim.permits.is_none() && release.keep.is_zero()
}

/// The replies for each lock: a list, or a single number for one lock.
enum Each {
    One(i64),
    Several(Vec<i64>),
}

impl Each {
    fn all(&self) -> &[i64] {
        match self {
            Self::One(one) => slice::from_ref(one),
            Self::Several(several) => several,
        }
    }
}

impl FromRedisValue for Each {
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        match value {
            Value::Int(one) => Ok(Self::One(one)),
            several => Vec::from_redis_value(several).map(Self::Several),
        }
    }
}
