//! The stores under test.

use std::fmt;

use lock_testkit::Backend;

use crate::{Behaviour, EVERY_STORE, ONE_SERVER, QUORUM};

/// A store under test.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Store {
    Memory,
    Redis,
    Quorum,
    Replicated,
    Sentinels,
    Cluster,
}

impl Store {
    pub(crate) const ALL: [Self; 6] = [
        Self::Memory,
        Self::Redis,
        Self::Quorum,
        Self::Replicated,
        Self::Sentinels,
        Self::Cluster,
    ];

    pub(crate) async fn start(self) -> Backend {
        match self {
            Self::Memory => Backend::memory(),
            Self::Redis => Backend::redis().await,
            Self::Quorum => Backend::quorum().await,
            Self::Replicated => Backend::replicated().await,
            Self::Sentinels => Backend::sentinels().await,
            Self::Cluster => Backend::cluster().await,
        }
    }

    /// How many servers of it run at once. Behaviours wait most of the time, so two cores are
    /// enough for ten.
    pub(crate) fn at_once(self) -> usize {
        match self {
            Self::Memory | Self::Quorum => 1,
            Self::Redis | Self::Replicated | Self::Sentinels | Self::Cluster => 2,
        }
    }

    pub(crate) fn behaviours(self) -> impl Iterator<Item = Behaviour> {
        let lists: &[&[&[Behaviour]]] = match self {
            Self::Redis => &[EVERY_STORE, ONE_SERVER],
            Self::Quorum => &[QUORUM],
            Self::Memory | Self::Replicated | Self::Sentinels | Self::Cluster => &[EVERY_STORE],
        };
        lists.iter().copied().flatten().copied().flatten().copied()
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::Redis => "redis",
            Self::Quorum => "quorum",
            Self::Replicated => "replicated",
            Self::Sentinels => "sentinels",
            Self::Cluster => "cluster",
        })
    }
}
