//! [`ForeignChannels`]: the channels of another library on which this client waits.

use std::time::Duration;

use lock_store::{
    ClientId, Clock, Ended, HandedOver, Instant, Link, Listener, LockKey, Mutex, Owner,
    SweepingMap, Trust,
};

/// Of those who wait on the same channel, one asks again within this time, and notes it again.
const NOTED_FOR: Duration = Duration::from_secs(10);

/// A message does not say whose hold has ended.
const NOBODY: Owner = Owner {
    client: ClientId(0),
    request: 0,
};

/// For whom the messages of each channel are.
#[derive(Debug, Default)]
pub(crate) struct ForeignChannels {
    waits: Mutex<SweepingMap<String, ForeignChannel>>,
}

#[derive(Debug)]
struct ForeignChannel {
    /// One, unless others' names of channels do not tell keys apart.
    keys: Vec<LockKey>,
    /// The one who alone is called, and may depend on that: behind others of its process, it asks
    /// once. Its channel is noted until it waits no longer.
    owner: Option<Owner>,
    noted: Instant,
    /// When a message came.
    heard: Option<Instant>,
    /// Others go first.
    quiet_until: Option<Instant>,
}

impl ForeignChannels {
    /// Someone who waits for this key is about to listen there.
    pub(crate) fn note(&self, channel: &str, key: &LockKey, owner: Option<Owner>, now: Instant) {
        let mut waits = self.waits.lock();
        waits.sweep(|one| one.owner.is_some() || one.noted + NOTED_FOR > now);
        if let Some(one) = waits.get_mut(channel) {
            one.noted = now;
            if !one.keys.contains(key) {
                one.keys.push(key.clone());
            }
            return;
        }
        let one = ForeignChannel {
            keys: vec![key.clone()],
            owner,
            noted: now,
            heard: None,
            quiet_until: None,
        };
        waits.insert(channel.to_owned(), one);
    }

    /// Who alone was called there waits no longer.
    pub(crate) fn forget(&self, channel: &str) {
        self.waits.lock().remove(channel);
    }

    /// Whether someone depends on what is said there.
    pub(super) fn is_awaited(&self, channel: &str) -> bool {
        let waits = self.waits.lock();
        waits.get(channel).is_some_and(|one| one.owner.is_some())
    }

    /// Messages there are for others, until then.
    pub(crate) fn be_quiet(&self, channel: &str, until: Instant) {
        if let Some(one) = self.waits.lock().get_mut(channel) {
            one.quiet_until = Some(until);
        }
    }

    /// When a message came there that was waited for.
    pub(crate) fn heard(&self, channel: &str) -> Option<Instant> {
        self.waits.lock().get(channel)?.heard
    }

    /// Passes a message on. False if it is not on one of these channels.
    pub(crate) fn on_message(
        &self,
        channel: &[u8],
        link: Link,
        clock: &Clock,
        listener: &dyn Listener,
    ) -> bool {
        let Ok(channel) = std::str::from_utf8(channel) else {
            return false;
        };
        let (keys, owner) = {
            let mut waits = self.waits.lock();
            let Some(one) = waits.get_mut(channel) else {
                return false;
            };
            one.heard = Some(clock.now());
            if one.quiet_until.is_some_and(|until| clock.now() < until) {
                return true;
            }
            (one.keys.clone(), one.owner)
        };
        if let Some(owner) = owner {
            drop(listener.on_granted(HandedOver::new(owner, None, Trust::Ask(link))));
            return true;
        }
        for key in keys {
            listener.on_freed(Ended::new(key, NOBODY, 1));
        }
        true
    }
}
