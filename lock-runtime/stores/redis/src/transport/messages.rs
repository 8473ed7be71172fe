//! The messages that scripts publish, read.

use lock_store::{Ended, FencingToken, Owner};

/// What follows the version and the kind of a message: `1 <kind> …`. `None` of another version or kind, which this one
/// does not understand.
fn body<'p>(payload: &'p [u8], kind: &str) -> Option<&'p str> {
    let message = std::str::from_utf8(payload).ok()?.strip_prefix("1 ")?;
    message.strip_prefix(kind)?.strip_prefix(' ')
}

/// What `lib.lua` tells the owner to whom it hands a lock: `1 granted <owner> <token or ''>`; and `latch_count_down.lua`
/// those who wait for a latch that opens, with its generation as the token: `1 opened …`.
pub(super) fn granted(payload: &[u8]) -> Option<(Owner, Option<u64>)> {
    let message = body(payload, "granted").or_else(|| body(payload, "opened"))?;
    let (owner, token) = message.split_once(' ')?;
    let token = token.parse().ok();
    let token = token.filter(|token| FencingToken::is_valid(*token));
    Some((Owner::parse(owner)?, token))
}

/// What `quorum_end.lua` tells of a lock that is free: `1 freed <owner> <clients that hear it> <key>`.
pub(super) fn ended(payload: &[u8]) -> Option<Ended> {
    let mut parts = body(payload, "freed")?.splitn(3, ' ');
    Some(Ended {
        owner: Owner::parse(parts.next()?)?,
        told: parts.next()?.parse().ok()?,
        key: parts.next()?.into(),
    })
}
