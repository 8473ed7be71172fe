//! The ends of holds, renewals, and parts of a hold that are given back.

use std::sync::Arc;

use lock_store::ordered::{Attempt, EngineHolds, KeyNode, OrderedEngine, each_by, renewed_each};
use lock_store::{
    Acquire, Claim, Fenced, Instant, Owner, Permits, Release, Released, Renewal, Renewed,
};

use crate::connection::{Live, SentRequest};
use crate::ends::kept_data;
use crate::errors::{Fault, code};
use crate::names::{Child, NodeLayout};
use crate::own_children::Own;
use crate::rank::Listing;
use crate::store::{Carried, ZooKeeperEngine, is_there};
use crate::tokens::Beside;
use crate::wire::{self, NodeKind};

impl EngineHolds for ZooKeeperEngine {
    async fn release(
        &self,
        on: &Attempt<'_, Self>,
        requests: &[Release],
    ) -> Carried<Vec<Released>> {
        let live = on.live;
        let begin = |request: &Release| {
            let node = self.node(&request.claim.key);
            let own = self.held(live, &node, &request.claim)?;
            let end = self.begin_end(on, node, own.child.clone(), request);
            Some((end, own))
        };
        let begun: Vec<Option<(HoldEnd, Own)>> = requests.iter().map(begin).collect();
        let mut released = Vec::new();
        for (request, begun) in requests.iter().zip(begun) {
            released.push(self.release_begun(on, request, begun).await);
        }
        // What is refused for one does not hide from this client what became of the others.
        released.into_iter().collect()
    }

    async fn abandon(&self, on: &Attempt<'_, Self>, request: &Acquire) -> Carried<Released> {
        let live = on.live;
        let node = self.node(&request.claim.key);
        let (owner, permits) = (request.claim.owner, request.claim.permits);
        let listing = self.list_written(live, &node).await?;
        // Each attempt may have made one.
        let mut ended = false;
        for child in listing.claimed(owner, permits) {
            let deleted = self.delete(live, &node.child(&child.name)).await?;
            ended |= deleted && listing.is_holding(child);
        }
        self.own.lock().remove(&node, owner);
        Ok(Released::of(ended))
    }

    /// One round trip: a majority writes something first, and then the server looks for each child.
    async fn renew(
        &self,
        on: &Attempt<'_, Self>,
        renewals: &[Renewal],
        by: Instant,
    ) -> Carried<Vec<Renewed>> {
        let live = on.live;
        let written = live.send(wire::empty_write());
        let look = |renewal: &Renewal| {
            let node = self.node(&renewal.claim.key);
            let own = self.held(live, &node, &renewal.claim)?;
            let sent = live.send(wire::exists(&node.child(&own.child.name)));
            Some((node, own.child, sent))
        };
        let looks: Vec<Option<(KeyNode, Child, SentRequest)>> = renewals.iter().map(look).collect();
        let each_by = each_by(self.clock.now(), by);
        let written = self.clock.by(each_by, written.reply()).await;
        // Without it nothing is told. If it was lost with its connection, all is asked again.
        written.unwrap_or(Err(Fault::GivenUp))?;
        let mut renewed = Vec::new();
        for (renewal, look) in renewals.iter().zip(looks) {
            renewed.push(match look {
                Some((node, child, sent)) => {
                    let one = self.renew_one(live, &node, child, renewal, sent);
                    let known = self.clock.by(each_by, one).await;
                    known.unwrap_or(Err(Fault::GivenUp))
                }
                None => Ok(Renewed::Gone),
            });
        }
        renewed_each::<Self>(live, renewals, renewed)
    }

    async fn fence(&self, on: &Attempt<'_, Self>, claim: &Claim) -> Carried<Fenced> {
        let live = on.live;
        let node = self.node(&claim.key);
        let listing = self.list(live, &node).await?;
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
        let beside = claim.permits.map_or(Beside::Nobody, |_| Beside::Later);
        let minted = self.mint(live, &node, claim.owner, 1, listing.read, beside);
        Ok(match minted.await? {
            Some((token, _)) => Fenced::Token(token),
            None => Fenced::Gone,
        })
    }

