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
        let (reply, link) = self.connection.ask(get(name), by).await?;
        Ok((Item::of(reply), link))
    }

    /// Whether a write was carried out.
    async fn is_done(&self, command: String, by: Instant) -> Result<(bool, Link), Failure> {
        let (reply, link) = self.connection.ask(command, by).await?;
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
                let (done, link) = self.is_done(add(&name, &owner, request.lease), by).await?;
                if done {
                    return Ok(Answer::new(Acquired::granted(None), link));
                }
            }
            let (item, link) = self.item(&name, by).await?;
            let Some(item) = item else {
                // It has ended meanwhile; what was to be ended has ended, too.
                let (done, link) = self.is_done(add(&name, &owner, request.lease), by).await?;
                if done {
                    return Ok(Answer::new(Acquired::granted(None), link));
                }
                continue;
            };
            let instead = request.instead_of.map(|owner| owner.to_string());
            if Some(&item.value) == instead.as_ref() {
                // Other processes have their turn: they ask until this one asks again.
                let (done, link) = self.is_done(delete(&name, item.cas), by).await?;
                if done {
                    busy = (Busy::new(None, false), link);
                    break;
                }
                continue;
            }
            if item.value == owner {
                let seconds = seconds(request.lease);
                let write = replace(&name, &owner, seconds, item.cas);
                let (done, link) = self.is_done(write, by).await?;
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
            let (done, link) = self.is_done(to(&name, &item), by).await?;
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
