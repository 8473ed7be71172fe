//! The connection that an answer came over, and the reason if there is none.

use crate::error::StoreError;

/// The connection that an answer came over. Commands on one link are carried out in the order in
/// which they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link(pub u64);

impl Link {
    /// The answers of one batch came over several links, and no single one stands for all.
    pub const SEVERAL: Self = Self(u64::MAX);
}

/// A reply, and the link that it came over.
#[derive(Clone, Copy, Debug)]
pub struct Answer<T> {
    /// The store's reply.
    pub value: T,
    /// The link that carried the command.
    pub link: Link,
}

impl<T> Answer<T> {
    /// Changes the value and keeps the link.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Answer<U> {
        Answer {
            value: change(self.value),
            link: self.link,
        }
    }
}

/// Why there is no reply, and whether the command may have taken effect or may do so later.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The error for the user.
    pub error: StoreError,
    /// The link that carried the command, if it may take effect. `None` if it did not and will not.
    pub unknown: Option<Link>,
}
