//! [`Owner`]: who holds, told apart for each request.

use std::fmt;

/// An owner token: 128 random bits for the client, and a counter for each request of it.
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

/// Owner tokens are secrets of a kind (whoever knows one can release): logs show a beginning.
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
    /// Reads what [`Display`](fmt::Display) writes.
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
