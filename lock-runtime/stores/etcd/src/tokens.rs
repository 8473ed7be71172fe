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

use crate::connection::{Flight, Live};
use crate::errors::Fault;
use crate::holds::TokenWindow;
use crate::names::{self, KeyNode};
use crate::store::{Carried, Inner};
use crate::wire;

/// The tokens of one revision.
pub(crate) const WINDOW: u32 = 128;

/// What the key of a namespace says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Base {
    first: u64,
    cluster: u64,
    /// The highest revision that was lost in a restored cluster.
    lost: i64,
}

impl Base {
    fn parse(value: &[u8]) -> Option<Self> {
        let mut parts = std::str::from_utf8(value).ok()?.split(' ');
        let base = Self {
            first: parts.next()?.parse().ok()?,
            cluster: parts.next()?.parse().ok()?,
            lost: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(base)
    }

    fn text(self) -> String {
        format!("{} {} {}", self.first, self.cluster, self.lost)
    }

    /// Of a namespace that has none.
    fn begin(cluster: u64, micros: u64, lost: i64) -> Self {
        Self {
            first: micros,
            cluster,
            lost,
        }
    }

    /// What it must become, if that is another.
    fn raised(self, cluster: u64, micros: u64, lost: i64) -> Option<Self> {
        if self.cluster == cluster && self.lost >= lost {
            return None;
        }
        let above = self.token(lost.max(self.lost).saturating_add(1));
        let lost = lost.max(self.lost);
        Some(Self {
            first: above.max(micros),
            cluster,
            lost,
        })
    }

    fn token(self, revision: i64) -> u64 {
        let revision = u64::try_from(revision).unwrap_or(0);
        let first = revision.saturating_mul(WINDOW.into());
        self.first.saturating_add(first)
    }
}

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
        flight: &Arc<Flight>,
    ) -> Carried<Minted> {
        let base = self.base(live, node).await?;
        let count = count.clamp(1, WINDOW);
        let take = |window: &mut TokenWindow, count: u32| {
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
                        let window = window.insert(TokenWindow { revision, used: 0 });
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
        let window = own.window.insert(TokenWindow { revision, used: 0 });
        Ok(Some(take(window, count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_written_and_read() {
        let base = Base::begin(7, 1_700_000_000_000_000, 0);
        assert_eq!(Base::parse(base.text().as_bytes()), Some(base));
        for foreign in ["somebody's", "", "1 2", "1 2 3 4"] {
            assert_eq!(Base::parse(foreign.as_bytes()), None);
        }
    }

    #[test]
    fn a_restored_cluster_gives_higher_tokens_than_before() {
        let base = Base::begin(7, 1_000, 0);
        assert_eq!(base.raised(7, 2_000, 0), None);
        // Another cluster, of which nobody has seen the end.
        let other = base.raised(8, 2_000, 0).map(|base| base.token(1));
        assert!(other.is_some_and(|token| token > 2_000));
        // The same, and revisions up to 500 were seen.
        let lost = base.raised(7, 2_000, 500);
        assert!(lost.is_some_and(|lost| lost.token(1) > base.token(500) + u64::from(WINDOW)));
        assert_eq!(lost.and_then(|lost| lost.raised(7, 9_000, 500)), None);
    }
}
