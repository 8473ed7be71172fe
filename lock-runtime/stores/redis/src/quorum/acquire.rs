//! Rounds for one request, until a majority has decided.

use std::sync::Arc;
use std::time::Duration;

use lock_store::timing::{FALLBACK_POLL, trusted};
use lock_store::{Acquire, Acquired, Busy, Failure, Granted, Holder, Instant, Queue, Replied};

use super::majority::too_few;
use super::round::Round;
use super::store::{QuorumStore, answer_of_quorum};
use super::votes::{QuorumVerdict, Votes};
use crate::commands::quorum::Take;
use crate::commands::tell::subscribe_view;
use crate::random;

/// The longest pause after the first split vote. It doubles with each further one.
const SPLIT_PAUSE: Duration = Duration::from_millis(4);
/// After this many split votes in a row, the engine decides when to try again.
const SPLIT_VOTES: u32 = 6;
/// A round that gives up ends its parts. So an owner that is met in this many rounds in a row has
/// the lock.
const MET_AGAIN: u32 = 3;

/// Which owner the rounds of one request met that may have the lock, and how often in a row.
#[derive(Default)]
struct Met {
    holder: String,
    times: u32,
}

impl Met {
    /// The verdict once it is clear whether the owner that was met has the lock.
    fn note(&mut self, verdict: QuorumVerdict) -> QuorumVerdict {
        let QuorumVerdict::Perhaps { holder, remaining } = verdict else {
            return verdict;
        };
        self.times = if self.holder == holder {
            self.times + 1
        } else {
            1
        };
        self.holder = holder;
        if self.times < MET_AGAIN {
            return QuorumVerdict::Split;
        }
        // Clients try again at random times: otherwise their votes could stay split for long.
        let again = FALLBACK_POLL / 2 + random::below(FALLBACK_POLL / 2);
        QuorumVerdict::Busy {
            holder: Some(Holder::parse(self.holder.as_bytes())),
            remaining: Some(remaining.unwrap_or(FALLBACK_POLL).min(again)),
        }
    }
}

impl QuorumStore {
    pub(super) async fn acquire(&self, request: &Acquire, by: Instant) -> Replied<Acquired> {
        subscribe_view(&self.nodes, &request.claim.key);
        let owner = request.claim.owner;
        if self.end_earlier(request, by).await? {
            // Others have their turn first.
            return Ok(answer_of_quorum(Acquired::busy(
                Some(Duration::ZERO),
                false,
            )));
        }
        let started = self.clock.now();
        let (mut splits, mut met) = (0, Met::default());
        loop {
            let began = self.clock.now();
            let (round_owner, until) = (self.next_owner(owner.request), began + request.lease);
            let key = request.claim.key.clone();
            let round = Round::new(round_owner, key, self.nodes.len(), until);
            // From here on the round may have parts. A caller that drops this future abandons the
            // owner, and so the round.
            self.keep(owner, &round);
            let verdict = match self.run_and_confirm(&round, request, by).await {
                Ok(granted) => return Ok(answer_of_quorum(Acquired::Granted(granted))),
                Err(verdict) => verdict,
            };
            self.forget(owner, &round);
            // Servers that refused need not be asked, so a busy lock is reported at once.
            self.undo(&round, by).await;
            let busy = match met.note(verdict) {
                QuorumVerdict::Granted { .. }
                | QuorumVerdict::Split
                | QuorumVerdict::Perhaps { .. } => {
                    let pause = random::below(SPLIT_PAUSE * (1 << splits));
                    splits += 1;
                    let now = self.clock.now();
                    // A round that is cut short would look like silence of the servers.
                    let next = pause + 2 * now.saturating_duration_since(began);
                    if splits < SPLIT_VOTES && now + next < by {
                        self.clock.sleep_until(now + pause).await;
                        continue;
                    }
                    // Counted from the start of this request, which may be long ago.
                    Busy::new(Some(now.saturating_duration_since(started) + pause), false)
                }
                QuorumVerdict::Busy { remaining, holder } => {
                    let mut busy = Busy::new(remaining, false);
                    busy.holder = holder;
                    busy
                }
                QuorumVerdict::Conflict => return Ok(answer_of_quorum(Acquired::Conflict)),
                // The quorum itself ends what the round left.
                QuorumVerdict::Failed(error) => return Err(Failure::without_effect(error)),
            };
            return Ok(answer_of_quorum(Acquired::Busy(busy)));
        }
    }

    /// Ends what earlier attempts of this request have taken. True if it was a hold.
    async fn end_earlier(&self, request: &Acquire, by: Instant) -> Result<bool, Failure> {
        if let Some(before) = request.instead_of
            && let Some(previous) = self.round_of(before)
        {
            self.end_hold(&previous, by).await?;
            // No request asks for it any more. The quorum still ends what servers carry out late.
            self.forget(before, &previous);
            return Ok(true);
        }
        if let Some(earlier) = self.round_of(request.claim.owner) {
            self.undo(&earlier, by).await;
        }
        Ok(false)
    }

    /// The grant of a majority, with a token that a majority keeps if one is asked for; or why
    /// there is none.
    async fn run_and_confirm(
        &self,
        round: &Arc<Round>,
        request: &Acquire,
        by: Instant,
    ) -> Result<Granted, QuorumVerdict> {
        let tokens = request.tokens;
        match self.run(round, request, by).await {
            QuorumVerdict::Granted { .. } if tokens == 0 => Ok(Granted::new(None, tokens)),
            QuorumVerdict::Granted { highest } => {
                match self.confirm(round, highest, tokens, by).await {
                    Ok(true) => Ok(Granted::new(Some(highest), tokens)),
                    Ok(false) => Err(QuorumVerdict::Split),
                    Err(error) => Err(QuorumVerdict::Failed(error)),
                }
            }
            verdict => Err(verdict),
        }
    }

    /// Asks every server, and waits until the answers decide.
    async fn run(&self, round: &Arc<Round>, request: &Acquire, by: Instant) -> QuorumVerdict {
        let sent = self.clock.now();
        let by = by.min(sent + trusted(request.lease));
        let take = Arc::new(Take {
            key: round.key.clone(),
            owner: round.owner,
            lease: request.lease,
            fenced: request.tokens > 0,
            listens: request.queue == Queue::Join,
        });
        let mut replies = self.each(|at, node| {
            let (round, take) = (Arc::clone(round), Arc::clone(&take));
            async move {
                let reply = match round.reach(&node, by).await {
                    Ok(()) => node.take(&take, sent, by).await,
                    Err(error) => Err(Failure::without_effect(error)),
                };
                round.note_reply(at, &reply);
                reply.map(|answer| answer.value)
            }
        });
        let mut votes = Votes::new(self.nodes.len());
        let mut heard = vec![false; self.nodes.len()];
        while let Some((at, reply)) = replies.recv().await {
            votes.add(at, reply);
            heard[at] = true;
            let unheard = self.nodes.iter().zip(&heard).filter(|(_, heard)| !**heard);
            let unreachable = unheard.filter(|(node, _)| !node.servers.is_up()).count();
            if let Some(verdict) = votes.verdict(&self.members, unreachable) {
                return verdict;
            }
        }
        // The client's runtime is shutting down.
        QuorumVerdict::Failed(too_few(&self.members, self.nodes.len(), &[]))
    }
}
