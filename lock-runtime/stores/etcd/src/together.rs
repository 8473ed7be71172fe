//! Several keys at once: one transaction makes a key for each of them.

use std::sync::Arc;

use futures_util::future::try_join_all;
use lock_store::ordered::{Attempt, OrderedEngine, text_of};
use lock_store::{Acquire, AcquiredAll, Granted};

use crate::acquire::AskingRequest;
use crate::base::TokenSource;
use crate::connection::Live;
use crate::names::{self, Child};
use crate::rank::Listing;
use crate::store::{Carried, EtcdEngine, base_of, reads};
use crate::wire::{self, Compare, RequestOp};

/// What servers allow in one transaction (`--max-txn-ops`: 128), without the condition that each
/// has, and without the reading of the base.
pub(crate) const MOST: usize = 127;
/// At most this many are read in the same transaction if they are not free, beside the session and
/// the base.
const MOST_READ: usize = (MOST - 1) / 2;
/// How often something may change between a reading and the transaction after it.
const TRIES: u32 = 4;

impl EtcdEngine {
    pub(crate) async fn acquire_all(
        &self,
        on: &Attempt<'_, Self>,
        requests: &[Acquire],
    ) -> Carried<AcquiredAll> {
        let &Attempt { live, progress } = on;
        let owners = requests.iter().map(|request| request.claim.owner);
        let flight = progress.begin(live, owners.collect()).await?;
        let sent = self.clock.now();
        let all = requests.iter().map(|request| AskingRequest {
            node: self.node(&request.claim.key),
            request,
            progress,
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
            let children = own_children(&all, &listings);
            if children.iter().any(Option::is_some) {
                progress.note_may_have_made();
            }
            if let Some(refused) = refused(&all, &listings, &children) {
                return self.undo_all(live, &all, &children, refused).await;
            }
            let own: Option<Vec<Child>> = children.iter().cloned().collect();
            if let Some(own) = own {
                let sources: Vec<TokenSource> =
                    listings.iter().map(|listing| listing.read).collect();
                return self.hold_all(live, &all, &own, &sources).await;
            }
            match self.make_all(on, &all, &children).await? {
                MadeKeys::Done(own, sources) => {
                    return self.hold_all(live, &all, &own, &sources).await;
                }
                MadeKeys::Found(found) => listings = found,
                MadeKeys::NotNow => listings = self.list_all(live, &all).await?,
            }
        }
        let children = own_children(&all, &listings);
        let busy = AcquiredAll::Busy(0);
        self.undo_all(live, &all, &children, busy).await
    }

    /// What an earlier attempt has made, whose answer was lost, is not there any more after this.
    async fn undo_all(
        &self,
        live: &Arc<Live>,
        all: &[AskingRequest<'_>],
        children: &[Option<Child>],
        reply: AcquiredAll,
    ) -> Carried<AcquiredAll> {
        for (asking, child) in all.iter().zip(children) {
            let Some(child) = child else {
                continue;
            };
            self.own.lock().forget(&asking.node, child);
            let flight = Some(&asking.flight);
            self.delete(live, &asking.node, child, flight).await?;
        }
        Ok(reply)
    }

    async fn list_all(&self, live: &Arc<Live>, all: &[AskingRequest<'_>]) -> Carried<Vec<Listing>> {
        try_join_all(all.iter().map(|asking| self.list(live, &asking.node))).await
    }

    /// Makes the keys that are not there, if nothing has changed.
    async fn make_all(
        &self,
        on: &Attempt<'_, Self>,
        all: &[AskingRequest<'_>],
        children: &[Option<Child>],
    ) -> Carried<MadeKeys> {
        let &Attempt { live, progress } = on;
        let lease = match all.iter().map(|asking| asking.request.lease).max() {
            Some(longest) => self.lease_for(live, longest).await?,
            None => live.epoch.lease,
        };
        let sent = self.clock.now();
        let is_read = all.len() <= MOST_READ;
        let (same, puts, otherwise) = wish_for(all, children, lease, is_read);
        // Behind them, the base is read.
        let puts_done = puts.len().saturating_sub(1);
        let flight = all.first().map(|asking| &asking.flight);
        let made = progress.make(live.txn(same, puts, otherwise, flight)).await;
        let Some(mut made) = self.drop_lease_if_gone(live, lease, made)? else {
            return Ok(MadeKeys::NotNow);
        };
        // One base for all: a key of another namespace is written again for its tokens.
        let is_based = |asking: &AskingRequest<'_>| {
            let first = all.first();
            first.is_some_and(|first| first.node.namespace == asking.node.namespace)
        };
        if !made.succeeded {
            if !is_read {
                return Ok(MadeKeys::NotNow);
            }
            let mut listings = Vec::new();
            for asking in all {
                listings.push(self.listing_alone(&asking.node, &mut made, sent)?);
            }
            let base = self.base_in(&mut made)?;
            for (asking, listing) in all.iter().zip(&mut listings) {
                listing.read.base = base.filter(|_| is_based(asking));
            }
            return Ok(MadeKeys::Found(listings));
        }
        let (revision, term) = (made.header.revision, made.header.raft_term);
        self.session.leases.prove(lease, sent, term);
        (0..puts_done).for_each(|_| made.skip());
        let base = self.base_in(&mut made)?;
        let source = |asking| TokenSource {
            revision,
            base: base.filter(|_| is_based(asking)),
        };
        let sources = all.iter().map(source).collect();
        let all = all.iter().zip(children).map(|(asking, child)| {
            let new = || Child::new(&asking.request.claim, revision, lease);
            child.clone().unwrap_or_else(new)
        });
        Ok(MadeKeys::Done(all.collect(), sources))
    }

    async fn hold_all(
        &self,
        live: &Arc<Live>,
        all: &[AskingRequest<'_>],
        children: &[Child],
        sources: &[TokenSource],
    ) -> Carried<AcquiredAll> {
        let (mut tokens, mut until) = (Vec::new(), None);
        let held = all.iter().zip(children).zip(sources).enumerate();
        for (at, ((asking, child), source)) in held {
            match self.hold(live, asking, child, *source).await? {
                None => {
                    let children: Vec<_> = children.iter().cloned().map(Some).collect();
                    let busy = AcquiredAll::Busy(at);
                    return self.undo_all(live, all, &children, busy).await;
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

/// For each request, its key if it is there.
fn own_children(all: &[AskingRequest<'_>], listings: &[Listing]) -> Vec<Option<Child>> {
    let own = |(asking, listing): (&AskingRequest<'_>, &Listing)| {
        let claim = &asking.request.claim;
        listing.claimed(claim.owner, claim.permits).next().cloned()
    };
    all.iter().zip(listings).map(own).collect()
}

/// Why not all of these are held, or would be, if so.
fn refused(
    all: &[AskingRequest<'_>],
    listings: &[Listing],
    children: &[Option<Child>],
) -> Option<AcquiredAll> {
    let mut each = all.iter().zip(listings).zip(children).enumerate();
    each.find_map(|(at, ((asking, listing), child))| {
        listing.refusal(at, asking.request.claim.permits, child.as_ref())
    })
}

/// The conditions and the parts of a transaction that makes the keys which are not there, and the
/// parts of what it does otherwise.
fn wish_for(
    all: &[AskingRequest<'_>],
    children: &[Option<Child>],
    lease: i64,
    is_read: bool,
) -> (Vec<Compare>, Vec<RequestOp>, Vec<RequestOp>) {
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
                puts.push(wire::put(&path, &text_of(claim.permits), lease));
            }
        }
        if is_read {
            otherwise.extend(reads(node));
        }
    }
    if let Some(AskingRequest { node, .. }) = all.first() {
        puts.push(wire::get(&base_of(node)));
        if is_read {
            otherwise.push(wire::get(&base_of(node)));
        }
    }
    (same, puts, otherwise)
}

/// What has become of a transaction.
enum MadeKeys {
    /// The keys of all requests, and what their tokens are made of.
    Done(Vec<Child>, Vec<TokenSource>),
    /// Something is there.
    Found(Vec<Listing>),
    /// Something was there, and was not read.
    NotNow,
}
