//! [`EtcdEngine::acquire`]: a key in the lock's queue, and what its place means.
//!
//! Most locks are free. So the first transaction takes a lock of which there is nothing, and reads
//! what there is otherwise. Only who waits, or takes a part of a lock, sends a second one.

use std::sync::Arc;

use lock_store::ordered::{Attempt, EngineQueue, KeyNode, OrderedEngine, OwnStanding, text_of};
use lock_store::rules::ChildStanding;
use lock_store::timing::trusted;
use lock_store::{Acquire, Acquired, Granted, Instant, Queue};

use crate::base::TokenSource;
use crate::connection::{Live, OwnerFlight};
use crate::errors::Fault;
use crate::names::{self, Child};
use crate::progress::AttemptsProgress;
use crate::rank::{Listing, OwnDetails};
use crate::store::{Carried, EtcdEngine, base_of, reads_with_base};
use crate::wire;

/// How often a lease is asked for that is gone before it is used.
const TRIES: u32 = 4;

/// A request on its way, and when it was sent.
pub(crate) struct AskingRequest<'r> {
    pub(crate) node: KeyNode,
    pub(crate) request: &'r Acquire,
    pub(crate) progress: &'r AttemptsProgress,
    pub(crate) flight: Arc<OwnerFlight>,
    pub(crate) sent: Instant,
}

impl EtcdEngine {
    pub(crate) async fn acquire(
        &self,
        on: &Attempt<'_, Self>,
        request: &Acquire,
    ) -> Carried<Acquired> {
        let &Attempt { live, progress } = on;
        let owner = request.claim.owner;
        let asking = &AskingRequest {
            node: self.node(&request.claim.key),
            request,
            progress,
            flight: progress.begin(live, vec![owner]).await?,
            sent: self.clock.now(),
        };
        let node = &asking.node;
        if let Some(before) = request.instead_of {
            let ended = self.own.lock().get(node, before).cloned();
            if let Some(ended) = ended {
                let listing = self.create(live, asking, Some(&ended.child), false).await?;
                return self.decide(live, asking, listing, false).await;
            }
        }
        // Who waits asks each second. A reading costs the servers less.
        let is_known = self.own.lock().get(node, owner).is_some();
        if is_known {
            progress.note_may_have_made();
            let listing = self.list(live, node).await?;
            if listing
                .claimed(owner, request.claim.permits)
                .next()
                .is_some()
            {
                return self.decide(live, asking, listing, true).await;
            }
        }
        let (is_new, listing) = self.take(live, asking).await?;
        if is_new {
            return self.decide(live, asking, listing, false).await;
        }
        // First of all: an earlier attempt may have made it, and its answer was lost.
        let permits = request.claim.permits;
        if listing.claimed(owner, permits).next().is_some() {
            progress.note_may_have_made();
            return self.decide(live, asking, listing, true).await;
        }
        if listing.is_foreign {
            return Ok(Acquired::Conflict);
        }
        self.own.lock().remove(node, owner);
        let rank = listing.rank(permits, None);
        let holds = match rank.standing {
            ChildStanding::OtherKind => return Ok(Acquired::Conflict),
            ChildStanding::Holds => true,
            ChildStanding::Waits(_) if request.queue != Queue::Join => {
                return Ok(rank.busy(false));
            }
            ChildStanding::Waits(_) => false,
        };
        let listing = self.create(live, asking, None, holds).await?;
        self.decide(live, asking, listing, false).await
    }

    /// Takes a lock of which there is nothing. False: there is something.
    async fn take(&self, live: &Arc<Live>, asking: &AskingRequest<'_>) -> Carried<(bool, Listing)> {
        let (node, request) = (&asking.node, asking.request);
        let path = node.child(&names::of_request(request.claim.owner));
        let value = text_of(request.claim.permits);
        for _ in 0..TRIES {
            let lease = self.lease_for(live, request.lease).await?;
            let sent = self.clock.now();
            let nothing = vec![
                wire::none_below(&node.below()),
                wire::made_by(&node.path, 0),
            ];
            let put = vec![wire::put(&path, &value, lease), wire::get(&base_of(node))];
            let taken = live.txn(nothing, put, reads_with_base(node), Some(&asking.flight));
            let taken = asking.progress.make(taken).await;
            let Some(mut taken) = self.drop_lease_if_gone(live, lease, taken)? else {
                continue;
            };
            if !taken.succeeded {
                return Ok((false, self.listing(node, &mut taken, sent)?));
            }
            self.session
                .leases
                .prove(lease, sent, taken.header.raft_term);
            let revision = taken.header.revision;
            let child = Child::new(&request.claim, revision, lease);
            taken.skip();
            let base = self.base_in(&mut taken)?;
            let source = TokenSource { revision, base };
            return Ok((true, Listing::new(vec![child], source, false)));
        }
        Err(Fault::Unreadable)
    }

