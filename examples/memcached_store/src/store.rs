//! [`MemcachedStore`]: what the operations come to, one item at a time.

use std::time::Duration;

use lock_store::rules::Holders;
use lock_store::{
    Acquire, Acquired, Answer, Busy, Claim, Failure, Instant, Link, LockKey, Namespace, Renewal,
    Renewed, StoreContext, StoreError, StoreErrorKind,
};

use crate::connection::Connection;
use crate::item::{Item, READ, name, value};
use crate::protocol::{Reply, add, delete, get, replace, seconds};

/// So often an item is read again that has changed before it was written.
const TRIES: u32 = 8;

/// Those who wait ask again after this at the latest.
const LONGEST_PAUSE: Duration = Duration::from_millis(60);

/// Locks in one memcached server.
#[derive(Debug)]
pub(crate) struct MemcachedStore {
    pub(crate) connection: Connection,
    namespace: Namespace,
}

impl MemcachedStore {
    pub(crate) fn new(address: &str, context: StoreContext) -> Self {
        let StoreContext {
            namespace,
            listener,
            clock,
            timeouts,
            ..
        } = context;
        Self {
            connection: Connection::new(address, clock, timeouts, listener),
            namespace,
        }
    }

    pub(crate) fn name(&self, key: &LockKey) -> Result<String, Failure> {
        name(key, &self.namespace).ok_or_else(|| {
            let text = "with its namespace the key is longer than memcached's 250 bytes";
            Failure::without_effect(StoreError::new(StoreErrorKind::Refused, text))
        })
    }

    pub(crate) async fn item(
        &self,
        name: &str,
        by: Instant,
    ) -> Result<(Option<Item>, Link), Failure> {
        let (reply, link) = self.connection.ask(get(name), None, by).await?;
        let item = Item::of(reply, link);
        if matches!(&item, Some(Item { cas: 0, .. })) {
            let text = "memcached runs without CAS numbers, so that nobody can tell whether a lock \
                is still the owner's; start it without `-C`";
            let error = StoreError::new(StoreErrorKind::Misconfigured, text);
            return Err(Failure::without_effect(error));
        }
        Ok((item, link))
    }

    /// Takes an item that is not there. True if it was taken.
    async fn add(
        &self,
        name: &str,
        owner: &str,
        lease: Duration,
        by: Instant,
    ) -> Result<(bool, Link), Failure> {
        let command = add(name, owner, lease);
        let (reply, link) = self.connection.ask(command, None, by).await?;
        Ok((is_done(&reply), link))
    }

    /// Changes an item that was read, by a command that compares its number. True if it did.
    async fn compared(
        &self,
        item: &Item,
        command: String,
        by: Instant,
    ) -> Result<(bool, Link), Failure> {
        let asked = self.connection.ask(command, Some(item.link), by);
        let (reply, link) = asked.await?;
        Ok((is_done(&reply), link))
    }

    /// Writes what the rules have changed, if the item is still the one that was read. True if it
    /// is.
    async fn write(
        &self,
        name: &str,
        item: &Item,
        after: &Holders,
        by: Instant,
    ) -> Result<(bool, Link), Failure> {
        let mut command = None;
        for (name_of_hold, hold) in after.changes(&item.holders()) {
            // There is one holder. It takes the place of the one before.
            command = match hold {
                Some(hold) => {
                    let lasts = seconds(hold.expires - READ);
                    Some(replace(name, &value(name_of_hold), lasts, item.cas))
                }
                None => command.or_else(|| Some(delete(name, item.cas))),
            };
        }
        match command {
            Some(command) => self.compared(item, command, by).await,
            None => Ok((true, item.link)),
        }
    }

    pub(crate) async fn take(
        &self,
        request: &Acquire,
        by: Instant,
    ) -> Result<Answer<Acquired>, Failure> {
        let claim = &request.claim;
        let name = self.name(&claim.key)?;
        let value = claim.owner.to_string();
        let mut busy = Busy::new(None, false);
        // Nobody tells of a release. Clients that wait do not ask all at once.
        busy.look_in = Some(match request.instead_of {
            Some(_) => LONGEST_PAUSE,
            None => scattered(LONGEST_PAUSE / 3, LONGEST_PAUSE * 2 / 3),
        });
        if let Some(owner) = request.instead_of {
            let before = Claim::new(claim.key.clone(), owner, None);
            let (ended, link) = self.end(&before, Duration::ZERO, by).await?;
            // Other processes have their turn: they ask until this one asks again.
            if ended {
                return Ok(Answer::new(Acquired::Busy(busy), link));
            }
        }
        for _ in 0..TRIES {
            let (done, link) = self.add(&name, &value, request.lease, by).await?;
            if done {
                return Ok(Answer::new(Acquired::granted(None), link));
            }
            // It may have ended meanwhile.
            let (Some(item), link) = self.item(&name, by).await? else {
                continue;
            };
            let mut holders = item.holders();
            if !holders.has(claim) {
                busy.remaining = item.remaining();
                busy.holder = Some(item.holder().who());
                return Ok(Answer::new(Acquired::Busy(busy), link));
            }
            holders.prolong(claim.owner, READ + request.lease);
            let (done, link) = self.write(&name, &item, &holders, by).await?;
            if done {
                return Ok(Answer::new(Acquired::granted(None), link));
            }
        }
        Ok(Answer::new(Acquired::Busy(busy), self.connection.link()))
    }