    /// The child gets another name, at the same place.
    async fn shrink(
        &self,
        on: &Attempt<'_, Self>,
        claim: &Claim,
        permits: u32,
    ) -> Carried<Released> {
        let live = on.live;
        let node = self.node(&claim.key);
        let Some(child) = self.to_shrink(live, &node, claim, permits).await? else {
            return Ok(Released::NotHeld);
        };
        let Some(mut part) = child.permits.filter(|part| part.count > permits) else {
            return Ok(Released::Released);
        };
        part.count = permits;
        self.rename(live, &node, child, part)
            .await
            .map(Released::of)
    }
}

impl ZooKeeperEngine {
    /// The end of a release that has begun, if this client knows the hold.
    async fn release_begun(
        &self,
        on: &Attempt<'_, Self>,
        request: &Release,
        begun: Option<(HoldEnd, Own)>,
    ) -> Carried<Released> {
        let live = on.live;
        let node = self.node(&request.claim.key);
        let (mut ended, mut known) = (false, None);
        if let Some((end, own)) = begun {
            ended = self.end(live, end).await?;
            // If it is gone, it may have another name.
            let renaming = own.details.renaming.as_deref();
            let renamed = renaming.and_then(|name| self.settings.layout.child(name));
            if let Some(child) = renamed.filter(|_| !ended) {
                let end = self.begin_end(on, node.clone(), child, request);
                ended = self.end(live, end).await?;
            }
            known = Some(own.child);
        }
        ended = ended || self.release_unknown(on, request).await?;
        // Until that is certain, it ends with its lease.
        if let Some(child) = known {
            self.own.lock().forget(&node, &child);
        }
        Ok(Released::of(ended))
    }

    /// The hold of this claim, as far as this client knows.
    fn held(&self, live: &Arc<Live>, node: &KeyNode, claim: &Claim) -> Option<Own> {
        let mut requests = self.own.lock();
        let own = requests.held(node, claim, self.clock.now()).cloned();
        own.filter(|own| own.details.session == live.session)
    }

