//! [`ServerUrl`]: the parts of a URL that names several servers.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::error::ConfigError;
use crate::server_text::escaped;

/// How an engine's URLs look.
#[derive(Clone, Copy, Debug)]
pub struct UrlForm {
    /// With its `://`.
    pub scheme: &'static str,
    /// Of a server whose port is not said.
    pub port: u16,
    /// What errors advise to write.
    pub example: &'static str,
}

impl UrlForm {
    /// The error of a path that can't be meant, which says what it `has`.
    #[must_use]
    pub fn bad_path(&self, has: &str) -> ConfigError {
        let example = self.example;
        ConfigError::new(format!(
            "the path at the end of the store's URL has {has}; write `{example}`"
        ))
    }
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// A name or an address, without brackets.
    pub name: String,
    /// Its port.
    pub port: u16,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.contains(':') {
            true => write!(f, "[{}]:{}", self.name, self.port),
            false => write!(f, "{}:{}", self.name, self.port),
        }
    }
}

/// `scheme://user:password@h1:1,h2,[::1]:3/path?name=value&…`, taken apart. No error repeats what
/// stands in it, which may be a password.
#[derive(Debug)]
pub struct ServerUrl<'u> {
    /// At least one.
    pub hosts: Vec<Host>,
    /// User and password.
    pub login: (Option<String>, Option<String>),
    /// What stands behind the `/`, without its escapes.
    pub path: String,
    /// Each name once.
    pub options: Vec<(&'u str, &'u str)>,
}

impl<'u> ServerUrl<'u> {
    /// The parts of this URL.
    ///
    /// # Errors
    /// It has another scheme, no hosts or path that can be read, a letter that has to be escaped,
    /// or an option twice.
    pub fn read(url: &'u str, form: &UrlForm) -> Result<Self, ConfigError> {
        let UrlForm {
            scheme, example, ..
        } = form;
        let rest = url.strip_prefix(scheme).ok_or_else(|| {
            ConfigError::new(format!(
                "the store's URL does not begin with `{scheme}`; write `{example}`"
            ))
        })?;
        if rest.contains('#') {
            return Err(ConfigError::new(
                "the store's URL has a `#`; write `%23` for one in the path or the password",
            ));
        }
        let (base, query) = rest.split_once('?').unwrap_or((rest, ""));
        if query.contains('@') {
            return Err(ConfigError::new(
                "the store's URL has a `@` behind its `?`; write `%3F` for a `?` in the password",
            ));
        }
        let (authority, path) = base.split_once('/').unwrap_or((base, ""));
        // Then what stands before the `/` may be a user and the beginning of a password.
        if path.contains('@') {
            return Err(ConfigError::new(
                "the store's URL has a `@` behind its hosts; write `%2F` for a `/` in the \
                 password, and `%40` for a `@` in it or in the path",
            ));
        }
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        let hosts = hosts.split(',').map(|text| host(text, form.port));
        let hosts: Option<Vec<Host>> = hosts.collect();
        let hosts = hosts.ok_or_else(|| {
            ConfigError::new(format!(
                "the hosts in the store's URL can't be read; write `{example}`, with `%40` for a \
                 `@` and `%2F` for a `/` in a password"
            ))
        })?;
        let path = percent_decoded(path).ok_or_else(|| {
            form.bad_path("a `%` without two hexadecimal digits, or bytes that are no UTF-8")
        })?;
        Ok(Self {
            hosts,
            login: login_of(login)?,
            path,
            // Last: behind a bad host, an option may be the rest of a password.
            options: options(query)?,
        })
    }

    /// The hosts, for people.
    #[must_use]
    pub fn server(&self) -> String {
        let names: Vec<String> = self.hosts.iter().map(ToString::to_string).collect();
        names.join(",")
    }
}

fn options(query: &str) -> Result<Vec<(&str, &str)>, ConfigError> {
    let mut options: Vec<(&str, &str)> = Vec::new();
    for option in query.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        if options.iter().any(|(before, _)| *before == name) {
            return Err(ConfigError::new(format!(
                "`{}` is given twice in the store's URL; leave one of them out",
                escaped(name)
            )));
        }
        options.push((name, value));
    }
    Ok(options)
}

fn host(text: &str, usual: u16) -> Option<Host> {
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (name, port) = rest.split_once(']')?;
            match port.strip_prefix(':') {
                Some(port) => (name, Some(port)),
                None if port.is_empty() => (name, None),
                None => return None,
            }
        }
        None => match text.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        },
    };
    let is_bad = |letter: char| "@/?#%".contains(letter) || letter <= ' ';
    if name.is_empty() || name.contains(is_bad) {
        return None;
    }
    let port = port.map_or(Some(usual), |port| port.parse().ok())?;
    let name = name.to_owned();
    Some(Host { name, port })
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

