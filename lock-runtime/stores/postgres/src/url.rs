//! The URL: `postgres://user:password@host:5432/database?connections=8&listen=off`.

use std::str::FromStr;
use std::time::Duration;

use lock_store::ConfigError;
use lock_store::timing::Timeouts;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::transport::{Certificates, Route, Transport};

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
}

/// What the builder says about TLS.
pub(crate) type Given<'t> = Option<&'t Certificates>;

/// How long what was sent may stay without the acknowledgement of the other machine, unless the URL
/// says it. Linux knows this.
const UNACKNOWLEDGED: Duration = Duration::from_secs(20);

const DEFAULT_CONNECTIONS: usize = 8;
const MOST_CONNECTIONS: usize = 64;

/// What tokio-postgres reads itself.
const OPTIONS: [&str; 17] = [
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "load_balance_hosts",
    "options",
    "password",
    "port",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
];

/// Reads a URL. No error repeats what stands in it, which may be a password.
pub(crate) fn read(
    url: &str,
    tls: Given<'_>,
    name: &str,
    timeouts: Timeouts,
) -> Result<Settings, ConfigError> {
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let (mut connections, mut listen, mut sslmode) = (None, None, None);
    let mut rest = Vec::new();
    for option in query.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match name {
            "connections" => connections = Some(number(value)?),
            "listen" => listen = Some(value),
            "sslmode" => sslmode = Some(value),
            _ if OPTIONS.contains(&name) => rest.push(option),
            _ => return Err(unknown(name)),
        }
    }
    let mut plain = base.to_owned();
    if !rest.is_empty() {
        plain.push('?');
        plain.push_str(&rest.join("&"));
    }
    let transport = transport(sslmode, tls)?;
    let config = config(&plain, &transport, name, timeouts)?;
    let listen = match listen {
        None => Some(config.clone()),
        Some("off") => None,
        Some(address) => Some(elsewhere(&config, address)?),
    };
    let over = |config| Route {
        config,
        transport: transport.clone(),
    };
    Ok(Settings {
        connections: connections.unwrap_or(DEFAULT_CONNECTIONS),
        listen: listen.map(over),
        server: server(&config),
        route: over(config),
    })
}

fn number(value: &str) -> Result<usize, ConfigError> {
    let number = value.parse().ok();
    let number = number.filter(|number| (1..=MOST_CONNECTIONS).contains(number));
    number.ok_or_else(|| {
        ConfigError::new(format!(
            "`connections` in the store's URL is no number from 1 to {MOST_CONNECTIONS}"
        ))
    })
}

fn unknown(name: &str) -> ConfigError {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    // Anything else may be a part of a password with a `?`.
    let name = match name.len() < 30 && name.bytes().all(is_plain) {
        true => format!("`{name}`"),
        false => "something after the first `?`".to_owned(),
    };
    ConfigError::new(format!(
        "{name} is no option of a `postgres:` URL; there are `connections`, `listen`, `namespace`, \
         `name` and those of PostgreSQL, as `target_session_attrs`; in a password, write `%3F` for \
         a `?`"
    ))
}

