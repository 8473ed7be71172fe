//! Fencing tokens: `base + zxid × 128`, and up to 127 more for what follows in the same hold.
//!
//! A grant's transaction is the one that made its child: children that come later have higher ones,
//! and those that come first hold first. More tokens of the same hold come from the same window.
//! When that is used up, or when others hold the key as well, the key's node is written to, and the
//! number of that transaction counts. Whoever finds the node written after its own child writes as
//! well: so tokens rise.
//!
//! The base stands in the namespace's node. It is the time at which that was made, in microseconds
//! since 1970, so that tokens go on above those that another engine has given.

use lock_store::Owner;

use crate::base::base_in;
use crate::connection::Live;
use crate::errors::{Fault, code};
use crate::holds::{GivenTokens, ZxidWindow};
use crate::names::KeyNode;
use crate::store::{Carried, Inner};
use crate::wire::{self, Stat};

/// The tokens of one transaction.
pub(crate) const WINDOW: u32 = 128;

fn window_first(base: u64, zxid: i64) -> u64 {
    let zxid = u64::try_from(zxid).unwrap_or(0);
    base.saturating_add(zxid.saturating_mul(WINDOW.into()))
}

/// The first of these tokens, and how many are reserved.
pub(crate) type Minted = Option<(u64, u32)>;

impl Inner {
    async fn base(&self, live: &Live, path: &str) -> Carried<u64> {
        let changes = match self.session.bases.get(path) {
            Ok(base) => return Ok(base),
            Err(changes) => changes,
        };
        let (base, _) = self.read_base(live, path).await?;
        self.session.bases.note(path, base, changes);
        Ok(base)
    }

    /// The base, and the version of the node that has it.
    async fn read_base(&self, live: &Live, path: &str) -> Carried<(u64, i32)> {
        let read = || live.send(wire::data(path, true));
        let data = match read().reply().await {
            Err(Fault::Refused(code::NO_NODE)) => {
                self.make_base(live, path).await?;
                read().reply().await?
            }
            found => found?,
        };
        let (data, stat) = data.read(wire::found_data)?;
        let base = base_in(&data).ok_or(Fault::Unreadable)?;
        Ok((base, stat.version))
    }

    /// Sees to it that the next token is above those that this client has given before servers
    /// forgot some of their transactions.
    async fn raise_base(&self, live: &Live, path: &str, zxid: i64) -> Carried<()> {
        let times = self.session.restored();
        let given = self.given.lock().get(path).copied();
        let Some(given) = given.filter(|given| given.restored < times) else {
            return Ok(());
        };
        loop {
            let (base, version) = self.read_base(live, path).await?;
            let needed = (given.highest + 1).saturating_sub(window_first(0, zxid));
            if base < needed {
                let data = needed.to_string();
                let raised = wire::set_data(path, data.as_bytes(), Some(version));
                match live.send(raised).reply().await {
                    // Another client was faster.
                    Err(Fault::Refused(code::BAD_VERSION)) => continue,
                    raised => raised.map(drop)?,
                }
                self.session.bases.forget(path);
            }
            if let Some(given) = self.given.lock().get_mut(path) {
                given.restored = times;
            }
            return Ok(());
        }
    }

    /// Writes to a key's node, what is there already. The number of that transaction.
    async fn touch(&self, live: &Live, node: &KeyNode) -> Carried<i64> {
        let found = live.send(wire::data(&node.path, false)).reply().await?;
        let (data, _) = found.read(wire::found_data)?;
        let written = live.send(wire::set_data(&node.path, &data, None));
        Ok(written.reply().await?.read(wire::only_stat)?.mzxid)
    }

    /// Sees to it that the transaction is known that made a child.
    async fn learn_czxid(&self, live: &Live, node: &KeyNode, owner: Owner) -> Carried<()> {
        let path = {
            let mut holds = self.holds.lock();
            match holds.get(node, owner) {
                Some(own) if own.czxid.is_none() => node.child(&own.child.name),
                _ => return Ok(()),
            }
        };
        let stat = self.stat_of(live, &path).await?;
        if let Some(own) = self.holds.lock().get(node, owner) {
            own.czxid = stat.map(|stat| stat.czxid);
        }
        Ok(())
    }

    /// New tokens for a hold of this client. `None`: it is gone. `stat` is that of the key's node,
    /// as it was read when the hold was there. A hold that `is_shared` is not the only one.
    pub(crate) async fn mint(
        &self,
        live: &Live,
        node: &KeyNode,
        owner: Owner,
        count: u32,
        stat: Option<Stat>,
        is_shared: bool,
    ) -> Carried<Minted> {
        let count = count.clamp(1, WINDOW);
        let path = self.base_node(&node.namespace);
        self.learn_czxid(live, node, owner).await?;
        let czxid = self.holds.lock().get(node, owner).and_then(|own| own.czxid);
        self.raise_base(live, &path, czxid.unwrap_or(0)).await?;
        let base = self.base(live, &path).await?;
        let take = |window: &mut ZxidWindow, count: u32| {
            let first = window_first(base, window.zxid).saturating_add(window.used.into());
            window.used += count;
            let last = first.saturating_add(u64::from(count));
            let restored = self.session.restored();
            let mut given = self.given.lock();
            let given = given.entry(path.clone()).or_insert(GivenTokens {
                highest: 0,
                restored,
            });
            given.highest = given.highest.max(last);
            (first, count)
        };
        {
            let mut holds = self.holds.lock();
            let Some(own) = holds.get(node, owner) else {
                return Ok(None);
            };
            let has_rest = |window: &ZxidWindow| !is_shared && window.used < WINDOW;
            match &mut own.window {
                Some(window) if has_rest(window) => {
                    let rest = count.min(WINDOW - window.used);
                    return Ok(Some(take(window, rest)));
                }
                Some(_) => {}
                window @ None => {
                    let is_last = |zxid: &i64| stat.is_none_or(|stat| stat.mzxid < *zxid);
                    if let Some(zxid) = own.czxid.filter(is_last) {
                        let window = window.insert(ZxidWindow { zxid, used: 0 });
                        return Ok(Some(take(window, count)));
                    }
                }
            }
        }
        let zxid = self.touch(live, node).await?;
        let mut holds = self.holds.lock();
        let Some(own) = holds.get(node, owner) else {
            return Ok(None);
        };
        let window = own.window.insert(ZxidWindow { zxid, used: 0 });
        Ok(Some(take(window, count)))
    }
}
