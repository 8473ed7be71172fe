//! What keys and channels are called in Redis.

use std::fmt;

use lock_store::{ClientId, LockKey, Namespace, Owner};

use crate::resp::Pieces;
use crate::topology::key_slot::{slot_of, tag_in};

/// The number of channels of a namespace that tell which locks of a quorum are free.
const FREED_CHANNELS: u16 = 64;

/// What names begin with: the client's namespace, unless a key has its own.
#[derive(Clone, Debug)]
pub(crate) struct Prefix {
    /// What stands before each namespace, as ShedLock has it; mostly nothing.
    before: Namespace,
    namespace: Namespace,
}

/// A lock's key in Redis.
#[derive(Clone, Copy)]
pub(crate) struct Name<'n> {
    namespace: &'n Namespace,
    key: &'n LockKey,
    tag: Option<&'n str>,
}

/// A helper key beside a lock's key, in the same slot.
#[derive(Clone, Copy)]
pub(crate) struct Helper<'n> {
    kind: &'static str,
    lock: Name<'n>,
}

/// The keys of one lock, all in one Cluster slot.
pub(crate) struct Names<'n> {
    pub(crate) lock: Name<'n>,
    pub(crate) queue: Helper<'n>,
    pub(crate) fence: Helper<'n>,
}

/// The prefix of the channels on which clients hear of grants.
#[derive(Clone, Copy)]
pub(crate) struct GrantChannels<'n> {
    namespace: &'n Namespace,
    slot: Option<u16>,
}

/// A namespace is followed by `:` unless it is empty.
impl Pieces for &Namespace {
    #[inline]
    fn pieces(&self, mut put: impl FnMut(&[u8])) {
        if !self.as_str().is_empty() {
            put(self.as_str().as_bytes());
            put(b":");
        }
    }
}

impl Pieces for GrantChannels<'_> {
    #[inline]
    fn pieces(&self, mut put: impl FnMut(&[u8])) {
        self.namespace.pieces(&mut put);
        match self.slot {
            None => put(b"%granted:"),
            Some(slot) => put(format!("%granted:{{{}}}:", tag_in(slot)).as_bytes()),
        }
    }
}

impl Pieces for Name<'_> {
    #[inline]
    fn pieces(&self, mut put: impl FnMut(&[u8])) {
        self.namespace.pieces(&mut put);
        put(self.key.as_str().as_bytes());
    }
}

impl Pieces for Helper<'_> {
    #[inline]
    fn pieces(&self, mut put: impl FnMut(&[u8])) {
        let Self { kind, lock } = self;
        lock.namespace.pieces(&mut put);
        put(b"%");
        put(kind.as_bytes());
        put(b":{");
        if let Some(tag) = lock.tag {
            put(tag.as_bytes());
            put(b"}:");
            lock.pieces(put);
        } else {
            lock.pieces(&mut put);
            put(b"}");
        }
    }
}

/// The same text as its `Display`, in 22 ns instead of 62: each command names an owner.
impl Pieces for Owner {
    #[inline]
    fn pieces(&self, mut put: impl FnMut(&[u8])) {
        let (low, high) = (self.client.0 as u64, (self.client.0 >> 64) as u64);
        put(&hex(high));
        put(&hex(low));
        put(b"-");
        let zeros = self.request.leading_zeros() as usize / 4;
        put(&hex(self.request)[zeros.min(15)..]);
    }
}

fn hex(number: u64) -> [u8; 16] {
    let bytes = number.to_be_bytes();
    let digit = |at| bytes[at / 2] >> (4 - 4 * (at % 2)) & 15;
    std::array::from_fn(|at| b"0123456789abcdef"[usize::from(digit(at))])
}

/// A name as text.
#[derive(Clone, Copy)]
pub(crate) struct AsText<T>(pub(crate) T);

impl<T: Pieces> fmt::Display for AsText<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut result = Ok(());
        self.0.pieces(|piece| {
            for chunk in piece.utf8_chunks() {
                result = result.and_then(|()| f.write_str(chunk.valid()));
            }
        });
        result
    }
}

/// The keys of one latch and of one call on it, all in one Cluster slot.
pub(crate) struct LatchNames {
    pub(crate) latch: String,
    pub(crate) waiters: String,
    pub(crate) call: String,
}

impl<'n> Name<'n> {
    fn helper(self, kind: &'static str) -> Helper<'n> {
        Helper { kind, lock: self }
    }
}

impl Prefix {
    pub(crate) fn new(namespace: &Namespace) -> Self {
        Self::below(&Namespace::default(), namespace)
    }

    /// A namespace of which all channels begin with `before`.
    pub(crate) fn below(before: &Namespace, namespace: &Namespace) -> Self {
        let (before, namespace) = (before.clone(), namespace.clone());
        Self { before, namespace }
    }

    /// The key without its namespace, if that is the client's own.
    pub(crate) fn own(&self, key: LockKey) -> LockKey {
        match key.namespace() == Some(&self.namespace) {
            true => key.in_namespace(None),
            false => key,
        }
    }

