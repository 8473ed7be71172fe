//! The watch of a waiter, on the key before its own. The loop around it is
//! [`lock_store::ordered`]'s.

use std::sync::Arc;

use lock_store::Permits;
use lock_store::ordered::{EngineQueue, KeyNode, Minted};
use lock_store::rules::Obstacle;

use crate::base::TokenSource;
use crate::connection::{Live, Watch, WatchedChange};
use crate::names::Child;
use crate::store::{Carried, EtcdEngine};

impl EngineQueue for EtcdEngine {
    // From the revision on at which it was there: no change is missed.
    async fn watch(
        &self,
        live: &Arc<Live>,
        node: &KeyNode,
        permits: Option<Permits>,
        obstacle: &Obstacle,
        read: &TokenSource,
    ) -> Carried<bool> {
        let (path, is_prefix) = match obstacle {
            Obstacle::Child(name) => (node.child(name), false),
            Obstacle::Children => (node.below(), true),
        };
        if self.own.lock().watch(path.clone(), node) {
            // Without the other end, the connection is gone, and the next one looks at all keys.
            let _ = live.watches.send(Watch {
                path,
                is_prefix,
                start: read.revision + 1,
                // A writer may become a reader. Parts of a semaphore only end: who watches all of
                // them is not to be woken by each that comes.
                what: match permits.is_some_and(Permits::is_read_write) {
                    false => WatchedChange::Ends,
                    true => WatchedChange::Both,
                },
            });
        }
        Ok(true)
    }
    async fn mint_first(
        &self,
        live: &Arc<Live>,
        node: &KeyNode,
        child: &Child,
        count: u32,
        read: &TokenSource,
    ) -> Carried<Minted> {
        let flight = Arc::new(live.begin(vec![child.owner]).await);
        let is_shared = child.permits.is_some();
        let minted = self.mint(live, node, child.owner, count, *read, is_shared, &flight);
        minted.await
    }
}
