//! [`Item`]: what the server has under a lock's name.

use std::time::Duration;

use lock_store::rules::{HeldPart, HoldId, Holders};
use lock_store::{FoundHolder, Instant, Link, LockKey, Namespace, Owner};

use crate::protocol::{Reply, seconds};

/// When an item was read: the times of its holder count from then.
pub(crate) const READ: Instant = Instant::from_nanos(0);

/// What stands behind the owner if the key stays taken after a release.
const KEPT: &str = ":kept";

/// The longest name that memcached takes, in bytes.
const LONGEST_NAME: usize = 250;

/// A lock that somebody has.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) value: String,
    /// Changes with each write. A server that was started again counts anew, so that it is worth
    /// nothing over a later connection.
    pub(crate) cas: u64,
    /// The connection that it was read over.
    pub(crate) link: Link,
    /// The rest of its time, in seconds. `None` if it has no end.
    pub(crate) seconds: Option<u64>,
}

impl Item {
    /// The item in this reply. `None` if there is none.
    pub(crate) fn of(reply: Reply, link: Link) -> Option<Self> {
        let Reply::Item { value, flags } = reply else {
            return None;
        };
        let flag = |name: char| flags.split(' ').find_map(|flag| flag.strip_prefix(name));
        Some(Self {
            value: String::from_utf8_lossy(&value).into_owned(),
            cas: flag('c')?.parse().ok()?,
            link,
            seconds: flag('t').and_then(|seconds| seconds.parse().ok()),
        })
    }

    pub(crate) fn remaining(&self) -> Option<Duration> {
        self.seconds.map(Duration::from_secs)
    }

    /// The holder, as the rules see it. Nobody if the value is another program's.
    pub(crate) fn holders(&self) -> Holders {
        let (owner, kept) = match self.value.strip_suffix(KEPT) {
            Some(owner) => (owner, 1),
            None => (&*self.value, 0),
        };
        // It was written with a surplus.
        let lasts = self.seconds.map(Duration::from_secs);
        let lasts = lasts.unwrap_or(Duration::MAX);
        let surplus = Duration::from_secs(seconds(Duration::ZERO));
        let mut holders = Holders::default();
        if let Some(owner) = Owner::parse(owner) {
            let hold = HeldPart {
                permits: None,
                expires: READ + lasts.saturating_sub(surplus),
            };
            holders.add(HoldId { owner, kept }, hold);
        }
        holders
    }

    pub(crate) fn holder(&self) -> FoundHolder {
        FoundHolder::parse(self.value.as_bytes())
    }
}

/// The value of an item with this holder.
pub(crate) fn value(HoldId { owner, kept }: HoldId) -> String {
    let kept = if kept > 0 { KEPT } else { "" };
    format!("{owner}{kept}")
}

/// The name of a lock. White space and control characters are written as `%XX`, and so is `%`, so
/// that no two keys have one name. `None` if it is too long for memcached.
pub(crate) fn name(key: &LockKey, own: &Namespace) -> Option<String> {
    let namespace = key.namespace().unwrap_or(own);
    let mut name = format!("{}:", namespace.as_str());
    for character in key.as_str().chars() {
        if character == '%' || character.is_whitespace() || character.is_control() {
            let mut bytes = [0; 4];
            for byte in character.encode_utf8(&mut bytes).bytes() {
                name.push_str(&format!("%{byte:02X}"));
            }
        } else {
            name.push(character);
        }
    }
    (name.len() <= LONGEST_NAME).then_some(name)
}
