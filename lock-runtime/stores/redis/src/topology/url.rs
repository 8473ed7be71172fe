//! Parses store URLs of every kind. No message made here repeats the URL, which may contain a
//! password.

use std::time::Duration;

use lock_store::ConfigError;
use lock_store::timing::MAX_LEASE;
use redis::{ConnectionAddr, ConnectionInfo};

use super::address::ServerAddress;
use super::address_map::AddressMap;
use super::unescaped;
use super::url_options::{UrlOptions, duration};
use super::url_parts::{FORMS, UrlParts, connection_info};
use crate::config::{REJOIN_AFTER, Replicas};

/// The options in the URL of one server.
const REPLICAS: [&str; 2] = ["replicas", "replicas_timeout"];
/// The options in the URL of a cluster.
const OF_CLUSTER: [&str; 3] = ["replicas", "replicas_timeout", "map"];
/// The default port of sentinels.
const SENTINEL_PORT: u16 = 26379;

pub(crate) struct StoreUrl {
    /// The scheme begins with `rediss`.
    #[cfg(feature = "tls")]
    pub(crate) is_tls: bool,
    /// The URL ends in `#insecure`.
    #[cfg(feature = "tls")]
    pub(crate) insecure: bool,
    /// `redis`, or its twin `valkey`.
    pub(crate) family: &'static str,
    /// The part of the scheme after `redis` or `rediss`: `-cluster`, for example, or nothing.
    pub(crate) kind: &'static str,
    pub(crate) topology: Topology,
    /// The replicas that must confirm each hold.
    pub(crate) replicas: Option<Replicas>,
    /// The translation of announced addresses.
    addresses: Option<AddressMap>,
}

/// The servers and their roles.
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
        /// Some of the cluster's nodes.
        seeds: Vec<ServerAddress>,
        /// The nodes' settings, for any address.
        template: ConnectionInfo,
    },
    Quorum {
        /// Servers that are independent of each other.
        servers: Vec<ConnectionInfo>,
        /// How long a restarted server does not count.
        rejoin_after: Duration,
    },
}

impl StoreUrl {
    #[cfg(feature = "tls")]
    pub(crate) fn is_socket(&self) -> bool {
        matches!(
            &self.topology,
            Topology::Server(server) if matches!(server.addr(), ConnectionAddr::Unix(_))
        )
    }

    /// `replicas` is the builder's setting; the URL may have it instead.
    pub(crate) fn parse(url: &str, replicas: Option<Replicas>) -> Result<Self, ConfigError> {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let (family, scheme) = match scheme.strip_prefix("valkey") {
            Some(rest) => ("valkey", format!("redis{rest}")),
            None => ("redis", scheme.to_owned()),
        };
        let (rest, insecure) = read_fragment(&scheme, rest)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (base_scheme, kind) = match scheme.split_once('-') {
            Some((base_scheme, kind)) => (base_scheme, Some(kind)),
            None => (&*scheme, None),
        };
        let mut options = UrlOptions::of(query);
        let replicas = one_of(replicas, options.take_replicas()?, kind)?;
        let map = match kind {
            Some("sentinel" | "cluster") => options.take_one("map")?,
            _ => None,
        };
        let addresses = map.map(AddressMap::read).transpose()?;
        let parts = || UrlParts::of(rest, base_scheme == "rediss", insecure);
        let topology = match (base_scheme, kind) {
            ("redis+unix", None) => socket(rest, options)?,
            ("redis" | "rediss", None) => server(&parts()?, options)?,
            ("redis" | "rediss", Some("sentinel")) => sentinels(&parts()?, options)?,
            ("redis" | "rediss", Some("cluster")) => cluster(&parts()?, &options)?,
            ("redis" | "rediss", Some("quorum")) => quorum(&parts()?, options)?,
            _ => {
                return Err(ConfigError::new(
                    "the URL has no known scheme: use `memory:` or, each with `://`, redis, \
                     rediss, redis-sentinel, redis-cluster, redis-quorum, redis+unix, postgres, \
                     zookeeper, etcd or sqlite",
                ));
            }
        };
        Ok(Self {
            #[cfg(feature = "tls")]
            is_tls: base_scheme == "rediss",
            #[cfg(feature = "tls")]
            insecure,
            family,
            kind: match topology {
                Topology::Server(_) => "",
                Topology::Sentinels { .. } => "-sentinel",
                Topology::Cluster { .. } => "-cluster",
                Topology::Quorum { .. } => "-quorum",
            },
            topology,
            replicas,
            addresses,
        })
    }

