//! Who waits hears of its turn: it watches the child before it, and looks again when that is gone.

use std::sync::Arc;

use lock_store::ordered::{KeyNode, SessionNews};
use lock_store::rules::{ChildStanding, Obstacle};
use lock_store::timing::trusted;
use lock_store::{HandedOver, Trust};
use tokio::sync::mpsc;

use crate::connection::Live;
use crate::errors::{Fault, code};
use crate::names::Child;
use crate::rank::Listing;
use crate::store::{Carried, Inner};
use crate::wire;

/// A watch that the server does not have yet. If it never has, those that rely on it look again.
struct Registered<'i> {
    inner: &'i Inner,
    /// Empty: the server has it.
    path: String,
    looks: bool,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        if self.path.is_empty() {
            return;
        }
        let nodes = self.inner.holds.lock().take_watchers(&self.path);
        if let Some(me) = self.inner.me.upgrade().filter(|_| self.looks) {
            nodes.into_iter().for_each(|node| me.look(node));
        }
    }
}

impl Inner {
    /// Watches what is in the way. False if it is gone, or may have changed before.
    pub(crate) async fn watch(
        &self,
        live: &Live,
        node: &KeyNode,
        obstacle: &Obstacle,
    ) -> Carried<bool> {
        let (path, request) = match obstacle {
            Obstacle::Child(name) => {
                let path = node.child(name);
                let request = wire::data(&path, true);
                (path, request)
            }
            Obstacle::Children => (node.path.clone(), wire::children(&node.path, true)),
        };
        // Before the request: the event may come before its reply is read.
        if !self.holds.lock().watch(path.clone(), node) {
            return Ok(true);
        }
        let mut watched = Registered {
            inner: self,
            path,
            looks: true,
        };
        match live.send(request).reply().await {
            Ok(reply) => {
                watched.path.clear();
                // What has changed since the listing is not told.
                match obstacle {
                    Obstacle::Children => Ok(false),
                    // The sign that a part of a semaphore is held may have come before.
                    Obstacle::Child(_) => Ok(reply.read(wire::found_data)?.1.version == 0),
                }
            }
            Err(Fault::Refused(code::NO_NODE)) => Ok(false),
            Err(fault) => {
                // What is refused would be so again.
                watched.looks = matches!(fault, Fault::Lost(_));
                Err(fault)
            }
        }
    }

    /// Hears what the session tells, until the client is closed.
    pub(crate) async fn attend(self: Arc<Self>, mut news: mpsc::UnboundedReceiver<SessionNews>) {
        while let Some(news) = news.recv().await {
            match news {
                SessionNews::Changed(path) if path == self.own_mailbox() => {
                    self.mind_mailbox(false)
                }
                SessionNews::Changed(path) => {
                    let nodes = self.holds.lock().take_watchers(&path);
                    for node in nodes {
                        self.look(node);
                    }
                }
                SessionNews::Up => {
                    self.mind_mailbox(true);
                    let nodes = self.holds.lock().unwatch();
                    for node in nodes {
                        self.look(node);
                    }
                }
                SessionNews::Closed => return,
                SessionNews::Over(session, link) => {
                    let mut holds = self.holds.lock();
                    holds.retain(|own| own.session != session);
                    drop(holds);
                    if let Some(listener) = self.listener.upgrade() {
                        listener.on_lost(link);
                    }
                }
            }
        }
    }

    /// Looks at a key at which this client waits, in a task: one at a time for each key.
    fn look(self: &Arc<Self>, node: KeyNode) {
        if !self.looks.begin(&node) {
            return;
        }
        let me = Arc::clone(self);
        self.clock.spawn(async move {
            loop {
                if let Some(live) = me.session.connecting.live_now() {
                    // If it fails, the next connection looks at all keys.
                    let _ = me.serve(&live, &node).await;
                }
                if !me.looks.goes_on(&node) {
                    return;
                }
            }
        });
    }

    /// Tells those of this client whose turn has come, in their order, and watches for the others.
    async fn serve(&self, live: &Live, node: &KeyNode) -> Carried<()> {
        let mut waiting = self.holds.lock().waiting(node);
        let mut failed = None;
        while !waiting.is_empty() {
            let sent = self.clock.now();
            let listing = self.list(live, node, false).await?;
            let mut is_settled = true;
            for child in &waiting {
                if listing.named(&child.name).is_none() {
                    self.holds.lock().forget(node, child);
                    continue;
                }
                match listing.rank(child.permits, Some(child)).standing {
                    ChildStanding::Holds => {
                        // The others do not wait for that.
                        let handed = self.hand_over(live, node, child, &listing, sent).await;
                        failed = handed.err().or(failed);
                    }
                    ChildStanding::Waits(obstacle) => {
                        is_settled &= self.watch(live, node, &obstacle).await?;
                    }
                    // It learns of that when it asks again.
                    ChildStanding::OtherKind => {}
                }
            }
            if let Some(fault) = failed {
                return Err(fault);
            }
            if is_settled {
                return Ok(());
            }
            waiting = self.holds.lock().waiting(node);
        }
        Ok(())
    }

    /// Tells the one that waits behind this part of a semaphore that the part is held now: nothing
    /// else of it changes.
    pub(crate) fn signal(&self, live: &Live, node: &KeyNode, child: &Child) {
        if child.permits.is_some_and(|part| !part.is_read_write()) {
            // If it is lost, the other one asks again in a second.
            drop(live.send(wire::set_data(&node.child(&child.name), b"", None)));
        }
    }

    async fn hand_over(
        &self,
        live: &Live,
        node: &KeyNode,
        child: &Child,
        listing: &Listing,
        sent: lock_store::Instant,
    ) -> Carried<()> {
        let handed = self.holds.lock().hand_over(node, child, self.clock.now());
        let Some(handed) = handed else {
            return Ok(());
        };
        self.signal(live, node, child);
        self.ends.notify_one();
        let token = match handed.tokens {
            0 => None,
            tokens => {
                let is_shared = child.permits.is_some();
                let owner = child.owner;
                let minted = self.mint(live, node, owner, tokens, listing.stat, is_shared);
                match minted.await {
                    Ok(Some((first, _))) => Some(first),
                    Ok(None) => return Ok(()),
                    Err(fault) => {
                        // Nobody was told. So it waits on, and is told by the next look.
                        self.holds.lock().take_back(node, child, &handed);
                        self.ends.notify_one();
                        return Err(fault);
                    }
                }
            }
        };
        let until = live.trusted_until().min(sent + trusted(handed.first_lease));
        if let Some(listener) = self.listener.upgrade() {
            let grant = HandedOver::new(child.owner, token, Trust::Until(until));
            drop(listener.on_granted(grant));
        }
        Ok(())
    }
}
