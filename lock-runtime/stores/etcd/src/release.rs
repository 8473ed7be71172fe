//! The ends of holds, renewals, and parts of a hold that are given back.

use std::sync::Arc;

use futures_util::future::{join, join_all, try_join_all};
use lock_store::ordered::{Attempt, EngineHolds, KeyNode, OrderedEngine, each_by, renewed_each};
use lock_store::timing::trusted;
use lock_store::{Acquire, Claim, Fenced, Instant, Release, Released, Renewal, Renewed};

use crate::connection::{Live, OwnerFlight};
use crate::errors::Fault;
use crate::leases::round_up_to_seconds;
use crate::names::{self, Child};
use crate::rank::{Listing, Own};
use crate::store::{Carried, EtcdEngine};
use crate::wire::{self, RequestOp};

/// Fewer questions than a transaction may have.
const AT_ONCE: usize = 100;

impl EngineHolds for EtcdEngine {
    async fn release(
        &self,
        on: &Attempt<'_, Self>,
        requests: &[Release],
    ) -> Carried<Vec<Released>> {
        let release = |request| self.release_one(on, request);
        try_join_all(requests.iter().map(release)).await
    }

    async fn abandon(&self, on: &Attempt<'_, Self>, request: &Acquire) -> Carried<Released> {
        let live = on.live;
        let claim = &request.claim;
        let (node, flight) = self.begin(on, claim).await?;
        let listing = self.list(live, &node).await?;
        let Some(child) = listing.claimed(claim.owner, claim.permits).next().cloned() else {
            self.own.lock().remove(&node, claim.owner);
            return Ok(Released::NotHeld);
        };
        let held = listing.is_holding(&child);
        let deleted = self.delete(live, &node, &child, Some(&flight)).await?;
        self.own.lock().remove(&node, claim.owner);
        Ok(Released::of(deleted && held))
    }

    /// One round trip: all are looked for together. Who needs a longer lease is written again,
    /// which may take longer, or be refused, while the others are known.
    async fn renew(
        &self,
        on: &Attempt<'_, Self>,
        renewals: &[Renewal],
        by: Instant,
    ) -> Carried<Vec<Renewed>> {
        let live = on.live;
        let asked = self.clock.now();
        let each_by = each_by(asked, by);
        let mut renewed = vec![Ok(Renewed::Gone); renewals.len()];
        let mut looks = Vec::new();
        let mut moves = Vec::new();
        for (at, renewal) in renewals.iter().enumerate() {
            let node = self.node(&renewal.claim.key);
            let Some(own) = self.held(&node, &renewal.claim) else {
                continue;
            };
            let wish = RenewalWish {
                at,
                node,
                child: own.child,
                renewal,
            };
            match self.session.leases.fits(wish.child.lease, renewal.lease) {
                true => looks.push(wish),
                false => moves.push(wish),
            }
        }
        let looked = join_all(looks.chunks(AT_ONCE).map(async |some| {
            let looked = self.clock.by(each_by, self.look_for(live, some)).await;
            match looked.unwrap_or(Err(Fault::GivenUp)) {
                Ok(there) => there.into_iter().map(Ok).collect(),
                Err(fault) => vec![Err(fault); some.len()],
            }
        }));
        let moved = join_all(moves.iter().map(async |wish| {
            let moved = self.clock.by(each_by, self.move_hold(on, wish)).await;
            moved.unwrap_or(Err(Fault::GivenUp))
        }));
        let (looked, moved) = join(looked, moved).await;
        let there = looked.into_iter().flatten().chain(moved);
        for (wish, is_there) in looks.iter().chain(&moves).zip(there) {
            renewed[wish.at] = is_there.map(|is_there| match is_there {
                true => self.prolong(wish, asked),
                false => {
                    self.own.lock().forget(&wish.node, &wish.child);
                    Renewed::Gone
                }
            });
        }
        renewed_each::<Self>(live, renewals, renewed)
    }