    /// The translation of the addresses that the servers announce: the URL's, or the builder's.
    pub(crate) fn take_addresses(&mut self, given: AddressMap) -> Result<AddressMap, ConfigError> {
        let announces = matches!(
            self.topology,
            Topology::Sentinels { .. } | Topology::Cluster { .. }
        );
        match self.addresses.take() {
            None if given.is_empty() || announces => Ok(given),
            None => Err(ConfigError::new(
                "`address_map` translates the addresses that sentinels and the nodes of a cluster \
                 announce, and this URL has its servers' addresses itself; leave it out",
            )),
            Some(in_url) if given.is_empty() => Ok(in_url),
            Some(_) => Err(ConfigError::new(
                "`address_map` is given by the builder, and `map` in the store's URL; leave one of \
                 them out",
            )),
        }
    }
}

/// The URL without `#insecure`, and whether it ended so.
fn read_fragment<'u>(scheme: &str, rest: &'u str) -> Result<(&'u str, bool), ConfigError> {
    let is_tls = scheme.starts_with("rediss");
    if is_tls && !cfg!(feature = "tls") {
        return Err(ConfigError::new(
            "the store's URL asks for TLS (`rediss…://`, `valkeys…://`), and lock-runtime was \
             built without it: enable its feature `tls`",
        ));
    }
    unescaped::check(scheme, rest)?;
    // No other fragment passed the check.
    match rest.split_once('#') {
        Some((rest, _)) if is_tls => Ok((rest, true)),
        Some(_) => Err(ConfigError::new(
            "the store's URL ends in `#insecure`, which is for TLS (`rediss…://`); leave it out",
        )),
        None => Ok((rest, false)),
    }
}

/// The builder's setting, or the URL's.
fn one_of(
    given: Option<Replicas>,
    in_url: Option<Replicas>,
    kind: Option<&str>,
) -> Result<Option<Replicas>, ConfigError> {
    match (given, in_url) {
        (None, None) => Ok(None),
        _ if kind == Some("quorum") => Err(ConfigError::new(
            "`replicas` confirms what one master grants, and a quorum has no master: its majority \
             is the confirmation; leave it out",
        )),
        (Some(_), Some(_)) => Err(ConfigError::new(
            "`replicas` is given by the builder and in the store's URL; leave one of them out",
        )),
        (given, in_url) => Ok(given.or(in_url)),
    }
}

fn server(parts: &UrlParts<'_>, mut options: UrlOptions<'_>) -> Result<Topology, ConfigError> {
    let protocol = options.take_one("protocol")?;
    if !matches!(protocol, None | Some("3" | "resp3")) {
        return Err(ConfigError::new(
            "`protocol` in the store's URL is not 3, and this client speaks RESP3 only; leave it \
             out",
        ));
    }
    options.expect_no_more(&REPLICAS)?;
    let mut infos = parts.each(parts.path)?;
    match (infos.pop(), infos.is_empty()) {
        (Some(info), true) => Ok(Topology::Server(info)),
        _ => Err(ConfigError::new(format!(
            "the store's URL has several hosts, and `redis://` is for one; {FORMS}"
        ))),
    }
}

