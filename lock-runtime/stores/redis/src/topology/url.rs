//! Reads a store's URL, of every kind. No message made here repeats the URL, which can hold a
//! password.

use std::time::Duration;

use lock_store::ConfigError;
use lock_store::timing::MAX_LEASE;
use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion};

use super::server::ServerAddress;
use super::unescaped;
use super::url_options::{UrlOptions, duration};
use crate::config::{KEEPALIVE, KEEPALIVE_AGAIN, REJOIN_AFTER, Replicas};
use crate::credentials;

const FORMS: &str = "write `redis://[user:password@]host[:port][/db]`, `redis+unix:///path/to/socket`, \
                     `redis-sentinel://[user:password@]host[:port],host[:port],…/master-name[/db]`, \
                     `redis-cluster://[user:password@]host[:port],host[:port],…`, \
                     `redis-quorum://[user:password@]host[:port],host[:port],…[/db]`, \
                     any but the socket with `rediss` for TLS, or `memory:`";

/// The port of sentinels when none is given.
const SENTINEL_PORT: u16 = 26379;

/// What a URL says.
pub(crate) struct StoreUrl {
    pub(crate) topology: Topology,
    /// The replicas that have to confirm each hold.
    pub(crate) replicas: Option<Replicas>,
}

/// Which servers there are, and what they are to each other.
#[derive(Clone)]
pub(crate) enum Topology {
    Server(ConnectionInfo),
    Sentinels {
        sentinels: Vec<ConnectionInfo>,
        name: String,
        /// The master's settings; its address is not known yet.
        master: ConnectionInfo,
    },
    Cluster {
        /// Some of its nodes.
        seeds: Vec<ServerAddress>,
        /// The nodes' settings, for whatever address.
        template: ConnectionInfo,
    },
    Quorum {
        /// Servers that know nothing of each other.
        servers: Vec<ConnectionInfo>,
        /// How long a server does not count that came back.
        rejoin_after: Duration,
    },
}

impl StoreUrl {
    /// `replicas` can be in the URL instead.
    pub(crate) fn parse(url: &str, replicas: Option<Replicas>) -> Result<Self, ConfigError> {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        if scheme.starts_with("rediss") && !cfg!(feature = "tokio-rustls-comp") {
            return Err(ConfigError::new(
                "the store's URL asks for TLS (`rediss…://`), and lock-runtime was built without it: \
                 enable its feature `tokio-rustls-comp`",
            ));
        }
        unescaped::check(scheme, rest)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut options = UrlOptions::of(query);
        let in_url = options.take_replicas()?;
        let (each, kind) = match scheme.split_once('-') {
            Some((each, kind)) => (each, Some(kind)),
            None => (scheme, None),
        };
        let is_quorum = matches!((each, kind), ("redis" | "rediss", Some("quorum")));
        if is_quorum && replicas.or(in_url).is_some() {
            return Err(ConfigError::new(
                "`replicas` confirms what one master grants, and a quorum has no master: its majority is the confirmation; leave it out",
            ));
        }
        if in_url.is_some() && replicas.is_some() {
            return Err(ConfigError::new(
                "`replicas` is given by the builder and in the store's URL; leave one of them out",
            ));
        }
        let topology = match (each, kind) {
            ("redis" | "rediss" | "redis+unix", None) => {
                let query = options.rest();
                let mark = if query.is_empty() { "" } else { "?" };
                Topology::Server(connection_info(&format!("{each}://{rest}{mark}{query}"))?)
            }
            ("redis" | "rediss", Some("sentinel")) => sentinels(each, rest, options)?,
            ("redis" | "rediss", Some("cluster")) => cluster(each, rest, &options)?,
            ("redis" | "rediss", Some("quorum")) => quorum(each, rest, options)?,
            _ => {
                return Err(ConfigError::new(format!(
                    "the store's URL does not begin with a known scheme; {FORMS}"
                )));
            }
        };
        let replicas = replicas.or(in_url);
        Ok(Self { topology, replicas })
    }
}

