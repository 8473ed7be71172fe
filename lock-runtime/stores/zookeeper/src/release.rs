//! The ends of holds, renewals, and parts of a hold that are given back.

use lock_store::timing::trusted;
use lock_store::{Acquire, Claim, Fenced, Instant, Release, Released, Renewal, Renewed};

use crate::connection::{Live, SentRequest};
use crate::ends::kept_data;
use crate::errors::{Fault, code};
use crate::holds::{Own, OwnPart};
use crate::names::{Child, KeyNode};
use crate::rank::{ChildStanding, Listing};
use crate::store::{Carried, Inner, is_part};
use crate::wire::{self, MultiPart, NodeKind};

impl Inner {
    /// The hold of this claim, as far as this client knows.
    fn held(&self, live: &Live, node: &KeyNode, claim: &Claim) -> Option<Own> {
        let mut holds = self.holds.lock();
        let own = holds.get(node, claim.owner)?;
        let now = self.clock.now();
        let is_held = matches!(own.part, OwnPart::Holds(ends) if ends > now);
        let is_it = own.session == live.session && is_part(own.child.permits, claim.permits);
        (is_held && is_it).then(|| own.clone())
    }

    pub(crate) async fn release(
        &self,
        live: &Live,
        requests: &[Release],
    ) -> Carried<Vec<Released>> {
        let begin = |request: &Release| {
            let node = self.node(&request.claim.key);
            let own = self.held(live, &node, &request.claim)?;
            Some(self.begin_end(live, node, own.child, request))
        };
        let begun: Vec<Option<HoldEnd>> = requests.iter().map(begin).collect();
        let mut released = Vec::new();
        for (request, begun) in requests.iter().zip(begun) {
            let ended = match begun {
                Some(end) => {
                    // If it is gone, it may have another name.
                    self.end(end).await? || self.release_unknown(live, request).await?
                }
                None => self.release_unknown(live, request).await?,
            };
            released.push(said(ended));
        }
        Ok(released)
    }

    fn begin_end(&self, live: &Live, node: KeyNode, child: Child, request: &Release) -> HoldEnd {
        let path = node.child(&child.name);
        let keep = (!request.keep.is_zero()).then(|| {
            let name = self
                .settings
                .layout
                .at_place(child.owner, child.permits, true, child.place);
            (node.child(&name), self.clock.now() + request.keep)
        });
        let ends = match &keep {
            None => wire::delete(&path),
            Some((kept, _)) => {
                let data = kept_data(request.keep);
                let stays = wire::create(kept, &data, self.acl(), NodeKind::Persistent);
                // It takes the place of an earlier one. If that has gone, nothing of this is done.
                let name = self
                    .settings
                    .layout
                    .without_place(child.owner, child.permits, true);
                let before = self.holds.lock().unkeep_all(&node.child(&name));
                let mut all = vec![wire::delete(&path)];
                all.extend(before.iter().map(|path| wire::delete(path)));
                all.push(stays);
                wire::multi(&all)
            }
        };
        let sent = live.send(ends);
        HoldEnd {
            node,
            child,
            keep,
            sent,
        }
    }

    /// True if it was there.
    async fn end(&self, end: HoldEnd) -> Carried<bool> {
        let HoldEnd {
            node,
            child,
            keep,
            sent,
        } = end;
        let reply = sent.reply().await;
        let ended = match (reply, keep) {
            (Err(Fault::Refused(code::NO_NODE)), _) => false,
            (Err(fault), _) => return Err(fault),
            (Ok(_), None) => true,
            (Ok(reply), Some((kept, until))) => {
                let parts = reply.read(wire::parts)?;
                let stays = matches!(parts.last(), Some(MultiPart::Created(..)));
                if stays {
                    self.holds.lock().keep(kept, Some(until));
                    self.ends.notify_one();
                }
                stays
            }
        };
        self.holds.lock().forget(&node, &child);
        Ok(ended)
    }

    /// Of a hold that this client does not know: one whose making had an unknown outcome.
    async fn release_unknown(&self, live: &Live, request: &Release) -> Carried<bool> {
        let node = self.node(&request.claim.key);
        let listing = self.list_all_done(live, &node).await?;
        let Some(child) = self.holding(&listing, &request.claim) else {
            return Ok(false);
        };
        let end = self.begin_end(live, node, child, request);
        self.end(end).await
    }

    /// The child with which this claim is held.
    fn holding(&self, listing: &Listing, claim: &Claim) -> Option<Child> {
        let child = Self::find_any(listing, claim.owner, claim.permits)?;
        let rank = listing.rank(child.permits, Some(child));
        (rank.standing == ChildStanding::Holds).then(|| child.clone())
    }

    /// The child of this session with which this claim is held, under another name than was known:
    /// that of a shrinking whose reply nobody has heard.
    async fn renamed(
        &self,
        live: &Live,
        node: &KeyNode,
        listing: &Listing,
        claim: &Claim,
        before: &Child,
    ) -> Carried<Option<Child>> {
        let found = self
            .find(live, node, listing, claim.owner, claim.permits)
            .await?;
        let mut holds = self.holds.lock();
        match (found, holds.get(node, claim.owner)) {
            (Some((child, _)), Some(own)) if own.child.name == before.name => {
                own.child = child.clone();
                Ok(Some(child))
            }
            _ => {
                holds.forget(node, before);
                Ok(None)
            }
        }
    }

