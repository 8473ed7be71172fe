//! Several keys at once: one transaction makes a key for each of them.

use std::sync::Arc;

use futures_util::future::try_join_all;
use lock_store::{Acquire, AcquiredAll, Granted, Instant};

use crate::acquire::AskingRequest;
use crate::connection::{Live, is_lease_gone};
use crate::errors::{Fault, too_many};
use crate::given_up::GivenUp;
use crate::names::{self, Child, ChildPlace};
use crate::rank::{ChildStanding, Listing};
use crate::store::{Carried, Inner, reads};
use crate::wire;

/// What servers allow in one transaction (`--max-txn-ops`), without the condition that each has.
const MOST: usize = 127;
/// So many are read in the same transaction if they are not free.
const MOST_READ: usize = MOST / 2;
/// How often something may change between a reading and the transaction after it.
const TRIES: u32 = 4;

impl Inner {
    pub(crate) async fn acquire_all(
        &self,
        live: &Arc<Live>,
        requests: &[Acquire],
        given_up: &GivenUp,
    ) -> Carried<AcquiredAll> {
        if requests.len() > MOST {
            return Err(Fault::Limit(too_many(requests.len(), MOST)));
        }
        let owners = requests.iter().map(|request| request.claim.owner);
        let flight = given_up.begin(live, owners.collect()).await?;
        let sent = self.clock.now();
        let all = requests.iter().map(|request| AskingRequest {
            node: self.node(&request.claim.key),
            request,
            flight: Arc::clone(&flight),
            sent,
        });
        let all: Vec<AskingRequest<'_>> = all.collect();
        let mut listings = match all.len() > MOST_READ {
            true => self.list_all(live, &all).await?,
            // They are free, most likely.
            false => vec![Listing::default(); all.len()],
        };
        for _ in 0..TRIES {
            let children = match self.sort(&all, &listings) {
                Ok(children) => children,
                Err(refused) => return Ok(refused),
            };
            let own: Option<Vec<Child>> = children.iter().cloned().collect();
            if let Some(own) = own {
                let revisions: Vec<i64> = listings.iter().map(|it| it.revision).collect();
                return self.hold_all(live, &all, &own, &revisions).await;
            }
            match self.make_all(live, &all, &children).await? {
                MadeKeys::Done(own, revision) => {
                    let revisions = vec![revision; own.len()];
                    return self.hold_all(live, &all, &own, &revisions).await;
                }
                MadeKeys::Found(found) => listings = found,
                MadeKeys::NotNow => listings = self.list_all(live, &all).await?,
            }
        }
        Ok(AcquiredAll::Busy(0))
    }

    async fn list_all(&self, live: &Arc<Live>, all: &[AskingRequest<'_>]) -> Carried<Vec<Listing>> {
        try_join_all(all.iter().map(|asking| self.list(live, &asking.node))).await
    }

    /// For each request, its key if it has the lock already, or none if the lock is free.
    fn sort(
        &self,
        all: &[AskingRequest<'_>],
        listings: &[Listing],
    ) -> Result<Vec<Option<Child>>, AcquiredAll> {
        let mut children = Vec::new();
        for (at, (asking, listing)) in all.iter().zip(listings).enumerate() {
            if listing.is_foreign {
                return Err(AcquiredAll::Conflict(at));
            }
            let claim = &asking.request.claim;
            let child = self.find(listing, claim.owner, claim.permits);
            let place = child.as_ref().map(|child| child.place);
            match listing.rank(claim.permits, place).standing {
                ChildStanding::Holds => children.push(child),
                ChildStanding::OtherKind => return Err(AcquiredAll::Conflict(at)),
                ChildStanding::Waits(_) => return Err(AcquiredAll::Busy(at)),
            }
        }
        Ok(children)
    }

    /// Makes the keys that are not there, if nothing has changed.
    async fn make_all(
        &self,
        live: &Arc<Live>,
        all: &[AskingRequest<'_>],
        children: &[Option<Child>],
    ) -> Carried<MadeKeys> {
        let lease = match all.iter().map(|asking| asking.request.lease).max() {
            Some(longest) => self.lease_for(live, longest).await?,
            None => live.epoch.lease,
        };
        let is_read = all.len() <= MOST_READ;
        let sent: Instant = self.clock.now();
        let (mut same, mut puts, mut otherwise) = (Vec::new(), Vec::new(), Vec::new());
        for (AskingRequest { node, request, .. }, child) in all.iter().zip(children) {
            let claim = &request.claim;
            let path = node.child(&names::of_request(claim.owner));
            match child {
                Some(child) => same.push(wire::made_by(&path, child.made)),
                None => {
                    same.push(wire::none_below(&node.below()));
                    if is_read {
                        same.push(wire::made_by(&node.path, 0));
                    }
                    puts.push(wire::put(&path, &names::value_of(claim.permits), lease));
                }
            }
            if is_read {
                otherwise.extend(reads(node));
            }
        }
        let flight = all.first().map(|asking| &asking.flight);
        let mut made = match live.txn(same, puts, otherwise, flight).await {
            Err(fault) if is_lease_gone(&fault) => {
                self.note_lease_gone(live, lease);
                return Ok(MadeKeys::NotNow);
            }
            made => made?,
        };
        if !made.succeeded {
            if !is_read {
                return Ok(MadeKeys::NotNow);
            }
            let mut listings = Vec::new();
            for asking in all {
                listings.push(self.listing(&asking.node, &mut made, sent)?);
            }
            return Ok(MadeKeys::Found(listings));
        }
        self.session
            .leases
            .prove(lease, sent, made.header.raft_term);
        let revision = made.header.revision;
        let all = all.iter().zip(children).map(|(asking, child)| {
            let claim = &asking.request.claim;
            let new = || Child {
                name: names::of_request(claim.owner),
                owner: claim.owner,
                permits: claim.permits,
                kept: false,
                place: ChildPlace(revision),
                made: revision,
                lease,
            };
            child.clone().unwrap_or_else(new)
        });
        Ok(MadeKeys::Done(all.collect(), revision))
    }

    async fn hold_all(
        &self,
        live: &Arc<Live>,
        all: &[AskingRequest<'_>],
        children: &[Child],
        revisions: &[i64],
    ) -> Carried<AcquiredAll> {
        let (mut tokens, mut until) = (Vec::new(), None);
        let held = all.iter().zip(children).zip(revisions).enumerate();
        for (at, ((asking, child), revision)) in held {
            match self.hold(live, asking, child, *revision).await? {
                None => {
                    for (asking, child) in all.iter().zip(children) {
                        self.holds.lock().forget(&asking.node, child);
                        let flight = Some(&asking.flight);
                        self.delete(live, &asking.node, child, flight).await?;
                    }
                    return Ok(AcquiredAll::Busy(at));
                }
                Some(Granted {
                    token, until: ends, ..
                }) => {
                    tokens.push(token);
                    until = until.into_iter().chain(ends).min();
                }
            }
        }
        Ok(AcquiredAll::Granted { tokens, until })
    }
}

/// What has become of a transaction.
enum MadeKeys {
    /// The keys of all requests, and its revision.
    Done(Vec<Child>, i64),
    /// Something is there.
    Found(Vec<Listing>),
    /// Something was there, and was not read.
    NotNow,
}
