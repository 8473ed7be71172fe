//! The URL: `zookeeper://user:password@h1:2181,h2,h3/chroot?session=10s&tick=2s&tls=on`.

use std::time::Duration;

use lock_store::{
    Access, ConfigError, Host, ServerUrl, UrlForm, User, switch_option, time_option, tls_option,
};

use crate::names::NodeLayout;

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
    pub(crate) layout: NodeLayout,
    pub(crate) wants_tls: bool,
    /// The hosts, for people.
    pub(crate) server: String,
}

/// Unless the URL says it.
const SESSION: Duration = Duration::from_secs(10);
/// A session needs a few heartbeats.
const SHORTEST: Duration = Duration::from_millis(200);
/// The same, in ticks.
const TICKS: u32 = 3;
/// Zero is a mistake.
const SHORTEST_TICK: Duration = Duration::from_millis(1);
/// Longer ones are mistakes.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// How a URL looks.
const FORM: UrlForm = UrlForm {
    scheme: "zookeeper://",
    port: 2181,
    example: "zookeeper://host1:2181,host2:2181,host3:2181/chroot",
};

/// Reads a URL. No error repeats what stands in it, which may be a password.
pub(crate) fn read(url: &str, access: &Access) -> Result<Settings, ConfigError> {
    let parts = ServerUrl::read(url, &FORM)?;
    let (mut session, mut tick, mut wants_tls) = (SESSION, None, None);
    for (name, value) in &parts.options {
        match *name {
            "session" => session = time_option(name, value, SHORTEST..=LONGEST)?,
            "tick" => tick = Some(time_option(name, value, SHORTEST_TICK..=LONGEST)?),
            "tls" => wants_tls = Some(switch_option(name, value)?),
            _ => {
                return Err(ConfigError::new(format!(
                    "`{}` is no option of a `zookeeper:` URL; there are `session`, `tick`, `tls`, \
                     `layout`, `namespace` and `name`",
                    lock_store::escaped(name)
                )));
            }
        }
    }
    let settings = Settings {
        server: parts.server(),
        chroot: chroot(&parts.path)?,
        session,
        tick,
        layout: NodeLayout::Native,
        user: user(parts.login, access)?,
        wants_tls: tls_option(wants_tls, access.has_tls())?,
        hosts: parts.hosts,
    };
    if settings.is_too_short(session) {
        return Err(ConfigError::new(
            "`session` in the store's URL is shorter than three ticks (`tick`), and a hold could \
             not be trusted that long; ask for a longer session",
        ));
    }
    Ok(settings)
}

impl Settings {
    /// Whether no hold could go on in such a session: an answer proves something two ticks later,
    /// and then for a session's time since it was asked for.
    pub(crate) fn is_too_short(&self, session: Duration) -> bool {
        self.tick.is_some_and(|tick| tick * TICKS > session)
    }
}

/// The user of the URL, or the one beside it. `None`: nobody.
fn user(
    in_url: (Option<String>, Option<String>),
    access: &Access,
) -> Result<Option<User>, ConfigError> {
    match access.provider {
        Some(_) => Err(ConfigError::new(
            "`credentials` can't be used with ZooKeeper: a session keeps its users for ever; give \
             user and password in the URL or to the builder",
        )),
        None => access
            .login
            .user(in_url, "zookeeper://user:password@host:2181/chroot"),
    }
}

/// ZooKeeper's own rules for paths.
fn chroot(path: &str) -> Result<String, ConfigError> {
    let path = path.strip_suffix('/').unwrap_or(path);
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
            return Err(FORM.bad_path("an empty part, `.` or `..`"));
        }
        if part.contains(is_refused) {
            return Err(FORM.bad_path("a letter that ZooKeeper refuses"));
        }
    }
    Ok(format!("/{path}"))
}

#[cfg(test)]
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
        settings("zookeeper://h?tick=2s&session=6s");
    }

    #[test]
    fn what_can_not_be_meant_is_refused_and_not_repeated() {
        for (url, says) in [
            ("zookeeper://user:se/cret@h", "hosts"),
            ("zookeeper://user@h", "both user and password"),
            ("zookeeper://h/a//b", "empty part"),
            ("zookeeper://h/../b", "`..`"),
            ("zookeeper://h/a%00", "refuses"),
            ("zookeeper://h/a%zz", "hexadecimal"),
            ("zookeeper://h?sesion=5s", "`sesion` is no option"),
            ("zookeeper://h?session=5", "no time"),
            ("zookeeper://h?session=1ms", "no time"),
            ("zookeeper://h?tick=0s", "no time"),
            ("zookeeper://h?tick=2s&session=3s", "three ticks"),
            ("zookeeper://h?tick=2s&session=5999ms", "three ticks"),
            ("zookeeper://h?tls=yes", "neither"),
        ] {
            let error = read(url, &Access::default()).unwrap_err().to_string();
            assert!(error.contains(says), "{url}: {error}");
            assert!(!error.contains("cret"), "{error}");
        }
    }
}
