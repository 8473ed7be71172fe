//! Which code is broken, and what is to find it.

use super::{stages, survivors};
use crate::mutants::{Known, Stage};

/// A folder of the library, and the tests of what is in it.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub(super) package: &'static str,
    /// Of the package, for which the tests are built.
    pub(super) feature: &'static str,
    /// What is broken.
    pub(super) folder: &'static str,
    /// The crate's root, to which the module that answers is added.
    pub(super) root: &'static str,
    /// That module.
    pub(super) answers: &'static str,
    /// The test programs that are run.
    pub(super) programs: &'static [&'static str],
    pub(super) stages: fn(bool) -> Vec<Stage>,
    pub(super) known: &'static [Known],
}

impl Target {
    /// What happens between a request and a store.
    pub const ENGINE: Self = Self {
        package: "lock-runtime",
        feature: "lock-runtime/__internals",
        folder: "lock-runtime/src/engine",
        root: "lock-runtime/src/lib.rs",
        answers: "lock-runtime/src/mutant.rs",
        programs: stages::OF_ENGINE,
        stages: stages::of_engine,
        known: survivors::OF_ENGINE,
    };

    /// The connection to Redis: its parser, and what is written and awaited over it.
    pub const CONNECTION: Self = Self {
        package: "lock-store-redis",
        feature: "lock-store-redis/tls",
        folder: "lock-runtime/stores/redis/src/resp",
        root: "lock-runtime/stores/redis/src/lib.rs",
        answers: "lock-runtime/stores/redis/src/mutant.rs",
        programs: stages::OF_CONNECTION,
        stages: stages::of_connection,
        known: survivors::OF_CONNECTION,
    };
}
