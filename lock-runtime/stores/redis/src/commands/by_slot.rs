//! Batches for several locks that one command can't name: in a cluster, one command for each slot,
//! all at once.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use lock_store::{Answer, Failure, Link, LockKey, Renewed, Replied, StoreFuture};

use super::renew::renewed_each;
use crate::store::RedisStore;

/// The outcome of each part of a batch, in the order of the batch.
pub(crate) struct BatchOutcomes<T> {
    outcomes: Vec<Result<T, Failure>>,
    /// The link that all answers came over.
    link: Link,
}

impl<T> BatchOutcomes<T> {
    /// `own_link` is that of an empty batch, and of one that nobody has answered.
    pub(crate) fn of(replies: Vec<Replied<T>>, own_link: Link) -> Self {
        let links = replies.iter().flatten().map(|answer| answer.link);
        let link = links.reduce(Link::merge).unwrap_or(own_link);
        let outcomes = replies
            .into_iter()
            .map(|one| one.map(|answer| answer.value));
        let outcomes = outcomes.collect();
        Self { outcomes, link }
    }

    /// All outcomes, or the first failure.
    pub(crate) fn all(self) -> Replied<Vec<T>> {
        let all: Result<Vec<_>, _> = self.outcomes.into_iter().collect();
        Ok(Answer::new(all?, self.link))
    }
}

impl BatchOutcomes<Renewed> {
    /// A node that does not answer must not spoil the others' answers.
    pub(crate) fn renewed(self) -> Replied<Vec<Renewed>> {
        Ok(Answer::new(renewed_each(self.outcomes)?, self.link))
    }
}

impl RedisStore {
    /// Runs a batch slot by slot. `run` gets the requests of one slot, and answers each of them in
    /// order.
    pub(super) async fn by_slot<'r, R, T: Clone>(
        &self,
        batch: &'r [R],
        key: impl Fn(&R) -> &LockKey,
        run: impl Fn(Vec<&'r R>) -> StoreFuture<'r, Vec<T>>,
    ) -> BatchOutcomes<T> {
        let mut slots = BTreeMap::<Option<u16>, Vec<usize>>::new();
        for (at, request) in batch.iter().enumerate() {
            slots.entry(self.slot(key(request))).or_default().push(at);
        }
        let groups: Vec<Vec<usize>> = slots.into_values().collect();
        let running = groups
            .iter()
            .map(|group| run(group.iter().map(|at| &batch[*at]).collect()));
        let (mut outcomes, mut link) = (BTreeMap::new(), None);
        for (group, answer) in groups.iter().zip(join_all(running).await) {
            match answer {
                Ok(Answer {
                    value, link: over, ..
                }) => {
                    link = link.into_iter().chain([over]).reduce(Link::merge);
                    outcomes.extend(group.iter().copied().zip(value.into_iter().map(Ok)));
                }
                Err(failure) => {
                    outcomes.extend(group.iter().map(|at| (*at, Err(failure.clone()))));
                }
            }
        }
        BatchOutcomes {
            outcomes: outcomes.into_values().collect(),
            link: link.unwrap_or(Link::SEVERAL),
        }
    }
}