/// The time that an option asks for: `2s` or `500ms`.
///
/// # Errors
/// It is no such time, or not within these limits.
pub fn time_option(
    name: &str,
    value: &str,
    limits: RangeInclusive<Duration>,
) -> Result<Duration, ConfigError> {
    let parsed = match value.strip_suffix("ms") {
        Some(number) => number.parse().ok().map(Duration::from_millis),
        None => {
            let seconds = value.strip_suffix('s').and_then(|text| text.parse().ok());
            seconds.map(Duration::from_secs)
        }
    };
    parsed.filter(|time| limits.contains(time)).ok_or_else(|| {
        let (shortest, longest) = limits.into_inner();
        ConfigError::new(format!(
            "`{name}` in the store's URL is no time such as `2s` or `500ms`, or not between \
             {shortest:?} and {longest:?}"
        ))
    })
}

/// Whether an option is `on`.
///
/// # Errors
/// It is neither `on` nor `off`.
pub fn switch_option(name: &str, value: &str) -> Result<bool, ConfigError> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(ConfigError::new(format!(
            "`{name}` in the store's URL is neither `on` nor `off`"
        ))),
    }
}

/// The text of a part of a URL, in which `%XX` is a byte. `None` if something else stands behind a
/// `%`, or if the bytes are no text.
#[must_use]
pub fn percent_decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let digits = part
            .get(..2)
            .filter(|two| two.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

/// The error of an engine that is built without TLS.
#[must_use]
pub fn no_tls() -> ConfigError {
    ConfigError::new(
        "the store's URL or the builder's `tls` asks for TLS, which this build of lock-runtime \
         does not speak; switch its feature `tls` on",
    )
}

/// Whether to speak TLS: what the URL's `tls` says, if it does, or whether it `is_given` whom to
/// trust.
///
/// # Errors
/// One says so and the other does not, or this build can't.
pub fn tls_option(in_url: Option<bool>, is_given: bool) -> Result<bool, ConfigError> {
    match (in_url, is_given) {
        (Some(true), _) if !cfg!(feature = "tls") => Err(no_tls()),
        (Some(false), true) => Err(ConfigError::new(
            "`tls` is given, and `tls=off` in the store's URL turns it off; leave one of them out",
        )),
        (in_url, is_given) => Ok(in_url.unwrap_or(is_given)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: UrlForm = UrlForm {
        scheme: "store://",
        port: 7,
        example: "store://host:7/path",
    };

    #[test]
    fn all_parts_are_read() {
        for (url, server, path) in [
            ("store://h", "h:7", ""),
            ("store://a:1,b,[::1]:9/", "a:1,b:7,[::1]:9", ""),
            ("store://a,[::1]/x/y", "a:7,[::1]:7", "x/y"),
        ] {
            let parts = ServerUrl::read(url, &FORM).unwrap();
            assert_eq!((&*parts.server(), &*parts.path), (server, path));
            assert_eq!(parts.login, (None, None));
        }
        let all = ServerUrl::read("store://u:p%40w@h/?a=1&b", &FORM).unwrap();
        assert_eq!(all.login, (Some("u".to_owned()), Some("p@w".to_owned())));
        assert_eq!(all.options, [("a", "1"), ("b", "")]);
    }

    #[test]
    fn what_can_not_be_meant_is_refused_and_not_repeated() {
        for (url, says) in [
            ("redis://h", "store://"),
            ("store:h", "store://"),
            ("store://", "hosts"),
            ("store://a,,b", "hosts"),
            ("store://a:x", "hosts"),
            ("store://[::1", "hosts"),
            ("store://[::1]7", "hosts"),
            ("store://user:se/cret@h", "hosts"),
            ("store://user:pass@cret/word@h", "%2F"),
            ("store://user:12/cret@h", "%2F"),
            ("store://user:se?cret&cret", "hosts"),
            ("store://user:se?cret@h/x", "%3F"),
            ("store://user:se%cret@h", "hexadecimal"),
            ("store://h/a#b", "%23"),
            ("store://h?a=1&a=2", "twice"),
        ] {
            let error = ServerUrl::read(url, &FORM).unwrap_err().to_string();
            assert!(error.contains(says), "{url}: {error}");
            assert!(!error.contains("cret"), "{error}");
        }
    }

    #[test]
    fn options_have_their_limits() {
        let limits = Duration::from_secs(1)..=Duration::from_secs(60);
        let time = |value| time_option("session", value, limits.clone()).ok();
        assert_eq!(time("2s"), Some(Duration::from_secs(2)));
        assert_eq!(time("1500ms"), Some(Duration::from_millis(1500)));
        for refused in ["", "5", "1m", "999ms", "61s", "-1s"] {
            assert_eq!(time(refused), None, "{refused}");
        }
        assert_eq!(switch_option("tls", "on").ok(), Some(true));
        assert!(switch_option("tls", "yes").is_err());
    }
}
