//! The URL: `postgres://user:password@host:5432/database?connections=8&listen=off`.

use std::error::Error as _;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use lock_store::timing::Timeouts;
use lock_store::{Access, ConfigError, Layout, percent_decoded};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::access::{apply, certificates};
use crate::route::{HostEntry, Route};
use crate::transport::{Certificates, Transport};
use crate::url_options::{
    OPTIONS, connect_timeout, expect_no_lot, expect_once, expect_writing, number, seconds, unknown,
};

/// What a URL says.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) route: Route,
    /// The largest number of connections, beside the one that listens.
    pub(crate) connections: usize,
    /// Where to listen. `None`: nowhere.
    pub(crate) listen: Option<Route>,
    /// The hosts, for people.
    pub(crate) server: String,
    /// As whose locks they are kept.
    pub(crate) layout: Layout,
}

type GivenCertificates<'t> = Option<&'t Certificates>;

/// How long what was sent may stay without the acknowledgement of the other machine, unless the URL
/// says it. Linux knows this.
const UNACKNOWLEDGED: Duration = Duration::from_secs(20);
/// After this time without a message, the system asks the other machine whether it is there.
const IDLE: Duration = Duration::from_secs(10);

const DEFAULT_CONNECTIONS: usize = 8;

/// What a URL says beside what tokio-postgres reads.
#[derive(Default)]
struct OwnOptions<'u> {
    connections: Option<usize>,
    listen: Option<String>,
    sslmode: Option<&'u str>,
    /// The options that are left to tokio-postgres.
    rest: Vec<&'u str>,
}

impl<'u> OwnOptions<'u> {
    /// Takes them out of the URL's query.
    fn take(base: &str, query: &'u str) -> Result<Self, ConfigError> {
        let (mut own, mut names) = (Self::default(), Vec::new());
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let decoded = || percent_decoded(value).ok_or_else(|| unreadable(""));
            match name {
                "connections" => own.connections = Some(number(value)?),
                "listen" => own.listen = Some(decoded()?),
                "sslmode" => own.sslmode = Some(value),
                "connect_timeout" => _ = seconds(value)?,
                "target_session_attrs" => expect_writing(value)?,
                "load_balance_hosts" => expect_no_lot(value)?,
                _ if OPTIONS.contains(&name) => own.rest.push(option),
                // The password goes on up to the `@`.
                _ if query.contains('@') => return Err(unknown("?")),
                _ => return Err(unknown(name)),
            }
            names.push(name);
        }
        expect_escapes(base, &own.rest)?;
        if let Ok(before) = Config::from_str(base) {
            expect_once(&before, &names)?;
        }
        Ok(own)
    }
}

/// Reads a URL. No error repeats what stands in it, which may be a password.
pub(crate) fn read(
    url: &str,
    access: &Access,
    name: &str,
    timeouts: Timeouts,
) -> Result<Settings, ConfigError> {
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let OwnOptions {
        connections,
        listen,
        sslmode,
        rest,
    } = OwnOptions::take(base, query)?;
    let mut plain = base.to_owned();
    if !rest.is_empty() {
        plain.push('?');
        plain.push_str(&rest.join("&"));
    }
    let transport = transport(sslmode, certificates(access))?;
    // tokio-postgres ends the password at the first, and would look up the rest of it as a host.
    if base.matches('@').count() > 1 {
        return Err(unreadable(""));
    }
    let read = Config::from_str(&plain).map_err(|error| {
        let source = error.source().map(ToString::to_string);
        unreadable(&source.unwrap_or_default())
    })?;
    let is_given = |name: &str| rest.iter().any(|option| option.starts_with(name));
    let idle = (!is_given("keepalives_idle=")).then_some(IDLE);
    let route = Route {
        hosts: host_entries(&read)?,
        config: config(&read, access, idle, &transport, name)?,
        provider: access.provider.clone(),
        transport,
        limit: connect_timeout(url)?.unwrap_or(timeouts.connect),
        known: Arc::default(),
        heard: Arc::default(),
        staggered: Arc::default(),
    };
    let names: Vec<String> = route.hosts.iter().map(ToString::to_string).collect();
    Ok(Settings {
        connections: connections.unwrap_or(DEFAULT_CONNECTIONS),
        listen: match listen.as_deref() {
            None => Some(route.clone()),
            Some("off") => None,
            Some(addresses) => Some(elsewhere(&route, addresses)?),
        },
        server: names.join(","),
        layout: Layout::Native,
        route,
    })
}

/// A server is verified whenever there is TLS. So there is no difference between the modes that
/// ask for it.
fn transport(sslmode: Option<&str>, tls: GivenCertificates<'_>) -> Result<Transport, ConfigError> {
    let is_wanted = match sslmode {
        None | Some("allow" | "prefer") => tls.is_some(),
        Some("require" | "verify-ca" | "verify-full") => true,
        Some("disable") if tls.is_some() => {
            return Err(ConfigError::new(
                "`tls` is given, and `sslmode=disable` in the store's URL turns it off; leave one \
                 of them out",
            ));
        }
        Some("disable") => false,
        Some(_) => {
            return Err(ConfigError::new(
                "`sslmode` in the store's URL is none of `disable`, `allow`, `prefer`, `require`, \
                 `verify-ca` and `verify-full`",
            ));
        }
    };
    match is_wanted {
        false => Ok(Transport::Plain),
        true => over_tls(tls),
    }
}