fn socket(path: &str, mut options: UrlOptions<'_>) -> Result<Topology, ConfigError> {
    // What stands before a path may be a user and a password, and what follows the rest of them.
    if !path.starts_with('/') && !path.starts_with("localhost/") {
        return Err(ConfigError::new(
            "a socket's URL has no user, password or host before its path; write \
             `redis+unix:///path/to/socket?user=…&pass=…`",
        ));
    }
    let mut query = Vec::new();
    for name in ["db", "user", "pass"] {
        if let Some(value) = options.take_one(name)? {
            // It is read as a form, where this is a space.
            query.push(format!("{name}={}", value.replace('+', "%2B")));
        }
    }
    options.expect_no_more(&["db", "user", "pass", "replicas", "replicas_timeout"])?;
    let url = format!("redis+unix://{path}?{}", query.join("&"));
    connection_info(&url).map(Topology::Server)
}

fn sentinels(parts: &UrlParts<'_>, mut options: UrlOptions<'_>) -> Result<Topology, ConfigError> {
    let (name, db) = parts.path.split_once('/').unwrap_or((parts.path, ""));
    // The characters that a sentinel's configuration allows in names.
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if name.is_empty() || !name.chars().all(allowed) {
        return Err(ConfigError::new(
            "the sentinels' URL needs the name of the master as its path, as the sentinels have \
             it: `redis-sentinel://host,host,host/mymaster`",
        ));
    }
    let user = options.take_one("sentinel_user")?.unwrap_or_default();
    let password = options.take_one("sentinel_password")?.unwrap_or_default();
    options.expect_no_more(&[
        "sentinel_user",
        "sentinel_password",
        "replicas",
        "replicas_timeout",
        "map",
    ])?;
    let credentials = match (user, password) {
        ("", "") => String::new(),
        // Its first `:` would end the user.
        (user, password) => format!("{}:{password}@", user.replace(':', "%3A")),
    };
    let sentinels = parts.each_as(&credentials, SENTINEL_PORT)?;
    Ok(Topology::Sentinels {
        sentinels,
        name: name.to_owned(),
        master: parts.each(db)?.swap_remove(0),
    })
}

