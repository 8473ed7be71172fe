//! Inspection and forced release, decided by a majority.

use std::collections::HashMap;
use std::time::Duration;

use lock_store::{Failure, FoundHolder, Instant, LockFound, LockKey, Replied, Store};

use super::store::{QuorumStore, answer_of_quorum};

impl QuorumStore {
    pub(super) async fn inspect_all(
        &self,
        key: LockKey,
        by: Instant,
    ) -> Replied<Option<LockFound>> {
        let mut replies = self.each(|_, node| {
            let key = key.clone();
            async move { node.inspect(key, by).await.map(|answer| answer.value) }
        });
        let (servers, enough) = (self.nodes.len(), self.majority());
        let mut holders: HashMap<FoundHolder, Vec<Option<Duration>>> = HashMap::new();
        let (mut free, mut conflicts, mut failures) = (0, 0, Vec::new());
        while let Some((at, reply)) = replies.recv().await {
            match reply {
                Ok(Some(LockFound {
                    holder: Some(holder),
                    remaining,
                    ..
                })) => holders.entry(holder).or_default().push(remaining),
                Ok(Some(_)) => free += 1,
                Ok(None) => conflicts += 1,
                Err(failure) => failures.push((at, failure.error)),
            }
            if conflicts >= enough {
                return Ok(answer_of_quorum(None));
            }
            let most = holders.iter_mut().max_by_key(|(_, parts)| parts.len());
            let parts: usize = most.as_ref().map_or(0, |(_, parts)| parts.len());
            if let Some((holder, remaining)) = most
                && parts >= enough
            {
                // How long a majority of the parts lasts. A part without lease lasts longest.
                remaining.sort_by_key(|one| std::cmp::Reverse(one.unwrap_or(Duration::MAX)));
                let found = LockFound::held(holder.clone(), remaining[enough - 1], 0);
                return Ok(answer_of_quorum(Some(found)));
            }
            let held: usize = holders.values().map(Vec::len).sum();
            let answered = held + free + conflicts;
            // A server that has not answered may have a part as well.
            if parts + (servers - answered) < enough {
                return Ok(answer_of_quorum(Some(LockFound::free(0))));
            }
        }
        // The owner of a part may have another on a server that did not answer. Report it as the
        // holder.
        let most = holders.into_iter().max_by_key(|(_, parts)| parts.len());
        match most {
            Some((holder, remaining)) if failures.len() <= servers - enough => {
                let longest = |one: &Option<Duration>| one.unwrap_or(Duration::MAX);
                let remaining = remaining.into_iter().max_by_key(longest).flatten();
                Ok(answer_of_quorum(Some(LockFound::held(
                    holder, remaining, 0,
                ))))
            }
            _ => self.too_few(&failures),
        }
    }

    pub(super) async fn force_release_all(
        &self,
        key: LockKey,
        by: Instant,
    ) -> Replied<Option<bool>> {
        let replies = self.each(|_, node| {
            let key = key.clone();
            async move { node.force_release(key, by).await.map(|answer| answer.value) }
        });
        let enough = self.majority();
        let (mut ended, mut conflicts, mut answered) = (false, 0, 0);
        let decide = |one: Option<bool>| {
            answered += 1;
            ended |= one == Some(true);
            conflicts += usize::from(one.is_none());
            // A hold has parts on a majority, so a majority of answers has seen at least one.
            match conflicts >= enough {
                true => Some(None),
                false => (answered >= enough).then_some(Some(ended)),
            }
        };
        let ended = self.decide(replies, decide).await;
        ended.map(answer_of_quorum).map_err(Failure::without_effect)
    }
}