#[cfg(feature = "tls")]
fn over_tls(tls: GivenCertificates<'_>) -> Result<Transport, ConfigError> {
    let config = tls.cloned().unwrap_or_default().client_config()?;
    let config = std::sync::Arc::unwrap_or_clone(config);
    Ok(Transport::Tls(
        tokio_postgres_rustls::MakeRustlsConnect::new(config),
    ))
}

#[cfg(not(feature = "tls"))]
fn over_tls(_: GivenCertificates<'_>) -> Result<Transport, ConfigError> {
    Err(ConfigError::new(
        "`sslmode` in the store's URL asks for TLS, which this build of lock-runtime does not \
         speak; switch its feature `tls` on",
    ))
}

/// tokio-postgres would take such a `%` as it stands, and others refuse it, or read it as something
/// else.
fn expect_escapes(base: &str, options: &[&str]) -> Result<(), ConfigError> {
    let credentials = base.split_once('@').map_or("", |(before, _)| before);
    let mut parts = options.iter().chain([&credentials]);
    match parts.all(|part| percent_decoded(part).is_some()) {
        true => Ok(()),
        false => Err(ConfigError::new(
            "the store's URL has a `%` without two hexadecimal digits in its user, its password or \
             an option; write `%25` for a `%`",
        )),
    }
}

/// `why` is tokio-postgres' own word, which may name an option.
fn unreadable(why: &str) -> ConfigError {
    let option = why.strip_prefix("invalid value for option ");
    let option = option.map(|option| format!(" (its {option})"));
    ConfigError::new(format!(
        "the store's URL can't be read{}; write `postgres://user:password@host:5432/database`, \
         with `%40` for a `@` and `%2F` for a `/` in user and password",
        option.unwrap_or_default()
    ))
}

/// As they are meant: those of `?host=one,two` come as one name. What can't be a name may be a part
/// of a password with a `@`.
fn hosts(read: &Config) -> Result<Vec<Host>, ConfigError> {
    let mut hosts = Vec::new();
    for host in read.get_hosts() {
        match host {
            Host::Tcp(names) => {
                hosts.extend(names.split(',').map(|name| Host::Tcp(name.to_owned())));
            }
            #[cfg(unix)]
            path @ Host::Unix(_) => hosts.push(path.clone()),
        }
    }
    let is_none = |host: &Host| {
        let name = match host {
            Host::Tcp(name) => name,
            #[cfg(unix)]
            Host::Unix(_) => return false,
        };
        name.is_empty() || name.contains(|letter: char| "@/?#".contains(letter) || letter <= ' ')
    };
    match hosts.iter().any(is_none) {
        true => Err(unreadable("")),
        false => Ok(hosts),
    }
}

/// The hosts of the URL, in their order.
fn host_entries(read: &Config) -> Result<Vec<HostEntry>, ConfigError> {
    let (hosts, addresses) = (hosts(read)?, read.get_hostaddrs());
    let ports = read.get_ports();
    let count = hosts.len().max(addresses.len());
    if count == 0 {
        return Err(ConfigError::new(
            "the store's URL has no host; write `postgres://user:password@host:5432/database`",
        ));
    }
    let fits = |len: usize| len == 0 || len == count;
    if !fits(hosts.len()) || !fits(addresses.len()) || !(ports.len() <= 1 || fits(ports.len())) {
        return Err(ConfigError::new(
            "the store's URL does not have as many of `host`, `hostaddr` and `port` as of the \
             others",
        ));
    }
    let entry = |at: usize| {
        let address = addresses.get(at).copied();
        let host = hosts.get(at).cloned();
        Some(HostEntry {
            host: host.or_else(|| address.map(|address| Host::Tcp(address.to_string())))?,
            at: address,
            port: *ports.get(at).or(ports.first()).unwrap_or(&5432),
        })
    };
    Ok((0..count).filter_map(entry).collect())
}

/// What all connections have in common.
fn config(
    read: &Config,
    access: &Access,
    idle: Option<Duration>,
    transport: &Transport,
    name: &str,
) -> Result<Config, ConfigError> {
    let mut config = Config::new();
    apply(access, read, &mut config)?;
    read.get_dbname().map(|database| config.dbname(database));
    read.get_options().map(|options| config.options(options));
    let name = read.get_application_name().unwrap_or(name);
    if !name.is_empty() {
        config.application_name(name);
    }
    config.channel_binding(read.get_channel_binding());
    config.ssl_mode(match transport {
        Transport::Plain => SslMode::Disable,
        #[cfg(feature = "tls")]
        Transport::Tls(_) => SslMode::Require,
    });
    // A connection to a machine that is gone ends soon, and not after TCP's quarter of an hour: its
    // place is wanted.
    config.keepalives(read.get_keepalives());
    config.keepalives_idle(idle.unwrap_or_else(|| read.get_keepalives_idle()));
    read.get_keepalives_interval()
        .map(|pause| config.keepalives_interval(pause));
    read.get_keepalives_retries()
        .map(|times| config.keepalives_retries(times));
    let unacknowledged = read.get_tcp_user_timeout();
    config.tcp_user_timeout(unacknowledged.copied().unwrap_or(UNACKNOWLEDGED));
    Ok(config)
}

