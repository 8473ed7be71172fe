//! The verbs of the contract, each by the word of a majority.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lock_store::{
    Acquire, Acquired, AcquiredAll, Answer, Asked, Claim, Failure, Fenced, Inspection, LatchCall,
    LatchCounted, LatchFound, LatchSet, Link, LockKey, RateRequest, Rated, Release, Released,
    Renewal, Renewed, ServerHealth, Store, StoreError, StoreErrorKind, StoreFuture, Wish,
};

use super::round::Round;
use super::{LINK, QuorumStore};

const SHARES: &str = "read-write locks and semaphores can't be had on a quorum: three holders on three servers each can all have two \
                      of them, so a count of holders does not hold; use an exclusive lock, or one server, sentinels or a cluster";
const FAIR: &str = "`fair` can't be had on a quorum: its servers know nothing of each other, so each would have another order of arrival; \
                    leave it out, or use one server, sentinels or a cluster";
const RATE: &str = "rate limiters can't be had on a quorum: each server would count other calls; use one server, sentinels or a \
                    cluster for them";
const LATCH: &str = "latches can't be had on a quorum: each server would count down for other calls; use one server, sentinels or a \
                     cluster for them";

impl Store for QuorumStore {
    fn acquire(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Acquired> {
        Box::pin(async move {
            if request.claim.share.is_some() {
                return refused(SHARES);
            }
            Self::acquire(self, &request, by).await
        })
    }

    fn connected(&self, by: Instant) -> Asked<'_, ()> {
        Box::pin(self.first_attempt(by))
    }

