//! [`without_secrets`]: what a server said, as users and logs may see it. No text repeats the users
//! and passwords of URLs that it was told to [`remember`].
//!
//! A server, or whatever stands in front of it, controls this text. Servers also repeat what they
//! were sent: Redis repeats the arguments of an unknown command. Where `HELLO` was renamed, these
//! are user and password.

use lock_store::{escaped, secrets};
use redis::RedisConnectionInfo;

/// Here Redis begins to repeat arguments. It cuts long ones, so a search for the whole password
/// would miss them.
const ARGUMENTS: &str = "with args beginning with";

/// The text without arguments and known credentials, [`escaped`].
pub(crate) fn without_secrets(text: &str) -> String {
    let said = text.find(ARGUMENTS).map_or(text, |at| &text[..at]);
    escaped(&secrets::strip(said.trim_end_matches([' ', ','])))
}

/// No text shows this user and password from now on.
pub(crate) fn remember(settings: &RedisConnectionInfo) {
    let (user, password) = (settings.username(), settings.password());
    secrets::remember(user.unwrap_or_default(), password.unwrap_or_default());
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
            assert_eq!(without_secrets(said), kept);
        }
    }
}
