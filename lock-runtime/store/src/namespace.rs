//! [`Namespace`]: the prefix of a client's keys and channels.

use std::fmt;
use std::sync::Arc;

use crate::error::ConfigError;

/// A namespace that can't nest in another. It may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Namespace(Arc<str>);

impl Namespace {
    /// The longest name, in bytes of UTF-8.
    pub const LONGEST: usize = 128;

    /// A namespace with this name.
    ///
    /// # Errors
    /// [`ConfigError`] if the name has anything but letters, digits, `-`, `_` and `.`, or more than
    /// [`LONGEST`](Self::LONGEST) bytes.
    pub fn new(name: &str) -> Result<Self, ConfigError> {
        Self::checked(name).map_err(|what| {
            let which = match name.len() > Self::LONGEST {
                true => format!(
                    "that begins with {:?}",
                    name.chars().take(16).collect::<String>()
                ),
                false => format!("{name:?}"),
            };
            ConfigError::new(format!("the namespace {which} {what}"))
        })
    }

    /// The namespace that a URL names. The error does not repeat the name: it may be a part of a
    /// password with a `?`.
    ///
    /// # Errors
    /// The same as of [`new`](Self::new).
    pub fn of_url(name: &str) -> Result<Self, ConfigError> {
        Self::checked(name)
            .map_err(|what| ConfigError::new(format!("`namespace` in the store's URL {what}")))
    }

    fn checked(name: &str) -> Result<Self, String> {
        if name.len() > Self::LONGEST {
            return Err(format!(
                "has {} bytes, and the limit is {}; use a shorter one",
                name.len(),
                Self::LONGEST
            ));
        }
        let bad = |c: &char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
        match name.chars().find(bad) {
            Some(bad) => Err(format!(
                "has a {bad:?}; use letters, digits, `-`, `_` and `.`, so that namespaces never \
                 nest"
            )),
            None => Ok(Self(name.into())),
        }
    }

    /// Its name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_could_nest_is_refused() {
        for bad in ["a:b", "a{", "}", "50%", "a\nb", "a b", "a*", "a/b"] {
            assert!(Namespace::new(bad).is_err(), "{bad}");
        }
        for good in ["shop", "", "shop-2_eu.west", "käse"] {
            assert!(Namespace::new(good).is_ok_and(|it| it.as_str() == good));
        }
    }

    #[test]
    fn an_error_about_a_url_repeats_no_part_of_it() {
        for bad in ["can:ary".to_owned(), "canary".repeat(50)] {
            let said = |result: Result<Namespace, ConfigError>| result.unwrap_err().to_string();
            assert!(said(Namespace::new(&bad)).contains("can"));
            let said = said(Namespace::of_url(&bad));
            assert!(said.contains("the store's URL has "), "{said}");
            assert!(!said.contains("can") && !said.contains("ary"), "{said}");
        }
    }

    #[test]
    fn a_namespace_has_128_bytes_at_most() {
        for (name, fits) in [
            ("n".repeat(128), true),
            ("n".repeat(129), false),
            ("ä".repeat(64), true),
            ("ä".repeat(65), false),
        ] {
            assert_eq!(Namespace::new(&name).is_ok(), fits, "{}", name.len());
        }
    }
}