fn cluster(parts: &UrlParts<'_>, options: &UrlOptions<'_>) -> Result<Topology, ConfigError> {
    if !matches!(parts.path, "" | "0") {
        return Err(ConfigError::new(
            "a cluster's URL has only user, password and nodes, and no database: \
             `redis-cluster://[user:password@]host[:port],host[:port],…`",
        ));
    }
    options.expect_no_more(&OF_CLUSTER)?;
    let infos = parts.each("")?;
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

fn quorum(parts: &UrlParts<'_>, mut options: UrlOptions<'_>) -> Result<Topology, ConfigError> {
    let hosts = &parts.hosts;
    if hosts.len() < 2 {
        return Err(ConfigError::new(
            "a quorum of one server survives no failure: list three servers or five, \
             `redis-quorum://host,host,host`, or write `redis://host` for the one",
        ));
    }
    let mut twice = hosts.iter().enumerate();
    if let Some((at, host)) = twice.find(|(at, host)| hosts[..*at].contains(host)) {
        let before = hosts.iter().position(|other| other == host).unwrap_or(0);
        return Err(ConfigError::new(format!(
            "the quorum's URL has one server twice, as number {} and {}, which would have two \
             votes; list each server once",
            before + 1,
            at + 1
        )));
    }
    let rejoin_after = match options.take_one("rejoin_after")? {
        None => Some(REJOIN_AFTER),
        Some(value) => duration(value).filter(|duration| *duration <= MAX_LEASE),
    };
    let rejoin_after = rejoin_after.ok_or_else(|| {
        ConfigError::new(
            "`rejoin_after` in the quorum's URL is not a time; write it as in `?rejoin_after=60s` \
             (`ms`, `s`, `m`, `h`, at most 24 h). A restarted server does not count for that long, \
             and no lease may be longer",
        )
    })?;
    options.expect_no_more(&["rejoin_after"])?;
    Ok(Topology::Quorum {
        servers: parts.each(parts.path)?,
        rejoin_after,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(url: &str, replicas: Option<Replicas>) -> String {
        let parsed = StoreUrl::parse(url, replicas).map(|_| ());
        parsed.unwrap_err().to_string()
    }

    fn topology(url: &str) -> Topology {
        StoreUrl::parse(url, None).unwrap().topology
    }

    /// User, password and database.
    fn login(info: &ConnectionInfo) -> (Option<&str>, Option<&str>, i64) {
        let settings = info.redis_settings();
        (settings.username(), settings.password(), settings.db())
    }

    fn addresses(infos: &[ConnectionInfo]) -> Vec<String> {
        infos.iter().map(|info| info.addr().to_string()).collect()
    }

    #[test]
    fn a_bad_url_is_a_config_error_that_does_not_repeat_it() {
        for url in [
            "",
            "localhost",
            "http://u:canary@h",
            "redis-://u:canary@h",
            "redis+unix-cluster://u:canary@h",
            "redis+unix://u:canary@h/tmp/s",
            "redis+unix://u:1?canary&b@h/tmp/s",
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

    #[cfg(not(feature = "tls"))]
    #[test]
    fn a_build_without_tls_says_which_feature_to_enable() {
        for scheme in [
            "rediss",
            "rediss-sentinel",
            "rediss-cluster",
            "rediss-quorum",
        ] {
            let error = error(&format!("{scheme}://u:canary@h1,h2,h3/m"), None);
            assert!(error.contains("enable its feature `tls`"), "{error}");
            assert!(!error.contains("canary"), "{error}");
        }
    }

    #[test]
    fn user_password_database_and_sockets_are_read() {
        let Topology::Server(info) = topology("redis://u:p@h:7/3") else {
            panic!("one server");
        };
        assert_eq!(login(&info), (Some("u"), Some("p"), 3));
        let socket = "redis+unix:///tmp/redis.sock?db=2&user=a+b%2Bc&pass=p+q%20r/s?t";
        let Topology::Server(info) = topology(socket) else {
            panic!("one server");
        };
        assert_eq!(login(&info), (Some("a+b+c"), Some("p+q r/s?t"), 2));
        let Topology::Server(info) = topology("redis+unix://localhost/tmp/redis.sock") else {
            panic!("one server");
        };
        assert_eq!(info.addr().to_string(), "/tmp/redis.sock");
    }

    #[test]
    fn the_nodes_of_a_cluster_share_user_and_password() {
        let url = "redis-cluster://u:p%40ss@h1:7001,h2,[::1]:7003/";
        let Topology::Cluster { seeds, template } = topology(url) else {
            panic!("a cluster");
        };
        let seeds: Vec<String> = seeds.iter().map(ServerAddress::to_string).collect();
        assert_eq!(seeds, ["h1:7001", "h2:6379", "::1:7003"]);
        assert_eq!(login(&template), (Some("u"), Some("p@ss"), 0));
    }

    #[test]
    fn sentinels_have_their_own_user_and_port() {
        let url = "redis-sentinel://u:p%40ss@h1:7,h2,[::1]/my-master/3\
             ?sentinel_user=s&sentinel_password=q%2F";
        let Topology::Sentinels {
            sentinels,
            name,
            master,
        } = topology(url)
        else {
            panic!("sentinels");
        };
        assert_eq!(addresses(&sentinels), ["h1:7", "h2:26379", "::1:26379"]);
        for info in &sentinels {
            assert_eq!(login(info), (Some("s"), Some("q/"), 0));
        }
        assert_eq!(login(&master), (Some("u"), Some("p@ss"), 3));
        assert_eq!(name, "my-master");
        for user in ["team:s", "team%3As"] {
            let url = format!("redis-sentinel://h/m?sentinel_user={user}&sentinel_password=p:w");
            let Topology::Sentinels { sentinels, .. } = topology(&url) else {
                panic!("sentinels");
            };
            assert_eq!(login(&sentinels[0]), (Some("team:s"), Some("p:w"), 0));
        }
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
        assert_eq!(addresses(&servers), ["h1:7001", "h2:6379", "::1:7003"]);
        for info in &servers {
            assert_eq!(login(info), (Some("u"), Some("p@ss"), 2));
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
