//! The URL of a quorum.

use std::time::Duration;

use super::{Address, Parts, connection_info};
use crate::config::{MAX_LEASE, REJOIN_AFTER};
use crate::error::LockError;

pub(super) fn read(scheme: &str, rest: &str) -> Result<Address, LockError> {
    let Parts {
        user,
        hosts,
        path,
        query,
    } = Parts::of(rest)?;
    if hosts.len() < 2 {
        return Err(LockError::config(
            "a quorum of one server outlives nothing: list three servers or five, `redis-quorum://host,host,host`, or write \
             `redis://host` for the one",
        ));
    }
    let twice = hosts.iter().enumerate();
    let mut twice = twice.filter(|(at, host)| hosts[..*at].contains(host));
    if let Some((_, host)) = twice.next() {
        return Err(LockError::config(format!(
            "the quorum's URL has the server {host} twice, which would have two votes; list each server once"
        )));
    }
    let mut rejoin_after = REJOIN_AFTER;
    for option in query.split('&').filter(|option| !option.is_empty()) {
        let value = option.strip_prefix("rejoin_after=").and_then(duration);
        rejoin_after = value.ok_or_else(|| {
            LockError::config(
                "the quorum's URL has an unknown option; there is `rejoin_after`, as in `?rejoin_after=60s` (`ms`, `s`, `m`, \
                 `h`, at most 24 h): how long a server that was restarted does not count, and the longest lease there is",
            )
        })?;
    }
    let server = |host: &&str| connection_info(&format!("{scheme}://{user}{host}/{path}"));
    Ok(Address::Quorum {
        servers: hosts.iter().map(server).collect::<Result<_, _>>()?,
        rejoin_after,
    })
}

/// A whole number and its unit.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    let duration = Duration::from_millis(number.parse::<u64>().ok()?.checked_mul(milliseconds)?);
    (duration <= MAX_LEASE).then_some(duration)
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_of_a_quorum_share_user_password_and_database() {
        let url = "redis-quorum://u:p%40ss@h1:7001,h2,[::1]:7003/2?rejoin_after=90s";
        let Address::Quorum {
            servers,
            rejoin_after,
        } = Address::parse(url).unwrap()
        else {
            panic!("a quorum");
        };
        let addrs: Vec<String> = servers.iter().map(|info| info.addr().to_string()).collect();
        assert_eq!(addrs, ["h1:7001", "h2:6379", "::1:7003"]);
        for info in &servers {
            let settings = info.redis_settings();
            assert_eq!(
                (settings.username(), settings.password(), settings.db()),
                (Some("u"), Some("p@ss"), 2)
            );
        }
        assert_eq!(rejoin_after, Duration::from_secs(90));
    }
}