    pub(crate) async fn abandon(&self, live: &Live, request: &Acquire) -> Carried<Released> {
        let node = self.node(&request.claim.key);
        let (owner, permits) = (request.claim.owner, request.claim.permits);
        let listing = self.list_all_done(live, &node).await?;
        let Some(child) = Self::find_any(&listing, owner, permits) else {
            self.holds.lock().remove(&node, owner);
            return Ok(Released::NotHeld);
        };
        let rank = listing.rank(child.permits, Some(child));
        let deleted = self.delete(live, &node.child(&child.name)).await?;
        self.holds.lock().remove(&node, owner);
        Ok(said(deleted && rank.standing == ChildStanding::Holds))
    }

    /// One round trip: the server hears from the leader first, and then looks for each child.
    pub(crate) async fn renew(&self, live: &Live, renewals: &[Renewal]) -> Carried<Vec<Renewed>> {
        let asked = self.clock.now();
        let synced = live.send(wire::sync());
        let look = |renewal: &Renewal| {
            let node = self.node(&renewal.claim.key);
            let own = self.held(live, &node, &renewal.claim)?;
            let sent = live.send(wire::exists(&node.child(&own.child.name)));
            Some((node, own.child, sent))
        };
        let looks: Vec<Option<(KeyNode, Child, SentRequest)>> = renewals.iter().map(look).collect();
        synced.reply().await?;
        let mut renewed = Vec::new();
        for (renewal, look) in renewals.iter().zip(looks) {
            let Some((node, child, sent)) = look else {
                renewed.push(Renewed::Gone);
                continue;
            };
            renewed.push(match sent.reply().await {
                Ok(_) => self.prolong(live, &node, &child, renewal, asked),
                Err(Fault::Refused(code::NO_NODE)) => {
                    let listing = self.list(live, &node, false).await?;
                    let renamed = self.renamed(live, &node, &listing, &renewal.claim, &child);
                    match renamed.await? {
                        Some(child) => self.prolong(live, &node, &child, renewal, asked),
                        None => Renewed::Gone,
                    }
                }
                Err(fault) => return Err(fault),
            });
        }
        Ok(renewed)
    }

    fn prolong(
        &self,
        live: &Live,
        node: &KeyNode,
        child: &Child,
        renewal: &Renewal,
        asked: Instant,
    ) -> Renewed {
        let now = self.clock.now();
        {
            let mut holds = self.holds.lock();
            let own = holds.get(node, child.owner);
            let Some(own) = own.filter(|own| own.child.name == child.name) else {
                return Renewed::Gone;
            };
            let OwnPart::Holds(ends) = own.part else {
                return Renewed::Gone;
            };
            if ends <= now {
                return Renewed::Gone;
            }
            own.part = OwnPart::Holds(ends.max(now + renewal.lease));
        }
        self.ends.notify_one();
        let until = live.trusted_until();
        match until < asked + trusted(renewal.lease) {
            true => Renewed::Until(until),
            false => Renewed::Renewed,
        }
    }

    pub(crate) async fn fence(&self, live: &Live, claim: &Claim) -> Carried<Fenced> {
        let node = self.node(&claim.key);
        let listing = self.list(live, &node, false).await?;
        if listing.is_foreign {
            return Ok(Fenced::Conflict);
        }
        let Some(own) = self.held(live, &node, claim) else {
            return Ok(Fenced::Gone);
        };
        if listing.named(&own.child.name).is_none() {
            let renamed = self.renamed(live, &node, &listing, claim, &own.child);
            if renamed.await?.is_none() {
                return Ok(Fenced::Gone);
            }
        }
        let is_shared = claim.permits.is_some();
        let minted = self.mint(live, &node, claim.owner, 1, listing.stat, is_shared);
        Ok(match minted.await? {
            Some((token, _)) => Fenced::Token(token),
            None => Fenced::Gone,
        })
    }

    /// The child gets another name, at the same place.
    pub(crate) async fn shrink(
        &self,
        live: &Live,
        claim: &Claim,
        permits: u32,
    ) -> Carried<Released> {
        let node = self.node(&claim.key);
        let listing = self.list(live, &node, false).await?;
        let mut rest = claim.clone();
        if let Some(part) = &mut rest.permits {
            part.count = permits.min(part.count);
        }
        // Before a repeat, or after one.
        let mut child = None;
        for claim in [claim, &rest] {
            if child.is_none() {
                child = self.holding(&listing, claim);
            }
        }
        let Some(child) = child else {
            return Ok(Released::NotHeld);
        };
        let Some(mut part) = child.permits.filter(|part| part.count > permits) else {
            return Ok(Released::Released);
        };
        part.count = permits;
        let name = self
            .settings
            .layout
            .at_place(child.owner, Some(part), false, child.place);
        let (before, after) = (node.child(&child.name), node.child(&name));
        let smaller = wire::create(&after, b"", self.acl(), NodeKind::Ephemeral);
        let both = wire::multi(&[wire::delete(&before), smaller]);
        let parts = live.send(both).reply().await?.read(wire::parts)?;
        let is_done = matches!(parts.last(), Some(MultiPart::Created(..)));
        if is_done {
            let mut holds = self.holds.lock();
            if let Some(own) = holds.get(&node, child.owner) {
                own.child = Child {
                    name,
                    permits: Some(part),
                    ..child
                };
            }
        }
        Ok(said(is_done))
    }
}

/// The end of a hold that was sent.
struct HoldEnd {
    node: KeyNode,
    child: Child,
    /// What stays taken, and until when.
    keep: Option<(String, Instant)>,
    sent: SentRequest,
}

fn said(ended: bool) -> Released {
    match ended {
        true => Released::Released,
        false => Released::NotHeld,
    }
}
