//! `TIME`: the difference between a server's clock and this machine's.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::RedisError;

use crate::commands::rights::if_allowed;
use crate::resp::Command;
use crate::transport::connected::Connected;

pub(super) const TIME: &str = "TIME";

/// The minimum difference, and true if the server's clock is ahead.
pub(super) async fn difference(
    up: &Connected,
    may: bool,
) -> Result<Option<(Duration, bool)>, RedisError> {
    // The wall clock, for once: no lock depends on this.
    let now = || {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.unwrap_or_default()
    };
    let sent = now();
    let time: Option<(u64, u32)> = if_allowed(up, may, &Command::new(TIME)).await?;
    let answered = now();
    Ok(time.map(|(seconds, micros)| {
        let server = Duration::from_secs(seconds) + Duration::from_micros(micros.into());
        match server > answered {
            true => (server - answered, true),
            false => (sent.saturating_sub(server), false),
        }
    }))
}
