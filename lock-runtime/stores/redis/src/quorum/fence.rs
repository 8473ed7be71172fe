//! Fencing tokens of a quorum: a majority proposes one, and a majority confirms it.

use std::sync::Arc;
use std::time::Duration;

use lock_store::{Failure, Instant, StoreError};

use super::majority::Tally;
use super::round::Round;
use super::store::QuorumStore;
use crate::commands::quorum::{QuorumTaken, Take, does_not_count_yet};

impl QuorumStore {
    /// The token that a majority proposes for an existing hold. `None` if no majority can have the
    /// hold any more.
    pub(super) async fn propose(
        &self,
        round: &Arc<Round>,
        by: Instant,
    ) -> Result<Option<u64>, StoreError> {
        let sent = self.clock.now();
        let take = Arc::new(Take {
            key: round.key.clone(),
            owner: round.owner,
            lease: Duration::ZERO,
            fenced: true,
            listens: false,
        });
        let replies = self.each(|_, node| {
            let take = Arc::clone(&take);
            async move {
                match node.take(&take, sent, by).await?.value {
                    QuorumTaken::Granted { next, counts: true } => Ok(Some(next.unwrap_or(0))),
                    QuorumTaken::Granted { counts: false, .. } => {
                        Err(Failure::without_effect(does_not_count_yet()))
                    }
                    QuorumTaken::Held { .. } | QuorumTaken::Conflict => Ok(None),
                }
            }
        });
        let (mut tally, mut highest) = (Tally::of(self.nodes.len()), 0);
        let decide = |proposal: Option<u64>| {
            highest = proposal.unwrap_or(0).max(highest);
            let is_proposed = tally.count(proposal.is_some())?;
            Some(is_proposed.then_some(highest))
        };
        self.decide(replies, decide).await
    }

    /// The second phase of a fenced grant. True if a majority keeps the tokens, and still has the
    /// round.
    pub(super) async fn confirm(
        &self,
        round: &Arc<Round>,
        token: u64,
        tokens: u32,
        by: Instant,
    ) -> Result<bool, StoreError> {
        let sent = self.clock.now();
        let replies = self.each(|_, node| {
            let round = Arc::clone(round);
            async move {
                node.confirm_token(&round.key, round.owner, token, tokens, sent, by)
                    .await
            }
        });
        let mut tally = Tally::of(self.nodes.len());
        // A failed server may have kept the tokens without a reply.
        self.decide(replies, |keeps| tally.count(keeps)).await
    }
}
