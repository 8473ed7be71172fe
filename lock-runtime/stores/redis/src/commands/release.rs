//! The script that ends holds and hands their locks to the next in the queue.

use std::time::Duration;

use lock_store::{
    Answer, Failure, Instant, LockKey, Release, Released, StoreError, StoreErrorKind,
};
use redis::{FromRedisValue, ParsingError, Value};

use crate::errors::maybe_carried_out;
use crate::names::Shown;
use crate::scripts;
use crate::store::RedisStore;
use crate::transport::request::Request;
use crate::wire::{Reply, WrongType, leaves_more, millis, permits, released};

/// How much longer a release may take if the server is slow but answers. To repeat it would only
/// add to the work of such a server.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

impl RedisStore {
    /// Ends holds of one slot.
    pub(crate) async fn release_together(
        &self,
        requests: &[&Release],
        by: Instant,
    ) -> Result<Answer<Vec<Released>>, Failure> {
        let Some(first) = requests.first() else {
            return Ok(Answer::new(Vec::new(), self.servers.link()));
        };
        let keys = requests.iter().map(|request| &request.claim.key);
        let is_plain = |one: &Release| one.claim.permits.is_none() && one.keep.is_zero();
        if let [one] = requests
            && is_plain(one)
            && let Some(until) = self.pollers.end_turn(&one.claim.key, self.clock.now())
        {
            let owner = one.claim.owner;
            let left = self.leave_free(&one.claim.key, owner, until, by).await?;
            return Ok(left.map(|released| vec![released]));
        }
        let release = Request::script(self.form(&scripts::RELEASE), |command| {
            self.name(command, keys);
            command.arg(self.channels(&first.claim.key));
            if let [one] = requests
                && is_plain(one)
            {
                command.arg(Shown(one.claim.owner));
                return;
            }
            for request in requests {
                command
                    .arg(Shown(request.claim.owner))
                    .arg(permits(request.claim.permits))
                    .arg(millis(request.keep));
            }
        });
        let release = release.patient(Some(by + PATIENCE));
        let key = &first.claim.key;
        let reply: Reply<Each> = self.call(key, by, &release).await?;
        if let Ok(Each(replies)) = &reply.value
            && replies.len() != requests.len()
        {
            let text = format!(
                "it replied to the release of {} locks about {}; is there a proxy in front of it?",
                requests.len(),
                replies.len()
            );
            let error = StoreError::new(StoreErrorKind::Refused, text);
            return Err(maybe_carried_out(error, reply.link));
        }
        if let Ok(Each(replies)) = &reply.value {
            for (request, reply) in requests.iter().zip(replies) {
                let by = by + PATIENCE;
                self.serve_the_rest(&request.claim.key, *reply, by).await;
            }
        }
        Ok(reply.map(|value| match value {
            Ok(Each(replies)) => replies.into_iter().map(|one| released(Ok(one))).collect(),
            Err(WrongType) => vec![Released::NotHeld; requests.len()],
        }))
    }
}

impl RedisStore {
    /// Serves the waiters that a script has left. Each script serves few of them, to stay short. If
    /// this fails, they get their turn when one of them asks again.
    pub(crate) async fn serve_the_rest(&self, key: &LockKey, mut reply: i64, by: Instant) {
        while leaves_more(reply) {
            let next = self.one(by, &scripts::RELEASE, key, |command| {
                // An owner that holds no lock, neither of ours nor of another library: this only
                // hands over.
                command.arg(self.channels(key)).arg("%");
            });
            let next: Result<Reply<Each>, Failure> = next.await;
            let next = next.ok().and_then(|next| next.value.ok());
            reply = next.and_then(|Each(one)| one.first().copied()).unwrap_or(0);
        }
    }
}

/// The replies for each lock: a list, or a single number for one lock.
struct Each(Vec<i64>);

impl FromRedisValue for Each {
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        match value {
            Value::Int(one) => Ok(Self(vec![one])),
            several => Vec::from_redis_value(several).map(Self),
        }
    }
}
