//! One round: every server is asked for its part, and a majority decides.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lock_store::timing::{FALLBACK_POLL, trusted};
use lock_store::{
    Acquire, Acquired, Answer, Failure, Link, LockKey, Owner, Queue, StoreError, StoreErrorKind,
};
use tokio::sync::Notify;

use super::ending::Ends;
use super::votes::{Verdict, Votes};
use super::{LINK, QuorumStore, chance};
use crate::RedisStore;
use crate::node::{self, Take, Taken};

/// The longest pause after the first split vote; twice as long after each more.
const SPLIT_PAUSE: Duration = Duration::from_millis(4);
/// After so many split votes in a row, it is for the engine to try again.
const SPLIT_VOTES: u32 = 6;
/// A round that gives up takes its parts with it, so whoever is met so often in a row has the lock.
const MET_AGAIN: u32 = 3;

/// A round, and what is known of its parts.
#[derive(Debug)]
pub(super) struct Round {
    /// Its own owner token, which no other round ever has.
    pub(super) owner: Owner,
    pub(super) key: LockKey,
    state: Mutex<State>,
    /// A part has become known, or the round is over.
    changed: Notify,
    /// How it ends on each server.
    pub(super) ends: Ends,
}

#[derive(Debug)]
struct State {
    parts: Vec<Part>,
    until: Instant,
    over: bool,
}

/// What one server has of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// It was asked, and neither an answer nor the end of its time has come.
    Asked,
    Has,
    /// And it won't.
    HasNot,
    /// It may have it, or get it yet by a command over this link.
    Unknown(Link),
}

