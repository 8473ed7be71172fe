//! Renewal: a hold lasts when a majority has renewed it.

use std::sync::Arc;

use lock_store::{Failure, Instant, Renewal, Renewed, Replied, Store};

use super::store::{QuorumStore, answer_of_quorum};

/// The servers' replies to one renewal, counted.
#[derive(Clone, Default)]
struct Tally {
    renewed: usize,
    gone: usize,
}

impl Tally {
    fn count(&mut self, reply: Renewed) {
        match reply {
            Renewed::Renewed | Renewed::Until(_) => self.renewed += 1,
            Renewed::Gone => self.gone += 1,
            Renewed::Unanswered => {}
        }
    }

    /// `Unanswered` as long as it is open.
    fn verdict(&self, servers: usize, enough: usize) -> Renewed {
        if self.renewed >= enough {
            Renewed::Renewed
        } else if self.gone > servers - enough {
            // What is left keeps others out until the owner knows, and releases it.
            Renewed::Gone
        } else {
            Renewed::Unanswered
        }
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
        let (servers, enough) = (self.nodes.len(), self.majority());
        let verdict = |tally: &Tally| tally.verdict(servers, enough);
        let mut tallies = vec![Tally::default(); known.len()];
        let (known, mut failures) = (Arc::new(known), Vec::new());
        let mut replies = self.each(|_, node| {
            let known = Arc::clone(&known);
            async move { node.renew(known.to_vec(), by).await }
        });
        while tallies
            .iter()
            .any(|tally| verdict(tally) == Renewed::Unanswered)
            && let Some((at, reply)) = replies.recv().await
        {
            match reply {
                Ok(answer) => {
                    let replies = tallies.iter_mut().zip(answer.value);
                    replies.for_each(|(tally, reply)| tally.count(reply));
                }
                Err(failure) => failures.push((at, failure.error)),
            }
        }
        if failures.len() > servers - enough {
            return self.too_few(&failures);
        }
        Ok(tallies.iter().map(verdict).collect())
    }
}
