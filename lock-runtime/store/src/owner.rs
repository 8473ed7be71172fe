//! [`Owner`]: the identity of a holder, unique for each request.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

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
    /// Parses the value of a key, or of one of several holders: an owner token, then perhaps a
    /// colon and more.
    pub fn parse(value: &[u8]) -> Self {
        let text = std::str::from_utf8(value).unwrap_or_default();
        let (owner, more) = text.split_once(':').unwrap_or((text, ""));
        match Owner::parse(owner) {
            Some(_) if more.starts_with("kept") => Self::Kept,
            Some(owner) => Self::Owner(owner),
            None => {
                let mut hasher = DefaultHasher::new();
                value.hash(&mut hasher);
                Self::Foreign(hasher.finish())
            }
        }
    }
}
