//! [`MemcachedStore`]: what the operations come to, one item at a time.

use std::time::Duration;

use lock_store::{
    Acquire, Acquired, Answer, Busy, Claim, Failure, Instant, Link, LockKey, Namespace, Owner,
    Renewal, Renewed, StoreContext, StoreError, StoreErrorKind,
};

use crate::connection::Connection;
use crate::item::{Item, name};
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

    pub(crate) async fn take(
        &self,
        request: &Acquire,
        by: Instant,
    ) -> Result<Answer<Acquired>, Failure> {
        let name = self.name(&request.claim.key)?;
        let owner = request.claim.owner.to_string();
        let mut busy = (Busy::new(None, false), self.connection.link());
        for _ in 0..TRIES {
            if request.instead_of.is_none() {
                let (done, link) = self.add(&name, &owner, request.lease, by).await?;
                if done {
                    return Ok(Answer::new(Acquired::granted(None), link));
                }
            }
            let (item, link) = self.item(&name, by).await?;
            let Some(item) = item else {
                // It has ended meanwhile; what was to be ended has ended, too.
                let (done, link) = self.add(&name, &owner, request.lease, by).await?;
                if done {
                    return Ok(Answer::new(Acquired::granted(None), link));
                }
                continue;
            };
            let instead = request.instead_of.map(|owner| owner.to_string());
            if Some(&item.value) == instead.as_ref() {
                // Other processes have their turn: they ask until this one asks again.
                let (done, link) = self.compared(&item, delete(&name, item.cas), by).await?;
                if done {
                    busy = (Busy::new(None, false), link);
                    break;
                }
                continue;
            }
            if item.value == owner {
                let seconds = seconds(request.lease);
                let write = replace(&name, &owner, seconds, item.cas);
                let (done, link) = self.compared(&item, write, by).await?;
                if done {
                    return Ok(Answer::new(Acquired::granted(None), link));
                }
                continue;
            }
            let mut taken = Busy::new(item.remaining(), false);
            taken.holder = Some(item.holder());
            busy = (taken, link);
            break;
        }
        let (mut busy, link) = busy;
        // Nobody tells of a release. Clients that wait do not ask all at once.
        busy.look_in = Some(match request.instead_of {
            Some(_) => LONGEST_PAUSE,
            None => scattered(LONGEST_PAUSE / 3, LONGEST_PAUSE * 2 / 3),
        });
        Ok(Answer::new(Acquired::Busy(busy), link))
    }

    /// Changes the item of this claim, if its owner has it: writes it anew, or deletes it. True if
    /// it was the owner's.
    pub(crate) async fn change(
        &self,
        claim: &Claim,
        by: Instant,
        to: impl Fn(&str, &Item) -> String,
    ) -> Result<(bool, Link), Failure> {
        let name = self.name(&claim.key)?;
        let owner = claim.owner.to_string();
        for _ in 0..TRIES {
            let (item, link) = self.item(&name, by).await?;
            let Some(item) = item.filter(|item| item.value == owner) else {
                return Ok((false, link));
            };
            let (done, link) = self.compared(&item, to(&name, &item), by).await?;
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
        let kept = kept(claim.owner);
        self.change(claim, by, |name, item| match keep {
            Duration::ZERO => delete(name, item.cas),
            keep => replace(name, &kept, seconds(keep), item.cas),
        })
        .await
    }

    pub(crate) async fn renew_one(
        &self,
        hold: &Renewal,
        by: Instant,
    ) -> Result<(Renewed, Link), Failure> {
        let owner = hold.claim.owner.to_string();
        let renewed = self.change(&hold.claim, by, |name, item| {
            // Never for less than it has.
            let left = item.seconds.unwrap_or(0);
            replace(name, &owner, seconds(hold.lease).max(left), item.cas)
        });
        let (is_held, link) = renewed.await?;
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

/// The value of a key that stays taken.
fn kept(owner: Owner) -> String {
    format!("{owner}:kept")
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
