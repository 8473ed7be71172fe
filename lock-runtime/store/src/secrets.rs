//! The users and passwords of this process, which no server text may repeat.
//!
//! They are kept for the whole process, not for each connection. So no path from a server's words
//! to an error can miss them, and no server can tell one client what another has sent.

use std::collections::BTreeMap;

use crate::mutex::Mutex;

static PASSWORDS: KnownSecrets = KnownSecrets::new("<password>");
static USERS: KnownSecrets = KnownSecrets::new("<user>");

/// The user name that is no secret.
const DEFAULT_USER: &str = "default";
/// A shorter password is replaced only as a whole word. Replacing it inside other words would
/// reveal more about it than it hides.
const LONG: usize = 8;

struct KnownSecrets {
    /// How often each was remembered.
    names: Mutex<BTreeMap<Box<str>, usize>>,
    instead: &'static str,
}

/// Hides this user and password from now on. An empty one is none.
pub fn remember(user: &str, password: &str) {
    PASSWORDS.remember(password);
    if user != DEFAULT_USER {
        USERS.remember(user);
    }
}

/// A user and a password from a provider, which expire. They are hidden as long as this exists.
pub(crate) struct Secret {
    user: Box<str>,
    password: Box<str>,
}

impl Secret {
    pub(crate) fn of(user: &str, password: &str) -> Self {
        remember(user, password);
        Self {
            user: user.into(),
            password: password.into(),
        }
    }

    pub(crate) fn is(&self, user: &str, password: &str) -> bool {
        *self.user == *user && *self.password == *password
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        PASSWORDS.forget(&self.password);
        if *self.user != *DEFAULT_USER {
            USERS.forget(&self.user);
        }
    }
}

/// The text without any known user or password.
pub fn strip(text: &str) -> String {
    let text = PASSWORDS.strip(text.to_owned(), |password| password.len() < LONG);
    USERS.strip(text, |_| true)
}

impl KnownSecrets {
    const fn new(instead: &'static str) -> Self {
        Self {
            names: Mutex::new(BTreeMap::new()),
            instead,
        }
    }

    fn remember(&self, name: &str) {
        if !name.is_empty() {
            *self.names.lock().entry(name.into()).or_default() += 1;
        }
    }

    fn forget(&self, name: &str) {
        let mut names = self.names.lock();
        if let Some(times) = names.get_mut(name) {
            *times -= 1;
            if *times == 0 {
                names.remove(name);
            }
        }
    }

    fn strip(&self, mut text: String, only_words: impl Fn(&str) -> bool) -> String {
        let names = self.names.lock();
        let mut found: Vec<&str> = names.keys().map(AsRef::as_ref).collect();
        found.retain(|name| text.contains(name));
        // The longest first: one may be a part of another.
        found.sort_by_key(|name| std::cmp::Reverse(name.len()));
        for name in found {
            text = match only_words(name) {
                true => replace_words(&text, name, self.instead),
                false => text.replace(name, self.instead),
            };
        }
        text
    }
}

fn replace_words(text: &str, word: &str, instead: &str) -> String {
    let is_part = |char: Option<char>| char.is_some_and(|char| char.is_alphanumeric());
    let mut replaced = String::with_capacity(text.len());
    let mut rest = 0;
    for (at, _) in text.match_indices(word) {
        let end = at + word.len();
        let (before, behind) = (text[..at].chars().next_back(), text[end..].chars().next());
        if is_part(before) || is_part(behind) {
            continue;
        }
        replaced.push_str(&text[rest..at]);
        replaced.push_str(instead);
        rest = end;
    }
    replaced.push_str(&text[rest..]);
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown_as_long_as_it_is_there() {
        remember("digger", "");
        let first = Secret::of("digger", "token-of-the-day");
        let second = Secret::of("digger", "token-of-the-day");
        assert!(first.is("digger", "token-of-the-day") && !first.is("digger", ""));
        drop(first);
        let said = "digger: token-of-the-day";
        assert_eq!(strip(said), "<user>: <password>");
        drop(second);
        assert_eq!(strip(said), "<user>: token-of-the-day");
    }

    #[test]
    fn known_users_and_passwords_are_not_shown() {
        remember("miner-7", "canary-in-the-mine");
        remember("miner-7", "canary-in-the-mine-2");
        remember("default", "w7d");
        for (said, shown) in [
            (
                "HELLO 3 AUTH miner-7 canary-in-the-mine",
                "HELLO 3 AUTH <user> <password>",
            ),
            (
                "miner-7:canary-in-the-mine-2@host xcanary-in-the-minex",
                "<user>:<password>@host x<password>x",
            ),
            ("'w7d' w7d: aw7d w7d1", "'<password>' <password>: aw7d w7d1"),
            ("default, miner-77", "default, miner-77"),
        ] {
            assert_eq!(strip(said), shown);
        }
    }
}
