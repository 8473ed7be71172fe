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
//! that are lower than those that clients have seen: then the base is raised. Anybody may do so at
//! any time. So the base of a token is read in the same transaction as its revision, and a later
//! revision never meets an earlier base.

use std::sync::Arc;

use lock_store::ordered::{KeyNode, Minted};
use lock_store::{Owner, wall_micros};

use crate::base::{Base, TokenSource, WINDOW};
use crate::connection::{Live, OwnerFlight};
use crate::errors::Fault;
use crate::rank::RevisionWindow;
use crate::store::{Carried, EtcdEngine, base_of};
use crate::wire;

/// How often a base is made or raised for one token: somebody may delete it, or write another.
const TRIES: u32 = 4;

impl EtcdEngine {
    /// Makes the base of a namespace, or raises it, if it must be.
    async fn make_base(&self, live: &Arc<Live>, node: &KeyNode) -> Carried<()> {
        let lost = self.session.lost();
        let key = base_of(node);
        let get = vec![wire::get(&key)];
        let mut read = live.txn(Vec::new(), get, Vec::new(), None).await?;
        let (found, cluster) = (read.found()?, read.header.cluster);
        let (same, wanted) = match found.first() {
            None => {
                let base = Base::begin(cluster, wall_micros(), lost);
                (wire::made_by(&key, 0), Some(base))
            }
            Some(kv) => {
                let base = Base::parse(&kv.value);
                let base = base.ok_or_else(|| Fault::Foreign(key.clone()))?;
                let same = wire::changed_by(&key, kv.mod_revision);
                (same, base.raised(cluster, wall_micros(), lost))
            }
        };
        if let Some(base) = wanted {
            let put = vec![wire::put(&key, &base.text(), 0)];
            // If another was faster, its word counts.
            live.txn(vec![same], put, Vec::new(), None).await?;
        }
        Ok(())
    }

    /// New tokens for a hold of this client. `None`: it is gone. One that `is_shared` is not the
    /// only one.
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
        mut source: TokenSource,
        is_shared: bool,
        flight: &Arc<OwnerFlight>,
    ) -> Carried<Minted> {
        let count = count.clamp(1, WINDOW);
        let mut is_own = !is_shared;
        for _ in 0..TRIES {
            let child = {
                let mut requests = self.own.lock();
                let Some(own) = requests.get(node, owner) else {
                    return Ok(None);
                };
                if is_own
                    && let Some(base) = source.base
                    && let Some(minted) =
                        take(&mut own.details.window, base.token(source.revision), count)
                {
                    return Ok(Some(minted));
                }
                own.child.clone()
            };
            if source.base.is_none() {
                self.make_base(live, node).await?;
            }
            let written = self.rewrite(live, node, &child, child.lease, flight);
            let Some(written) = written.await? else {
                return Ok(None);
            };
            (source, is_own) = (written, true);
        }
        Err(Fault::Unreadable)
    }
}

/// Tokens from `first` on, or from those that the hold has left, if they are higher. `None`: all
/// are used.
fn take(window: &mut Option<RevisionWindow>, first: u64, count: u32) -> Minted {
    let window = match window {
        Some(window) if window.first >= first => window,
        window => window.insert(RevisionWindow { first, used: 0 }),
    };
    let count = count.min(WINDOW - window.used);
    let next = window.first.saturating_add(window.used.into());
    window.used += count;
    (count > 0).then_some((next, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_a_hold_rise_whatever_was_read_last() {
        let mut window = None;
        assert_eq!(take(&mut window, 1_000, 2), Some((1_000, 2)));
        assert_eq!(take(&mut window, 1_000, WINDOW), Some((1_002, WINDOW - 2)));
        assert_eq!(take(&mut window, 1_000, 1), None);
        // A later revision, or a raised base.
        assert_eq!(take(&mut window, 5_000, 1), Some((5_000, 1)));
        // An earlier reading that comes late.
        assert_eq!(take(&mut window, 1_000, 1), Some((5_001, 1)));
    }
}