    fn servers(&self, by: Instant) -> Asked<'_, Vec<ServerHealth>> {
        Box::pin(self.diagnose(by))
    }

    fn log_findings(&self, by: Instant) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(async move {
            if !self.is_diagnosed().await {
                // A failure is told by the first request.
                let _ = self.diagnose_others(by).await;
            }
            self.is_diagnosed().await
        })
    }

    fn renew(&self, holds: Vec<Renewal>, by: Instant) -> StoreFuture<'_, Vec<Renewed>> {
        Box::pin(async move { self.renew_all(&holds, by).await })
    }

    fn acquire_all(&self, _: Vec<Acquire>, _: Instant) -> StoreFuture<'_, AcquiredAll> {
        // Each of them has a majority of its own.
        Box::pin(async { Ok(said(AcquiredAll::Apart)) })
    }

    fn fence(&self, claim: Claim, by: Instant) -> StoreFuture<'_, Fenced> {
        Box::pin(async move {
            let Some(round) = self.round_of(claim.owner) else {
                return Ok(said(Fenced::Gone));
            };
            let failed = |error| Failure {
                error,
                unknown: None,
            };
            let Some(token) = self.propose(&round, by).await.map_err(failed)? else {
                return Ok(said(Fenced::Gone));
            };
            let confirmed = self.confirm(&round, token, 1, by).await;
            Ok(said(match confirmed.map_err(failed)? {
                true => Fenced::Token(token),
                false => Fenced::Gone,
            }))
        })
    }

    fn release(&self, requests: Vec<Release>, by: Instant) -> StoreFuture<'_, Vec<Released>> {
        Box::pin(async move {
            let now = self.clock.now();
            let ending = requests.iter().map(|request| {
                let (owner, keep) = (request.claim.owner, request.keep);
                let keep_until = (!keep.is_zero()).then_some(now + keep);
                let round = self.round_of(owner);
                let ending = round.map(|round| {
                    let replies = self.end_everywhere(&round, true, keep_until, by);
                    (round, replies)
                });
                (owner, ending)
            });
            // All of them at once.
            let ending: Vec<_> = ending.collect();
            let mut ended = Vec::new();
            for (owner, ending) in ending {
                let Some((round, replies)) = ending else {
                    ended.push(Ok(Released::NotHeld));
                    continue;
                };
                let one = self.ended(&round, replies, by).await;
                if one.is_ok() {
                    self.forget(owner, &round);
                }
                ended.push(one);
            }
            let ended: Result<_, _> = ended.into_iter().collect();
            Ok(said(ended?))
        })
    }

    fn shrink(&self, _: Claim, _: u32, _: Instant) -> StoreFuture<'_, Released> {
        Box::pin(async { refused(SHARES) })
    }

    fn resize(&self, _: LockKey, _: u32, _: Instant) -> StoreFuture<'_, bool> {
        Box::pin(async { refused(SHARES) })
    }

    fn abandon(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Released> {
        Box::pin(async move {
            let owner = request.claim.owner;
            let Some(round) = self.round_of(owner) else {
                return Ok(said(Released::NotHeld));
            };
            let ended = self.undo(&round, by).await;
            self.forget(owner, &round);
            Ok(said(ended))
        })
    }

    fn inspect(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<Inspection>> {
        Box::pin(async move { self.inspect_all(key, by).await })
    }

    fn force_release(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<bool>> {
        Box::pin(async move {
            let mut replies = self.each(|_, node| {
                let key = key.clone();
                async move { node.force_release(key, by).await.map(|answer| answer.value) }
            });
            let (mut ended, mut conflicts, mut answered, mut failures) = (false, 0, 0, Vec::new());
            while let Some((at, reply)) = replies.recv().await {
                match reply {
                    Ok(Some(one)) => (ended, answered) = (ended || one, answered + 1),
                    Ok(None) => (conflicts, answered) = (conflicts + 1, answered + 1),
                    Err(failure) => failures.push((at, failure.error)),
                }
                // A hold has parts on a majority, so a majority of answers has seen one of them.
                if conflicts >= self.majority() {
                    return Ok(said(None));
                }
                if answered >= self.majority() {
                    return Ok(said(Some(ended)));
                }
            }
            self.too_few(&failures)
        })
    }

    fn rate(&self, _: RateRequest, _: Instant) -> StoreFuture<'_, Rated> {
        Box::pin(async { refused(RATE) })
    }

    fn latch_set(
        &self,
        _: LatchCall,
        _: u32,
        _: Duration,
        _: Instant,
    ) -> StoreFuture<'_, LatchSet> {
        Box::pin(async { refused(LATCH) })
    }

    fn latch_count_down(&self, _: LatchCall, _: Instant) -> StoreFuture<'_, LatchCounted> {
        Box::pin(async { refused(LATCH) })
    }

    fn latch_look(&self, _: LockKey, _: Instant) -> StoreFuture<'_, LatchFound> {
        Box::pin(async { refused(LATCH) })
    }

    fn latch_wait(&self, _: LatchCall, _: Instant) -> StoreFuture<'_, LatchFound> {
        Box::pin(async { refused(LATCH) })
    }

    fn latch_leave(&self, _: LatchCall, _: Instant) -> StoreFuture<'_, ()> {
        Box::pin(async { refused(LATCH) })
    }

    fn refuses(&self, wish: Wish) -> Option<String> {
        let longest = self.roster.rejoin_after();
        let outlives = |time: Duration| time > longest && !longest.is_zero();
        match wish {
            Wish::Shares => Some(SHARES.to_owned()),
            Wish::Fair => Some(FAIR.to_owned()),
            Wish::Rate => Some(RATE.to_owned()),
            Wish::Latch => Some(LATCH.to_owned()),
            Wish::Lease(lease) if outlives(lease) => Some(format!(
                "the lease is {lease:?}, and a server of this quorum counts again {longest:?} after a restart, when it may have forgotten \
                 who has it: ask for a shorter lease, or write a longer `?rejoin_after=…` in the URL of all clients"
            )),
            Wish::Kept(keep) if outlives(keep) => Some(format!(
                "`hold_at_least` is {keep:?}, and a server of this quorum counts again {longest:?} after a restart, when it may have \
                 forgotten that the key is still taken: ask for less, or write a longer `?rejoin_after=…` in the URL of all clients"
            )),
            Wish::Lease(_) | Wish::Kept(_) => None,
        }
    }

    fn ping(&self, by: Instant) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let mut replies = self.each(|_, node| async move { node.ping(by).await });
            let (mut answered, mut failures) = (0, Vec::new());
            while let Some((at, reply)) = replies.recv().await {
                match reply {
                    Ok(_) => answered += 1,
                    Err(failure) => failures.push((at, failure.error)),
                }
                if answered >= self.majority() {
                    return Ok(said(()));
                }
            }
            self.too_few(&failures)
        })
    }

    fn link(&self) -> Link {
        LINK
    }

    fn close(&self) {
        self.nodes.iter().for_each(|node| node.close());
    }

    fn is_closed(&self) -> bool {
        self.nodes.iter().all(|node| node.is_closed())
    }
}