    /// Changes the holder of this claim, if it is held, by a rule. True if it was.
    async fn change(
        &self,
        claim: &Claim,
        by: Instant,
        rule: impl Fn(&mut Holders),
    ) -> Result<(bool, Link), Failure> {
        let name = self.name(&claim.key)?;
        for _ in 0..TRIES {
            let (item, link) = self.item(&name, by).await?;
            let Some(item) = item.filter(|item| item.holders().has(claim)) else {
                return Ok((false, link));
            };
            let mut holders = item.holders();
            rule(&mut holders);
            let (done, link) = self.write(&name, &item, &holders, by).await?;
            if done {
                return Ok((true, link));
            }
        }
        let text = "an item was written again and again";
        let error = StoreError::new(StoreErrorKind::Timeout, text);
        Err(Failure::without_effect(error))
    }

    /// Ends the hold of this claim. The key stays taken for `keep`.
    pub(crate) async fn end(
        &self,
        claim: &Claim,
        keep: Duration,
        by: Instant,
    ) -> Result<(bool, Link), Failure> {
        self.change(claim, by, |holders| holders.leave(claim.owner, READ, keep))
            .await
    }

    pub(crate) async fn renew_one(
        &self,
        Renewal { claim, lease, .. }: &Renewal,
        by: Instant,
    ) -> Result<(Renewed, Link), Failure> {
        let prolong = |holders: &mut Holders| holders.prolong(claim.owner, READ + *lease);
        let (is_held, link) = self.change(claim, by, prolong).await?;
        let renewed = if is_held {
            Renewed::Renewed
        } else {
            Renewed::Gone
        };
        Ok((renewed, link))
    }
}

pub(crate) fn is_done(reply: &Reply) -> bool {
    matches!(reply, Reply::Code(code) if code.starts_with("HD"))
}

/// A random time between `least` and `least + more`.
fn scattered(least: Duration, more: Duration) -> Duration {
    let mut byte = [0];
    // Without random numbers the clients ask at the same time, which only costs commands.
    let _ = getrandom::fill(&mut byte);
    least + more * u32::from(byte[0]) / 255
}

#[cfg(test)]
#[expect(clippy::expect_used, reason = "a test that can't go on has failed")]
#[path = "../tests/server/mod.rs"]
mod server;

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

    use std::sync::Arc;

    use lock_store::{ClientId, Clock, Listener, Store};
    use lock_testkit::{Heard, StoreUnderTest, context};
    use tokio::runtime::Handle;

    use super::server::Memcached;
    use super::*;

    /// A server that was started again gives the same numbers to other items.
    #[tokio::test]
    async fn a_number_from_before_a_restart_changes_nothing_after_it() {
        let server = Memcached::start_with(&["--disable-evictions"]).await;
        let listener: Arc<dyn Listener> = Arc::new(Heard::default());
        let clock = Clock::new(Handle::current());
        let by = clock.now() + Duration::from_secs(10);
        let context = context("lock", ClientId(1), &listener, clock);
        let store = MemcachedStore::new(&server.address, context);
        let lease = Duration::from_secs(60);
        assert!(store.add("lock:k", "mine", lease, by).await.unwrap().0);
        let (item, _) = store.item("lock:k", by).await.unwrap();
        let mine = item.unwrap();

        assert!(server.kill());
        server.restart().await;
        // The first command finds out that the old connection is gone.
        while store.ping(by).await.is_err() {}
        assert!(store.add("lock:k", "another's", lease, by).await.unwrap().0);
        let (item, _) = store.item("lock:k", by).await.unwrap();
        assert_eq!(
            item.unwrap().cas,
            mine.cas,
            "the test needs the same number"
        );

        let write = replace("lock:k", "mine", 60, mine.cas);
        let failure = store.compared(&mine, write, by).await.unwrap_err();
        assert_eq!(failure.error.kind(), StoreErrorKind::Disconnected);
        assert_eq!(failure.unknown, None);
        let (item, _) = store.item("lock:k", by).await.unwrap();
        assert_eq!(item.unwrap().value, "another's");
    }
}
