//! The URL: `postgres://user:password@host:port/database?…`, and its options.

use lock_store::ConfigError;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// What a URL says.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Where commands go.
    pub(crate) commands: Config,
    /// Where the client listens. `None`: it does not, and asks again and again.
    pub(crate) listens: Option<Config>,
    /// How many connections for commands.
    pub(crate) connections: usize,
    /// The servers, without anything secret.
    pub(crate) address: String,
}

const DEFAULT_CONNECTIONS: usize = 8;
const MOST_CONNECTIONS: usize = 100;

impl Settings {
    pub(crate) fn of(url: &str) -> Result<Self, ConfigError> {
        let (base, options) = url.split_once('?').unwrap_or((url, ""));
        let mut connections = DEFAULT_CONNECTIONS;
        let mut listen = None;
        let mut rest = Vec::new();
        for option in options.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("connections", number)) => connections = number_of(number)?,
                Some(("listen", address)) => listen = Some(address),
                _ => rest.push(option),
            }
        }
        let url = match rest.is_empty() {
            true => base.to_owned(),
            false => format!("{base}?{}", rest.join("&")),
        };
        let commands = config(&url)?;
        let listens = match listen {
            Some("off") => None,
            Some(address) => Some(elsewhere(&commands, address)?),
            None => Some(commands.clone()),
        };
        Ok(Self {
            address: address(&commands),
            commands,
            listens,
            connections,
        })
    }
}

fn number_of(text: &str) -> Result<usize, ConfigError> {
    let number = text.parse().ok();
    let fits = number.filter(|number| (1..=MOST_CONNECTIONS).contains(number));
    fits.ok_or_else(|| {
        ConfigError::new(format!(
            "`connections={text}` in the store's URL is not a number from 1 to {MOST_CONNECTIONS}"
        ))
    })
}

fn config(url: &str) -> Result<Config, ConfigError> {
    // The parser's own words may repeat a part of the URL, which has a password.
    let config: Config = url.parse().map_err(|_| {
        ConfigError::new(
            "the store's URL can't be read; write `postgres://user:password@host:5432/database`, \
             with `%40` for an `@` in the password, and as options only those of libpq that \
             tokio-postgres knows, `connections`, `listen`, `namespace` and `name`",
        )
    })?;
    if config.get_hosts().is_empty() {
        return Err(ConfigError::new(
            "the store's URL names no host; write `postgres://user:password@host:5432/database`",
        ));
    }
    if config.get_user().is_none() {
        return Err(ConfigError::new(
            "the store's URL names no user; write `postgres://user:password@host:5432/database`",
        ));
    }
    if config.get_ssl_mode() == SslMode::Require {
        return Err(ConfigError::new(
            "`sslmode=require` in the store's URL asks for TLS, which this version does not have \
             for PostgreSQL; leave it out, and put a TLS tunnel between if the network is not \
             your own",
        ));
    }
    Ok(config)
}

/// The same database and user at another address.
fn elsewhere(config: &Config, address: &str) -> Result<Config, ConfigError> {
    let bad = || {
        ConfigError::new(format!(
            "`listen={address}` in the store's URL is neither `off` nor `host:port` of the server \
             itself, past a pooler"
        ))
    };
    let (host, port) = address.rsplit_once(':').ok_or_else(bad)?;
    let port: u16 = port.parse().map_err(|_| bad())?;
    if host.is_empty() {
        return Err(bad());
    }
    let mut there = Config::new();
    there.host(host).port(port);
    if let Some(user) = config.get_user() {
        there.user(user);
    }
    if let Some(password) = config.get_password() {
        there.password(password);
    }
    if let Some(database) = config.get_dbname() {
        there.dbname(database);
    }
    there.ssl_mode(config.get_ssl_mode());
    Ok(there)
}

fn address(config: &Config) -> String {
    let ports = config.get_ports();
    let hosts = config.get_hosts().iter().enumerate();
    let each = hosts.map(|(at, host)| {
        let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        match host {
            Host::Tcp(host) => format!("{host}:{port}"),
            #[cfg(unix)]
            Host::Unix(path) => format!("{}:{port}", path.display()),
        }
    });
    each.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

    use super::*;

    #[test]
    fn the_own_options_are_taken_out() {
        let settings =
            Settings::of("postgres://a:b@h:1,i:2/db?connections=3&listen=j:5&connect_timeout=7");
        let settings = settings.unwrap();
        assert_eq!(settings.address, "h:1,i:2");
        assert_eq!(settings.connections, 3);
        let listens = settings.listens.unwrap();
        assert_eq!(address(&listens), "j:5");
        assert_eq!(listens.get_dbname(), Some("db"));
        let polls = Settings::of("postgresql://a@h/db?listen=off").unwrap();
        assert!(polls.listens.is_none());
        assert_eq!(polls.connections, DEFAULT_CONNECTIONS);
    }

    #[test]
    fn what_is_wrong_is_named_and_no_password_is_shown() {
        for (url, says) in [
            ("postgres://u:secret@h/db?connections=0", "`connections=0`"),
            ("postgres://u:secret@h/db?connections=many", "`connections=many`"),
            ("postgres://u:secret@h/db?listen=h", "`listen=h`"),
            ("postgres://u:secret@h/db?listen=:1", "`listen=:1`"),
            ("postgres://u:secret@h/db?sslmode=require", "TLS"),
            ("postgres://u:secret@h:x/db", "can't be read"),
            ("postgres://u:secret@h/db?secret=1", "can't be read"),
            ("postgres:///db", "no host"),
            ("postgres://h/db", "no user"),
        ] {
            let error = Settings::of(url).unwrap_err().to_string();
            assert!(error.contains(says), "{url}: {error}");
            assert!(!error.contains("secret"), "{url}: {error}");
        }
    }
}
