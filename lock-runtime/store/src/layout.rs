//! [`Layout`]: the form in which a client keeps its locks.

use std::fmt;

use crate::error::ConfigError;

crate::named! {
    "Its name in a URL",
    /// The form in which a client keeps its locks: its own, or another library's, so that both
    /// exclude each other.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Layout {
        /// This library's own, in which an exclusive lock on Redis is also that of the recipe
        /// `SET NX PX`.
        #[default]
        Native = "native",
        /// Those of Redisson, a Java client for Redis.
        Redisson = "redisson",
        /// On Redis, the time at which a lock ends as the key's value: the recipe with `SETNX` and
        /// `GETSET`.
        Timestamp = "timestamp",
        /// Those of ShedLock, for jobs in Java.
        ShedLock = "shedlock",
        /// On ZooKeeper, those of Curator's `InterProcessMutex`, for Java.
        Curator = "curator",
    }
}

impl Layout {
    const ALL: [Self; 5] = [
        Self::Native,
        Self::Redisson,
        Self::Timestamp,
        Self::ShedLock,
        Self::Curator,
    ];

    /// The layout of this name in a URL.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|layout| layout.as_str() == name)
    }

    /// The error of an engine that does not have this layout.
    #[must_use]
    pub fn refused_by(self, engine: &str) -> ConfigError {
        ConfigError::new(format!(
            "{engine} has no layout `{self}`; connect to the store in which the other library \
             keeps its locks, and leave `layout` out only if no other library uses these locks"
        ))
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