/// One server's settings: RESP3 for push messages, TCP_NODELAY, and a sign of life for firewalls
/// that forget quiet connections.
fn connection_info(url: &str) -> Result<ConnectionInfo, ConfigError> {
    let unreadable = |_| ConfigError::new(format!("the store's URL can't be read; {FORMS}"));
    let info = url.into_connection_info().map_err(unreadable)?;
    let redis = info
        .redis_settings()
        .clone()
        .set_protocol(ProtocolVersion::RESP3)
        // One command fewer to connect, and one permission fewer to ask for.
        .set_skip_set_lib_name();
    credentials::remember(&redis);
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE)
        .with_interval(KEEPALIVE_AGAIN);
    let tcp = TcpSettings::default()
        .set_nodelay(true)
        .set_keepalive(keepalive);
    Ok(info.set_redis_settings(redis).set_tcp_settings(tcp))
}

/// The parts of a URL that names several hosts.
struct UrlParts<'u> {
    /// `user:password@`, or nothing.
    user: &'u str,
    hosts: Vec<&'u str>,
    path: &'u str,
}

impl<'u> UrlParts<'u> {
    fn of(rest: &'u str) -> Result<Self, ConfigError> {
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let at = authority.rfind('@').map_or(0, |at| at + 1);
        let (user, hosts) = authority.split_at(at);
        let hosts: Vec<&str> = hosts.split(',').collect();
        if hosts.iter().any(|host| host.is_empty()) {
            return Err(ConfigError::new(format!(
                "the store's URL has an empty host; {FORMS}"
            )));
        }
        Ok(Self { user, hosts, path })
    }

    /// The settings of each host, made from its URL.
    fn each(&self, url: impl Fn(&str) -> String) -> Result<Vec<ConnectionInfo>, ConfigError> {
        let hosts = self.hosts.iter();
        hosts.map(|host| connection_info(&url(host))).collect()
    }
}

fn sentinels(
    scheme: &str,
    rest: &str,
    mut options: UrlOptions<'_>,
) -> Result<Topology, ConfigError> {
    let parts = UrlParts::of(rest)?;
    let (name, db) = parts.path.split_once('/').unwrap_or((parts.path, ""));
    // The charset of names in a sentinel's configuration.
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if name.is_empty() || !name.chars().all(allowed) {
        return Err(ConfigError::new(
            "the sentinels' URL needs the name of the master as its path, as the sentinels have it: \
             `redis-sentinel://host,host,host/mymaster`",
        ));
    }
    let mut last = |name| options.take(name).last().copied().unwrap_or_default();
    let (user, password) = (last("sentinel_user"), last("sentinel_password"));
    if !options.is_empty() {
        return Err(ConfigError::new(
            "the sentinels' URL has an unknown option; there are `sentinel_user` and `sentinel_password`",
        ));
    }
    let credentials = match (user, password) {
        ("", "") => String::new(),
        (user, password) => format!("{user}:{password}@"),
    };
    let sentinels = parts.each(|host| {
        let host = with_port(host, SENTINEL_PORT);
        format!("{scheme}://{credentials}{host}")
    })?;
    let (user, host) = (parts.user, parts.hosts[0]);
    Ok(Topology::Sentinels {
        sentinels,
        name: name.to_owned(),
        master: connection_info(&format!("{scheme}://{user}{host}/{db}"))?,
    })
}

fn cluster(scheme: &str, rest: &str, options: &UrlOptions<'_>) -> Result<Topology, ConfigError> {
    let parts = UrlParts::of(rest)?;
    if !matches!(parts.path, "" | "0") || !options.rest().is_empty() {
        return Err(ConfigError::new(
            "a cluster's URL has only user, password and nodes, and no database: \
             `redis-cluster://[user:password@]host[:port],host[:port],…`",
        ));
    }
    let infos = parts.each(|host| format!("{scheme}://{}{host}", parts.user))?;
    let address = |info: &ConnectionInfo| match info.addr() {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
            let (host, port) = (host.clone(), *port);
            Some(ServerAddress { host, port })
        }
        _ => None,
    };
    Ok(Topology::Cluster {
        seeds: infos.iter().filter_map(address).collect(),
        template: infos[0].clone(),
    })
}