    pub(crate) fn of<'n>(&'n self, key: &'n LockKey) -> &'n Namespace {
        key.namespace().unwrap_or(&self.namespace)
    }

    pub(crate) fn lock<'n>(&'n self, key: &'n LockKey) -> Name<'n> {
        Name {
            namespace: self.of(key),
            key,
            tag: key.hash_tag(),
        }
    }

    pub(crate) fn names<'n>(&'n self, key: &'n LockKey) -> Names<'n> {
        let lock = self.lock(key);
        Names {
            lock,
            queue: lock.helper("queue"),
            fence: lock.helper("fence"),
        }
    }

    /// The bucket of a rate limiter. A lock may have the same key.
    pub(crate) fn bucket<'n>(&'n self, key: &'n LockKey) -> Helper<'n> {
        self.lock(key).helper("rate")
    }

    /// The log of a rate limiter with an exact limit. A lock and a bucket may have the same key.
    pub(crate) fn pass_log<'n>(&'n self, key: &'n LockKey) -> Helper<'n> {
        self.lock(key).helper("limit")
    }

    /// Whose the value of a lock of the layout `timestamp` is.
    pub(crate) fn timestamp_owner_key<'n>(&'n self, key: &'n LockKey) -> Helper<'n> {
        self.lock(key).helper("owner")
    }

    /// `owner` made the call or has the place. A look has no owner.
    pub(crate) fn latch(&self, key: &LockKey, owner: Option<Owner>) -> LatchNames {
        let lock = self.lock(key);
        let call = AsText(lock.helper("call"));
        LatchNames {
            waiters: AsText(lock.helper("latch")).to_string(),
            call: owner.map_or_else(|| call.to_string(), |owner| format!("{call}:{owner}")),
            latch: AsText(lock).to_string(),
        }
    }

    /// The Cluster slot of a lock and its helper keys.
    pub(crate) fn slot(&self, key: &LockKey) -> u16 {
        match key.hash_tag() {
            Some(tag) => slot_of(tag),
            None => slot_of(&AsText(self.lock(key)).to_string()),
        }
    }

