//! [`ZooKeeperEngine::acquire`]: a child in the key's queue, and what its place means.
//!
//! Most keys are free. So a first try makes its child at once and looks at it afterwards, in one
//! round trip. Where that was in vain lately, and for parts of a key, a look comes first: a child
//! that comes and goes would be in the way of others for a moment.

use std::sync::Arc;
use std::time::Duration;

use lock_store::ordered::{
    Attempt, EngineQueue, KeyNode, OperationProgress, OrderedEngine, OwnStanding, PlacedRequest,
};
use lock_store::rules::ChildStanding;
use lock_store::{Acquire, Acquired, Busy, Claim, Granted, Instant, Owner, Queue};

use crate::connection::Live;
use crate::errors::{Fault, code};
use crate::names::Child;
use crate::own_children::{Own, OwnDetails};
use crate::rank::Listing;
use crate::store::{Carried, ZooKeeperEngine};
use crate::tokens::Beside;
use crate::wire::{self, NodeKind, NodeRequest};

/// How long a key counts as one that others want.
const WANTED_FOR: Duration = Duration::from_secs(1);

/// How often a request looks again because what it would watch has gone meanwhile.
const LOOKS: u32 = 8;

/// A request for a lock, over this connection, and when it was sent.
pub(crate) struct AskedLock<'r> {
    pub(crate) live: &'r Arc<Live>,
    pub(crate) node: KeyNode,
    pub(crate) request: &'r Acquire,
    pub(crate) sent: Instant,
}

/// A child, and the transaction that made it, if it is known.
pub(crate) type MadeChild = (Child, Option<i64>);

impl ZooKeeperEngine {
    pub(crate) async fn acquire(
        &self,
        on: &Attempt<'_, Self>,
        request: &Acquire,
    ) -> Carried<Acquired> {
        let &Attempt { live, progress } = on;
        let asked = &AskedLock {
            live,
            node: self.node(&request.claim.key),
            request,
            sent: self.clock.now(),
        };
        let (node, owner) = (&asked.node, request.claim.owner);
        let known = self.known(live, node, owner);
        // An earlier attempt may have made a child, and its reply was lost.
        let is_first = known.is_none() && !progress.may_have_made();
        if known.is_some() {
            progress.note_may_have_made();
        }
        if is_first && self.is_likely_free(node, request, asked.sent) {
            let (child, listing) = self.create(on, node, request).await?;
            return self.decide(asked, child, listing, false).await;
        }
        let listing = match known {
            Some(_) => self.list(live, node).await?,
            None => self.list_all_done(live, node).await?,
        };
        if listing.is_foreign {
            // What stands there is known, and stays, or an attempt made it whose reply was lost.
            let found = match known {
                Some(_) => None,
                None => {
                    let permits = request.claim.permits;
                    self.find(live, node, &listing, owner, permits).await?
                }
            };
            return match found {
                Some((child, _)) => self.undo(asked, &child, Acquired::Conflict).await,
                None => Ok(Acquired::Conflict),
            };
        }
        if let Some(own) = known {
            match listing.named(&own.child.name) {
                Some(child) => {
                    let child = (child.clone(), own.details.czxid);
                    return self.decide(asked, child, listing, true).await;
                }
                None => self.own.lock().forget(node, &own.child),
            }
        }
        let found = self.find(live, node, &listing, owner, request.claim.permits);
        if let Some((child, stat)) = found.await? {
            progress.note_may_have_made();
            let child = (child, Some(stat.czxid));
            return self.decide(asked, child, listing, true).await;
        }
        let rank = listing.rank(request.claim.permits, None);
        let is_hopeless = match rank.standing {
            ChildStanding::OtherKind => return Ok(Acquired::Conflict),
            ChildStanding::Holds => false,
            ChildStanding::Waits(_) => request.queue != Queue::Join && request.instead_of.is_none(),
        };
        if is_hopeless {
            self.busy.lock().insert(node.clone(), asked.sent);
            return Ok(rank.busy(false));
        }
        let (child, listing) = self.create(on, node, request).await?;
        self.decide(asked, child, listing, false).await
    }

    /// The child of this owner, if there is one.
    fn known(&self, live: &Arc<Live>, node: &KeyNode, owner: Owner) -> Option<Own> {
        let mut requests = self.own.lock();
        let own = requests.get(node, owner).cloned();
        own.filter(|own| own.details.session == live.session)
    }

