//! A window of fencing tokens: reserved with the grant, so that a handoff needs no round trip.

use std::ops::Range;

use crate::config::{Defaults, Resolved, TOKEN_WINDOW};

/// Fencing tokens that were reserved with a grant and are not used yet.
#[derive(Debug)]
pub(crate) struct TokenWindow(Range<u64>);

impl TokenWindow {
    /// The rest of `reserved` tokens, of which `first` is the holder's own.
    pub(crate) fn new(first: Option<u64>, reserved: u32) -> Self {
        Self(first.map_or(0..0, |first| first + 1..first + u64::from(reserved)))
    }

    pub(crate) fn next_token(&mut self) -> Option<u64> {
        self.0.next()
    }
}

/// How many tokens a request asks for that stands alone.
pub(crate) fn for_one(options: &Resolved) -> u32 {
    options.fenced.into()
}

/// How many tokens a fenced request asks for that others of its process stand behind.
pub(crate) fn for_handoffs(limits: &Defaults) -> u32 {
    1 + limits.local_handoffs.min(TOKEN_WINDOW)
}

/// Whether a grant lacks the token that was asked for. Such a hold is not usable.
pub(crate) fn is_missing(options: &Resolved, token: Option<u64>) -> bool {
    options.fenced && token.is_none()
}