fn quorum(scheme: &str, rest: &str, mut options: UrlOptions<'_>) -> Result<Topology, ConfigError> {
    let parts = UrlParts::of(rest)?;
    let hosts = &parts.hosts;
    if hosts.len() < 2 {
        return Err(ConfigError::new(
            "a quorum of one server outlives nothing: list three servers or five, `redis-quorum://host,host,host`, or write \
             `redis://host` for the one",
        ));
    }
    let mut twice = hosts.iter().enumerate();
    if let Some((at, host)) = twice.find(|(at, host)| hosts[..*at].contains(host)) {
        let before = hosts.iter().position(|other| other == host).unwrap_or(0);
        return Err(ConfigError::new(format!(
            "the quorum's URL has one server twice, as number {} and {}, which would have two votes; list each server once",
            before + 1,
            at + 1
        )));
    }
    let mut rejoin_after = Some(REJOIN_AFTER);
    for value in options.take("rejoin_after") {
        let read = duration(value).filter(|duration| *duration <= MAX_LEASE);
        rejoin_after = rejoin_after.and(read);
    }
    let rejoin_after = rejoin_after.filter(|_| options.is_empty()).ok_or_else(|| {
        ConfigError::new(
            "the quorum's URL has an unknown option; there is `rejoin_after`, as in `?rejoin_after=60s` (`ms`, `s`, `m`, \
             `h`, at most 24 h): how long a server that was restarted does not count, and the longest lease there is",
        )
    })?;
    Ok(Topology::Quorum {
        servers: parts.each(|host| format!("{scheme}://{}{host}/{}", parts.user, parts.path))?,
        rejoin_after,
    })
}

fn with_port(host: &str, port: u16) -> String {
    // In `[::1]`, colons mean something else.
    let after = host.rfind(']').map_or(host, |end| &host[end..]);
    match after.contains(':') {
        true => host.to_owned(),
        false => format!("{host}:{port}"),
    }
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]
mod tests {
    use super::*;

    fn error(url: &str, replicas: Option<Replicas>) -> String {
        let parsed = StoreUrl::parse(url, replicas).map(|_| ());
        parsed.unwrap_err().to_string()
    }

    fn topology(url: &str) -> Topology {
        StoreUrl::parse(url, None).unwrap().topology
    }

