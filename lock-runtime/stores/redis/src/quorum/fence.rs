//! Fencing tokens of a quorum: a majority proposes one, and a majority confirms it.

use std::sync::Arc;
use std::time::Duration;

use lock_store::{Failure, Instant, StoreError};

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
        let (servers, enough) = (self.nodes.len(), self.majority());
        let (mut proposed, mut highest, mut gone) = (0, 0, 0);
        let decide = |proposal: Option<u64>| {
            match proposal {
                Some(next) => (proposed, highest) = (proposed + 1, next.max(highest)),
                None => gone += 1,
            }
            match proposed >= enough {
                true => Some(Some(highest)),
                false => (gone > servers - enough).then_some(None),
            }
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
        let (servers, enough) = (self.nodes.len(), self.majority());
        let (mut kept, mut refused) = (0, 0);
        let decide = |keeps| {
            match keeps {
                true => kept += 1,
                false => refused += 1,
            }
            match kept >= enough {
                true => Some(true),
                false => (refused > servers - enough).then_some(false),
            }
        };
        // A failed server may have kept the tokens without a reply.
        self.decide(replies, decide).await
    }
}
