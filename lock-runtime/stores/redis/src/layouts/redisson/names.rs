//! What Redisson calls keys, channels and holders.

use lock_store::{ClientId, FoundHolder, LockKey, Owner, escaped};

use crate::names::{AsText, Prefix};

/// The names around one key.
pub(super) struct RedissonNames {
    /// The key itself.
    pub(super) key: String,
}

impl RedissonNames {
    pub(super) fn of(prefix: &Prefix, key: &LockKey) -> Self {
        let key = AsText(prefix.lock(key)).to_string();
        Self { key }
    }

    /// As Redisson's `prefixName`: a helper key in the slot of the key.
    fn prefixed(&self, what: &str) -> String {
        let key = &self.key;
        match key.contains('{') {
            true => format!("{what}:{key}"),
            false => format!("{what}:{{{key}}}"),
        }
    }

    /// As Redisson's `suffixName`, without the suffix and the colon before it.
    pub(super) fn stem(&self) -> String {
        let key = &self.key;
        match key.contains('{') {
            true => key.clone(),
            false => format!("{{{key}}}"),
        }
    }

    /// The counter of a fenced lock.
    pub(super) fn counter(&self) -> String {
        self.prefixed("redisson_lock_token")
    }

    /// The queue of a fair lock.
    pub(super) fn queue(&self) -> String {
        self.prefixed("redisson_lock_queue")
    }

    /// Until when the places of that queue last.
    pub(super) fn timeouts(&self) -> String {
        self.prefixed("redisson_lock_timeout")
    }

    /// Where the release of a lock is told. A waiter of a fair lock has a channel of its own: this
    /// one, a colon, and its field.
    pub(super) fn channel(&self) -> String {
        self.prefixed("redisson_lock__channel")
    }

    pub(super) fn read_write_channel(&self) -> String {
        self.prefixed("redisson_rwlock")
    }

    pub(super) fn semaphore_channel(&self) -> String {
        self.prefixed("redisson_sc")
    }

    /// The permits of a semaphore that are taken.
    pub(super) fn taken(&self) -> String {
        format!("{}:timeout", self.stem())
    }

    /// The key of one hold of a reader.
    pub(super) fn reader(&self, field: &str) -> String {
        format!("{}:{field}:rwlock_timeout:1", self.stem())
    }
}

/// The field of a request: a UUID, and a thread. Its number begins with 0, as none of Java does.
pub(super) fn field(owner: Owner) -> String {
    let part = |from: u32, digits: u32| (owner.client.0 >> from) & ((1 << (4 * digits)) - 1);
    let (a, b, c) = (part(96, 8), part(80, 4), part(64, 4));
    let (d, e) = (part(48, 4), part(0, 12));
    format!(
        "{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}:0{}",
        owner.request
    )
}

/// The field that keeps a lock taken after the release of this request.
pub(super) fn kept(owner: Owner) -> String {
    format!("{}:kept", field(owner))
}

/// The holder that a field tells of. `permits` is what it takes, in a lock held in shares.
pub(super) fn parse_holder(field: &str, permits: Option<u32>) -> FoundHolder {
    if let Some((owner, kept)) = own(field) {
        return FoundHolder::Owner {
            owner,
            kept,
            permits,
        };
    }
    let (client, thread) = field.split_once(':').unwrap_or((field, "?"));
    let (thread, does) = match (thread.strip_suffix(":write"), permits) {
        (Some(thread), _) => (thread, ", writing"),
        (None, Some(_)) => (thread, ", reading"),
        (None, None) => (thread, ""),
    };
    let (client, thread) = (escaped(client), escaped(thread));
    FoundHolder::Foreign(format!("Redisson client {client}, thread {thread}{does}"))
}

/// The owner of a field, if it is of this library, and whether it was released.
pub(super) fn own(field: &str) -> Option<(Owner, bool)> {
    let (client, thread) = field.split_once(':')?;
    let thread = thread.strip_suffix(":write").unwrap_or(thread);
    let (thread, kept) = match thread.strip_suffix(":kept") {
        Some(thread) => (thread, true),
        None => (thread, false),
    };
    let request = thread.strip_prefix('0')?;
    if client.len() != 36 || !request.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let client = u128::from_str_radix(&client.replace('-', ""), 16).ok()?;
    let owner = Owner::new(ClientId(client), request.parse().ok()?);
    Some((owner, kept))
}