    /// The prefix of all clients' grant channels in this key's namespace. In a cluster, of those
    /// for the locks of one slot.
    pub(crate) fn channel_prefix<'n>(
        &'n self,
        key: &'n LockKey,
        slot: Option<u16>,
    ) -> GrantChannels<'n> {
        let namespace = self.of(key);
        GrantChannels { namespace, slot }
    }

    /// The channel that tells waiting clients that a lock of a quorum is free. There are few of
    /// them, so that a client that waits for many locks in turn listens on few channels.
    pub(crate) fn freed(&self, key: &LockKey) -> String {
        format!(
            "{}%freed:{}",
            AsText(self.of(key)),
            slot_of(&AsText(self.lock(key)).to_string()) % FREED_CHANNELS
        )
    }

    /// A key that nothing has, for trying commands. In a cluster, one of this slot.
    pub(crate) fn unused_key(&self, slot: Option<u16>) -> String {
        let tag = slot.map_or(0, tag_in);
        let (before, namespace) = (AsText(&self.before), AsText(&self.namespace));
        format!("{before}{namespace}%unused:{{{tag}}}")
    }

    /// A channel on which nobody listens, for trying commands. In a cluster, one of this slot.
    pub(crate) fn unused_channel(&self, slot: Option<u16>) -> String {
        let (before, namespace) = (AsText(&self.before), &self.namespace);
        format!(
            "{before}{}unused",
            AsText(GrantChannels { namespace, slot })
        )
    }

    /// What all channels of the client's own namespace begin with.
    pub(crate) fn channels_begin_with(&self) -> String {
        format!("{}{}%", AsText(&self.before), AsText(&self.namespace))
    }

    /// The pattern of all keys and channels of the client's own namespace.
    pub(crate) fn pattern(&self) -> String {
        let all = match self.before.as_str() {
            "" => &self.namespace,
            _ => &self.before,
        };
        format!("{}*", AsText(all))
    }

    /// The channel on which a client hears others, in this key's namespace.
    pub(crate) fn of_client(&self, key: &LockKey, client: ClientId) -> String {
        self.channel_of_client(self.of(key), client)
    }

    /// The channel on which a client hears others, in its own namespace.
    pub(crate) fn own_channel(&self, client: ClientId) -> String {
        self.channel_of_client(&self.namespace, client)
    }

    /// The channel on which a client hears others, in a namespace.
    pub(crate) fn channel_of_client(&self, namespace: &Namespace, client: ClientId) -> String {
        let (before, namespace) = (AsText(&self.before), AsText(namespace));
        format!("{before}{namespace}%client:{:032x}", client.0)
    }

    /// True if clients hear each other on this channel.
    pub(crate) fn is_of_client(channel: &[u8]) -> bool {
        channel.windows(8).any(|part| part == b"%client:")
    }

    /// The namespace of such a channel; `None` of any other.
    pub(crate) fn namespace_of_client(&self, channel: &[u8]) -> Option<Namespace> {
        let channel = std::str::from_utf8(channel).ok()?;
        let channel = channel.strip_prefix(&*AsText(&self.before).to_string())?;
        let (namespace, _) = channel.split_once("%client:")?;
        Namespace::new(namespace.strip_suffix(':').unwrap_or(namespace)).ok()
    }

    /// The namespace of a channel that tells of grants or of what is free; `None` of any other.
    pub(crate) fn namespace_of_waiting(channel: &str) -> Option<Namespace> {
        let of = |kind| channel.split_once(kind).map(|(namespace, _)| namespace);
        Namespace::new(of(":%granted:").or_else(|| of(":%freed:"))?).ok()
    }

    /// True if messages on this channel tell that a lock is free.
    pub(crate) fn is_freed(channel: &[u8]) -> bool {
        channel.windows(7).any(|part| part == b"%freed:")
    }

    /// The namespace of a channel that tells that a lock is free.
    pub(crate) fn namespace_of_freed(channel: &[u8]) -> Option<Namespace> {
        let channel = std::str::from_utf8(channel).ok()?;
        let (namespace, _) = channel.split_once(":%freed:").unwrap_or(("", channel));
        Namespace::new(namespace).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let namespace = Prefix::new(&Namespace::new(namespace).unwrap());
            for key in ["stock:42", "{tenant}:stock:42", "a:{b}:c"] {
                let key = LockKey::from(key);
                let names = namespace.names(&key);
                let lock = AsText(names.lock).to_string();
                let own = slot(&lock);
                assert_eq!(namespace.slot(&key), own);
                let channel = AsText(namespace.channel_prefix(&key, Some(own))).to_string();
                assert_eq!(own, slot(&channel), "{channel}");
                let client = ClientId(1);
                let latch = namespace.latch(&key, Some(Owner { client, request: 2 }));
                assert_eq!(latch.latch, lock);
                let (queue, fence) = (
                    AsText(names.queue).to_string(),
                    AsText(names.fence).to_string(),
                );
                let bucket = AsText(namespace.bucket(&key)).to_string();
                let log = AsText(namespace.pass_log(&key)).to_string();
                let holder = AsText(namespace.timestamp_owner_key(&key)).to_string();
                for helper in [queue, fence, bucket, log, holder, latch.waiters, latch.call] {
                    assert_eq!(own, slot(&helper), "{helper}");
                }
            }
        }
    }

    #[test]
    fn a_key_with_a_namespace_of_its_own_has_all_its_names_there() {
        let named = |namespace: &str| Namespace::new(namespace).unwrap();
        let (client, shop) = (Prefix::new(&named("lock")), Prefix::new(&named("shop")));
        for text in ["stock:42", "{tenant}:stock:42"] {
            let of_view = LockKey::from(text).in_namespace(Some(named("shop")));
            let own = LockKey::from(text);
            let (there, here) = (shop.names(&own), client.names(&of_view));
            for (there, here) in [
                (
                    AsText(there.lock).to_string(),
                    AsText(here.lock).to_string(),
                ),
                (
                    AsText(there.queue).to_string(),
                    AsText(here.queue).to_string(),
                ),
                (
                    AsText(there.fence).to_string(),
                    AsText(here.fence).to_string(),
                ),
                (
                    AsText(shop.channel_prefix(&own, None)).to_string(),
                    AsText(client.channel_prefix(&of_view, None)).to_string(),
                ),
                (shop.freed(&own), client.freed(&of_view)),
            ] {
                assert_eq!(there, here);
                assert!(here.starts_with("shop:"), "{here}");
            }
            let freed = client.freed(&of_view);
            let found = Prefix::namespace_of_freed(freed.as_bytes());
            assert_eq!(found, Some(named("shop")));
            assert_eq!(client.slot(&of_view), shop.slot(&own));
        }
    }

    #[test]
    fn a_clients_channel_tells_its_namespace() {
        for (before, namespace) in [("", ""), ("", "lock"), ("", "shop"), ("jobs", "prod")] {
            let named = |name| Namespace::new(name).unwrap();
            let prefix = Prefix::below(&named(before), &named(namespace));
            let channel = prefix.own_channel(ClientId(1));
            assert!(channel.starts_with(before), "{channel}");
            let found = prefix.namespace_of_client(channel.as_bytes());
            assert_eq!(found, Some(named(namespace)));
            assert_eq!(prefix.namespace_of_client(b"lock:%granted:1"), None);
        }
    }

    #[test]
    fn an_owner_is_written_as_it_is_shown() {
        for request in [0, 1, 15, 16, 255, 256, 0xab_cdef, u64::MAX >> 4, u64::MAX] {
            for client in [0, 0x1234_5678_9abc_def0, u128::MAX] {
                let client = ClientId(client);
                let owner = Owner { client, request };
                assert_eq!(AsText(owner).to_string(), owner.to_string());
            }
        }
    }
}