    /// Whether a child may be made without a look.
    fn is_likely_free(&self, node: &KeyNode, request: &Acquire, now: Instant) -> bool {
        let mut busy = self.busy.lock();
        busy.sweep(|at| now - *at < WANTED_FOR);
        request.queue == Queue::Barge
            && request.claim.permits.is_none()
            && busy.get(node).is_none_or(|at| now - *at >= WANTED_FOR)
    }

    /// Makes a child for the request, and lists them all.
    async fn create(
        &self,
        on: &Attempt<'_, Self>,
        node: &KeyNode,
        request: &Acquire,
    ) -> Carried<(MadeChild, Listing)> {
        let &Attempt { live, progress } = on;
        let Claim { owner, permits, .. } = request.claim;
        let ended = match request.instead_of {
            None => None,
            Some(before) => self.known(live, node, before).map(|own| own.child),
        };
        let name = self.settings.layout.without_place(owner, permits, false);
        let path = node.child(&name);
        let create = wire::create(&path, b"", self.acl(), NodeKind::EphemeralSequential);
        let made = match ended {
            None => self.create_alone(on, node, create).await?,
            Some(before) => {
                let path = node.child(&before.name);
                let both = wire::multi(&[wire::delete(&path), create.clone()]);
                let made = progress.send(live, both)?;
                let listed = live.send(wire::children(&node.path, false));
                match made.parts().await {
                    Ok(mut parts) => {
                        let Some(wire::MultiPart::Created(path)) = parts.pop() else {
                            return Err(Fault::Unreadable);
                        };
                        self.own.lock().forget(node, &before);
                        let listing = self.listing(node, listed.reply().await.map(Some))?;
                        (path, None, listing)
                    }
                    // It had ended.
                    Err(Fault::Refused(code::NO_NODE)) => {
                        self.create_alone(on, node, create).await?
                    }
                    Err(fault) => return Err(fault),
                }
            }
        };
        let (path, czxid, listing) = made;
        let name = path.rsplit('/').next().unwrap_or_default();
        let child = self.settings.layout.child(name).ok_or(Fault::Unreadable)?;
        if progress.is_given_up() {
            self.delete(live, &path).await?;
            return Err(Fault::GivenUp);
        }
        Ok(((child, czxid), listing))
    }

    async fn create_alone(
        &self,
        on: &Attempt<'_, Self>,
        node: &KeyNode,
        create: NodeRequest,
    ) -> Carried<(String, Option<i64>, Listing)> {
        let &Attempt { live, progress } = on;
        for is_there in [true, false] {
            if !is_there {
                self.make_node(live, node).await?;
            }
            let made = progress.send(live, create.clone())?;
            let listed = live.send(wire::children(&node.path, false));
            match made.reply().await {
                Ok(reply) => {
                    let (path, stat) = reply.read(wire::created)?;
                    let listing = self.listing(node, listed.reply().await.map(Some))?;
                    return Ok((path, Some(stat.czxid), listing));
                }
                Err(Fault::Refused(code::NO_NODE)) if is_there => {}
                Err(fault) => return Err(fault),
            }
        }
        Err(Fault::Refused(code::NO_NODE))
    }

    /// What the place of a request's child means, and what becomes of it. `was_there` is said of
    /// one that an earlier attempt has made.
    async fn decide(
        &self,
        asked: &AskedLock<'_>,
        made: MadeChild,
        listing: Listing,
        was_there: bool,
    ) -> Carried<Acquired> {
        let (live, node) = (asked.live, &asked.node);
        if listing.is_foreign {
            return self.undo(asked, &made.0, Acquired::Conflict).await;
        }
        if made.0.is_spent() {
            self.busy.lock().insert(node.clone(), asked.sent);
            let rank = listing.rank(made.0.permits, Some(&made.0));
            let refused = self.undo(asked, &made.0, rank.busy(false)).await?;
            self.remove_spent(live, node).await?;
            return Ok(refused);
        }
        match self.one_child(live, node, &listing, made).await? {
            Some(made) => self.hold_or_wait(asked, &made, listing, was_there).await,
            None => Ok(Acquired::Busy(Busy::new(None, false))),
        }
    }

