//! [`Owner`]: the identity of a holder, unique for each request.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::mutex::Mutex;
use crate::sweeping_map::SweepingMap;

/// An owner token: 128 random bits for the client, and a number for each of its requests.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    /// The client.
    pub client: ClientId,
    /// The request.
    pub request: u64,
}

/// 128 random bits from the operating system.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u128);

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}-{:x}", self.client.0, self.request)
    }
}

/// Owner tokens are secret: a client that knows one can release the lock. Logs show only the
/// beginning.
impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}-{:x}", self.client, self.request)
    }
}

impl fmt::Debug for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}…", self.0 >> 96)
    }
}

impl Owner {
    /// This request of the client.
    #[must_use]
    pub const fn new(client: ClientId, request: u64) -> Self {
        Self { client, request }
    }

    /// Parses what [`Display`](fmt::Display) writes.
    pub fn parse(text: &str) -> Option<Self> {
        let (client, request) = text.split_once('-')?;
        if client.len() != 32 {
            return None;
        }
        let client = ClientId(u128::from_str_radix(client, 16).ok()?);
        Some(Self {
            client,
            request: u64::from_str_radix(request, 16).ok()?,
        })
    }
}

/// The holder of a key, as far as the key's value tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// A request of this library.
    Owner(Owner),
    /// No owner: the key stays taken for a while after a release.
    Kept,
    /// A client of another library, identified by a hash of its value.
    Foreign(u64),
}

impl Holder {
    /// Parses the value of a key, or of one of several holders.
    pub fn parse(value: &[u8]) -> Self {
        FoundHolder::parse(value).who()
    }
}

/// A holder with all that the store knows of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FoundHolder {
    /// A request of this library.
    Owner {
        /// The request.
        owner: Owner,
        /// True if it was released, and the key stays taken for a while.
        kept: bool,
        /// The permits that it takes, if the key is held in shares.
        permits: Option<u32>,
    },
    /// A client of another library, by what it wrote.
    Foreign(String),
}

impl FoundHolder {
    /// Parses the value of a key, or of one of several holders: an owner token, then perhaps a
    /// colon and `kept`, then perhaps a colon and the permits.
    pub fn parse(value: &[u8]) -> Self {
        let text = String::from_utf8_lossy(value);
        let (owner, more) = text.split_once(':').unwrap_or((&text, ""));
        let Some(owner) = Owner::parse(owner) else {
            return Self::Foreign(text.into_owned());
        };
        let kept = more.starts_with("kept");
        let permits = more.strip_prefix("kept:").unwrap_or(more).parse().ok();
        Self::Owner {
            owner,
            kept,
            permits,
        }
    }

    /// Who of this library wrote this text for ShedLock: it ends with a colon and an owner token,
    /// then perhaps a colon and `kept`.
    #[doc(hidden)]
    #[must_use]
    pub fn of_shedlock(text: &str) -> Option<Self> {
        let (rest, kept) = match text.strip_suffix(":kept") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        Some(Self::Owner {
            owner: Owner::parse(rest.rsplit_once(':')?.1)?,
            kept,
            permits: None,
        })
    }

    /// The same, as a busy reply tells it.
    #[must_use]
    pub fn who(&self) -> Holder {
        match self {
            Self::Owner { kept: true, .. } => Holder::Kept,
            Self::Owner { owner, .. } => Holder::Owner(*owner),
            Self::Foreign(text) => {
                let mut hasher = DefaultHasher::new();
                text.as_bytes().hash(&mut hasher);
                Holder::Foreign(hasher.finish())
            }
        }
    }
}

/// The names of holders that a store has told of lately, for
/// [`Store::foreign_name`](crate::Store::foreign_name).
#[derive(Debug, Default)]
pub struct ForeignNames(Mutex<SweepingMap<Holder, String>>);

impl ForeignNames {
    /// Remembers the name of a holder that is not of this library: the text that was found.
    pub fn note(&self, found: &FoundHolder) {
        if let FoundHolder::Foreign(name) = found {
            let mut names = self.0.lock();
            // They are idle at once: the last few hundred stay.
            names.sweep(|_| false);
            names.insert(found.who(), name.clone());
        }
    }

    /// The name of a holder, if it was told of lately.
    #[must_use]
    pub fn of(&self, holder: Holder) -> Option<String> {
        self.0.lock().get(&holder).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_tells_the_owner_and_its_permits() {
        let owner = Owner::new(ClientId(7), 42);
        let found = |kept, permits| FoundHolder::Owner {
            owner,
            kept,
            permits,
        };
        for (more, holder) in [
            ("", found(false, None)),
            (":5", found(false, Some(5))),
            (":kept", found(true, None)),
            (":kept:2", found(true, Some(2))),
            // Of a later version.
            (":v2", found(false, None)),
        ] {
            let value = format!("{owner}{more}");
            assert_eq!(FoundHolder::parse(value.as_bytes()), holder);
        }
        for foreign in [
            "theirs:5".to_owned(),
            "theirs:kept:2".to_owned(),
            "x-y:1".to_owned(),
            format!("{:032x}-2x:1", 7),
            format!("{:031x}z-2a:1", 7),
            format!("{:031x}-2a:1", 7),
        ] {
            let found = FoundHolder::parse(foreign.as_bytes());
            assert!(matches!(found.who(), Holder::Foreign(_)), "{foreign}");
            assert_eq!(found, FoundHolder::Foreign(foreign));
        }
    }
}
