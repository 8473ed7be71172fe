//! What people ask: who holds a key, and its end.

use std::sync::Arc;

use lock_store::ordered::KeyNode;
use lock_store::rules::RankedRequest;
use lock_store::{FoundHolder, LockFound, LockKey};

use crate::connection::Live;
use crate::names::Child;
use crate::store::{Carried, Inner};

/// A list of holders is no longer.
const MOST_HOLDERS: usize = 1_000;

impl Inner {
    pub(crate) async fn inspect(
        &self,
        live: &Arc<Live>,
        key: &LockKey,
    ) -> Carried<Option<LockFound>> {
        let node = self.node(key);
        let listing = self.list(live, &node).await?;
        if listing.is_foreign {
            return Ok(None);
        }
        let mut found = listing.found();
        let last = listing.holding().last();
        found.remaining = last.and_then(|child| self.rest_of(&node, child));
        Ok(Some(found))
    }

    /// The rest of a lease, which is known of holds of this client only.
    fn rest_of(&self, node: &KeyNode, child: &Child) -> Option<std::time::Duration> {
        let ends = self.holds.lock().end_of(node, child)?;
        Some(ends - self.clock.now())
    }

    pub(crate) async fn holders(
        &self,
        live: &Arc<Live>,
        key: &LockKey,
    ) -> Carried<Option<Vec<FoundHolder>>> {
        let listing = self.list(live, &self.node(key)).await?;
        let holding = listing.holding().iter().take(MOST_HOLDERS);
        Ok((!listing.is_foreign).then(|| holding.map(RankedRequest::holder).collect()))
    }

    pub(crate) async fn force_release(
        &self,
        live: &Arc<Live>,
        key: &LockKey,
    ) -> Carried<Option<bool>> {
        let node = self.node(key);
        let listing = self.list(live, &node).await?;
        if listing.is_foreign {
            return Ok(None);
        }
        let mut ended = false;
        for child in listing.holding() {
            ended |= self.delete(live, &node, child, None).await?;
            let mut holds = self.holds.lock();
            holds.forget(&node, child);
            holds.unkeep(&node.child(&child.name));
        }
        Ok(Some(ended))
    }
}
