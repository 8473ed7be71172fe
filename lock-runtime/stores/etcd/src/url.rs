//! The URL: `etcd://user:password@h1:2379,h2,h3/prefix?session=5s&tls=on`.

use std::time::Duration;

use lock_store::{
    Access, ConfigError, Host, ServerUrl, UrlForm, User, switch_option, time_option, tls_option,
};

/// What a URL says.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) hosts: Vec<Host>,
    /// What all keys begin with: with a `/` at its end, or empty.
    pub(crate) prefix: String,
    /// How long a session lasts without its client, as asked for.
    pub(crate) session: Duration,
    pub(crate) user: Option<User>,
    pub(crate) wants_tls: bool,
    /// The hosts, for people.
    pub(crate) server: String,
}

/// Unless the URL says it.
const SESSION: Duration = Duration::from_secs(5);
/// Less is a mistake: a server grants two seconds at least.
const SHORTEST: Duration = Duration::from_secs(1);
/// Longer ones are mistakes.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// How a URL looks.
const FORM: UrlForm = UrlForm {
    scheme: "etcd://",
    port: 2379,
    example: "etcd://host1:2379,host2:2379,host3:2379/prefix",
};

/// Reads a URL. No error repeats what stands in it, which may be a password.
pub(crate) fn read(url: &str, access: &Access) -> Result<Settings, ConfigError> {
    let parts = ServerUrl::read(url, &FORM)?;
    let (mut session, mut wants_tls) = (SESSION, None);
    for (name, value) in &parts.options {
        match *name {
            "session" => session = time_option(name, value, SHORTEST..=LONGEST)?,
            "tls" => wants_tls = Some(switch_option(name, value)?),
            _ => {
                return Err(ConfigError::new(format!(
                    "`{}` is no option of a `etcd:` URL; there are `session`, `tls`, `namespace` \
                     and `name`",
                    lock_store::escaped(name)
                )));
            }
        }
    }
    Ok(Settings {
        server: parts.server(),
        // Any text is a name to etcd.
        prefix: match parts.path.trim_end_matches('/') {
            "" => String::new(),
            path => format!("{path}/"),
        },
        session,
        user: user(parts.login, access)?,
        wants_tls: tls_option(wants_tls, access.has_tls())?,
        hosts: parts.hosts,
    })
}

/// The user of the URL, or the one beside it. `None`: nobody.
fn user(
    in_url: (Option<String>, Option<String>),
    access: &Access,
) -> Result<Option<User>, ConfigError> {
    let example = "etcd://user:password@host:2379/prefix";
    let is_in_url = in_url.0.is_some() || in_url.1.is_some();
    if access.provider.is_some() && (is_in_url || access.login.is_given()) {
        return Err(lock_store::given_twice());
    }
    access.login.user(in_url, example)
}

#[cfg(test)]
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
            ("etcd://user:se/cret@h", "hosts"),
            ("etcd://user@h", "both user and password"),
            ("etcd://h/a%zz", "hexadecimal"),
            ("etcd://h?sesion=5s", "`sesion` is no option"),
            ("etcd://h?session=5", "no time"),
            ("etcd://h?session=1ms", "no time"),
            ("etcd://h?tls=yes", "neither"),
        ] {
            let error = read(url, &Access::default()).unwrap_err().to_string();
            assert!(error.contains(says), "{url}: {error}");
            assert!(!error.contains("cret"), "{error}");
        }
    }
}
