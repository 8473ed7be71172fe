//! Fencing tokens: `base + revision × 128`, and up to 127 more for what follows in the same hold.
//!
//! The revision is one at which the hold was there: that which made its key, or that of a later
//! reading that has found it first. Whoever holds the key next has found a later one, since the end
//! of a hold is a revision as well: so tokens rise. Of several who hold parts of a key at once,
//! each writes its own key again for a token, and so does one that has used up those of its
//! revision.
//!
//! The base stands in a key of the namespace, with the number of the cluster. It is the time at
//! which that was made, in microseconds since 1970, so that tokens go on above those that another
//! engine has given. A cluster that was restored from a snapshot has another number, or revisions
//! that are lower than those that clients have seen: then the base is raised.

use std::sync::Arc;
use std::time::SystemTime;

use lock_store::Owner;

use crate::base::{Base, WINDOW};
use crate::connection::{Live, OwnerFlight};
use crate::errors::Fault;
use crate::holds::RevisionWindow;
use crate::names::{self, KeyNode};
use crate::store::{Carried, Inner};
use crate::wire;

fn micros() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_micros()).unwrap_or(0))
}

/// The first of these tokens, and how many are reserved.
pub(crate) type Minted = Option<(u64, u32)>;

impl Inner {
    async fn base(&self, live: &Arc<Live>, node: &KeyNode) -> Carried<Base> {
        let lost = self.session.lost();
        if let Some((link, base)) = self.bases.lock().get(&node.namespace).copied()
            && link == live.epoch.revision
        {
            return Ok(base);
        }
        let key = format!("{}base", names::helpers(&node.namespace));
        loop {
            let mut read = live
                .txn(Vec::new(), vec![wire::get(&key)], Vec::new(), None)
                .await?;
            let found = read.found()?;
            let cluster = read.header.cluster;
            let (same, wanted) = match found.first() {
                None => (
                    wire::made_by(&key, 0),
                    Some(Base::begin(cluster, micros(), lost)),
                ),
                Some(kv) => {
                    let base = Base::parse(&kv.value).ok_or(Fault::Unreadable)?;
                    let same = wire::changed_by(&key, kv.mod_revision);
                    match base.raised(cluster, micros(), lost) {
                        None => {
                            let known = (live.epoch.revision, base);
                            self.bases.lock().insert(node.namespace.clone(), known);
                            return Ok(base);
                        }
                        raised => (same, raised),
                    }
                }
            };
            if let Some(base) = wanted {
                let put = vec![wire::put(&key, &base.text(), 0)];
                // If another was faster, its word counts.
                live.txn(vec![same], put, Vec::new(), None).await?;
            }
        }
    }

    /// New tokens for a hold of this client. `None`: it is gone. The hold was there at `revision`.
    /// One that `is_shared` is not the only one.
    #[expect(
        clippy::too_many_arguments,
        reason = "the hold, and what is known of it"
    )]
    pub(crate) async fn mint(
        &self,
        live: &Arc<Live>,
        node: &KeyNode,
        owner: Owner,
        count: u32,
        revision: i64,
        is_shared: bool,
        flight: &Arc<OwnerFlight>,
    ) -> Carried<Minted> {
        let base = self.base(live, node).await?;
        let count = count.clamp(1, WINDOW);
        let take = |window: &mut RevisionWindow, count: u32| {
            let first = u64::from(window.used);
            window.used += count;
            (base.token(window.revision).saturating_add(first), count)
        };
        let child = {
            let mut holds = self.holds.lock();
            let Some(own) = holds.get(node, owner) else {
                return Ok(None);
            };
            if !is_shared {
                match &mut own.window {
                    Some(window) if window.revision >= revision => {
                        let rest = count.min(WINDOW - window.used);
                        if rest > 0 {
                            return Ok(Some(take(window, rest)));
                        }
                    }
                    window => {
                        let window = window.insert(RevisionWindow { revision, used: 0 });
                        return Ok(Some(take(window, count)));
                    }
                }
            }
            own.child.clone()
        };
        let Some(revision) = self
            .rewrite(live, node, &child, child.lease, flight)
            .await?
        else {
            return Ok(None);
        };
        let mut holds = self.holds.lock();
        let Some(own) = holds.get(node, owner) else {
            return Ok(None);
        };
        let window = own.window.insert(RevisionWindow { revision, used: 0 });
        Ok(Some(take(window, count)))
    }
}
