//! The URL: `etcd://user:password@h1:2379,h2,h3/prefix?session=5s&tls=on`.

use std::fmt;
use std::time::Duration;

use lock_store::{ConfigError, percent_decoded};

use crate::access::{Access, User};

/// What a URL says.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) hosts: Vec<Host>,
    /// What all keys begin with: with a `/` at its end, or empty.
    pub(crate) prefix: String,
    /// How long a session lasts without its client, as asked for.
    pub(crate) session: Duration,
    pub(crate) user: Option<User>,
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "there is no TLS"))]
    pub(crate) wants_tls: bool,
    /// The hosts, for people.
    pub(crate) server: String,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) port: u16,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.contains(':') {
            true => write!(f, "[{}]:{}", self.name, self.port),
            false => write!(f, "{}:{}", self.name, self.port),
        }
    }
}

const PORT: u16 = 2379;
/// Unless the URL says it.
const SESSION: Duration = Duration::from_secs(5);
/// No server grants less.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60 * 60);

const WRITE: &str = "write `etcd://host1:2379,host2:2379,host3:2379/prefix`";

/// Reads a URL. No error repeats what stands in it, which may be a password.
pub(crate) fn read(url: &str, access: &Access) -> Result<Settings, ConfigError> {
    let Some(rest) = url.strip_prefix("etcd://") else {
        return Err(ConfigError::new(format!(
            "the store's URL does not begin with `etcd://`; {WRITE}"
        )));
    };
    if rest.contains('#') {
        return Err(ConfigError::new(
            "the store's URL has a `#`; write `%23` for one in the path or the password",
        ));
    }
    let (base, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = base.split_once('/').unwrap_or((base, ""));
    let (login, hosts) = match authority.rsplit_once('@') {
        Some((login, hosts)) => (Some(login), hosts),
        None => (None, authority),
    };
    let (mut session, mut wants_tls) = (SESSION, None);
    let mut names: Vec<&str> = Vec::new();
    for option in query.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        if names.contains(&name) {
            return Err(ConfigError::new(format!(
                "`{name}` is given twice in the store's URL; leave one of them out"
            )));
        }
        names.push(name);
        match name {
            "session" => session = duration(name, value)?,
            "tls" => wants_tls = Some(is_on(value)?),
            _ => {
                return Err(ConfigError::new(format!(
                    "`{}` is no option of a `etcd:` URL; there are `session`, `tls`, `namespace` \
                     and `name`",
                    lock_store::escaped(name)
                )));
            }
        }
    }
    let hosts: Vec<Host> = hosts.split(',').map(host).collect::<Result<_, _>>()?;
    let names: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    Ok(Settings {
        prefix: prefix(path)?,
        session,
        user: access.user(login_of(login)?)?,
        wants_tls: transport(wants_tls, access)?,
        server: names.join(","),
        hosts,
    })
}

fn host(text: &str) -> Result<Host, ConfigError> {
    let bad = || {
        ConfigError::new(format!(
            "the hosts in the store's URL can't be read; {WRITE}, with `%40` for a `@` and `%2F` \
             for a `/` in a password"
        ))
    };
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (name, port) = rest.split_once(']').ok_or_else(bad)?;
            match port.strip_prefix(':') {
                Some(port) => (name, Some(port)),
                None if port.is_empty() => (name, None),
                None => return Err(bad()),
            }
        }
        None => match text.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        },
    };
    let is_bad = |letter: char| "@/?#%".contains(letter) || letter <= ' ';
    if name.is_empty() || name.contains(is_bad) {
        return Err(bad());
    }
    let port = match port {
        None => PORT,
        Some(port) => port.parse().map_err(|_| bad())?,
    };
    Ok(Host {
        name: name.to_owned(),
        port,
    })
}

fn login_of(login: Option<&str>) -> Result<(Option<String>, Option<String>), ConfigError> {
    let Some(login) = login else {
        return Ok((None, None));
    };
    let (name, password) = match login.split_once(':') {
        Some((name, password)) => (name, Some(password)),
        None => (login, None),
    };
    let decoded = |text: &str| {
        percent_decoded(text).ok_or_else(|| {
            ConfigError::new(
                "user or password in the store's URL have a `%` without two hexadecimal digits, \
                 or are no UTF-8; write `%25` for a `%`",
            )
        })
    };
    let name = decoded(name)?;
    let password = password.map(decoded).transpose()?;
    Ok((Some(name).filter(|name| !name.is_empty()), password))
}

