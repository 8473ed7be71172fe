//! The URL of a quorum.

use std::time::Duration;

use lock_store::ConfigError;
use lock_store::timing::MAX_LEASE;
use redis::ConnectionInfo;

use super::{Parts, connection_info, scheme};
use crate::config::{REJOIN_AFTER, Replicas};
use crate::options;

/// What the URL of a quorum says.
pub(crate) struct Quorum {
    /// Servers that know nothing of each other.
    pub(crate) servers: Vec<ConnectionInfo>,
    /// How long one does not count that came back.
    pub(crate) rejoin_after: Duration,
}

impl Quorum {
    /// `None` if it is the URL of something else. `replicas` can be in the URL as well, and can't be had here.
    pub(crate) fn parse(
        url: &str,
        replicas: Option<Replicas>,
    ) -> Result<Option<Self>, ConfigError> {
        let (scheme, rest) = scheme(url)?;
        let scheme = match scheme {
            "redis-quorum" => "redis",
            "rediss-quorum" => "rediss",
            _ => return Ok(None),
        };
        let (rest, in_url) = options::split(rest)?;
        if replicas.or(in_url).is_some() {
            return Err(ConfigError::new(
                "`replicas` confirms what one master grants, and a quorum has no master: its majority is the confirmation; leave it out",
            ));
        }
        read(scheme, &rest).map(Some)
    }
}

fn read(scheme: &str, rest: &str) -> Result<Quorum, ConfigError> {
    let Parts {
        user,
        hosts,
        path,
        query,
    } = Parts::of(rest)?;
    if hosts.len() < 2 {
        return Err(ConfigError::new(
            "a quorum of one server outlives nothing: list three servers or five, `redis-quorum://host,host,host`, or write \
             `redis://host` for the one",
        ));
    }
    let twice = hosts.iter().enumerate();
    let mut twice = twice.filter(|(at, host)| hosts[..*at].contains(host));
    if let Some((_, host)) = twice.next() {
        return Err(ConfigError::new(format!(
            "the quorum's URL has the server {host} twice, which would have two votes; list each server once"
        )));
    }
    let mut rejoin_after = REJOIN_AFTER;
    for option in query.split('&').filter(|option| !option.is_empty()) {
        let value = option
            .strip_prefix("rejoin_after=")
            .and_then(options::duration);
        let value = value.filter(|duration| *duration <= MAX_LEASE);
        rejoin_after = value.ok_or_else(|| {
            ConfigError::new(
                "the quorum's URL has an unknown option; there is `rejoin_after`, as in `?rejoin_after=60s` (`ms`, `s`, `m`, \
                 `h`, at most 24 h): how long a server that was restarted does not count, and the longest lease there is",
            )
        })?;
    }
    let server = |host: &&str| connection_info(&format!("{scheme}://{user}{host}/{path}"));
    Ok(Quorum {
        servers: hosts.iter().map(server).collect::<Result<_, _>>()?,
        rejoin_after,
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]
mod tests {
    use super::*;

    #[test]
    fn the_servers_of_a_quorum_share_user_password_and_database() {
        let url = "redis-quorum://u:p%40ss@h1:7001,h2,[::1]:7003/2?rejoin_after=90s";
        let Quorum {
            servers,
            rejoin_after,
        } = Quorum::parse(url, None).unwrap().unwrap();
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

    #[test]
    fn what_can_not_be_read_is_told_and_not_repeated() {
        for rest in [
            "h1",
            "h1,h2,h1",
            "h1,h2,h3/x",
            "h1,h2,h3?rejoin_after=canary",
            "h1,h2,h3?rejoin_after=25h",
            "h1,h2,h3?rejoin=1s",
        ] {
            let url = format!("redis-quorum://u:canary@{rest}");
            let error = Quorum::parse(&url, None).map(|_| ()).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("canary"), "{error}");
        }
    }

    #[test]
    fn replicas_can_not_be_had_and_it_is_told_why() {
        let url = "redis-quorum://u:canary@h1,h2,h3?rejoin_after=0s&replicas=1";
        let error = Quorum::parse(url, None).map(|_| ()).unwrap_err();
        assert!(
            error.to_string().contains("a quorum has no master"),
            "{error}"
        );
        for other in [
            "redis://h",
            "redis-sentinel://h1,h2/master?replicas=1",
            "redis-cluster://h1,h2?replicas=1&replicas_timeout=1s",
            "memory:",
        ] {
            assert!(Quorum::parse(other, None).unwrap().is_none(), "{other}");
        }
    }
}