/// In the id of a permit, that it keeps the semaphore taken after a release.
const KEPT: u128 = 1 << 95;

/// The ids of a request's permits, as 16 bytes each, like those that Redisson draws. They follow
/// from the request, so a repeated command takes none again.
pub(super) fn permits(owner: Owner, count: u32, kept: bool) -> impl Iterator<Item = [u8; 16]> {
    (0..count).map(move |at| {
        let number = u128::from(owner.request) | u128::from(at) << 64;
        let kept = if kept { KEPT } else { 0 };
        (owner.client.0 ^ (number | kept)).to_be_bytes()
    })
}

/// The holder of a permit: a request of this client, or somebody.
pub(super) fn holder_of_permit(client: ClientId, id: &[u8]) -> FoundHolder {
    if let Ok(id) = <[u8; 16]>::try_from(id) {
        let number = u128::from_be_bytes(id) ^ client.0;
        if number >> 96 == 0 {
            let request = u64::try_from(number & u128::from(u64::MAX)).unwrap_or(0);
            return FoundHolder::Owner {
                owner: Owner { client, request },
                kept: number & KEPT != 0,
                permits: Some(1),
            };
        }
    }
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    FoundHolder::Foreign(format!("the owner of permit {id}"))
}

#[cfg(test)]
mod tests {
    use lock_store::Namespace;

    use super::*;

    const OWNER: Owner = Owner::new(ClientId(0x0a1b_2c3d_0000_4000_8000_0000_0000_0001), 34);

    #[test]
    fn a_field_is_of_a_uuid_and_a_thread_and_no_thread_of_java_is_taken_for_ours() {
        let uuid = "0a1b2c3d-0000-4000-8000-000000000001";
        assert_eq!(field(OWNER), format!("{uuid}:034"));
        for (owner, kept) in [(field(OWNER), false), (kept(OWNER), true)] {
            assert_eq!(own(&owner), Some((OWNER, kept)));
            assert_eq!(own(&format!("{owner}:write")), Some((OWNER, kept)));
        }
        let last = Owner {
            request: u64::MAX,
            ..OWNER
        };
        assert_eq!(own(&field(last)), Some((last, false)));
        for (theirs, shown) in [
            (format!("{uuid}:34"), "34"),
            (format!("{uuid}:-7"), "-7"),
            (format!("{uuid}:34:tx"), "34:tx"),
            (format!("{uuid}:34:write"), "34, writing"),
            (format!("{uuid}:0x"), "0x"),
        ] {
            let found = FoundHolder::Foreign(format!("Redisson client {uuid}, thread {shown}"));
            assert_eq!(parse_holder(&theirs, None), found);
        }
    }

    #[test]
    fn helper_keys_are_in_the_slot_of_the_key() {
        let prefix = Namespace::new("").map(|namespace| Prefix::new(&namespace));
        let Ok(prefix) = prefix else { return };
        let names = |key: &'static str| RedissonNames::of(&prefix, &LockKey::from(key));
        let plain = names("order");
        assert_eq!(plain.channel(), "redisson_lock__channel:{order}");
        assert_eq!(plain.taken(), "{order}:timeout");
        let tagged = names("{shop}:order");
        assert_eq!(tagged.queue(), "redisson_lock_queue:{shop}:order");
        assert_eq!(tagged.taken(), "{shop}:order:timeout");
    }

    #[test]
    fn a_permits_id_tells_its_own_client_the_request() {
        let mut ids: Vec<_> = permits(OWNER, 3, false).collect();
        ids.extend(permits(OWNER, 3, true));
        for (at, id) in ids.iter().enumerate() {
            assert!(!ids[at + 1..].contains(id));
            let FoundHolder::Owner { owner, kept, .. } = holder_of_permit(OWNER.client, id) else {
                unreachable!("it is of this client");
            };
            assert_eq!((owner, kept), (OWNER, at >= 3));
            let stranger = holder_of_permit(ClientId(7), id);
            assert!(matches!(stranger, FoundHolder::Foreign(_)));
        }
    }
}