/// Any text is a name to etcd.
fn prefix(path: &str) -> Result<String, ConfigError> {
    let Some(path) = percent_decoded(path) else {
        return Err(ConfigError::new(format!(
            "the prefix at the end of the store's URL has a `%` without two hexadecimal digits, or \
             is no UTF-8; {WRITE}"
        )));
    };
    Ok(match path.trim_end_matches('/') {
        "" => String::new(),
        path => format!("{path}/"),
    })
}

fn duration(name: &str, value: &str) -> Result<Duration, ConfigError> {
    let parsed = match value.strip_suffix("ms") {
        Some(number) => number.parse().ok().map(Duration::from_millis),
        None => value
            .strip_suffix('s')
            .and_then(|number| number.parse().ok())
            .map(Duration::from_secs),
    };
    match parsed {
        Some(time) if (SHORTEST..=LONGEST).contains(&time) => Ok(time),
        _ => Err(ConfigError::new(format!(
            "`{name}` in the store's URL is no time such as `2s` or `500ms`, or not between \
             {SHORTEST:?} and {LONGEST:?}"
        ))),
    }
}

fn is_on(value: &str) -> Result<bool, ConfigError> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(ConfigError::new(
            "`tls` in the store's URL is neither `on` nor `off`",
        )),
    }
}

#[cfg(feature = "tls")]
fn transport(wants_tls: Option<bool>, access: &Access) -> Result<bool, ConfigError> {
    match (wants_tls, access.tls.is_some()) {
        (Some(false), true) => Err(ConfigError::new(
            "`tls` is given, and `tls=off` in the store's URL turns it off; leave one of them out",
        )),
        (wants, is_given) => Ok(wants.unwrap_or(is_given)),
    }
}

#[cfg(not(feature = "tls"))]
fn transport(wants_tls: Option<bool>, _: &Access) -> Result<bool, ConfigError> {
    match wants_tls {
        Some(true) => Err(ConfigError::new(
            "`tls=on` in the store's URL asks for TLS, which this build of lock-runtime does not \
             speak; switch its feature `tls` on",
        )),
        _ => Ok(false),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]
mod tests {
    use super::*;

    fn settings(url: &str) -> Settings {
        read(url, &Access::default()).unwrap()
    }

    #[test]
    fn hosts_and_the_prefix_are_read() {
        for (url, server, prefix) in [
            ("etcd://h", "h:2379", ""),
            ("etcd://a:1,b,[::1]:7/", "a:1,b:2379,[::1]:7", ""),
            ("etcd://a/locks/shop", "a:2379", "locks/shop/"),
            ("etcd://a/l%C3%A4den/?session=5s", "a:2379", "läden/"),
        ] {
            let settings = settings(url);
            assert_eq!((&*settings.server, &*settings.prefix), (server, prefix));
        }
        let all = settings("etcd://u:p%40w@h/c?session=4s");
        assert_eq!(all.user.map(|user| user.password).as_deref(), Some("p@w"));
        assert_eq!(all.session, Duration::from_secs(4));
    }

    #[test]
    fn what_can_not_be_meant_is_refused_and_not_repeated() {
        for (url, says) in [
            ("redis://h", "etcd://"),
            ("etcd:h", "etcd://"),
            ("etcd://", "hosts"),
            ("etcd://a,,b", "hosts"),
            ("etcd://a:x", "hosts"),
            ("etcd://user:se/cret@h", "hosts"),
            ("etcd://user@h", "both user and password"),
            ("etcd://h/a%zz", "hexadecimal"),
            ("etcd://h/a#b", "%23"),
            ("etcd://h?sesion=5s", "`sesion` is no option"),
            ("etcd://h?session=5", "no time"),
            ("etcd://h?session=1ms", "no time"),
            ("etcd://h?session=2s&session=3s", "twice"),
            ("etcd://h?tls=yes", "neither"),
        ] {
            let error = read(url, &Access::default()).unwrap_err().to_string();
            assert!(error.contains(says), "{url}: {error}");
            assert!(!error.contains("cret"), "{error}");
        }
    }
}
