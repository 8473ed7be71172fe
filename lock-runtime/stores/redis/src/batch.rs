//! Batches for several locks: one command where one can name them all, and in a cluster one for each slot, all at once.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Instant;

use lock_store::{
    Answer, Failure, Link, LockKey, Release, Released, Renewal, Renewed, Store, StoreError,
    StoreErrorKind, StoreFuture,
};
use redis::{FromRedisValue, ParsingError, Value};

use super::names::{Prefix, Shown};
use super::request::Request;
use super::scripts::Form;
use super::verbs::{permits, released};
use super::{RedisStore, Reply, Servers, WrongType, millis, scripts};

/// What became of each part of a batch, in the order of the batch.
pub(super) struct Parts<T> {
    pub(super) outcomes: Vec<Result<T, Failure>>,
    /// The one over which all answers came.
    pub(super) link: Link,
}

impl RedisStore {
    /// The slot of a lock, where there are slots.
    pub(super) fn slot(&self, key: &LockKey) -> Option<u16> {
        match &self.servers {
            Servers::One(_) => None,
            Servers::Cluster(_) => Some(self.namespace.slot(key)),
        }
    }

    /// Whether one command can name all of these.
    pub(super) fn is_together<'k>(&self, mut keys: impl Iterator<Item = &'k LockKey>) -> bool {
        let first = keys.next().map(|key| self.slot(key));
        keys.all(|key| Some(self.slot(key)) == first)
    }

    /// Runs a batch slot by slot. `run` gets those of one slot, and answers for each of them in order.
    pub(super) async fn by_slot<'r, R, T: Clone>(
        &self,
        batch: &'r [R],
        key: impl Fn(&R) -> &LockKey,
        run: impl Fn(Vec<&'r R>) -> StoreFuture<'r, Vec<T>>,
    ) -> Parts<T> {
        let mut slots = BTreeMap::<Option<u16>, Vec<usize>>::new();
        for (at, request) in batch.iter().enumerate() {
            slots.entry(self.slot(key(request))).or_default().push(at);
        }
        let groups: Vec<Vec<usize>> = slots.into_values().collect();
        let running = groups
            .iter()
            .map(|group| run(group.iter().map(|at| &batch[*at]).collect()));
        let (mut outcomes, mut link) = (BTreeMap::new(), None);
        for (group, answer) in groups.iter().zip(all(running.collect()).await) {
            match answer {
                Ok(Answer { value, link: over }) => {
                    link = Some(link.map_or(over, |link| match link == over {
                        true => link,
                        false => Link::SEVERAL,
                    }));
                    outcomes.extend(group.iter().copied().zip(value.into_iter().map(Ok)));
                }
                Err(failure) => {
                    outcomes.extend(group.iter().map(|at| (*at, Err(failure.clone()))));
                }
            }
        }
        Parts {
            outcomes: outcomes.into_values().collect(),
            link: link.unwrap_or(Link::SEVERAL),
        }
    }

    pub(super) async fn renew_together(
        &self,
        holds: &[&Renewal],
        by: Instant,
    ) -> Result<Answer<Vec<Renewed>>, Failure> {
        let Some(first) = holds.first() else {
            return Ok(Answer {
                value: Vec::new(),
                link: self.link(),
            });
        };
        if let Some(replication) = &self.replication {
            let slot = self.slot(&first.claim.key);
            let holds = holds.iter().map(|hold| (*hold).clone()).collect();
            return Ok(Answer {
                value: replication.renew(slot, holds, by).await?,
                link: Link::SEVERAL,
            });
        }
        let renew = renewal(self.form(&scripts::RENEW), &self.namespace, holds);
        let reply: Reply<Vec<i64>> = self.call(&first.claim.key, by, &renew).await?;
        Ok(reply.map(|value| match value {
            Ok(replies) => renewed(&replies),
            Err(WrongType) => vec![Renewed::Gone; holds.len()],
        }))
    }

    pub(super) async fn release_together(
        &self,
        requests: &[&Release],
        by: Instant,
    ) -> Result<Answer<Vec<Released>>, Failure> {
        let Some(first) = requests.first() else {
            return Ok(Answer {
                value: Vec::new(),
                link: self.link(),
            });
        };
        let keys = requests.iter().map(|request| &request.claim.key);
        let is_plain = |one: &Release| one.claim.share.is_none() && one.keep.is_zero();
        let reply: Reply<Each> = self
            .script(None, by, &scripts::RELEASE, keys, |command| {
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
                        .arg(permits(request.claim.share))
                        .arg(millis(request.keep));
                }
            })
            .await?;
        if let Ok(Each(replies)) = &reply.value
            && replies.len() != requests.len()
        {
            let text = format!(
                "it replied to the release of {} locks about {}; is there a proxy in front of it?",
                requests.len(),
                replies.len()
            );
            return Err(Failure {
                error: StoreError::new(StoreErrorKind::Refused, text),
                unknown: Some(reply.link),
            });
        }
        Ok(reply.map(|value| match value {
            Ok(Each(replies)) => replies.into_iter().map(released).collect(),
            Err(WrongType) => vec![Released::NotHeld; requests.len()],
        }))
    }
}

/// What was replied for each, as a list, or alone if there is one.
struct Each(Vec<i64>);

impl FromRedisValue for Each {
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        match value {
            Value::Int(one) => Ok(Self(vec![one])),
            several => Vec::from_redis_value(several).map(Self),
        }
    }
}

/// One script for all of them.
pub(super) fn renewal(form: &'static Form, namespace: &Prefix, holds: &[&Renewal]) -> Request {
    Request::script(form, |command| {
        command.arg(holds.len());
        for hold in holds {
            command.arg(Shown(namespace.lock(&hold.claim.key)));
        }
        for hold in holds {
            let owner = hold.claim.owner;
            match hold.claim.share {
                Some(share) => command.arg(format!("{owner}:{}", share.permits)),
                None => command.arg(Shown(owner)),
            };
            command.arg(millis(hold.lease));
        }
    })
}

/// What that script replied.
pub(super) fn renewed(replies: &[i64]) -> Vec<Renewed> {
    let renewed = |one: &i64| match one {
        1 => Renewed::Renewed,
        _ => Renewed::Gone,
    };
    replies.iter().map(renewed).collect()
}

/// The outputs of futures that run at the same time.
pub(super) async fn all<F: Future + ?Sized>(mut futures: Vec<Pin<Box<F>>>) -> Vec<F::Output> {
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none()
                && let Poll::Ready(ready) = future.as_mut().poll(context)
            {
                *output = Some(ready);
            }
        }
        match outputs.iter().all(Option::is_some) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    outputs.into_iter().flatten().collect()
}
