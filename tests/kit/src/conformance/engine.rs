//! [`Engine`]: what the behaviours run on.

use std::fmt;
use std::pin::Pin;

use lock_store::Capabilities;

use crate::Backend;

/// An engine under test.
#[derive(Clone, Copy)]
pub struct Engine {
    /// The first part of its tests' names.
    pub name: &'static str,
    /// How many of its stores are up at once. Behaviours wait most of the time: all 342 on one
    /// Redis take 134 s, and 15 s of a processor.
    pub at_once: usize,
    /// Starts an empty store.
    pub start: fn() -> Pin<Box<dyn Future<Output = Backend>>>,
    /// What its stores can do. They must say the same.
    pub can: fn() -> Capabilities,
    /// Whether its stores can be paused, killed and started again.
    pub fails: bool,
    /// Whether the behaviours run as well that look into one Redis server.
    pub is_one_redis: bool,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Engine {
    /// An engine whose stores can do everything. One is up at a time.
    #[must_use]
    pub const fn new(
        name: &'static str,
        start: fn() -> Pin<Box<dyn Future<Output = Backend>>>,
    ) -> Self {
        Self {
            name,
            at_once: 1,
            start,
            can: Capabilities::all,
            fails: false,
            is_one_redis: false,
        }
    }

    /// With this many stores at once.
    #[must_use]
    pub const fn at_once(self, at_once: usize) -> Self {
        Self { at_once, ..self }
    }

    /// Whose stores can do only this.
    #[must_use]
    pub const fn that_can(self, can: fn() -> Capabilities) -> Self {
        Self { can, ..self }
    }

    /// Whose stores can be [paused](crate::StoreUnderTest::pause),
    /// [killed](crate::StoreUnderTest::kill) and [started again](crate::StoreUnderTest::restart).
    #[must_use]
    pub const fn that_fails(self) -> Self {
        Self {
            fails: true,
            ..self
        }
    }

    /// Of one Redis server each.
    pub(super) const fn on_one_redis(self) -> Self {
        Self {
            is_one_redis: true,
            ..self
        }
    }
}