/// A server is verified whenever there is TLS. So there is no difference between the modes that
/// ask for it.
fn transport(sslmode: Option<&str>, tls: Given<'_>) -> Result<Transport, ConfigError> {
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
fn over_tls(tls: Given<'_>) -> Result<Transport, ConfigError> {
    let config = match tls {
        Some(tls) => tls.client_config()?,
        None => lock_store::Tls::new().client_config()?,
    };
    let config = std::sync::Arc::unwrap_or_clone(config);
    Ok(Transport::Tls(
        tokio_postgres_rustls::MakeRustlsConnect::new(config),
    ))
}

#[cfg(not(feature = "tls"))]
fn over_tls(_: Given<'_>) -> Result<Transport, ConfigError> {
    Err(ConfigError::new(
        "`sslmode` in the store's URL asks for TLS, which this build of lock-runtime does not \
         speak; switch its feature `tls` on",
    ))
}

fn config(
    url: &str,
    transport: &Transport,
    name: &str,
    timeouts: Timeouts,
) -> Result<Config, ConfigError> {
    let mut config = Config::from_str(url).map_err(|_| {
        ConfigError::new(
            "the store's URL can't be read; write `postgres://user:password@host:5432/database`, \
             with `%40` for a `@` and `%2F` for a `/` in user and password",
        )
    })?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(ConfigError::new(
            "the store's URL has no host; write `postgres://user:password@host:5432/database`",
        ));
    }
    if config.get_user().is_none() {
        return Err(ConfigError::new(
            "the store's URL has no user; write `postgres://user:password@host:5432/database`",
        ));
    }
    config.ssl_mode(match transport {
        Transport::Plain => SslMode::Disable,
        #[cfg(feature = "tls")]
        Transport::Tls(_) => SslMode::Require,
    });
    if config.get_application_name().is_none() && !name.is_empty() {
        config.application_name(name);
    }
    config.connect_timeout(timeouts.connect);
    notice_its_death(&mut config);
    Ok(config)
}

/// A connection to a machine that is gone ends soon, and not after TCP's quarter of an hour: its
/// place is wanted.
fn notice_its_death(config: &mut Config) {
    config.keepalives_idle(Duration::from_secs(10));
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(UNACKNOWLEDGED);
    }
}

/// The same server at another address.
fn elsewhere(config: &Config, address: &str) -> Result<Config, ConfigError> {
    let parts = address.rsplit_once(':');
    let parts = parts.and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    let Some((host, port)) = parts.filter(|(host, _)| !host.is_empty()) else {
        return Err(ConfigError::new(
            "`listen` in the store's URL is neither `off` nor `host:port`",
        ));
    };
    let of_brackets = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let mut other = Config::new();
    other.host(of_brackets.unwrap_or(host)).port(port);
    other.ssl_mode(config.get_ssl_mode());
    notice_its_death(&mut other);
    if let Some(user) = config.get_user() {
        other.user(user);
    }
    if let Some(password) = config.get_password() {
        other.password(password);
    }
    if let Some(database) = config.get_dbname() {
        other.dbname(database);
    }
    if let Some(name) = config.get_application_name() {
        other.application_name(name);
    }
    if let Some(timeout) = config.get_connect_timeout() {
        other.connect_timeout(*timeout);
    }
    Ok(other)
}

fn server(config: &Config) -> String {
    let ports = config.get_ports();
    let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(5432);
    let hosts = config.get_hosts().iter().enumerate();
    let hosts = hosts.map(|(at, host)| match host {
        Host::Tcp(host) => format!("{host}:{}", port(at)),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    });
    let hosts: Vec<String> = hosts.collect();
    match hosts.is_empty() {
        true => config
            .get_hostaddrs()
            .first()
            .map_or_else(String::new, ToString::to_string),
        false => hosts.join(","),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]
mod tests {
    use super::*;

    #[test]
    fn every_connection_notices_the_death_of_the_other_machine() {
        let timeouts = Timeouts {
            connect: Duration::from_secs(1),
            command: Duration::from_secs(1),
        };
        let limits = |url: &str| {
            let settings = read(url, None, "", timeouts).unwrap();
            let of = |route: Route| route.config.get_tcp_user_timeout().copied();
            (of(settings.route), settings.listen.and_then(of))
        };
        let usual = Some(UNACKNOWLEDGED);
        assert_eq!(limits("postgres://u@h/d"), (usual, usual));
        assert_eq!(limits("postgres://u@h/d?listen=g:1"), (usual, usual));
        let own = Some(Duration::from_secs(5));
        assert_eq!(limits("postgres://u@h/d?tcp_user_timeout=5"), (own, own));
    }
}