    /// Makes a key for the request, and reads all. With `ended`, a hold ends.
    async fn create(
        &self,
        live: &Arc<Live>,
        asking: &AskingRequest<'_>,
        ended: Option<&Child>,
        holds: bool,
    ) -> Carried<Listing> {
        let (node, request) = (&asking.node, asking.request);
        let path = node.child(&names::of_request(request.claim.owner));
        let value = text_of(request.claim.permits);
        for _ in 0..TRIES {
            let lease = match holds {
                true => self.lease_for(live, request.lease).await?,
                false => live.epoch.lease,
            };
            let sent = self.clock.now();
            let mut make = Vec::new();
            if let Some(ended) = ended {
                make.push(wire::delete(&node.child(&ended.name)));
            }
            make.push(wire::put(&path, &value, lease));
            let skipped = make.len();
            make.extend(reads_with_base(node));
            let absent = vec![wire::made_by(&path, 0)];
            let made = live.txn(absent, make, reads_with_base(node), Some(&asking.flight));
            let made = asking.progress.make(made).await;
            let Some(mut made) = self.drop_lease_if_gone(live, lease, made)? else {
                continue;
            };
            if made.succeeded {
                (0..skipped).for_each(|_| made.skip());
                if let Some(ended) = ended {
                    self.own.lock().forget(node, ended);
                }
            }
            return self.listing(node, &mut made, sent);
        }
        Err(Fault::Unreadable)
    }

    /// What the place of a request's key means, and what becomes of it. `was_there` is said of one
    /// that an earlier attempt has made.
    async fn decide(
        &self,
        live: &Arc<Live>,
        asking: &AskingRequest<'_>,
        listing: Listing,
        was_there: bool,
    ) -> Carried<Acquired> {
        let (node, request) = (&asking.node, asking.request);
        let claim = &request.claim;
        let Some(mut child) = listing.claimed(claim.owner, claim.permits).next().cloned() else {
            return Ok(Acquired::Conflict);
        };
        if listing.is_foreign {
            return self.undo(live, asking, &child, Acquired::Conflict).await;
        }
        let rank = listing.rank(child.permits, Some(&child));
        let obstacle = match &rank.standing {
            ChildStanding::OtherKind => {
                return self.undo(live, asking, &child, Acquired::Conflict).await;
            }
            ChildStanding::Holds => {
                let held = self.hold(live, asking, &child, listing.read).await?;
                return Ok(match held {
                    Some(mut granted) => {
                        granted.limit = rank.limit;
                        Acquired::Granted(granted)
                    }
                    None => rank.busy(false),
                });
            }
            ChildStanding::Waits(obstacle) => obstacle,
        };
        if request.queue != Queue::Join && !was_there {
            return self.undo(live, asking, &child, rank.busy(false)).await;
        }
        // It was made as a hold, and another took the room. Nobody keeps that lease alive.
        let lease = live.epoch.lease;
        if child.lease != lease {
            let flight = &asking.flight;
            let moved = self.rewrite(live, node, &child, lease, flight).await?;
            if moved.is_none() {
                return Ok(rank.busy(false));
            }
            child.lease = lease;
        }
        self.note_place(node, request, &child, OwnDetails::default());
        self.watch(live, node, child.permits, obstacle, &listing.read)
            .await?;
        Ok(rank.busy(true))
    }

    async fn undo(
        &self,
        live: &Arc<Live>,
        asking: &AskingRequest<'_>,
        child: &Child,
        reply: Acquired,
    ) -> Carried<Acquired> {
        self.own.lock().forget(&asking.node, child);
        self.delete(live, &asking.node, child, Some(&asking.flight))
            .await?;
        Ok(reply)
    }

    /// Notes the hold, whose tokens are made of `source`. `None`: it has ended meanwhile.
    pub(crate) async fn hold(
        &self,
        live: &Arc<Live>,
        asking: &AskingRequest<'_>,
        child: &Child,
        source: TokenSource,
    ) -> Carried<Option<Granted>> {
        let (node, request) = (&asking.node, asking.request);
        let ends = self.clock.now() + request.lease;
        {
            let mut requests = self.own.lock();
            match requests.same(node, child) {
                Some(own) => {
                    // An earlier attempt may have moved it to another lease.
                    own.child = child.clone();
                    own.standing = own.standing.held_until(ends);
                }
                None => {
                    let standing = OwnStanding::Holds(ends);
                    requests.put(node, child.clone(), standing, OwnDetails::default());
                }
            }
        }
        self.ends.notify_one();
        let lease = match self.session.leases.fits(child.lease, request.lease) {
            true => child.lease,
            false => {
                let lease = self.lease_for(live, request.lease).await?;
                let moved = self
                    .rewrite(live, node, child, lease, &asking.flight)
                    .await?;
                if moved.is_none() {
                    return Ok(None);
                }
                lease
            }
        };
        self.session.leases.need(lease, ends);
        let mut granted = Granted::new(None, 0);
        if request.tokens > 0 {
            let minted = self.mint(
                live,
                node,
                child.owner,
                request.tokens,
                source,
                child.permits.is_some(),
                &asking.flight,
            );
            let Some((first, reserved)) = minted.await? else {
                return Ok(None);
            };
            (granted.token, granted.reserved) = (Some(first), reserved);
        }
        let until = self.session.leases.trusted_until(lease);
        let until = until.unwrap_or(asking.sent);
        granted.until = (until < asking.sent + trusted(request.lease)).then_some(until);
        Ok(Some(granted))
    }
}
