//! Reads `redis://…` URLs. No message made here repeats the URL, which can hold a password.

pub(crate) mod quorum;

use std::time::Duration;

use lock_store::ConfigError;
use redis::io::tcp::TcpSettings;
use redis::{Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion};

use super::errors;
use super::sentinel::Sentinels;
use super::target::{Place, Target};

const FORMS: &str = "write `redis://[user:password@]host[:port][/db]`, `redis+unix:///path/to/socket`, \
                     `redis-sentinel://[user:password@]host[:port],host[:port],…/master-name[/db]`, \
                     `redis-cluster://[user:password@]host[:port],host[:port],…`, \
                     `redis-quorum://[user:password@]host[:port],host[:port],…[/db]`, \
                     any but the socket with `rediss` for TLS, or `memory:`";

/// The port of sentinels when none is given.
const SENTINEL_PORT: u16 = 26379;

/// What a URL says.
pub(super) enum Address {
    Server(ConnectionInfo),
    Sentinels {
        sentinels: Vec<ConnectionInfo>,
        name: String,
        /// The master's settings; only where it is, is not known yet.
        master: ConnectionInfo,
    },
    Cluster {
        /// Some of its nodes.
        seeds: Vec<Place>,
        /// The nodes' settings, but for where they are.
        template: ConnectionInfo,
    },
}

impl Address {
    pub(super) fn parse(url: &str) -> Result<Self, ConfigError> {
        let (scheme, rest) = scheme(url)?;
        match scheme {
            "redis" | "rediss" | "redis+unix" => connection_info(url).map(Self::Server),
            "redis-sentinel" => sentinels("redis", rest),
            "rediss-sentinel" => sentinels("rediss", rest),
            "redis-cluster" => cluster("redis", rest),
            "rediss-cluster" => cluster("rediss", rest),
            _ => Err(ConfigError::new(format!(
                "the store's URL does not begin with a known scheme; {FORMS}"
            ))),
        }
    }

    /// What the one connection leads to. `connect` is how long connecting may take as a whole.
    pub(super) fn target(self, connect: Duration) -> Result<Target, ConfigError> {
        Ok(match self {
            Self::Server(info) => Target::Server(client(info)?),
            Self::Cluster { template, .. } => Target::Node(client(template)?),
            Self::Sentinels {
                sentinels,
                name,
                master,
            } => {
                let clients = sentinels.into_iter().map(client);
                let clients = clients.collect::<Result<_, _>>()?;
                // The rest is for the master.
                Target::Master(Sentinels::new(clients, &name, master, connect / 2))
            }
        })
    }
}

/// The scheme of a URL, and what is behind it.
fn scheme(url: &str) -> Result<(&str, &str), ConfigError> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme.starts_with("rediss") && !cfg!(feature = "tokio-rustls-comp") {
        return Err(ConfigError::new(
            "the store's URL asks for TLS (`rediss…://`), and lock-runtime was built without it: \
             enable its feature `tokio-rustls-comp`",
        ));
    }
    Ok((scheme, rest))
}

pub(super) fn client(info: ConnectionInfo) -> Result<Client, ConfigError> {
    Client::open(info).map_err(|error| {
        ConfigError::new(format!(
            "the store's URL can't be used: {}",
            errors::store_error(&error)
        ))
    })
}

/// One server's settings: RESP3 for push messages, and TCP_NODELAY.
fn connection_info(url: &str) -> Result<ConnectionInfo, ConfigError> {
    let unreadable = |_| ConfigError::new(format!("the store's URL can't be read; {FORMS}"));
    let info = url.into_connection_info().map_err(unreadable)?;
    let redis = info
        .redis_settings()
        .clone()
        .set_protocol(ProtocolVersion::RESP3)
        // One command fewer to connect, and one permission fewer to ask for.
        .set_skip_set_lib_name();
    Ok(info
        .set_redis_settings(redis)
        .set_tcp_settings(TcpSettings::default().set_nodelay(true)))
}

/// The parts of a URL that names several hosts.
struct Parts<'u> {
    /// `user:password@`, or nothing.
    user: &'u str,
    hosts: Vec<&'u str>,
    path: &'u str,
    query: &'u str,
}

