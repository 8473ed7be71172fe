//! Deliberate mistakes of a server. The checks must find them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use lock_runtime::LockKey;
use lock_store::{
    Acquire, Acquired, AcquiredAll, Answer, Busy, Claim, Fenced, FoundHolder, Instant, Owner,
    Permits, Queue, Release, Released, Renewal, Renewed, Store, StoreFuture,
};
use lock_testkit_core::store_decorator::{Interceptor, Reply, Request};

use crate::server::answer;
use crate::world::now;

/// What the server does wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// A release ends any owner's hold.
    ReleasesWithoutOwnerCheck,
    /// A renewal that finds its key gone, or held by another owner, takes it.
    RenewsBySetting,
    /// A renewal that finds its key gone reports success.
    RenewsWhatIsGone,
    /// Tokens come from a counter that is lost with the data.
    PlainCounter,
    /// A grant is trusted longer than the store keeps it: leases are half as long as requested.
    GrantsForTooShort,
    /// The results of unknown outcomes are not undone.
    NeverUndoes,
    /// An undo ends the hold, but leaves the place in the queue.
    LeavesThePlace,
    /// A hand-over is told to a second waiter, too.
    HandsOverToTwo,
    /// The reply to one acquire is also given to the next one, of another owner.
    RepliesToAnother,
    /// A hold that is granted again brings the token of the last grant, of any owner.
    RepeatsTokens,
    /// A semaphore has one more permit than it says.
    OnePermitTooMany,
    /// A writer is let in beside readers.
    WritesBesideReaders,
    /// An acquire that goes on to those behind it does not tell them.
    ServesThoseBehindSilently,
    /// In the client's store: holds of a slot that has half moved are renewed together or not at
    /// all.
    RenewsOnlyTogether,
}

/// What mistakes need to remember.
pub(crate) struct Wrong {
    mistake: Option<Mistake>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    counter: u64,
    granted: BTreeMap<LockKey, Acquired>,
    queued: BTreeMap<LockKey, Vec<Owner>>,
}

impl std::fmt::Debug for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.mistake)
    }
}

impl Wrong {
    pub(crate) fn new(mistake: Option<Mistake>) -> Self {
        Self {
            mistake,
            state: Mutex::default(),
        }
    }

