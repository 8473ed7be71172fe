//! A window of fencing tokens. It is reserved with the grant, so a handoff needs no round trip.

use std::ops::Range;

use lock_store::FencingToken;

use crate::config::{Defaults, Resolved, TOKEN_WINDOW};

/// Fencing tokens that were reserved with a grant and are not used yet.
#[derive(Debug)]
pub(crate) struct TokenWindow(Range<u64>);

impl TokenWindow {
    /// The rest of `reserved` tokens, of which `first` is the holder's own.
    pub(crate) fn new(first: Option<u64>, reserved: u32) -> Self {
        let end = |first: u64| first.saturating_add(reserved.into());
        Self(first.map_or(0..0, |first| first.saturating_add(1)..end(first)))
    }

    pub(crate) fn next_token(&mut self) -> Option<u64> {
        self.0.next().filter(|token| FencingToken::is_valid(*token))
    }
}

/// How many tokens a request asks for if no other waits behind it.
pub(crate) fn for_one(options: &Resolved) -> u32 {
    options.fenced.into()
}

/// How many tokens a fenced request asks for if others of its process wait behind it.
pub(crate) fn for_handoffs(limits: &Defaults) -> u32 {
    1 + limits.local_handoffs.min(TOKEN_WINDOW)
}

/// Whether a grant lacks the token that was asked for, or brings an invalid one. Such a hold can't
/// be used.
pub(crate) fn is_missing(options: &Resolved, token: Option<u64>) -> bool {
    options.fenced && !token.is_some_and(FencingToken::is_valid)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAST: u64 = (1 << 53) - 1;

    #[test]
    fn a_window_gives_the_tokens_behind_the_first_and_none_that_is_none() {
        let all = |first, reserved| {
            let mut window = TokenWindow::new(first, reserved);
            std::iter::from_fn(|| window.next_token()).collect::<Vec<_>>()
        };
        assert_eq!(all(Some(7), 3), [8, 9]);
        assert_eq!(all(Some(LAST - 1), 3), [LAST]);
        for (first, reserved) in [
            (None, 3),
            (Some(7), 0),
            (Some(u64::MAX), 0),
            (Some(u64::MAX), 9),
        ] {
            assert!(all(first, reserved).is_empty(), "{first:?} {reserved}");
        }
    }
}
