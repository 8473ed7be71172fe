//! What keys and channels are called in Redis.

use super::slots::{slot_of, tag_in};
use crate::error::LockError;
use crate::key::LockKey;
use crate::store::Owner;

/// On so many channels of a namespace is told which locks of a quorum are free.
const FREED_CHANNELS: u16 = 64;

/// A namespace, checked.
#[derive(Clone, Debug)]
pub(crate) struct Namespace {
    /// Ends in `:` unless empty.
    prefix: Box<str>,
}

/// The keys of one lock, all in one Cluster slot.
pub(super) struct Names {
    pub(super) lock: String,
    pub(super) queue: String,
    pub(super) fence: String,
}

/// The keys of one latch and of one call on it, all in one Cluster slot.
pub(super) struct LatchNames {
    pub(super) latch: String,
    pub(super) waiters: String,
    pub(super) call: String,
}

impl Namespace {
    pub(crate) fn new(namespace: &str) -> Result<Self, LockError> {
        if let Some(bad) = namespace
            .chars()
            .find(|c| matches!(c, ':' | '{' | '}' | '%') || c.is_control())
        {
            return Err(LockError::config(format!(
                "the namespace {namespace:?} has a {bad:?}; use letters, digits, `-`, `_` and `.`, so that namespaces never nest"
            )));
        }
        let prefix = if namespace.is_empty() {
            String::new()
        } else {
            format!("{namespace}:")
        };
        Ok(Self {
            prefix: prefix.into(),
        })
    }

    pub(crate) fn as_str(&self) -> &str {
        self.prefix.strip_suffix(':').unwrap_or(&self.prefix)
    }

    pub(super) fn lock(&self, key: &LockKey) -> String {
        format!("{}{key}", self.prefix)
    }

    pub(super) fn names(&self, key: &LockKey) -> Names {
        Names {
            lock: self.lock(key),
            queue: self.helper("queue", key),
            fence: self.helper("fence", key),
        }
    }

    /// The bucket of a rate limiter, which lives beside a lock of the same key.
    pub(super) fn bucket(&self, key: &LockKey) -> String {
        self.helper("rate", key)
    }

    /// A key of our own beside that of the lock, in the same slot.
    fn helper(&self, kind: &str, key: &LockKey) -> String {
        let prefix = &self.prefix;
        let lock = self.lock(key);
        match key.hash_tag() {
            Some(tag) => format!("{prefix}%{kind}:{{{tag}}}:{lock}"),
            None => format!("{prefix}%{kind}:{{{lock}}}"),
        }
    }

    pub(super) fn latch(&self, key: &LockKey, call: Owner) -> LatchNames {
        let prefix = &self.prefix;
        let latch = self.lock(key);
        let helped = match key.hash_tag() {
            Some(tag) => format!("{{{tag}}}:{latch}"),
            None => format!("{{{latch}}}"),
        };
        LatchNames {
            waiters: format!("{prefix}%latch:{helped}"),
            call: format!("{prefix}%call:{helped}:{call}"),
            latch,
        }
    }

    /// The Cluster slot of a lock and of all that belongs to it.
    pub(super) fn slot(&self, key: &LockKey) -> u16 {
        match key.hash_tag() {
            Some(tag) => slot_of(tag),
            None => slot_of(&self.lock(key)),
        }
    }

    /// What the channel of every client of this namespace begins with; in a cluster, where it tells of one slot's locks.
    pub(super) fn channels(&self, slot: Option<u16>) -> String {
        let prefix = &self.prefix;
        match slot {
            None => format!("{prefix}%granted:"),
            Some(slot) => format!("{prefix}%granted:{{{}}}:", tag_in(slot)),
        }
    }

    /// The channel on which those who wait for a lock of a quorum hear that it is free. Few, so that a client that waits
    /// for many locks in turn listens to no more.
    pub(super) fn freed(&self, key: &LockKey) -> String {
        format!(
            "{}%freed:{}",
            self.prefix,
            slot_of(&self.lock(key)) % FREED_CHANNELS
        )
    }

    /// Whether a message of this channel tells that a lock is free.
    pub(super) fn is_freed(channel: &[u8]) -> bool {
        channel.windows(7).any(|part| part == b"%freed:")
    }

    /// The slot of such a channel.
    pub(super) fn slot_of_channel(channel: &str) -> Option<u16> {
        let (_, rest) = channel.split_once('{')?;
        rest.split_once('}').map(|(tag, _)| slot_of(tag))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]
mod tests {
    use super::*;
    use crate::store::ClientId;

    fn slot(name: &str) -> u16 {
        let tag = name
            .split_once('{')
            .and_then(|(_, rest)| rest.split_once('}'))
            .map(|(tag, _)| tag);
        slot_of(tag.filter(|tag| !tag.is_empty()).unwrap_or(name))
    }

    #[test]
    fn helper_keys_lie_in_the_slot_of_the_lock() {
        for namespace in ["", "lock", "shop"] {
            let namespace = Namespace::new(namespace).unwrap();
            for key in ["stock:42", "{tenant}:stock:42", "a:{b}:c"] {
                let names = namespace.names(&key.into());
                assert_eq!(namespace.slot(&key.into()), slot(&names.lock));
                let channel = namespace.channels(Some(slot(&names.lock)));
                assert_eq!(Namespace::slot_of_channel(&channel), Some(slot(&channel)));
                assert_eq!(slot(&names.lock), slot(&channel), "{channel}");
                assert_eq!(slot(&names.lock), slot(&names.queue), "{}", names.queue);
                assert_eq!(slot(&names.lock), slot(&names.fence), "{}", names.fence);
                let bucket = namespace.bucket(&key.into());
                assert_eq!(slot(&names.lock), slot(&bucket), "{bucket}");
                let client = ClientId(1);
                let latch = namespace.latch(&key.into(), Owner { client, request: 2 });
                assert_eq!(latch.latch, names.lock);
                for helper in [latch.waiters, latch.call] {
                    assert_eq!(slot(&names.lock), slot(&helper), "{helper}");
                }
            }
        }
    }

    #[test]
    fn a_namespace_that_could_nest_is_refused() {
        for bad in ["a:b", "a{", "}", "50%", "a\nb"] {
            assert!(
                matches!(Namespace::new(bad), Err(LockError::Config { .. })),
                "{bad}"
            );
        }
        assert_eq!(Namespace::new("shop").unwrap().as_str(), "shop");
    }
}