    pub(crate) fn forget(&self) {
        *self.state() = State::default();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn is(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    pub(crate) fn token(&self, token: Option<u64>) -> Option<u64> {
        let token = token?;
        if self.is(Mistake::PlainCounter) {
            let mut state = self.state();
            state.counter += 1;
            return Some(state.counter);
        }
        if self.is(Mistake::RepeatsTokens) {
            let mut state = self.state();
            if state.counter == 0 || token % 3 == 0 {
                state.counter = token;
            }
            return Some(state.counter);
        }
        Some(token)
    }

    /// Another waiter that is told of this hand-over, too.
    pub(crate) fn second(&self, owner: Owner) -> Option<Owner> {
        if !self.is(Mistake::HandsOverToTwo) {
            return None;
        }
        let state = self.state();
        let line = state.queued.values().find(|line| line.contains(&owner))?;
        line.iter().rev().find(|other| **other != owner).copied()
    }
}

impl Wrong {
    fn wrong_share(&self, permits: &mut Option<Permits>) {
        let Some(permits) = permits else { return };
        if self.is(Mistake::OnePermitTooMany) && permits.of != Permits::READ_WRITE {
            permits.of += 1;
        }
        if self.is(Mistake::WritesBesideReaders) && permits.of == Permits::READ_WRITE {
            permits.count = 1;
        }
    }

    fn wrong_claim(&self, claim: &Claim) -> Claim {
        let mut claim = claim.clone();
        self.wrong_share(&mut claim.permits);
        claim
    }

    fn wrong_acquire(&self, request: &Acquire) -> Acquire {
        let mut request = request.clone();
        self.wrong_share(&mut request.claim.permits);
        if self.is(Mistake::GrantsForTooShort) {
            request.lease /= 2;
            request.first_lease /= 2;
        }
        request
    }

    fn wrong_reply(&self, request: &Acquire, reply: Acquired) -> Acquired {
        let mut state = self.state();
        let key = &request.claim.key;
        match reply {
            Acquired::Busy(Busy { queued, .. }) => {
                if queued {
                    let line = state.queued.entry(key.clone()).or_default();
                    line.push(request.claim.owner);
                }
                if self.is(Mistake::RepliesToAnother)
                    && let Some(other) = state.granted.remove(key)
                {
                    return other;
                }
                reply
            }
            Acquired::Granted(mut granted) => {
                state.granted.insert(key.clone(), reply);
                drop(state);
                granted.token = self.token(granted.token);
                Acquired::Granted(granted)
            }
            Acquired::Conflict => reply,
        }
    }

    fn acquire(&self, store: &dyn Store, request: &Acquire) -> Acquired {
        let wrong = self.wrong_acquire(request);
        let reply = answer(store.acquire(wrong, now()));
        self.wrong_reply(request, reply)
    }

    fn acquire_all(&self, store: &dyn Store, requests: &[Acquire]) -> AcquiredAll {
        let wrong = requests.iter().map(|one| self.wrong_acquire(one));
        match answer(store.acquire_all(wrong.collect(), now())) {
            AcquiredAll::Granted { tokens, until } => AcquiredAll::Granted {
                tokens: tokens.into_iter().map(|token| self.token(token)).collect(),
                until,
            },
            other => other,
        }
    }

    fn renew(&self, store: &dyn Store, holds: &[Renewal]) -> Vec<Renewed> {
        let wrong = |hold: &Renewal| {
            Renewal::new(
                self.wrong_claim(&hold.claim),
                if self.is(Mistake::GrantsForTooShort) {
                    hold.lease / 2
                } else {
                    hold.lease
                },
            )
        };
        let wrong = holds.iter().map(wrong).collect();
        let mut replies = answer(store.renew(wrong, now()));
        for (hold, reply) in holds.iter().zip(&mut replies) {
            if *reply == Renewed::Gone && self.is(Mistake::RenewsBySetting) {
                Self::end_any(store, &hold.claim);
                let mut request = Acquire::new(hold.claim.clone(), hold.lease);
                request.first_lease = hold.lease;
                request.queue = Queue::Barge;
                let _ = answer(store.acquire(request, now()));
                *reply = Renewed::Renewed;
            }
            if self.is(Mistake::RenewsWhatIsGone) {
                *reply = Renewed::Renewed;
            }
        }
        replies
    }

    /// Ends any hold of an exclusive lock.
    fn end_any(store: &dyn Store, claim: &Claim) -> bool {
        let found = answer(store.inspect(claim.key.clone(), now()));
        let holder = found.and_then(|found| found.holder);
        let (Some(FoundHolder::Owner { owner, .. }), None) = (holder, claim.permits) else {
            return false;
        };
        let claim = Claim::new(claim.key.clone(), owner, None);
        let request = Release::new(claim, Duration::ZERO);
        let _ = answer(store.release(vec![request], now()));
        true
    }

    fn fence(&self, store: &dyn Store, claim: &Claim) -> Fenced {
        match answer(store.fence(self.wrong_claim(claim), now())) {
            Fenced::Token(token) => Fenced::Token(self.token(Some(token)).unwrap_or(token)),
            other => other,
        }
    }

    fn release(&self, store: &dyn Store, requests: &[Release]) -> Vec<Released> {
        let wrong =
            |request: &Release| Release::new(self.wrong_claim(&request.claim), request.keep);
        let wrong = requests.iter().map(wrong).collect();
        let mut replies = answer(store.release(wrong, now()));
        if self.is(Mistake::ReleasesWithoutOwnerCheck) {
            for (request, reply) in requests.iter().zip(&mut replies) {
                if *reply == Released::NotHeld && Self::end_any(store, &request.claim) {
                    *reply = Released::Released;
                }
            }
        }
        replies
    }

    fn abandon(&self, store: &dyn Store, request: &Acquire) -> Released {
        if self.is(Mistake::NeverUndoes) {
            return Released::Released;
        }
        if self.is(Mistake::LeavesThePlace) {
            let release = Release::new(request.claim.clone(), Duration::ZERO);
            return self.release(store, &[release])[0];
        }
        answer(store.abandon(self.wrong_acquire(request), now()))
    }
}

impl Interceptor for Wrong {
    fn intercept<'s>(
        &'s self,
        store: &'s dyn Store,
        request: Request,
        by: Instant,
    ) -> StoreFuture<'s, Reply> {
        let value = match request {
            Request::Acquire(request) => Reply::Acquire(self.acquire(store, &request)),
            Request::AcquireAll(requests) => Reply::AcquireAll(self.acquire_all(store, &requests)),
            Request::Renew(holds) => Reply::Renew(self.renew(store, &holds)),
            Request::Fence(claim) => Reply::Fence(self.fence(store, &claim)),
            Request::Release(requests) => Reply::Release(self.release(store, &requests)),
            Request::Abandon(request) => Reply::Abandon(self.abandon(store, &request)),
            Request::Shrink(claim, permits) => {
                return Request::Shrink(self.wrong_claim(&claim), permits).send(store, by);
            }
            right => return right.send(store, by),
        };
        let link = store.link();
        Box::pin(std::future::ready(Ok(Answer::new(value, link))))
    }
}
