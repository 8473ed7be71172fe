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
        // In a password, they are no options.
        let is_namespace = |name: &String| Namespace::new(name).is_ok();
        expect("namespace", namespace.as_ref().is_none_or(is_namespace))?;
        let is_name = |name: &String| client_name::check(name).is_ok();
        expect("name", name.as_ref().is_none_or(is_name))?;
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

fn expect(option: &str, is_right: bool) -> Result<(), LockError> {
    if is_right {
        return Ok(());
    }
    Err(LockError::config(format!(
        "`{option}` in the store's URL is none: it is too long, or has a character that no \
         {option} has; for a `?` in a password, write `%3F`"
    )))
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
            ("redis://app:12?namespace=can:ary&x@host", "%3F"),
            ("redis://app:12?name=canary%20&x@host", "%3F"),
            ("redis://h\n", "white space"),
            (" sqlite:///tmp/locks", "white space"),
        ] {
            let error = UrlSettings::of(url).unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains("ary"), "{error}");
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