    async fn fence(&self, on: &Attempt<'_, Self>, claim: &Claim) -> Carried<Fenced> {
        let live = on.live;
        let (node, flight) = self.begin(on, claim).await?;
        let listing = self.list(live, &node).await?;
        if listing.is_foreign {
            return Ok(Fenced::Conflict);
        }
        let Some(own) = self.held(&node, claim) else {
            return Ok(Fenced::Gone);
        };
        if listing.named(&own.child.name).is_none() {
            self.own.lock().forget(&node, &own.child);
            return Ok(Fenced::Gone);
        }
        let is_shared = claim.permits.is_some();
        let minted = self.mint(
            live,
            &node,
            claim.owner,
            1,
            listing.read,
            is_shared,
            &flight,
        );
        Ok(match minted.await? {
            Some((token, _)) => Fenced::Token(token),
            None => Fenced::Gone,
        })
    }

    /// The child gets another value, at the same place.
    async fn shrink(
        &self,
        on: &Attempt<'_, Self>,
        claim: &Claim,
        permits: u32,
    ) -> Carried<Released> {
        let live = on.live;
        let (node, flight) = self.begin(on, claim).await?;
        let listing = self.list(live, &node).await?;
        let mut rest = claim.clone();
        if let Some(part) = &mut rest.permits {
            part.count = permits.min(part.count);
        }
        // Before a repeat, or after one.
        let child = [claim, &rest]
            .into_iter()
            .find_map(|claim| self.holding(&listing, claim));
        let Some(mut child) = child else {
            return Ok(Released::NotHeld);
        };
        let Some(mut part) = child.permits.filter(|part| part.count > permits) else {
            // As the servers have it: an earlier answer may have been lost.
            if let Some(own) = self.own.lock().same(&node, &child) {
                own.child = child;
            }
            return Ok(Released::Released);
        };
        part.count = permits;
        child.permits = Some(part);
        let lease = child.lease;
        let written = self.rewrite(live, &node, &child, lease, &flight).await?;
        if written.is_some()
            && let Some(own) = self.own.lock().get(&node, child.owner)
        {
            own.child = child;
        }
        Ok(Released::of(written.is_some()))
    }
}

impl EtcdEngine {
    /// The hold of this claim, as far as this client knows.
    fn held(&self, node: &KeyNode, claim: &Claim) -> Option<Own> {
        let mut requests = self.own.lock();
        requests.held(node, claim, self.clock.now()).cloned()
    }

    async fn begin(
        &self,
        on: &Attempt<'_, Self>,
        claim: &Claim,
    ) -> Carried<(KeyNode, Arc<OwnerFlight>)> {
        let &Attempt { live, progress } = on;
        let flight = progress.begin(live, vec![claim.owner]).await?;
        Ok((self.node(&claim.key), flight))
    }

    async fn release_one(&self, on: &Attempt<'_, Self>, request: &Release) -> Carried<Released> {
        let live = on.live;
        let (node, flight) = self.begin(on, &request.claim).await?;
        let child = match self.held(&node, &request.claim) {
            Some(own) => own.child,
            // One whose making had an unknown outcome.
            None => {
                let listing = self.list(live, &node).await?;
                match self.holding(&listing, &request.claim) {
                    Some(child) => child,
                    None => return Ok(Released::NotHeld),
                }
            }
        };
        let was_sent = self.note_end(&node, &child);
        let ended = match request.keep.is_zero() {
            true => self.delete(live, &node, &child, Some(&flight)).await?,
            false => self.keep(live, &node, &child, request, &flight).await?,
        };
        self.own.lock().forget(&node, &child);
        Ok(Released::of(ended || was_sent))
    }

    /// Notes that the end of a hold is sent. True if it was before, over another connection, and
    /// nobody else can have ended it.
    fn note_end(&self, node: &KeyNode, child: &Child) -> bool {
        let mut requests = self.own.lock();
        let Some(own) = requests.same(node, child) else {
            return false;
        };
        let was_sent = std::mem::replace(&mut own.details.end_sent, true);
        let until = self.session.leases.trusted_until(own.child.lease);
        was_sent && until.is_some_and(|until| until > self.clock.now())
    }

