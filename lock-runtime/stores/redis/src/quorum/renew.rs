//! Renewal: a hold lasts when a majority has renewed it.

use std::sync::Arc;

use lock_store::{Failure, Instant, Renewal, Renewed, Replied, Store};

use super::majority::Tally;
use super::store::{QuorumStore, answer_of_quorum};

fn renewed(tally: &Tally) -> Renewed {
    match tally.verdict() {
        Some(true) => Renewed::Renewed,
        // What is left keeps others out until the owner knows, and releases it.
        Some(false) => Renewed::Gone,
        None => Renewed::Unanswered,
    }
}

impl QuorumStore {
    pub(super) async fn renew_all(
        &self,
        holds: Vec<Renewal>,
        by: Instant,
    ) -> Replied<Vec<Renewed>> {
        let now = self.clock.now();
        let in_round = |hold: &Renewal| {
            let round = self.round_of(hold.claim.owner)?;
            round.prolong(now + hold.lease + self.command_timeout);
            let mut renewal = hold.clone();
            renewal.claim.owner = round.owner;
            Some(renewal)
        };
        let rounds: Vec<Option<Renewal>> = holds.iter().map(in_round).collect();
        let known: Vec<Renewal> = rounds.iter().flatten().cloned().collect();
        let mut verdicts = self.renew_known(known, by).await?.into_iter();
        let renewed = rounds.iter().map(|round| {
            let verdict = round.as_ref().and_then(|_| verdicts.next());
            verdict.unwrap_or(Renewed::Gone)
        });
        Ok(answer_of_quorum(renewed.collect()))
    }

    async fn renew_known(&self, known: Vec<Renewal>, by: Instant) -> Result<Vec<Renewed>, Failure> {
        if known.is_empty() {
            return Ok(Vec::new());
        }
        let servers = self.nodes.len();
        let mut tallies = vec![Tally::of(servers); known.len()];
        let (known, mut failures) = (Arc::new(known), Vec::new());
        let mut replies = self.each(|_, node| {
            let known = Arc::clone(&known);
            async move { node.renew(known.to_vec(), by).await }
        });
        while tallies.iter().any(|tally| tally.verdict().is_none())
            && let Some((at, reply)) = replies.recv().await
        {
            match reply {
                Ok(answer) => {
                    for (tally, reply) in tallies.iter_mut().zip(answer.value) {
                        if reply != Renewed::Unanswered {
                            tally.count(reply != Renewed::Gone);
                        }
                    }
                }
                Err(failure) => failures.push((at, failure.error)),
            }
        }
        // Of an even number of servers, half can say that a hold is gone.
        let is_open = tallies.iter().all(|tally| tally.verdict().is_none());
        if is_open && failures.len() > servers - self.majority() {
            return self.too_few(&failures);
        }
        Ok(tallies.iter().map(renewed).collect())
    }
}
