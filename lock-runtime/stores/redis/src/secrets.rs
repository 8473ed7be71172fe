//! The users and passwords of URLs, which no text repeats.

use lock_store::secrets;
use redis::RedisConnectionInfo;

/// No text shows them from now on.
pub(crate) fn remember(settings: &RedisConnectionInfo) {
    let (user, password) = (settings.username(), settings.password());
    secrets::remember(user.unwrap_or_default(), password.unwrap_or_default());
}