    async fn hold_or_wait(
        &self,
        asked: &AskedLock<'_>,
        made: &MadeChild,
        mut listing: Listing,
        was_there: bool,
    ) -> Carried<Acquired> {
        let (live, node, request, sent) = (asked.live, &asked.node, asked.request, asked.sent);
        let (child, czxid) = made;
        for _ in 0..LOOKS {
            let rank = listing.rank(child.permits, Some(child));
            let obstacle = match &rank.standing {
                ChildStanding::OtherKind => {
                    return self.undo(asked, child, Acquired::Conflict).await;
                }
                ChildStanding::Holds => {
                    return Ok(match self.hold(asked, made, &listing).await? {
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
                self.busy.lock().insert(node.clone(), sent);
                return self.undo(asked, child, rank.busy(false)).await;
            }
            let details = OwnDetails::new(live.session, *czxid);
            if !self.note_place(node, request, child, details) {
                return Ok(rank.busy(false));
            }
            let watched = self.watch(live, node, child.permits, obstacle, &listing.read);
            if watched.await? {
                return Ok(rank.busy(true));
            }
            listing = self.list(live, node).await?;
            if listing.named(&child.name).is_none() {
                self.own.lock().forget(node, child);
                return Ok(rank.busy(false));
            }
        }
        // It asks again.
        Ok(Acquired::Busy(Busy::new(None, true)))
    }

    /// The first child of a request. An attempt whose reply was lost may have left one before the
    /// child that is known: then that one is deleted. `None`: both are gone.
    async fn one_child(
        &self,
        live: &Arc<Live>,
        node: &KeyNode,
        listing: &Listing,
        (child, czxid): MadeChild,
    ) -> Carried<Option<MadeChild>> {
        let (owner, permits) = (child.owner, child.permits);
        let mut all = listing.claimed(owner, permits);
        if all.all(|other| !other.is_before(&child)) {
            return Ok(Some((child, czxid)));
        }
        let Some((first, stat)) = self.find(live, node, listing, owner, permits).await? else {
            return Ok(None);
        };
        if !first.is_before(&child) {
            return Ok(Some((child, czxid)));
        }
        self.own.lock().forget(node, &child);
        self.delete(live, &node.child(&child.name)).await?;
        Ok(Some((first, Some(stat.czxid))))
    }

    /// Removes the node of a key whose counter is at its end: the next one counts from zero. While
    /// it has children, the server refuses that, and whoever asks then does the same.
    pub(crate) async fn remove_spent(&self, live: &Arc<Live>, node: &KeyNode) -> Carried<()> {
        match self.delete(live, &node.path).await {
            Ok(_) | Err(Fault::Refused(code::NOT_EMPTY)) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    async fn undo(
        &self,
        asked: &AskedLock<'_>,
        child: &Child,
        reply: Acquired,
    ) -> Carried<Acquired> {
        self.own.lock().forget(&asked.node, child);
        self.delete(asked.live, &asked.node.child(&child.name))
            .await?;
        Ok(reply)
    }

    /// Notes the hold. `None`: it has ended meanwhile.
    pub(crate) async fn hold(
        &self,
        asked: &AskedLock<'_>,
        (child, czxid): &MadeChild,
        listing: &Listing,
    ) -> Carried<Option<Granted>> {
        let (live, node, request) = (asked.live, &asked.node, asked.request);
        let ends = self.clock.now() + request.lease;
        let allowed = {
            let mut requests = self.own.lock();
            match requests.same(node, child) {
                Some(own) => {
                    if own.standing.is_place() {
                        self.signal(live, node, child);
                    }
                    own.standing = own.standing.held_until(ends);
                    own.standing.end()
                }
                None => {
                    // Whoever is behind may have listed them before this held.
                    if listing.children.iter().any(|other| child.is_before(other)) {
                        self.signal(live, node, child);
                    }
                    let details = OwnDetails::new(live.session, *czxid);
                    if !requests.put(node, child.clone(), OwnStanding::Holds(ends), details) {
                        return Ok(None);
                    }
                    Some(ends)
                }
            }
        };
        self.ends.notify_one();
        let mut granted = Granted::new(None, 0);
        if request.tokens > 0 {
            let (owner, beside) = (child.owner, Beside::of_grant(child.permits));
            let minted = self.mint(live, node, owner, request.tokens, listing.read, beside);
            let Some((first, reserved)) = minted.await? else {
                return Ok(None);
            };
            (granted.token, granted.reserved) = (Some(first), reserved);
        }
        granted.until = live.trusted_before(allowed);
        Ok(Some(granted))
    }
}
