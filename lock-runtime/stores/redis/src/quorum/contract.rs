//! The methods of the contract, each decided by a majority.

use lock_store::{
    Ability, Acquire, Acquired, Asked, Capabilities, Claim, ClientId, ClientMessage, Failure,
    Fenced, Finished, Instant, LeaseLimits, Link, Logged, Namespace, Owner, Release, Released,
    ServerHealth, Store, StoreError, StoreErrorKind, StoreFuture,
};

use super::store::{LINK, QuorumStore, answer_of_quorum};
use crate::commands::tell::forget_unused_views;

const SHARES: &str = "\
    read-write locks and semaphores are not available on a quorum: three holders on three servers \
    can each have two of them, so counting holders does not work; use an exclusive lock, or use \
    one server, sentinels or a cluster";
const FAIR: &str = "\
    `fair` is not available on a quorum: its servers know nothing of each other, so each would \
    have another order of arrival; leave it out, or use one server, sentinels or a cluster";
const RATE: &str = "\
    rate limiters are not available on a quorum: each server would count other calls; use one \
    server, sentinels or a cluster for them";
const LATCH: &str = "\
    latches are not available on a quorum: each server would count down for other calls; use one \
    server, sentinels or a cluster for them";

const LEASES: &str = "\
    a server of this quorum counts again that long after a restart, when it may have forgotten \
    who has a key; ask for less, or write a longer `?rejoin_after=…` in the URL of all clients";

/// Several keys are taken one after the other: each has a majority of its own.
impl Store for QuorumStore {
    lock_store::boxed! {
        renew: renew_all, inspect: inspect_all, force_release: force_release_all,
    }

    fn acquire(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Acquired> {
        Box::pin(async move {
            if request.claim.permits.is_some() {
                return refused(SHARES);
            }
            Self::acquire(self, &request, by).await
        })
    }

    fn tell(&self, to: ClientId, message: ClientMessage, by: Instant) -> Asked<'_, bool> {
        Box::pin(async move {
            let mut told = self.each(move |_, node| {
                let message = message.clone();
                async move { node.tell_client(to, &message, by).await }
            });
            let (mut heard, mut failure) = (false, None);
            while let Some((_, reply)) = told.recv().await {
                match reply {
                    Ok(by_one) => heard |= by_one,
                    Err(error) => failure = Some(error),
                }
                if heard {
                    return Ok(true);
                }
            }
            failure.map_or(Ok(false), Err)
        })
    }

    fn await_connection(&self, by: Instant) -> Asked<'_, ()> {
        Box::pin(self.await_first_attempt(by))
    }

    fn is_connected(&self) -> bool {
        let up = self.nodes.iter().filter(|node| node.servers.is_up());
        up.count() >= self.majority()
    }

    fn servers(&self, by: Instant) -> Asked<'_, Vec<ServerHealth>> {
        Box::pin(self.diagnose(by))
    }

    fn log_findings(&self, by: Instant) -> Logged<'_> {
        Box::pin(async move {
            if !self.is_diagnosed().await {
                // If this fails, the first request reports it.
                let _ = self.diagnose_others(by).await;
            }
            self.is_diagnosed().await
        })
    }

    fn fence(&self, claim: Claim, by: Instant) -> StoreFuture<'_, Fenced> {
        Box::pin(async move {
            let Some(round) = self.round_of(claim.owner) else {
                return Ok(answer_of_quorum(Fenced::Gone));
            };
            let proposed = self.propose(&round, by).await;
            let Some(token) = proposed.map_err(Failure::without_effect)? else {
                return Ok(answer_of_quorum(Fenced::Gone));
            };
            let confirmed = self.confirm(&round, token, 1, by).await;
            Ok(answer_of_quorum(
                match confirmed.map_err(Failure::without_effect)? {
                    true => Fenced::Token(token),
                    false => Fenced::Gone,
                },
            ))
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
            // Start them all at once.
            let ending: Vec<_> = ending.collect();
            let mut ended = Vec::new();
            for (owner, ending) in ending {
                let Some((round, replies)) = ending else {
                    ended.push(Ok(Released::NotHeld));
                    continue;
                };
                let one = self.decide_end(&round, replies, by).await;
                if one.is_ok() {
                    self.forget(owner, &round);
                }
                ended.push(one);
            }
            let ended: Result<_, _> = ended.into_iter().collect();
            Ok(answer_of_quorum(ended?))
        })
    }

    fn abandon(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Released> {
        Box::pin(async move {
            let owner = request.claim.owner;
            let Some(round) = self.round_of(owner) else {
                return Ok(answer_of_quorum(Released::NotHeld));
            };
            let ended = self.undo(&round, by).await;
            self.forget(owner, &round);
            Ok(answer_of_quorum(ended))
        })
    }

    fn owner_of(&self, shown: Owner) -> Owner {
        self.owner_of_round(shown)
    }

    fn capabilities(&self) -> Capabilities {
        let mut can = Capabilities::all();
        can.shares = Ability::no(SHARES);
        can.fair = Ability::no(FAIR);
        can.rate = Ability::no(RATE);
        can.latch = Ability::no(LATCH);
        let longest = self.members.rejoin_after();
        if !longest.is_zero() {
            let longest = longest.min(*can.leases.range.end());
            can.leases = LeaseLimits::new(*can.leases.range.start()..=longest, LEASES);
        }
        can
    }

    fn forget_unused_views(&self, has_any: &dyn Fn(&Namespace) -> bool) -> bool {
        forget_unused_views(&self.nodes, has_any)
    }

    fn ping(&self, by: Instant) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let replies = self.each(|_, node| async move { node.ping(by).await });
            let mut answered = 0;
            let decide = |_| {
                answered += 1;
                (answered >= self.majority()).then_some(answer_of_quorum(()))
            };
            let heard = self.decide(replies, decide).await;
            heard.map_err(Failure::without_effect)
        })
    }

    fn link(&self) -> Link {
        LINK
    }

    fn finish(&self, by: Instant) -> Finished<'_> {
        Box::pin(self.wait_for_all_ends(by))
    }

    fn close(&self) {
        self.nodes.iter().for_each(|node| node.close());
    }

    fn is_closed(&self) -> bool {
        self.nodes.iter().all(|node| node.is_closed())
    }
}

fn refused<T>(reason: &str) -> Result<T, Failure> {
    let error = StoreError::new(StoreErrorKind::Refused, reason);
    Err(Failure::without_effect(error))
}
