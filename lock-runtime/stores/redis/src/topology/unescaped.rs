//! [`check`]: finds unescaped characters that cut a user or password short.
//!
//! In `redis://app:12#x@host`, every URL parser finds the host `app` with port 12, and looks it up.
//! So a URL is refused if such a character can only belong to a password, and the error says what
//! to write.

use lock_store::{ConfigError, percent_decoded};

/// The only fragment that the redis crate's URLs know.
const FRAGMENT: &str = "insecure";
/// Options whose values may contain `@`.
const CREDENTIALS: [&str; 2] = ["sentinel_user=", "sentinel_password="];

/// `rest` is what follows `scheme` and `://`.
pub(super) fn check(scheme: &str, rest: &str) -> Result<(), ConfigError> {
    match misplaced(scheme, rest) {
        None if has_bad_escape(rest) => Err(ConfigError::new(
            "the store's URL has a `%` without two hexadecimal digits in its user or password; \
             write `%25` for a `%`",
        )),
        None => Ok(()),
        Some(mark) => Err(ConfigError::new(format!(
            "the store's URL has a `{mark}` where none can be: in a user or password, write \
             `%{:X}` for it",
            u32::from(mark)
        ))),
    }
}

/// The redis crate would take such a `%` as it stands, and others refuse it, or read it as
/// something else.
fn has_bad_escape(rest: &str) -> bool {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let credentials = authority.rsplit_once('@').map_or("", |(before, _)| before);
    percent_decoded(credentials).is_none()
}

fn misplaced(scheme: &str, rest: &str) -> Option<char> {
    let (before, fragment) = rest.split_once('#').unwrap_or((rest, FRAGMENT));
    if fragment != FRAGMENT {
        return Some('#');
    }
    let (before, query) = before.split_once('?').unwrap_or((before, ""));
    let (credentials, options): (Vec<&str>, Vec<&str>) = query
        .split('&')
        .partition(|option| CREDENTIALS.iter().any(|name| option.starts_with(name)));
    // Their values become user and password of another URL.
    let value = |option: &&str| {
        option
            .split_once('=')
            .map_or("", |(_, value)| value)
            .contains(['/', '?'])
    };
    if let Some(value) = credentials.iter().find(|option| value(option)) {
        return value
            .find(['/', '?'])
            .and_then(|at| value[at..].chars().next());
    }
    // A socket's URL has a path there, then user and password.
    if scheme == "redis+unix" {
        return None;
    }
    if options.iter().any(|option| option.contains('@')) {
        return Some(if before.contains('/') && !before.contains('@') {
            '/'
        } else {
            '?'
        });
    }
    let behind_host = before.split_once('/').map_or("", |(_, path)| path);
    behind_host.contains('@').then_some('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percent_sign_that_is_no_escape_is_refused_in_user_and_password() {
        for rest in [
            "app:100%@host",
            "a%pp:x@host/1",
            "app:canary%4@host",
            "app:%zz@h1,h2/m",
        ] {
            let error = check("redis", rest).unwrap_err().to_string();
            assert!(
                error.contains("write `%25`") && !error.contains("canary"),
                "{error}"
            );
        }
        for rest in [
            "app:100%25@host",
            "host",
            "app:%C3%A4%40@host",
            "host/?namespace=%",
        ] {
            check("redis", rest).unwrap();
        }
    }

    #[test]
    fn what_ends_a_password_is_named_and_nothing_of_it_is_repeated() {
        for (scheme, rest, write) in [
            ("redis", "app:12#canary@host/", "%23"),
            ("redis", "app:12?canary@host/", "%3F"),
            ("redis", "app:12/canary@host/", "%2F"),
            ("redis", ":can#ary@host:7/3?replicas=1", "%23"),
            ("redis", "app:a@b#canary@host", "%23"),
            ("redis", "app:a@b?canary@host", "%3F"),
            ("redis", "app:a@b/canary@host", "%2F"),
            ("redis", "app:1?replicas=2canary@host", "%3F"),
            ("redis", "app:1/2?canary@host", "%2F"),
            ("rediss", "app:12#canary@host/#insecure", "%23"),
            ("redis-sentinel", "app:12#canary@h1,h2/master", "%23"),
            ("redis-sentinel", "app:12?canary@h1,h2/master", "%3F"),
            (
                "redis-sentinel",
                "h1/master?sentinel_password=a#canary",
                "%23",
            ),
            (
                "redis-sentinel",
                "h1/master?sentinel_password=a/canary",
                "%2F",
            ),
            (
                "redis-sentinel",
                "h1/master?sentinel_password=a?canary",
                "%3F",
            ),
            ("redis-cluster", "app:12#canary@h1,h2", "%23"),
            ("redis-quorum", "app:12#canary@h1,h2,h3", "%23"),
            ("redis-quorum", "app:12?canary@h1,h2,h3", "%3F"),
            ("redis+unix", "/tmp/a#canary.sock?pass=b", "%23"),
        ] {
            let error = check(scheme, rest).unwrap_err().to_string();
            assert!(error.contains(write), "{rest}: {error}");
            assert!(!error.contains("canary"), "{error}");
        }
    }

    #[test]
    fn what_may_stand_there_does() {
        for (scheme, rest) in [
            ("redis", "host"),
            (
                "redis",
                "app:pass%23word@host:7/3?replicas=1&replicas_timeout=1s",
            ),
            ("redis", "app:p@ss@host/3"),
            ("rediss", "app:word@host/#insecure"),
            ("rediss", "host/?protocol=3#insecure"),
            (
                "redis-sentinel",
                "h1,h2/m-1/3?sentinel_user=a@b&sentinel_password=p@ss",
            ),
            ("redis-cluster", "u:p%40ss@h1:7001,h2,[::1]:7003/"),
            ("redis-quorum", "u:p@h1,h2,h3/2?rejoin_after=90s"),
            ("redis+unix", "/tmp/a@b/redis.sock?db=2&user=a@b&pass=c@d/e"),
        ] {
            check(scheme, rest).unwrap();
        }
    }
}
