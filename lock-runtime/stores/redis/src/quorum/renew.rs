//! Renewal: a hold lasts when a majority has renewed it.

use std::sync::Arc;

use lock_store::{Answer, Failure, Instant, Renewal, Renewed, Store};

use super::round::Round;
use super::store::{QuorumStore, said};

/// The servers' replies to one renewal, counted.
#[derive(Clone, Default)]
struct Tally {
    renewed: usize,
    gone: usize,
}

impl QuorumStore {
    pub(super) async fn renew_all(
        &self,
        holds: &[Renewal],
        by: Instant,
    ) -> Result<Answer<Vec<Renewed>>, Failure> {
        let now = self.clock.now();
        let rounds: Vec<Option<Arc<Round>>> = holds
            .iter()
            .map(|hold| self.round_of(hold.claim.owner))
            .collect();
        let known = holds.iter().zip(&rounds);
        let known: Vec<Renewal> = known
            .filter_map(|(hold, round)| {
                let round = round.as_ref()?;
                round.prolong(now + hold.lease + self.command_timeout);
                let mut renewal = hold.clone();
                renewal.claim.owner = round.owner;
                Some(renewal)
            })
            .collect();
        let mut tallies = vec![Tally::default(); known.len()];
        let (servers, enough) = (self.nodes.len(), self.majority());
        let decided = |tally: &Tally| tally.renewed >= enough || tally.gone > servers - enough;
        let mut failures = Vec::new();
        if !known.is_empty() {
            let known = Arc::new(known);
            let mut replies = self.each(|_, node| {
                let known = Arc::clone(&known);
                async move { node.renew(known.to_vec(), by).await }
            });
            while !tallies.iter().all(decided)
                && let Some((at, reply)) = replies.recv().await
            {
                match reply {
                    Ok(answer) => {
                        for (tally, renewed) in tallies.iter_mut().zip(answer.value) {
                            match renewed {
                                Renewed::Renewed | Renewed::Until(_) => tally.renewed += 1,
                                Renewed::Gone => tally.gone += 1,
                                Renewed::Unanswered => {}
                            }
                        }
                    }
                    Err(failure) => failures.push((at, failure.error)),
                }
            }
            if failures.len() > servers - enough {
                return self.too_few(&failures);
            }
        }
        let mut tallies = tallies.iter();
        let renewed = rounds.iter().map(|round| {
            let Some(tally) = round.as_ref().and_then(|_| tallies.next()) else {
                return Renewed::Gone;
            };
            if tally.renewed >= enough {
                Renewed::Renewed
            } else if tally.gone > servers - enough {
                // What is left keeps others out until the owner knows, and releases it.
                Renewed::Gone
            } else {
                Renewed::Unanswered
            }
        });
        Ok(said(renewed.collect()))
    }
}
