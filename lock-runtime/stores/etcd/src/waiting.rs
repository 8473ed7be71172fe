//! Who waits hears of its turn: it watches the key before its own, and looks again when that is
//! gone.

use std::sync::Arc;

use lock_store::ordered::{KeyNode, SessionNews};
use lock_store::rules::{ChildStanding, Obstacle};
use lock_store::timing::trusted;
use lock_store::{HandedOver, Instant, Permits, Trust};
use tokio::sync::mpsc;

use crate::connection::{Live, Watch, WatchedChange};
use crate::names::Child;
use crate::rank::Listing;
use crate::store::{Carried, Inner};

impl Inner {
    /// Watches what is in the way, from the revision on at which it was there: no change is missed.
    pub(crate) fn watch(
        &self,
        live: &Live,
        node: &KeyNode,
        permits: Option<Permits>,
        obstacle: &Obstacle,
        revision: i64,
    ) {
        let (path, is_prefix) = match obstacle {
            Obstacle::Child(name) => (node.child(name), false),
            Obstacle::Children => (node.below(), true),
        };
        if self.holds.lock().watch(path.clone(), node) {
            // Without the other end, the connection is gone, and the next one looks at all keys.
            let _ = live.watches.send(Watch {
                path,
                is_prefix,
                start: revision + 1,
                // A writer may become a reader. Parts of a semaphore only end: who watches all of
                // them is not to be woken by each that comes.
                what: match permits.is_some_and(Permits::is_read_write) {
                    false => WatchedChange::Ends,
                    true => WatchedChange::Both,
                },
            });
        }
    }

    /// Hears what the session tells, until the client is closed.
    pub(crate) async fn attend(self: Arc<Self>, mut news: mpsc::UnboundedReceiver<SessionNews>) {
        while let Some(news) = news.recv().await {
            match news {
                SessionNews::Changed(path) if path == self.mailbox_of(self.client) => {
                    self.mind_mailbox(false);
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
                SessionNews::Over(lease, link) => {
                    self.holds.lock().end_lease(lease);
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
    async fn serve(&self, live: &Arc<Live>, node: &KeyNode) -> Carried<()> {
        let waiting = self.holds.lock().waiting(node);
        if waiting.is_empty() {
            return Ok(());
        }
        let sent = self.clock.now();
        let listing = self.list(live, node).await?;
        let mut served = Ok(());
        for child in &waiting {
            if listing.named(&child.name).is_none() {
                self.holds.lock().forget(node, child);
                continue;
            }
            match listing.rank(child.permits, Some(child.place)).standing {
                ChildStanding::Holds => {
                    // Those behind it do not wait for one that can't have its token.
                    let handed = self.hand_over(live, node, child, &listing, sent).await;
                    served = served.and(handed);
                }
                ChildStanding::Waits(obstacle) => {
                    self.watch(live, node, child.permits, &obstacle, listing.revision);
                }
                // It learns of that when it asks again.
                ChildStanding::OtherKind => {}
            }
        }
        served
    }

    async fn hand_over(
        &self,
        live: &Arc<Live>,
        node: &KeyNode,
        child: &Child,
        listing: &Listing,
        sent: Instant,
    ) -> Carried<()> {
        let handed = self.holds.lock().hand_over(node, child, self.clock.now());
        let Some(handed) = handed else {
            return Ok(());
        };
        self.ends.notify_one();
        let token = match handed.tokens {
            0 => None,
            tokens => {
                let flight = Arc::new(live.begin(vec![child.owner]).await);
                let is_shared = child.permits.is_some();
                let (owner, source) = (child.owner, listing.source());
                let minted = self.mint(live, node, owner, tokens, source, is_shared, &flight);
                match minted.await {
                    Ok(Some((first, _))) => Some(first),
                    Ok(None) => return Ok(()),
                    Err(fault) => {
                        // Nobody was told. So it waits on.
                        self.holds.lock().take_back(node, child, &handed);
                        self.ends.notify_one();
                        return Err(fault);
                    }
                }
            }
        };
        let until = self.session.leases.trusted_until(child.lease);
        let until = until
            .unwrap_or(sent)
            .min(sent + trusted(handed.first_lease));
        if let Some(listener) = self.listener.upgrade() {
            let grant = HandedOver::new(child.owner, token, Trust::Until(until));
            drop(listener.on_granted(grant));
        }
        Ok(())
    }
}
