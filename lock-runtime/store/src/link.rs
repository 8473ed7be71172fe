//! The connection that an answer came over, and the reason if there is none.

use crate::error::StoreError;
use crate::instant::Instant;

/// The connection that an answer came over. Commands of one request on one link are carried out in
/// the order in which they were sent. Acquires and releases of different requests may change places
/// as long as none of them is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link(pub u64);

impl Link {
    /// The answers of one batch came over several links, and no single one stands for all.
    pub const SEVERAL: Self = Self(u64::MAX);

    /// The link of both answers: this one if it is the same, else several.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        match self == other {
            true => self,
            false => Self::SEVERAL,
        }
    }
}

/// A reply, and the link that it came over.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Answer<T> {
    /// The store's reply.
    pub value: T,
    /// The link that carried the command.
    pub link: Link,
}

impl<T> Answer<T> {
    /// A reply that came over this link.
    pub fn new(value: T, link: Link) -> Self {
        Self { value, link }
    }

    /// Changes the value and keeps the link.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Answer<U> {
        Answer {
            value: change(self.value),
            link: self.link,
        }
    }
}

/// What becomes of an operation.
pub type Replied<T> = Result<Answer<T>, Failure>;

/// Why there is no reply, and whether the command may have taken effect or may do so later.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failure {
    /// The error for the user.
    pub error: StoreError,
    /// The link that carried the command, if it may take effect. `None` if it did not and will not.
    pub unknown: Option<Link>,
    /// When it can't take effect any more, if that is known. `None`: as the store's
    /// [capabilities](crate::Capabilities::carried_out_within) say.
    pub until: Option<Instant>,
}

impl Failure {
    /// With the link that may have carried the command, if any.
    #[must_use]
    pub fn new(error: StoreError, unknown: Option<Link>) -> Self {
        Self {
            error,
            unknown,
            until: None,
        }
    }

    /// The command had no effect, and will have none.
    #[must_use]
    pub fn without_effect(error: StoreError) -> Self {
        Self::new(error, None)
    }

    /// The command may have been carried out over this link, or may yet be.
    #[must_use]
    pub fn unknown(error: StoreError, link: Link) -> Self {
        Self::new(error, Some(link))
    }

    /// The command can't take effect after this.
    #[must_use]
    pub fn until(self, until: Instant) -> Self {
        Self {
            until: Some(until),
            ..self
        }
    }
}
