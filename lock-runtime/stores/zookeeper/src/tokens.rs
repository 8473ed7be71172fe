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

use lock_store::ordered::{KeyNode, Minted};
use lock_store::{Owner, Permits};

use crate::base::{base_in, first_base};
use crate::connection::{Live, NodeReply};
use crate::errors::{Fault, code};
use crate::names::NodeLayout;
use crate::own_children::{GivenTokens, OwnDetails, ZxidWindow, names_of};
use crate::store::{Carried, ZooKeeperEngine};
use crate::wire::{self, MultiPart, NodeRequest, Stat};

/// Who may have tokens of the same key beside a hold that gets some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    /// It is exclusive.
    Nobody,
    /// Sharers that came before it, since this is its grant.
    Earlier,
    /// Sharers that came after it as well. Their transactions were later than its own.
    Later,
}

impl Beside {
    /// At the grant of a part of a share, or of an exclusive hold.
    pub(crate) fn of_grant(permits: Option<Permits>) -> Self {
        permits.map_or(Self::Nobody, |_| Self::Earlier)
    }
}

/// The tokens of one transaction.
pub(crate) const WINDOW: u32 = 128;

fn window_first(base: u64, zxid: i64) -> u64 {
    let zxid = u64::try_from(zxid).unwrap_or(0);
    base.saturating_add(zxid.saturating_mul(WINDOW.into()))
}

impl ZooKeeperEngine {
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
        loop {
            let data = match live.send(wire::data(path, true)).reply().await {
                Err(Fault::Refused(code::NO_NODE)) => {
                    self.make_base(live, path).await?;
                    continue;
                }
                found => found?,
            };
            let (data, stat) = data.read(wire::found_data)?;
            // Nobody's base ends with a session.
            if !data.is_empty() || stat.owner != 0 {
                let base = base_in(&data).ok_or_else(|| Fault::Foreign(path.to_owned()))?;
                return Ok((base, stat.version));
            }
            // A node of Curator's, or of an operator, is there already.
            let begun = wire::set_data(path, &first_base(), Some(stat.version));
            match live.send(begun).reply().await {
                Err(Fault::Refused(code::BAD_VERSION)) => {}
                begun => drop(begun?),
            }
        }
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
            let needed = given
                .highest
                .saturating_add(1)
                .saturating_sub(window_first(0, zxid));
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

    /// Asks something about the child of a hold, under the name that it has. `None`: it is gone,
    /// and forgotten here.
    async fn ask_child<T>(
        &self,
        live: &Live,
        node: &KeyNode,
        owner: Owner,
        ask: impl Fn(&str) -> NodeRequest,
        read: impl Fn(Carried<NodeReply>) -> Carried<Option<T>>,
    ) -> Carried<Option<T>> {
        let names = || {
            let mut requests = self.own.lock();
            requests.get(node, owner).map(|own| names_of(own))
        };
        let mut before = names();
        while let Some(tried) = before {
            for name in &tried {
                let asked = live.send(ask(&node.child(name)));
                if let Some(found) = read(asked.reply().await)? {
                    return Ok(Some(found));
                }
            }
            // It may have got another name meanwhile.
            let now = names();
            if now.as_ref() == Some(&tried) {
                self.own.lock().remove(node, owner);
                return Ok(None);
            }
            before = now;
        }
        Ok(None)
    }

    /// Writes to a key's node, what is there already, while the child of the hold is there: else,
    /// the token of who was there before could be higher than that of the next holder. The number
    /// of that transaction.
    async fn touch(&self, live: &Live, node: &KeyNode, owner: Owner) -> Carried<Option<i64>> {
        loop {
            let found = live.send(wire::data(&node.path, false)).reply().await?;
            let (data, stat) = found.read(wire::found_data)?;
            // Curator's users may write to it, and what they have written since stays. Of ours, it
            // is empty, and those who hold it together are in nobody's way.
            let version = match self.settings.layout {
                NodeLayout::Curator => Some(stat.version),
                NodeLayout::Native => None,
            };
            let write = |child: &str| {
                let same = wire::set_data(&node.path, &data, version);
                wire::multi(&[wire::check(child), same])
            };
            let read = |reply: Carried<NodeReply>| written(reply?.parts());
            match self.ask_child(live, node, owner, write, read).await {
                Err(Fault::Refused(code::BAD_VERSION)) => {}
                touched => return touched,
            }
        }
    }

    /// Sees to it that the transaction is known that made a child. False: the child is gone.
    async fn learn_czxid(&self, live: &Live, node: &KeyNode, owner: Owner) -> Carried<bool> {
        match self.own.lock().get(node, owner) {
            None => return Ok(false),
            Some(own) if own.details.czxid.is_some() => return Ok(true),
            Some(_) => {}
        }
        let read = |reply| live.own_stat(reply);
        let Some(stat) = self
            .ask_child(live, node, owner, wire::exists, read)
            .await?
        else {
            return Ok(false);
        };
        let mut requests = self.own.lock();
        let own = requests.get(node, owner);
        Ok(own
            .map(|own| own.details.czxid = Some(stat.czxid))
            .is_some())
    }

