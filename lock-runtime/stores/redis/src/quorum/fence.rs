//! Fencing tokens of a quorum: a majority proposes one, and a majority confirms it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lock_store::StoreError;

use super::majority::too_few;
use super::round::Round;
use super::store::QuorumStore;
use crate::commands::quorum::{Take, Taken, young};

impl QuorumStore {
    /// The second phase of a fenced grant: whether a majority keeps the tokens, and has the round still.
    pub(super) async fn confirm(
        &self,
        round: &Arc<Round>,
        token: u64,
        tokens: u32,
        by: Instant,
    ) -> Result<bool, StoreError> {
        let sent = self.clock.now();
        let mut replies = self.each(|_, node| {
            let round = Arc::clone(round);
            async move {
                node.confirm_token(&round.key, round.owner, token, tokens, sent, by)
                    .await
            }
        });
        let (servers, enough) = (self.nodes.len(), self.majority());
        let (mut kept, mut refused, mut failures) = (0, 0, Vec::new());
        while let Some((at, reply)) = replies.recv().await {
            match reply {
                Ok(true) => kept += 1,
                Ok(false) => refused += 1,
                Err(failure) => failures.push((at, failure.error)),
            }
            if kept >= enough {
                return Ok(true);
            }
            if refused > servers - enough {
                return Ok(false);
            }
        }
        // Some could have kept it, and did not say so.
        Err(too_few(&self.members, servers, &failures))
    }

    /// The token that a majority proposes to a hold that exists; `None` if no majority can have it still.
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
        let mut replies = self.each(|_, node| {
            let take = Arc::clone(&take);
            async move { node.take(&take, sent, by).await }
        });
        let (servers, enough) = (self.nodes.len(), self.majority());
        let (mut proposed, mut highest, mut gone, mut failures) = (0, 0, 0, Vec::new());
        while let Some((at, reply)) = replies.recv().await {
            match reply.map(|answer| answer.value) {
                Ok(Taken::Granted { next, counts: true }) => {
                    (proposed, highest) = (proposed + 1, highest.max(next.unwrap_or(0)));
                }
                Ok(Taken::Granted { counts: false, .. }) => failures.push((at, young())),
                Ok(Taken::Held { .. } | Taken::Conflict) => gone += 1,
                Err(failure) => failures.push((at, failure.error)),
            }
            if proposed >= enough {
                return Ok(Some(highest));
            }
            if gone > servers - enough {
                return Ok(None);
            }
        }
        Err(too_few(&self.members, servers, &failures))
    }
}
