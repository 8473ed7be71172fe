//! Over which connection an answer came, and why there is none.

use crate::error::StoreError;

/// Which connection an answer came over. Commands over one link are carried out in the order in
/// which they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link(pub u64);

impl Link {
    /// The answers of one batch came over several links. None stands for all.
    pub const SEVERAL: Self = Self(u64::MAX);
}

/// A reply, and the link it came over.
#[derive(Clone, Copy, Debug)]
pub struct Answer<T> {
    /// What the store said.
    pub value: T,
    /// The link the command went over.
    pub link: Link,
}

impl<T> Answer<T> {
    /// Another value that came over the same link.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Answer<U> {
        Answer {
            value: change(self.value),
            link: self.link,
        }
    }
}

/// Why there is no reply, and whether the command may have taken effect, or may do so later.
#[derive(Clone, Debug)]
pub struct Failure {
    /// For the user.
    pub error: StoreError,
    /// The link over which the command went, if it may take effect. `None` if it did not and will
    /// not.
    pub unknown: Option<Link>,
}