    fn begin_end(
        &self,
        on: &Attempt<'_, Self>,
        node: KeyNode,
        child: Child,
        request: &Release,
    ) -> HoldEnd {
        let &Attempt { live, progress } = on;
        let path = node.child(&child.name);
        let was_sent = progress.note_end(path.clone());
        let layout = self.settings.layout;
        // Nobody of Curator's would end it.
        let keeps = !request.keep.is_zero() && layout != NodeLayout::Curator;
        let keep = keeps.then(|| {
            let name = layout.at_place(child.owner, child.permits, true, child.place);
            (node.child(&name), self.clock.now() + request.keep)
        });
        let ends = match &keep {
            None => wire::delete(&path),
            Some((kept, _)) => {
                let data = kept_data(request.keep);
                let stays = wire::create(kept, &data, self.acl(), NodeKind::Persistent);
                // It takes the place of an earlier one. If that has gone, nothing of this is done.
                let name = layout.without_place(child.owner, child.permits, true);
                let before = self.own.lock().unkeep_all(&node.child(&name));
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
            was_sent,
            sent,
        }
    }

    /// True if it was there.
    async fn end(&self, live: &Arc<Live>, end: HoldEnd) -> Carried<bool> {
        let reply = end.sent.reply().await;
        let is_done = match &end.keep {
            None => is_there(reply)?,
            Some(_) => is_there(reply.and_then(|reply| reply.parts()))?,
        };
        let ended = is_done
            // If an earlier attempt has sent the same, that has ended it.
            || end.was_sent
                && match &end.keep {
                    None => true,
                    Some((kept, _)) => is_there(live.send(wire::exists(kept)).reply().await)?,
                };
        if ended {
            let mut requests = self.own.lock();
            requests.forget(&end.node, &end.child);
            if let Some((kept, until)) = end.keep {
                requests.keep(kept, Some(until), 0);
                self.ends.notify_one();
            }
        }
        Ok(ended)
    }

    /// All that this client has made, also over other servers. A leader that was replaced answers a
    /// `sync` by itself; behind a write, the listing is that of no such leader.
    async fn list_written(&self, live: &Arc<Live>, node: &KeyNode) -> Carried<Listing> {
        let written = live.send(wire::empty_write());
        let listing = self.list(live, node).await;
        written.reply().await?;
        listing
    }

    /// Of a hold that this client does not know: one whose making had an unknown outcome.
    async fn release_unknown(&self, on: &Attempt<'_, Self>, request: &Release) -> Carried<bool> {
        let &Attempt { live, progress: _ } = on;
        let node = self.node(&request.claim.key);
        let listing = self.list_written(live, &node).await?;
        let known = {
            let mut requests = self.own.lock();
            let own = requests.get(&node, request.claim.owner);
            own.map(|own| own.child.name.clone())
        };
        let Claim { owner, permits, .. } = request.claim;
        let Some((first, others)) = to_end(&listing, owner, permits, known.as_deref()) else {
            return Ok(false);
        };
        let end = self.begin_end(on, node.clone(), first, request);
        let ended = self.end(live, end).await?;
        for child in others {
            self.delete(live, &node.child(&child.name)).await?;
            self.own.lock().forget(&node, &child);
        }
        Ok(ended)
    }

    /// The child of this session with which this claim is held, under another name than was known:
    /// that of a shrinking whose reply nobody has heard.
    async fn renamed(
        &self,
        live: &Arc<Live>,
        node: &KeyNode,
        listing: &Listing,
        claim: &Claim,
        before: &Child,
    ) -> Carried<Option<Child>> {
        let found = self
            .find(live, node, listing, claim.owner, claim.permits)
            .await?;
        let mut requests = self.own.lock();
        match (found, requests.get(node, claim.owner)) {
            (Some((child, _)), Some(own)) if own.child.name == before.name => {
                own.child = child.clone();
                own.details.renaming = None;
                Ok(Some(child))
            }
            _ => {
                requests.forget(node, before);
                Ok(None)
            }
        }
    }

    /// Reads the answer to the look at a hold, and prolongs it.
    async fn renew_one(
        &self,
        live: &Arc<Live>,
        node: &KeyNode,
        child: Child,
        renewal: &Renewal,
        sent: SentRequest,
    ) -> Carried<Renewed> {
        let child = match sent.reply().await {
            Ok(_) => Some(child),
            Err(Fault::Refused(code::NO_NODE)) => {
                let listing = self.list(live, node).await?;
                let renamed = self.renamed(live, node, &listing, &renewal.claim, &child);
                renamed.await?
            }
            Err(fault) => return Err(fault),
        };
        Ok(child.map_or(Renewed::Gone, |child| {
            self.prolong(live, node, &child, renewal)
        }))
    }

    fn prolong(
        &self,
        live: &Arc<Live>,
        node: &KeyNode,
        child: &Child,
        renewal: &Renewal,
    ) -> Renewed {
        let now = self.clock.now();
        let allowed = {
            let mut requests = self.own.lock();
            let own = requests.prolong(node, child, now, now + renewal.lease);
            let Some(own) = own else {
                return Renewed::Gone;
            };
            own.standing.end()
        };
        self.ends.notify_one();
        match live.trusted_before(allowed) {
            Some(until) => Renewed::Until(until),
            None => Renewed::Renewed,
        }
    }

    /// The child whose part is to become smaller: before a repeat, or after one. `None`: it is not
    /// held.
    async fn to_shrink(
        &self,
        live: &Arc<Live>,
        node: &KeyNode,
        claim: &Claim,
        permits: u32,
    ) -> Carried<Option<Child>> {
        let listing = self.list(live, node).await?;
        let mut rest = claim.clone();
        if let Some(part) = &mut rest.permits {
            part.count = permits.min(part.count);
        }
        let held = self.held(live, node, claim);
        let Some(own) = held.or_else(|| self.held(live, node, &rest)) else {
            return Ok(None);
        };
        match listing.named(&own.child.name) {
            Some(child) => Ok(Some(child.clone())),
            None => self.renamed(live, node, &listing, &rest, &own.child).await,
        }
    }

    /// Gives the child of a hold the name of this part, at its place. False: it is not held.
    async fn rename(
        &self,
        live: &Arc<Live>,
        node: &KeyNode,
        child: Child,
        part: Permits,
    ) -> Carried<bool> {
        let layout = self.settings.layout;
        let name = layout.at_place(child.owner, Some(part), false, child.place);
        let (before, after) = (node.child(&child.name), node.child(&name));
        let smaller = wire::create(&after, b"", self.acl(), NodeKind::Ephemeral);
        let both = wire::multi(&[wire::delete(&before), smaller]);
        let sent = {
            let mut requests = self.own.lock();
            let Some(own) = requests.same(node, &child) else {
                return Ok(false);
            };
            // If the hold ends before the reply is there, it ends under both names. Sent while
            // this is locked, so that its end comes after this.
            own.details.renaming = Some(name.clone());
            live.send(both)
        };
        // If it is refused for another reason, it is held as before.
        let is_done = is_there(sent.reply().await.and_then(|reply| reply.parts()))?;
        let is_held = match self.own.lock().get(node, child.owner) {
            Some(own) if own.child.name == child.name => {
                own.details.renaming = None;
                if is_done {
                    own.child = Child {
                        name,
                        permits: Some(part),
                        ..child
                    };
                }
                true
            }
            // A renewal has found it meanwhile.
            Some(own) => own.child.name == name,
            None => false,
        };
        if is_done && !is_held {
            // It was ended under its name before.
            self.delete(live, &after).await?;
        }
        Ok(is_done && is_held)
    }
}

/// What is to be deleted, so that a claim is not held: the child that holds, which is the `known`
/// one if that does, and what other attempts have left. `None`: it is not held.
fn to_end(
    listing: &Listing,
    owner: Owner,
    permits: Option<Permits>,
    known: Option<&str>,
) -> Option<(Child, Vec<Child>)> {
    let mut all: Vec<Child> = listing.claimed(owner, permits).cloned().collect();
    let is_known = |child: &Child| known == Some(child.name.as_str()) && listing.is_holding(child);
    let at = all.iter().position(is_known);
    let at = at.or_else(|| all.iter().position(|child| listing.is_holding(child)))?;
    let first = all.remove(at);
    Some((first, all))
}

/// The end of a hold that was sent.
struct HoldEnd {
    node: KeyNode,
    child: Child,
    /// What stays taken, and until when.
    keep: Option<(String, Instant)>,
    /// An earlier attempt has sent the same.
    was_sent: bool,
    sent: SentRequest,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{ChildPlace, NodeLayout};
    use lock_store::ClientId;