    #[test]
    fn a_bad_url_is_a_config_error_that_does_not_repeat_it() {
        for url in [
            "",
            "localhost",
            "http://u:canary@h",
            "redis-://u:canary@h",
            "redis+unix-cluster://u:canary@h",
            "redis://u:canary@h:port",
            "redis://u:canary@h/x",
            "redis-sentinel://u:canary@h1,h2",
            "redis-sentinel://u:canary@h1,h2/",
            "redis-sentinel://u:canary@h1,,h2/master",
            "redis-sentinel://u:canary@/master",
            "redis-sentinel://u:canary@h1:x/master",
            "redis-sentinel://u:canary@h1/my%20master",
            "redis-sentinel://u:canary@h1/master/db",
            "redis-sentinel://h1/master?password=canary",
            "redis-cluster://u:canary@",
            "redis-cluster://u:canary@h1,/",
            "redis-cluster://u:canary@h1:x",
            "redis-cluster://u:canary@h1/1",
            "redis-cluster://u:canary@h1/?x=y",
            "redis-quorum://u:canary@h1",
            "redis-quorum://u:canary@h1,h2,h1",
            "redis-quorum://u:canary@h1,h2,h3/x",
            "redis-quorum://u:canary@h1,h2,h3?rejoin_after=canary",
            "redis-quorum://u:canary@h1,h2,h3?rejoin_after=25h",
            "redis-quorum://u:canary@h1,h2,h3?rejoin=1s",
            "redis-quorum://u:p@h1,h2,canary,h3,canary",
            "redis://u:canary@h?replicas=canary",
            "redis://u:canary@h?replicas_timeout=1s",
        ] {
            let error = StoreUrl::parse(url, None).map(|_| ()).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("canary"), "{error}");
        }
    }

    #[test]
    fn user_password_database_and_sockets_are_read() {
        let Topology::Server(info) = topology("redis://u:p@h:7/3") else {
            panic!("one server");
        };
        assert_eq!(
            (info.redis_settings().username(), info.redis_settings().db()),
            (Some("u"), 3)
        );
        assert!(StoreUrl::parse("redis+unix:///tmp/redis.sock?db=2", None).is_ok());
    }

    #[test]
    fn the_nodes_of_a_cluster_share_user_and_password() {
        let url = "redis-cluster://u:p%40ss@h1:7001,h2,[::1]:7003/";
        let Topology::Cluster { seeds, template } = topology(url) else {
            panic!("a cluster");
        };
        let seeds: Vec<String> = seeds.iter().map(ServerAddress::to_string).collect();
        assert_eq!(seeds, ["h1:7001", "h2:6379", "::1:7003"]);
        let settings = template.redis_settings();
        assert_eq!(
            (settings.username(), settings.password()),
            (Some("u"), Some("p@ss"))
        );
    }

    #[test]
    fn sentinels_have_their_own_user_and_port() {
        let url = "redis-sentinel://u:p%40ss@h1:7,h2,[::1]/my-master/3?sentinel_user=s&sentinel_password=q%2F";
        let Topology::Sentinels {
            sentinels,
            name,
            master,
        } = topology(url)
        else {
            panic!("sentinels");
        };
        let addrs: Vec<String> = sentinels
            .iter()
            .map(|info| info.addr().to_string())
            .collect();
        assert_eq!(addrs, ["h1:7", "h2:26379", "::1:26379"]);
        for info in &sentinels {
            let settings = info.redis_settings();
            assert_eq!(
                (settings.username(), settings.password(), settings.db()),
                (Some("s"), Some("q/"), 0)
            );
        }
        let settings = master.redis_settings();
        assert_eq!(
            (settings.username(), settings.password(), settings.db()),
            (Some("u"), Some("p@ss"), 3)
        );
        assert_eq!(name, "my-master");
    }

    #[test]
    fn the_servers_of_a_quorum_share_user_password_and_database() {
        let url = "redis-quorum://u:p%40ss@h1:7001,h2,[::1]:7003/2?rejoin_after=90s";
        let Topology::Quorum {
            servers,
            rejoin_after,
        } = topology(url)
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

    #[test]
    fn replicas_are_read_from_the_url_or_given_and_not_both() {
        let url = "redis-cluster://h1,h2?replicas_timeout=1s&replicas=1";
        let parsed = StoreUrl::parse(url, None).unwrap();
        let timeout = Duration::from_secs(1);
        let expected = Some(Replicas { count: 1, timeout });
        assert_eq!(parsed.replicas, expected);
        let given = StoreUrl::parse("redis://h/", expected).unwrap();
        assert_eq!(given.replicas, expected);
        let twice = error(url, expected);
        assert!(
            twice.contains("by the builder and in the store's URL"),
            "{twice}"
        );
    }

    #[test]
    fn a_quorum_can_not_have_replicas_and_it_is_told_why() {
        let url = "redis-quorum://u:canary@h1,h2,h3?rejoin_after=0s&replicas=1";
        let error = error(url, None);
        assert!(error.contains("a quorum has no master"), "{error}");
        assert!(!error.contains("canary"), "{error}");
    }
}