    /// New tokens for a hold of this client. `None`: it is gone. `stat` is that of the key's node,
    /// as it was read when the hold was there.
    pub(crate) async fn mint(
        &self,
        live: &Live,
        node: &KeyNode,
        owner: Owner,
        count: u32,
        stat: Option<Stat>,
        beside: Beside,
    ) -> Carried<Minted> {
        let count = count.clamp(1, WINDOW);
        let path = self.base_node(&node.namespace);
        if !self.learn_czxid(live, node, owner).await? {
            return Ok(None);
        }
        let czxid = self
            .own
            .lock()
            .get(node, owner)
            .and_then(|own| own.details.czxid);
        self.raise_base(live, &path, czxid.unwrap_or(0)).await?;
        let base = self.base(live, &path).await?;
        {
            let mut requests = self.own.lock();
            let Some(own) = requests.get(node, owner) else {
                return Ok(None);
            };
            let OwnDetails { window, czxid, .. } = &mut own.details;
            let is_last =
                |zxid: &i64| beside != Beside::Later && stat.is_none_or(|stat| stat.mzxid < *zxid);
            if let Some(zxid) = czxid.filter(is_last).filter(|_| window.is_none()) {
                let window = window.insert(ZxidWindow { zxid, used: 0 });
                return Ok(Some(self.take(&path, base, window, count)));
            }
            let has_rest =
                |window: &&mut ZxidWindow| beside == Beside::Nobody && window.used < WINDOW;
            if let Some(window) = window.as_mut().filter(has_rest) {
                let rest = count.min(WINDOW - window.used);
                return Ok(Some(self.take(&path, base, window, rest)));
            }
        }
        let Some(zxid) = self.touch(live, node, owner).await? else {
            return Ok(None);
        };
        let mut requests = self.own.lock();
        let Some(own) = requests.get(node, owner) else {
            return Ok(None);
        };
        let window = own.details.window.insert(ZxidWindow { zxid, used: 0 });
        Ok(Some(self.take(&path, base, window, count)))
    }

    /// The next tokens of a window, for a namespace with this base at this path.
    fn take(&self, path: &str, base: u64, window: &mut ZxidWindow, count: u32) -> (u64, u32) {
        let first = window_first(base, window.zxid).saturating_add(window.used.into());
        window.used += count;
        let last = first.saturating_add(u64::from(count));
        let restored = self.session.restored();
        let mut given = self.given.lock();
        let given = given.entry(path.to_owned()).or_insert(GivenTokens {
            highest: 0,
            restored,
        });
        given.highest = given.highest.max(last);
        (first, count)
    }
}

/// The number of the transaction that wrote, of what is said of its parts. `None`: a node that it
/// needs is not there.
fn written(parts: Carried<Vec<MultiPart>>) -> Carried<Option<i64>> {
    match parts {
        Ok(parts) => match parts.last() {
            Some(MultiPart::Written(stat)) => Ok(Some(stat.mzxid)),
            _ => Err(Fault::Unreadable),
        },
        Err(Fault::Refused(code::NO_NODE)) => Ok(None),
        Err(fault) => Err(fault),
    }
}

#[cfg(test)]
mod tests {
    use lock_store::FencingToken;

    use super::*;

    /// As the page of ZooKeeper says. An election begins with the next number times 2^32.
    #[test]
    fn tokens_of_an_ensemble_last_for_13_000_elections() {
        // The base of a namespace that is made in the year 2030.
        let base = 1_893_456_000_000_000;
        let first_of = |election: i64| window_first(base, election << 32);
        assert!(first_of(2) > first_of(1));
        assert!(FencingToken::is_valid(first_of(12_900)));
        assert!(!FencingToken::is_valid(first_of(13_200)));
        assert!(!FencingToken::is_valid(window_first(base, i64::MAX)));
    }

    #[test]
    fn what_is_written_counts_only_while_the_child_is_there() {
        let stat = Stat {
            mzxid: 7,
            ..Stat::default()
        };
        let done = vec![MultiPart::Done, MultiPart::Written(stat)];
        assert!(matches!(written(Ok(done)), Ok(Some(7))));
        let refused = |code| written(Err(Fault::Refused(code)));
        assert!(matches!(refused(code::NO_NODE), Ok(None)));
        let denied = refused(code::NO_AUTH);
        assert!(matches!(denied, Err(Fault::Refused(code::NO_AUTH))));
        assert!(matches!(written(Ok(Vec::new())), Err(Fault::Unreadable)));
    }
}
