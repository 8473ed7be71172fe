//! Renewals of several locks, which are one command if they can be.

use futures_util::future::join_all;
use lock_store::{Answer, Instant, Link, Renewal, Renewed, Replied, StoreFuture};

use super::renew::{self, lie_apart, renewed_each};
use crate::store::RedisStore;
use crate::wire::{Reply, WrongType, reply};

impl RedisStore {
    pub(crate) async fn renew_batch(
        &self,
        holds: Vec<Renewal>,
        by: Instant,
    ) -> Replied<Vec<Renewed>> {
        let batch: Vec<&Renewal> = holds.iter().collect();
        if self.is_together(batch.iter().map(|hold| &hold.claim.key)) {
            return self.renew_together(&batch, by).await;
        }
        let parts = self.by_slot(
            &holds,
            |hold| &hold.claim.key,
            |group| Box::pin(async move { self.renew_together(&group, by).await }),
        );
        parts.await.renewed()
    }

    async fn renew_together(&self, holds: &[&Renewal], by: Instant) -> Replied<Vec<Renewed>> {
        let Some(first) = holds.first() else {
            return Ok(Answer::new(Vec::new(), self.servers.link()));
        };
        if let Some(replication) = &self.replication {
            let slot = self.slot(&first.claim.key);
            let holds = holds.iter().map(|hold| (*hold).clone()).collect();
            return Ok(Answer::new(
                replication.renew(slot, holds, by).await?,
                Link::SEVERAL,
            ));
        }
        let renew = renew::request(self.servers.is_cluster(), &self.namespace, holds).repeated();
        let slot = self.slot(&first.claim.key);
        let answered = self.servers.exchange(slot, by, &renew).await?;
        if lie_apart(&answered.result, holds.len()) {
            return self.renew_each(holds, by).await;
        }
        let reply: Reply<Vec<i64>> = reply(answered.link, answered.result)?;
        let renewed = match reply.value {
            Ok(replies) => renew::read(&replies, holds.len(), reply.link)?,
            Err(WrongType) => vec![Renewed::Gone; holds.len()],
        };
        Ok(Answer::new(renewed, reply.link))
    }

    /// Sends one command for each hold: half of their slot has moved, and each key is on one node.
    fn renew_each<'s>(
        &'s self,
        holds: &'s [&Renewal],
        by: Instant,
    ) -> StoreFuture<'s, Vec<Renewed>> {
        let each = holds.chunks(1).map(move |hold| async move {
            let one = self.renew_together(hold, by).await?;
            Ok(one.value.first().copied().unwrap_or(Renewed::Unanswered))
        });
        let each = join_all(each);
        Box::pin(async move { Ok(Answer::new(renewed_each(each.await)?, Link::SEVERAL)) })
    }
}
