//! [`shown`]: what a server said, as users and logs may see it.
//!
//! A server, or whatever stands in front of it, controls this text. Servers also repeat what they
//! were sent: Redis repeats the arguments of an unknown command. Where `HELLO` was renamed, these
//! are user and password.

use lock_store::{escaped, secrets};

/// Here Redis begins to repeat arguments. It cuts long ones, so a search for the whole password
/// would miss them.
const ARGUMENTS: &str = "with args beginning with";

/// The text without arguments and known credentials, [`escaped`].
pub(crate) fn shown(text: &str) -> String {
    let said = text.find(ARGUMENTS).map_or(text, |at| &text[..at]);
    escaped(&secrets::strip(said.trim_end_matches([' ', ','])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_redis_repeats_are_left_out() {
        for (said, kept) in [
            (
                "ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'app' 'canary",
                "ERR unknown command 'HELLO'",
            ),
            (
                "ERR unknown command `HELLO`, with args beginning with: `3`, `AUTH`, `canary`,",
                "ERR unknown command `HELLO`",
            ),
            (
                "NOPERM No permissions to access a key",
                "NOPERM No permissions to access a key",
            ),
        ] {
            assert_eq!(shown(said), kept);
        }
    }
}