    /// Ends a hold, and keeps its lock taken for a while: by a key that outlives the client.
    async fn keep(
        &self,
        live: &Arc<Live>,
        node: &KeyNode,
        child: &Child,
        request: &Release,
        flight: &Arc<OwnerFlight>,
    ) -> Carried<bool> {
        let keep = request.keep;
        let seconds = round_up_to_seconds(keep);
        let lease = self.lease_to_keep(live, child.owner, seconds).await?;
        let path = node.child(&names::of_kept(child.owner, child.permits));
        let value = names::value_at(child.permits, child.place);
        let before = node.child(&child.name);
        let same = vec![wire::made_by(&before, child.made)];
        let both = vec![wire::delete(&before), wire::put(&path, &value, lease)];
        let until = self.clock.now() + keep;
        let kept = live.txn(same, both, Vec::new(), Some(flight)).await?;
        if kept.succeeded {
            let mut requests = self.own.lock();
            requests.keep(path, Some(until), kept.header.revision);
            drop(requests);
            self.ends.notify_one();
        }
        Ok(kept.succeeded)
    }

    fn holding(&self, listing: &Listing, claim: &Claim) -> Option<Child> {
        let child = listing.claimed(claim.owner, claim.permits).next();
        child.filter(|child| listing.is_holding(child)).cloned()
    }

    /// Whether each of these is there. If it is, the keep-alives before have prolonged its lease.
    async fn look_for(&self, live: &Arc<Live>, wishes: &[RenewalWish<'_>]) -> Carried<Vec<bool>> {
        let sent = self.clock.now();
        let look = |wish: &RenewalWish<'_>| wire::get(&wish.node.child(&wish.child.name));
        let looks: Vec<RequestOp> = wishes.iter().map(look).collect();
        let mut looked = live.txn(Vec::new(), looks, Vec::new(), None).await?;
        let mut there = Vec::new();
        for wish in wishes {
            let found = looked.found()?;
            let is_it = |kv: &&wire::StoredKey| kv.create_revision == wish.child.made;
            let found = found.iter().find(is_it);
            if let Some(kv) = found {
                let term = looked.header.raft_term;
                self.session.leases.prove(kv.lease, sent, term);
                self.note_lease(&wish.node, &wish.child, kv.lease);
            }
            there.push(found.is_some());
        }
        Ok(there)
    }

    /// Puts a hold under a lease that is long enough.
    async fn move_hold(&self, on: &Attempt<'_, Self>, wish: &RenewalWish<'_>) -> Carried<bool> {
        let &Attempt { live, progress } = on;
        let flight = progress.begin(live, vec![wish.child.owner]).await?;
        // It may have become smaller meanwhile.
        let own = self.own.lock().same(&wish.node, &wish.child).cloned();
        let Some(own) = own else {
            return Ok(false);
        };
        let lease = self.lease_for(live, wish.renewal.lease).await?;
        let moved = self.rewrite(live, &wish.node, &own.child, lease, &flight);
        Ok(moved.await?.is_some())
    }

    fn prolong(&self, wish: &RenewalWish<'_>, asked: Instant) -> Renewed {
        let (now, lease) = (self.clock.now(), wish.renewal.lease);
        let carrier = {
            let mut requests = self.own.lock();
            match requests.prolong(&wish.node, &wish.child, now, now + lease) {
                Some(own) => own.child.lease,
                None => return Renewed::Gone,
            }
        };
        self.ends.notify_one();
        self.session.leases.need(carrier, now + lease);
        match self.session.leases.trusted_until(carrier) {
            Some(until) if until < asked + trusted(lease) => Renewed::Until(until),
            Some(_) => Renewed::Renewed,
            None => Renewed::Gone,
        }
    }
}

/// A hold that is to be renewed.
struct RenewalWish<'r> {
    /// Its place among the requests.
    at: usize,
    node: KeyNode,
    child: Child,
    renewal: &'r Renewal,
}
