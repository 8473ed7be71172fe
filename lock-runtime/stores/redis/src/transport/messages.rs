//! The messages that scripts publish, read.

use lock_store::{Ended, FencingToken, Owner};

/// What `lib.lua` tells the owner to whom it hands a lock: `<owner> <token or ''>`.
pub(super) fn granted(payload: &[u8]) -> Option<(Owner, Option<u64>)> {
    let (owner, token) = std::str::from_utf8(payload).ok()?.split_once(' ')?;
    let token = token.parse().ok();
    let token = token.filter(|token| FencingToken::is_valid(*token));
    Some((Owner::parse(owner)?, token))
}

/// What `quorum_end.lua` tells of a lock that is free: `<owner> <clients that hear it> <key>`.
pub(super) fn ended(payload: &[u8]) -> Option<Ended> {
    let mut parts = std::str::from_utf8(payload).ok()?.splitn(3, ' ');
    Some(Ended {
        owner: Owner::parse(parts.next()?)?,
        told: parts.next()?.parse().ok()?,
        key: parts.next()?.into(),
    })
}