impl Round {
    pub(super) fn new(owner: Owner, key: LockKey, servers: usize, until: Instant) -> Arc<Self> {
        Arc::new(Self {
            owner,
            key,
            state: Mutex::new(State {
                parts: vec![Part::Asked; servers],
                until,
                over: false,
            }),
            changed: Notify::new(),
            ends: Ends::new(servers),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When all its parts have ended by themselves, and whatever was sent for it is lost.
    pub(super) fn until(&self) -> Instant {
        self.state().until
    }

    pub(super) fn prolong(&self, until: Instant) {
        let mut state = self.state();
        state.until = state.until.max(until);
    }

    /// What is known of one server's part.
    pub(super) fn part(&self, at: usize) -> Part {
        self.state().parts[at]
    }

    fn settle(&self, at: usize, reply: &Result<Answer<Taken>, Failure>) {
        let part = match reply {
            Ok(answer) => match answer.value {
                Taken::Granted { .. } => Part::Has,
                Taken::Held { .. } | Taken::Conflict => Part::HasNot,
            },
            Err(failure) => failure.unknown.map_or(Part::HasNot, Part::Unknown),
        };
        self.state().parts[at] = part;
        self.changed.notify_waiters();
    }

    /// Nothing more is to be sent for it.
    pub(super) fn is_over(&self) {
        self.state().over = true;
        self.changed.notify_waiters();
    }

    /// Waits until a server can be reached, unless the round is over before.
    async fn reaches(&self, server: &RedisStore, by: Instant) -> Result<(), StoreError> {
        let over = async {
            loop {
                let changed = self.changed.notified();
                if self.state().over {
                    return;
                }
                changed.await;
            }
        };
        tokio::select! {
            biased;
            reached = server.reached(by) => reached,
            () = over => {
                let text = "it could not be reached";
                Err(StoreError::new(StoreErrorKind::Disconnected, text))
            }
        }
    }

    /// What has become of the question to one server. It has a time limit of its own.
    pub(super) async fn settled(&self, at: usize) -> Part {
        loop {
            let changed = self.changed.notified();
            match self.part(at) {
                Part::Asked => {}
                part => return part,
            }
            changed.await;
        }
    }
}

impl QuorumStore {
    pub(super) async fn acquire(
        &self,
        request: &Acquire,
        by: Instant,
    ) -> Result<Answer<Acquired>, Failure> {
        let owner = request.claim.owner;
        let answer = |value| Answer { value, link: LINK };
        if let Some(previous) = request.instead_of.and_then(|owner| self.round_of(owner)) {
            self.end_hold(&previous, by).await?;
            // Others have their turn first.
            return Ok(answer(Acquired::Busy {
                remaining: Some(Duration::ZERO),
                queued: false,
            }));
        }
        if let Some(earlier) = self.round_of(owner) {
            self.undo(&earlier, by).await;
        }
        let started = self.clock.now();
        let (mut splits, mut met) = (0, (String::new(), 0));
        loop {
            let began = self.clock.now();
            let until = began + request.lease;
            let round = Round::new(
                self.next_owner(),
                request.claim.key.clone(),
                self.nodes.len(),
                until,
            );
            // From here on it may have parts. Who drops this future abandons the owner, and so the round.
            self.keep(owner, &round);
            let verdict = self.run(&round, request, by).await;
            let (verdict, token) = match verdict {
                Verdict::Granted { highest } if request.tokens > 0 => {
                    let confirmed = self.confirm(&round, highest, request.tokens, by).await;
                    match confirmed {
                        Ok(true) => (Verdict::Granted { highest }, Some(highest)),
                        Ok(false) => (Verdict::Split, None),
                        Err(error) => (Verdict::Failed(error), None),
                    }
                }
                verdict => (verdict, None),
            };
            if let Verdict::Granted { .. } = verdict {
                return Ok(answer(Acquired::Granted { token }));
            }
            self.forget(owner, &round);
            // Servers that said no need not be asked, so a lock that somebody has is told at once.
            self.undo(&round, by).await;
            let verdict = match verdict {
                Verdict::Perhaps { holder, remaining } => {
                    let times = if met.0 == holder { met.1 + 1 } else { 1 };
                    met = (holder, times);
                    match met.1 < MET_AGAIN {
                        true => Verdict::Split,
                        // Each at another time: they could be split for long.
                        false => Verdict::Busy {
                            remaining: Some(
                                remaining
                                    .unwrap_or(FALLBACK_POLL)
                                    .min(FALLBACK_POLL / 2 + chance(FALLBACK_POLL / 2)),
                            ),
                        },
                    }
                }
                verdict => verdict,
            };
            let reply = match verdict {
                Verdict::Granted { .. } | Verdict::Split | Verdict::Perhaps { .. } => {
                    let pause = chance(SPLIT_PAUSE * (1 << splits));
                    splits += 1;
                    let now = self.clock.now();
                    // A round that is cut short would pass for silence of the servers.
                    let next = pause + 2 * now.saturating_duration_since(began);
                    if splits < SPLIT_VOTES && now + next < by {
                        self.clock.sleep_until(now + pause).await;
                        continue;
                    }
                    // Counted from when this was asked, which may be long ago.
                    let remaining = Some(now.saturating_duration_since(started) + pause);
                    let queued = false;
                    Acquired::Busy { remaining, queued }
                }
                Verdict::Busy { remaining } => {
                    let queued = false;
                    Acquired::Busy { remaining, queued }
                }
                Verdict::Conflict => Acquired::Conflict,
                Verdict::Failed(error) => {
                    // Whatever it left is ended by us.
                    let unknown = None;
                    return Err(Failure { error, unknown });
                }
            };
            return Ok(answer(reply));
        }
    }

    /// Asks every server, and waits until the answers decide.
    async fn run(&self, round: &Arc<Round>, request: &Acquire, by: Instant) -> Verdict {
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
                let reply = match round.reaches(&node, by).await {
                    Ok(()) => node.take(&take, sent, by).await,
                    Err(error) => Err(Failure {
                        error,
                        unknown: None,
                    }),
                };
                round.settle(at, &reply);
                reply.map(|answer| answer.value)
            }
        });
        let mut votes = Votes::new(self.nodes.len());
        let mut heard = vec![false; self.nodes.len()];
        while let Some((at, reply)) = replies.recv().await {
            votes.add(at, reply);
            heard[at] = true;
            let unheard = self.nodes.iter().zip(&heard).filter(|(_, heard)| !**heard);
            let unreachable = unheard.filter(|(node, _)| !node.is_up()).count();
            if let Some(verdict) = votes.verdict(&self.roster, unreachable) {
                return verdict;
            }
        }
        // The client's runtime ends.
        Verdict::Failed(super::too_few(&self.roster, self.nodes.len(), &[]))
    }

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
        Err(super::too_few(&self.roster, servers, &failures))
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
                Ok(Taken::Granted { counts: false, .. }) => failures.push((at, node::young())),
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
        Err(super::too_few(&self.roster, servers, &failures))
    }
}