/// The route to the same server at other addresses: `host:port,host:port`.
fn elsewhere(route: &Route, addresses: &str) -> Result<Route, ConfigError> {
    let entry = |address: &str| {
        let (host, port) = address.rsplit_once(':')?;
        let of_brackets = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let is_plain = !host.is_empty() && !host.contains(':');
        let host = of_brackets.or_else(|| is_plain.then_some(host))?;
        Some(HostEntry {
            host: Host::Tcp(host.to_owned()),
            at: None,
            port: port.parse().ok()?,
        })
    };
    let hosts: Option<Vec<HostEntry>> = addresses.split(',').map(entry).collect();
    let hosts = hosts.ok_or_else(|| {
        ConfigError::new(
            "`listen` in the store's URL is neither `off` nor `host:port`, as \
             `db.example:5432` or `[::1]:5432`",
        )
    })?;
    // What was replaced there is known from the other route.
    Ok(Route {
        hosts,
        staggered: Arc::default(),
        ..route.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(url: &str) -> Settings {
        let second = Duration::from_secs(1);
        let timeouts = Timeouts {
            connect: second,
            command: second,
        };
        read(url, &Access::default(), "", timeouts).unwrap()
    }

    #[test]
    fn every_connection_notices_the_death_of_the_other_machine() {
        let seconds = Duration::from_secs;
        let with = "?tcp_user_timeout=5&keepalives_idle=30&keepalives_interval=7\
                    &keepalives_retries=3&connect_timeout=4&options=-c%20a=b";
        for (url, listen) in [
            ("postgres://u@h/d", "listen=g:1"),
            ("postgres://u@g,h/d", ""),
        ] {
            for (options, unacknowledged, idle, limit) in [
                ("?", UNACKNOWLEDGED, IDLE, 1),
                (with, seconds(5), seconds(30), 4),
            ] {
                let settings = settings(&format!("{url}{options}&{listen}"));
                for route in [settings.route, settings.listen.unwrap()] {
                    let config = route.config;
                    assert_eq!(config.get_tcp_user_timeout(), Some(&unacknowledged));
                    assert_eq!(config.get_keepalives_idle(), idle);
                    assert_eq!(route.limit, seconds(limit));
                    let is_with = options == with;
                    assert_eq!(config.get_keepalives_interval().is_some(), is_with);
                    assert_eq!(config.get_options().is_some(), is_with);
                }
            }
        }
    }

    #[test]
    fn no_error_repeats_a_part_of_a_password() {
        let timeouts = Timeouts::default();
        for (url, says) in [
            ("postgres://app:abc?hunter=x@db/shop", "%3F"),
            ("postgres://app:abc?hunter&d@db/shop", "%3F"),
            ("postgres://app:abc?hunter@db/shop", "%3F"),
            ("postgres://app:abc@hunter@db/shop", "%40"),
            ("postgres://app:abc@hunter/x@db/shop", "%40"),
        ] {
            let error = read(url, &Access::default(), "", timeouts).err().unwrap();
            let text = error.into_message();
            assert!(text.contains(says) && !text.contains("hunter"), "{text}");
        }
    }

    #[test]
    fn hosts_are_read_in_their_order() {
        for (url, server, listen) in [
            ("postgres://u@h/d", "h:5432", "h:5432"),
            (
                "postgres://u@a:1,b:2/d?listen=c:3,d:4",
                "a:1,b:2",
                "c:3,d:4",
            ),
            (
                "postgres://u@a,b:2/d?listen=[::1]:5",
                "a:5432,b:2",
                "[::1]:5",
            ),
            ("postgres://u@[::1]:7/d", "[::1]:7", "[::1]:7"),
            // As a library writes it that makes URLs.
            (
                "postgres://u@a/d?listen=c%3A3%2C%5B%3A%3A1%5D%3A5",
                "a:5432",
                "c:3,[::1]:5",
            ),
            (
                "postgres://u@/d?host=a,::1&port=1,2",
                "a:1,[::1]:2",
                "a:1,[::1]:2",
            ),
            (
                "postgres://u@/d?hostaddr=127.0.0.1",
                "127.0.0.1:5432",
                "127.0.0.1:5432",
            ),
        ] {
            let settings = settings(url);
            let hosts = settings.listen.unwrap().hosts;
            let hosts: Vec<_> = hosts.iter().map(ToString::to_string).collect();
            assert_eq!(
                (&*settings.server, &*hosts.join(",")),
                (server, listen),
                "{url}"
            );
        }
    }
}
