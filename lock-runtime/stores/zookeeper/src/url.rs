//! The URL: `zookeeper://user:password@h1:2181,h2,h3/chroot?session=10s&tick=2s&tls=on`.

use std::fmt;
use std::time::Duration;

use lock_store::{ConfigError, percent_decoded};

use crate::access::{Access, User};
use crate::names::Layout;

/// What a URL says.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) hosts: Vec<Host>,
    /// Without a `/` at its end; empty for none.
    pub(crate) chroot: String,
    /// How long a session lasts without its client, as asked for.
    pub(crate) session: Duration,
    /// The servers' `tickTime`, if known.
    pub(crate) tick: Option<Duration>,
    pub(crate) user: Option<User>,
    pub(crate) layout: Layout,
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "it is refused"))]
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

const PORT: u16 = 2181;
/// Unless the URL says it.
const SESSION: Duration = Duration::from_secs(10);
const SHORTEST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(60 * 60);

const WRITE: &str = "write `zookeeper://host1:2181,host2:2181,host3:2181/chroot`";

/// Reads a URL. No error repeats what stands in it, which may be a password.
pub(crate) fn read(url: &str, access: &Access) -> Result<Settings, ConfigError> {
    let Some(rest) = url.strip_prefix("zookeeper://") else {
        return Err(ConfigError::new(format!(
            "the store's URL does not begin with `zookeeper://`; {WRITE}"
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
    if query.contains('@') {
        return Err(ConfigError::new(
            "the store's URL has a `@` behind its `?`; write `%3F` for a `?` in the password",
        ));
    }
    let (mut session, mut tick, mut wants_tls) = (SESSION, None, None);
    let mut layout = Layout::Native;
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
            "tick" => tick = Some(duration(name, value)?),
            "layout" => layout = layout_of(value)?,
            "tls" => wants_tls = Some(is_on(value)?),
            _ => {
                return Err(ConfigError::new(format!(
                    "`{}` is no option of a `zookeeper:` URL; there are `session`, `tick`, `tls`, \
                     `layout`, `namespace` and `name`",
                    lock_store::escaped(name)
                )));
            }
        }
    }
    if tick.is_some_and(|tick| tick * 2 > session) {
        return Err(ConfigError::new(
            "`session` in the store's URL is shorter than two ticks (`tick`), and no server \
             allows that; ask for a longer session",
        ));
    }
    let hosts: Vec<Host> = hosts.split(',').map(host).collect::<Result<_, _>>()?;
    let names: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    Ok(Settings {
        chroot: chroot(path)?,
        session,
        tick,
        layout,
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

/// ZooKeeper's own rules for paths.
fn chroot(path: &str) -> Result<String, ConfigError> {
    let bad = |what: &str| {
        ConfigError::new(format!(
            "the path at the end of the store's URL {what}; {WRITE}"
        ))
    };
    let Some(path) = percent_decoded(path) else {
        return Err(bad(
            "has a `%` without two hexadecimal digits, or is no UTF-8",
        ));
    };
    let path = path.strip_suffix('/').unwrap_or(&path);
    if path.is_empty() {
        return Ok(String::new());
    }
    let is_refused = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..='\u{ffff}')
            || letter > '\u{ffff}'
    };
    for part in path.split('/') {
        if part.is_empty() || matches!(part, "." | "..") {
            return Err(bad("has an empty part, `.` or `..`"));
        }
        if part.contains(is_refused) {
            return Err(bad("has a letter that ZooKeeper refuses"));
        }
    }
    Ok(format!("/{path}"))
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
        Some(time) if (SHORTEST..=LONGEST).contains(&time) || name == "tick" && !time.is_zero() => {
            Ok(time)
        }
        _ => Err(ConfigError::new(format!(
            "`{name}` in the store's URL is no time such as `2s` or `500ms`, or not between \
             {SHORTEST:?} and {LONGEST:?}"
        ))),
    }
}

fn layout_of(value: &str) -> Result<Layout, ConfigError> {
    match value {
        "curator" => Ok(Layout::Curator),
        _ => Err(ConfigError::new(
            "`layout` in the store's URL is not `curator`; leave it out for this library's own",
        )),
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
    fn hosts_and_the_chroot_are_read() {
        for (url, server, chroot) in [
            ("zookeeper://h", "h:2181", ""),
            ("zookeeper://a:1,b,[::1]:7/", "a:1,b:2181,[::1]:7", ""),
            ("zookeeper://a/locks/shop", "a:2181", "/locks/shop"),
            ("zookeeper://a/l%C3%A4den/?session=5s", "a:2181", "/läden"),
        ] {
            let settings = settings(url);
            assert_eq!((&*settings.server, &*settings.chroot), (server, chroot));
        }
        let all = settings("zookeeper://u:p%40w@h/c?session=4s&tick=500ms");
        assert_eq!(all.user.map(|user| user.password).as_deref(), Some("p@w"));
        assert_eq!(all.session, Duration::from_secs(4));
        assert_eq!(all.tick, Some(Duration::from_millis(500)));
    }

    #[test]
    fn what_can_not_be_meant_is_refused_and_not_repeated() {
        for (url, says) in [
            ("redis://h", "zookeeper://"),
            ("zookeeper:h", "zookeeper://"),
            ("zookeeper://", "hosts"),
            ("zookeeper://a,,b", "hosts"),
            ("zookeeper://a:x", "hosts"),
            ("zookeeper://user:se/cret@h", "hosts"),
            ("zookeeper://user:pass?secret@h/x", "%3F"),
            ("zookeeper://user@h", "both user and password"),
            ("zookeeper://h/a//b", "empty part"),
            ("zookeeper://h/../b", "`..`"),
            ("zookeeper://h/a%00", "refuses"),
            ("zookeeper://h/a%zz", "hexadecimal"),
            ("zookeeper://h/a#b", "%23"),
            ("zookeeper://h?sesion=5s", "`sesion` is no option"),
            ("zookeeper://h?session=5", "no time"),
            ("zookeeper://h?session=1ms", "no time"),
            ("zookeeper://h?tick=0s", "no time"),
            ("zookeeper://h?tick=2s&session=3s", "two ticks"),
            ("zookeeper://h?tick=2s&tick=3s", "twice"),
            ("zookeeper://h?tls=yes", "neither"),
            ("zookeeper://h?layout=redisson", "is not `curator`"),
        ] {
            let error = read(url, &Access::default()).unwrap_err().to_string();
            assert!(error.contains(says), "{url}: {error}");
            assert!(!error.contains("cret"), "{error}");
        }
    }
}
