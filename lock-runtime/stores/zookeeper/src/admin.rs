//! What people ask: who holds a key, and its end.

use lock_store::ordered::KeyNode;
use lock_store::rules::RankedRequest;
use lock_store::{FoundHolder, LockFound, LockKey};

use crate::connection::Live;
use crate::names::Child;
use crate::store::{Carried, Inner};

/// A list of holders is no longer.
const MOST_HOLDERS: usize = 1_000;

impl Inner {
    pub(crate) async fn inspect(&self, live: &Live, key: &LockKey) -> Carried<Option<LockFound>> {
        let node = self.node(key);
        let listing = self.list_all_done(live, &node).await?;
        if listing.is_foreign {
            return Ok(None);
        }
        let mut found = listing.found();
        let last = listing.holding().last();
        found.remaining = last.and_then(|child| self.rest_of(&node, child));
        Ok(Some(found))
    }

    /// The rest of a lease, which is known of this client's holds only, and of what stays taken
    /// after a release.
    fn rest_of(&self, node: &KeyNode, child: &Child) -> Option<std::time::Duration> {
        let mut holds = self.holds.lock();
        if child.kept {
            let until = holds.kept_until(&node.child(&child.name))?;
            return Some(until - self.clock.now());
        }
        Some(holds.end_of(node, child)? - self.clock.now())
    }

    pub(crate) async fn holders(
        &self,
        live: &Live,
        key: &LockKey,
    ) -> Carried<Option<Vec<FoundHolder>>> {
        let listing = self.list_all_done(live, &self.node(key)).await?;
        let holding = listing.holding().iter().take(MOST_HOLDERS);
        Ok((!listing.is_foreign).then(|| holding.map(RankedRequest::holder).collect()))
    }

    pub(crate) async fn force_release(&self, live: &Live, key: &LockKey) -> Carried<Option<bool>> {
        let node = self.node(key);
        let listing = self.list_all_done(live, &node).await?;
        if listing.is_foreign {
            return Ok(None);
        }
        let mut ended = false;
        for child in listing.holding() {
            let path = node.child(&child.name);
            ended |= self.delete(live, &path).await?;
            let mut holds = self.holds.lock();
            holds.forget(&node, child);
            holds.unkeep(&path);
        }
        Ok(Some(ended))
    }
}