/// How many servers said what to one renewal.
#[derive(Clone, Default)]
struct Tally {
    renewed: usize,
    gone: usize,
}

impl QuorumStore {
    async fn renew_all(
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
                                Renewed::Renewed => tally.renewed += 1,
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
        let renewed = holds.iter().zip(&rounds).map(|(hold, round)| {
            let (Some(round), Some(tally)) = (round, round.as_ref().and(tallies.next())) else {
                return Renewed::Gone;
            };
            if tally.renewed >= enough {
                Renewed::Renewed
            } else if tally.gone > servers - enough {
                // Nobody will release it: what is left of it goes with it.
                self.forget(hold.claim.owner, round);
                drop(self.end_everywhere(round, true, None, by));
                Renewed::Gone
            } else {
                Renewed::Unanswered
            }
        });
        Ok(said(renewed.collect()))
    }

    async fn inspect_all(
        &self,
        key: LockKey,
        by: Instant,
    ) -> Result<Answer<Option<Inspection>>, Failure> {
        let mut replies = self.each(|_, node| {
            let key = key.clone();
            async move { node.inspect(key, by).await.map(|answer| answer.value) }
        });
        let (servers, enough) = (self.nodes.len(), self.majority());
        let mut holders: HashMap<String, Vec<Option<Duration>>> = HashMap::new();
        let (mut free, mut conflicts, mut failures) = (0, 0, Vec::new());
        while let Some((at, reply)) = replies.recv().await {
            match reply {
                Ok(Some(Inspection {
                    holder: Some(holder),
                    remaining,
                    ..
                })) => holders.entry(holder).or_default().push(remaining),
                Ok(Some(_)) => free += 1,
                Ok(None) => conflicts += 1,
                Err(failure) => failures.push((at, failure.error)),
            }
            if conflicts >= enough {
                return Ok(said(None));
            }
            let most = holders.iter_mut().max_by_key(|(_, parts)| parts.len());
            let parts: usize = most.as_ref().map_or(0, |(_, parts)| parts.len());
            if let Some((holder, remaining)) = most
                && parts >= enough
            {
                // As long as a majority lasts; no lease is the longest.
                remaining.sort_by_key(|one| std::cmp::Reverse(one.unwrap_or(Duration::MAX)));
                return Ok(said(Some(Inspection {
                    holder: Some(holder.clone()),
                    holders: 1,
                    remaining: remaining[enough - 1],
                    waiting: 0,
                })));
            }
            let held: usize = holders.values().map(Vec::len).sum();
            let answered = held + free + conflicts;
            // One that does not answer may have a part as well.
            if parts + (servers - answered) < enough {
                return Ok(said(Some(Inspection {
                    holder: None,
                    holders: 0,
                    remaining: None,
                    waiting: 0,
                })));
            }
        }
        // Whoever has a part, and may have another at a server that did not answer, is taken for the holder.
        let most = holders.into_iter().max_by_key(|(_, parts)| parts.len());
        match most {
            Some((holder, remaining)) if failures.len() <= servers - enough => {
                let longest = |one: &Option<Duration>| one.unwrap_or(Duration::MAX);
                Ok(said(Some(Inspection {
                    holder: Some(holder),
                    holders: 1,
                    remaining: remaining.into_iter().max_by_key(longest).flatten(),
                    waiting: 0,
                })))
            }
            _ => self.too_few(&failures),
        }
    }
}

fn said<T>(value: T) -> Answer<T> {
    Answer { value, link: LINK }
}

fn refused<T>(reason: &str) -> Result<T, Failure> {
    Err(Failure {
        error: StoreError::new(StoreErrorKind::Refused, reason),
        unknown: None,
    })
}