    fn owner(request: u64) -> Owner {
        Owner::new(ClientId(1), request)
    }

    fn listing(of: &[(u64, Option<Permits>)]) -> Listing {
        let child = |((request, permits), place): (&(u64, Option<Permits>), i32)| {
            let layout = NodeLayout::Native;
            let name = layout.at_place(owner(*request), *permits, false, ChildPlace(place));
            layout.child(&name)
        };
        let children = of.iter().zip(0..).filter_map(child);
        Listing::new(children.collect(), None, false)
    }

    #[test]
    fn a_release_ends_what_all_attempts_have_made() {
        let part = Some(Permits { count: 1, of: 3 });
        let all = listing(&[(1, part), (2, part), (1, part), (1, part)]);
        let known = all.children[2].name.clone();
        let found = to_end(&all, owner(1), part, Some(&known));
        let places = |(first, others): (Child, Vec<Child>)| {
            let others = others.iter().map(|child| child.place.0);
            (first.place.0, others.collect::<Vec<_>>())
        };
        assert_eq!(found.map(places), Some((2, vec![0, 3])));
        // The known one does not hold.
        let waits = all.children[3].name.clone();
        let found = to_end(&all, owner(1), part, Some(&waits));
        assert_eq!(found.map(places), Some((0, vec![2, 3])));
        // What only waits is not held.
        let waiting = listing(&[(2, None), (1, None)]);
        assert!(to_end(&waiting, owner(1), None, None).is_none());
        assert_eq!(waiting.claimed(owner(1), None).count(), 1);
    }
}