impl<'u> Parts<'u> {
    fn of(rest: &'u str) -> Result<Self, ConfigError> {
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let at = authority.rfind('@').map_or(0, |at| at + 1);
        let (user, hosts) = authority.split_at(at);
        let hosts: Vec<&str> = hosts.split(',').collect();
        if hosts.iter().any(|host| host.is_empty()) {
            return Err(ConfigError::new(format!(
                "the store's URL has an empty host; {FORMS}"
            )));
        }
        Ok(Self {
            user,
            hosts,
            path,
            query,
        })
    }
}

fn sentinels(scheme: &str, rest: &str) -> Result<Address, ConfigError> {
    let Parts {
        user,
        hosts,
        path,
        query,
    } = Parts::of(rest)?;
    let (name, db) = path.split_once('/').unwrap_or((path, ""));
    // The charset of names in a sentinel's configuration.
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if name.is_empty() || !name.chars().all(allowed) {
        return Err(ConfigError::new(
            "the sentinels' URL needs the name of the master as its path, as the sentinels have it: \
             `redis-sentinel://host,host,host/mymaster`",
        ));
    }
    let (mut sentinel_user, mut sentinel_password) = ("", "");
    for option in query.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            Some(("sentinel_user", value)) => sentinel_user = value,
            Some(("sentinel_password", value)) => sentinel_password = value,
            _ => {
                return Err(ConfigError::new(
                    "the sentinels' URL has an unknown option; there are `sentinel_user` and `sentinel_password`",
                ));
            }
        }
    }
    let credentials = match (sentinel_user, sentinel_password) {
        ("", "") => String::new(),
        (user, password) => format!("{user}:{password}@"),
    };
    let sentinel = |host: &&str| {
        let host = with_port(host, SENTINEL_PORT);
        connection_info(&format!("{scheme}://{credentials}{host}"))
    };
    Ok(Address::Sentinels {
        sentinels: hosts.iter().map(sentinel).collect::<Result<_, _>>()?,
        name: name.to_owned(),
        master: connection_info(&format!("{scheme}://{user}{}/{db}", hosts[0]))?,
    })
}

fn cluster(scheme: &str, rest: &str) -> Result<Address, ConfigError> {
    let Parts {
        user,
        hosts,
        path,
        query,
    } = Parts::of(rest)?;
    if !matches!(path, "" | "0") || !query.is_empty() {
        return Err(ConfigError::new(
            "a cluster's URL has only user, password and nodes, and no database: \
             `redis-cluster://[user:password@]host[:port],host[:port],…`",
        ));
    }
    let infos = hosts
        .iter()
        .map(|host| connection_info(&format!("{scheme}://{user}{host}")))
        .collect::<Result<Vec<_>, _>>()?;
    let place = |info: &ConnectionInfo| match info.addr() {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
            Some(Place {
                host: host.clone(),
                port: *port,
            })
        }
        _ => None,
    };
    Ok(Address::Cluster {
        seeds: infos.iter().filter_map(place).collect(),
        template: infos[0].clone(),
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

    #[test]
    fn a_bad_url_is_a_config_error_that_does_not_repeat_it() {
        for url in [
            "",
            "localhost",
            "http://u:canary@h",
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
        ] {
            let error = Address::parse(url).map(|_| ()).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("canary"), "{error}");
        }
    }

    #[test]
    fn user_password_database_and_sockets_are_read() {
        let Address::Server(info) = Address::parse("redis://u:p@h:7/3").unwrap() else {
            panic!("one server");
        };
        assert_eq!(
            (info.redis_settings().username(), info.redis_settings().db()),
            (Some("u"), 3)
        );
        assert!(Address::parse("redis+unix:///tmp/redis.sock?db=2").is_ok());
    }

    #[test]
    fn the_nodes_of_a_cluster_share_user_and_password() {
        let url = "redis-cluster://u:p%40ss@h1:7001,h2,[::1]:7003/";
        let Address::Cluster { seeds, template } = Address::parse(url).unwrap() else {
            panic!("a cluster");
        };
        let seeds: Vec<String> = seeds.iter().map(Place::to_string).collect();
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
        let Address::Sentinels {
            sentinels,
            name,
            master,
        } = Address::parse(url).unwrap()
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
}
