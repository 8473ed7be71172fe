//! Options of the URL that are read here: used, or refused with the way here.

use std::time::Duration;

use lock_store::ConfigError;
use tokio_postgres::Config;

const MOST_CONNECTIONS: usize = 64;
/// What tokio-postgres reads itself.
pub(crate) const OPTIONS: [&str; 14] = [
    "application_name",
    "channel_binding",
    "dbname",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "options",
    "password",
    "port",
    "tcp_user_timeout",
    "user",
];

/// How long connecting may take, if the URL says that.
///
/// # Errors
/// If it is no number of seconds.
pub fn connect_timeout(url: &str) -> Result<Option<Duration>, ConfigError> {
    let (_, query) = url.split_once('?').unwrap_or((url, ""));
    let mut options = query.split('&');
    let value = options.find_map(|option| option.strip_prefix("connect_timeout="));
    value.map(seconds).transpose()
}

pub(crate) fn seconds(value: &str) -> Result<Duration, ConfigError> {
    let seconds = value.parse().ok().filter(|seconds| *seconds > 0);
    let seconds = seconds.map(|seconds: u32| Duration::from_secs(seconds.into()));
    seconds.ok_or_else(|| {
        ConfigError::new("`connect_timeout` in the store's URL is no number of seconds from 1")
    })
}

/// Only such a server has locks, whatever the URL says.
pub(crate) fn expect_writing(value: &str) -> Result<(), ConfigError> {
    match value {
        "any" | "read-write" => Ok(()),
        "primary" => Err(ConfigError::new(
            "`target_session_attrs=primary` in the store's URL is written `read-write` here",
        )),
        _ => Err(ConfigError::new(
            "locks need a server that takes writes: write `target_session_attrs=read-write` in \
             the store's URL, or leave it out",
        )),
    }
}

/// Clients must agree.
pub(crate) fn expect_no_lot(value: &str) -> Result<(), ConfigError> {
    match value {
        "disable" => Ok(()),
        _ => Err(ConfigError::new(
            "the first host in the store's URL that takes writes has the locks; leave \
             `load_balance_hosts` out",
        )),
    }
}

/// Refuses what is given twice: neither would win. `before` is what stands before the options.
pub(crate) fn expect_once(before: &Config, names: &[&str]) -> Result<(), ConfigError> {
    let is_before = |name: &str| match name {
        "user" => before.get_user().is_some(),
        "password" => before.get_password().is_some(),
        "dbname" => before.get_dbname().is_some(),
        "host" => !before.get_hosts().is_empty(),
        "port" => !before.get_ports().is_empty(),
        _ => false,
    };
    let mut all = names.iter().enumerate();
    match all.find(|(at, name)| names[..*at].contains(name) || is_before(name)) {
        None => Ok(()),
        Some((_, name)) => Err(ConfigError::new(format!(
            "the store's URL gives `{name}` twice; leave one out"
        ))),
    }
}

pub(crate) fn number(value: &str) -> Result<usize, ConfigError> {
    let number = value.parse().ok();
    let number = number.filter(|number| (1..=MOST_CONNECTIONS).contains(number));
    number.ok_or_else(|| {
        ConfigError::new(format!(
            "`connections` in the store's URL is no number from 1 to {MOST_CONNECTIONS}"
        ))
    })
}

pub(crate) fn unknown(name: &str) -> ConfigError {
    let instead = match name {
        "sslrootcert" => "`Tls::ca_file` of the builder's `tls`",
        "sslcert" | "sslkey" => "`Tls::identity_files` of the builder's `tls`",
        _ => "",
    };
    if !instead.is_empty() {
        return ConfigError::new(format!(
            "`{name}` is no option of the store's URL; give it as {instead}"
        ));
    }
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
