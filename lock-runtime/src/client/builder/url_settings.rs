//! What is the same for the URLs of all stores: the form of a scheme, and `?namespace=`,
//! `?name=` and `?layout=`, which are about the client.

use lock_store::{Layout, Namespace, percent_decoded};

use super::client_name;
use crate::error::LockError;

/// A URL without the client's own options, and these.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct UrlSettings {
    pub(super) url: String,
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    pub(super) layout: Option<Layout>,
}

impl UrlSettings {
    /// No message repeats what the URL says, which can be a password.
    pub(super) fn of(url: &str) -> Result<Self, LockError> {
        let url = with_plain_scheme(url)?;
        let url = url.as_str();
        let (before, fragment) = match url.split_once('#') {
            Some((before, fragment)) => (before, Some(fragment)),
            None => (url, None),
        };
        let Some((base, query)) = before.split_once('?') else {
            let url = url.to_owned();
            return Ok(Self {
                url,
                ..Self::default()
            });
        };
        let (mut namespace, mut name, mut others) = (None, None, Vec::new());
        let mut layout = None;
        for option in query.split('&') {
            match option.split_once('=') {
                // A `@` says that all of this is meant to be in a password, which the store tells.
                Some((_, value)) if value.contains('@') => others.push(option),
                Some(("namespace", value)) => set_once(&mut namespace, "namespace", value)?,
                Some(("name", value)) => set_once(&mut name, "name", value)?,
                Some(("layout", value)) => set_once(&mut layout, "layout", value)?,
                _ => others.push(option),
            }
        }
        // It is checked here, where the errors repeat nothing.
        namespace.as_deref().map(Namespace::of_url).transpose()?;
        name.as_deref().map(client_name::check_of_url).transpose()?;
        let mut url = base.to_owned();
        if !others.is_empty() {
            url.push('?');
            url.push_str(&others.join("&"));
        }
        if let Some(fragment) = fragment {
            url.push('#');
            url.push_str(fragment);
        }
        Ok(Self {
            url,
            namespace,
            name,
            layout: layout.map(|name| layout_named(&name)).transpose()?,
        })
    }
}

fn set_once(slot: &mut Option<String>, option: &str, value: &str) -> Result<(), LockError> {
    if value.contains('?') {
        return Err(LockError::config(format!(
            "`{option}` in the store's URL has a `?`; write `&` between options, and `%3F` for a \
             `?`"
        )));
    }
    let value = percent_decoded(value).ok_or_else(|| {
        LockError::config(format!(
            "`{option}` in the store's URL has a `%` without two hexadecimal digits, or is no \
             UTF-8; write `%25` for a `%`"
        ))
    })?;
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(LockError::config(format!(
            "the store's URL gives `{option}` twice; leave one out"
        ))),
    }
}

fn layout_named(name: &str) -> Result<Layout, LockError> {
    Layout::named(name).ok_or_else(|| {
        LockError::config(
            "there is no such `layout` as the store's URL says; write `native`, `redisson`, \
             `timestamp`, `shedlock` or `curator`, or leave it out",
        )
    })
}

/// The URL with its scheme in small letters, as the engines know it.
fn with_plain_scheme(url: &str) -> Result<String, LockError> {
    if url.trim() != url {
        return Err(LockError::config(
            "the store's URL has white space before or behind it, such as the end of a line of the \
             file or variable that it came from; take it away",
        ));
    }
    let scheme = url.find(':').unwrap_or(0);
    let (scheme, rest) = url.split_at(scheme);
    Ok(format!("{}{rest}", scheme.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_own_options_are_taken_out_and_the_rest_stays() {
        for (url, rest, namespace, name) in [
            ("redis://h", "redis://h", None, None),
            ("memory:?namespace=shop", "memory:", Some("shop"), None),
            (
                "redis://u:p@h:7/3?replicas=1&name=a%3A1&namespace=shop&x=y",
                "redis://u:p@h:7/3?replicas=1&x=y",
                Some("shop"),
                Some("a:1"),
            ),
            (
                "rediss://h/?namespace=#insecure",
                "rediss://h/#insecure",
                Some(""),
                None,
            ),
            (
                "Redis-Sentinel://H/Master",
                "redis-sentinel://H/Master",
                None,
                None,
            ),
            ("MEMORY:", "memory:", None, None),
            // An unescaped password: the store says so.
            (
                "redis://app:12?name=x@host",
                "redis://app:12?name=x@host",
                None,
                None,
            ),
        ] {
            let expected = UrlSettings {
                url: rest.to_owned(),
                namespace: namespace.map(str::to_owned),
                name: name.map(str::to_owned),
                layout: None,
            };
            assert_eq!(UrlSettings::of(url).unwrap(), expected, "{url}");
        }
        for (url, says) in [
            ("redis://h?name=a&name=b", "twice"),
            ("redis://h?name=%zz", "%25"),
            ("redis://h?layout=native&layout=native", "twice"),
            ("redis://h?layout=redissson", "`redisson`"),
            ("redis://h?namespace=%ff", "UTF-8"),
            ("redis://h\n", "white space"),
            (" sqlite:///tmp/locks", "white space"),
        ] {
            let error = UrlSettings::of(url).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn no_error_repeats_a_part_of_a_password_that_looks_like_an_option() {
        let long = "canary".repeat(30);
        for url in [
            "redis://app:12?namespace=can:ary&x@host",
            "postgres://app:12?namespace=can%3Aary&user=x@host/db",
            "redis+unix:///tmp/s?pass=1&name=can%20ary&user=x@y",
            "redis-sentinel://app:12?x=1&namespace=can*ary&sentinel_user=x@h1/m",
            "redis-quorum://app:12?layout=canary&x@h1,h2,h3",
            &format!("etcd://app:12?name={long}&x@host"),
            &format!("zookeeper://app:12?namespace={long}&x@host"),
            "redis://app:12?namespace=canary%&x@host",
            "redis://app:12?namespace=canary?&x@host",
            "redis://app:12?namespace=canary&namespace=ary&x@host",
        ] {
            let error = UrlSettings::of(url).unwrap_err();
            let said = format!("{error} {error:?}");
            assert!(!said.contains("can") && !said.contains("ary"), "{said}");
        }
    }

    #[test]
    fn a_layout_is_the_clients_own() {
        let of = |url| UrlSettings::of(url).unwrap();
        let redis = of("redis://h?layout=redisson&replicas=1");
        assert_eq!(
            (redis.layout, &*redis.url),
            (Some(Layout::Redisson), "redis://h?replicas=1")
        );
        let zookeeper = of("zookeeper://h?layout=curator");
        assert_eq!(
            (zookeeper.layout, &*zookeeper.url),
            (Some(Layout::Curator), "zookeeper://h")
        );
    }
}
