//! The engines, as far as this build knows them: which one a URL names, and what of the builder it
//! takes.

use std::sync::Arc;
use std::time::Duration;

use lock_store::memory::MemoryStore;
use lock_store::{Layout, Store, StoreContext};

use super::LockClientBuilder;
use crate::error::LockError;

/// The time limit in a URL, if it is of PostgreSQL.
#[cfg(feature = "postgres")]
pub(super) fn connect_timeout_of(url: &str) -> Result<Option<Duration>, LockError> {
    match url.split_once(':') {
        Some(("postgres" | "postgresql", _)) => Ok(lock_store_postgres::connect_timeout(url)?),
        _ => Ok(None),
    }
}

#[cfg(not(feature = "postgres"))]
pub(super) fn connect_timeout_of(_url: &str) -> Result<Option<Duration>, LockError> {
    Ok(None)
}

/// Defines how an engine is opened whose servers may ask for a user, a password and TLS.
macro_rules! engine_with_access {
    ($open:ident, $feature:literal, $engine:ident) => {
        #[cfg(feature = $feature)]
        fn $open(&self, url: &str, context: StoreContext) -> Result<Arc<dyn Store>, LockError> {
            Ok($engine::open(url, context, &self.access)?)
        }

        #[cfg(not(feature = $feature))]
        fn $open(&self, _: &str, _: StoreContext) -> Result<Arc<dyn Store>, LockError> {
            Err(LockError::config(concat!(
                "the URL begins with `",
                $feature,
                ":`, and this build of lock-runtime does not know that store; switch its feature `",
                $feature,
                "` on"
            )))
        }
    };
}

impl LockClientBuilder {
    pub(super) fn open(&self, context: StoreContext) -> Result<Arc<dyn Store>, LockError> {
        if let Some(open) = &self.store {
            self.expect_nothing_of_redis("`replicas` is for Redis, and the store is your own")?;
            self.expect_no_access("the store is the caller's own")?;
            self.expect_native("a store of your own")?;
            return Ok(open(context)?);
        }
        let Some(url) = &self.url else {
            return Err(LockError::config(
                "the client has no URL; add `.url(\"redis://…\")`, or use \
                 `LockClient::in_memory()`",
            ));
        };
        match url.split_once(':') {
            Some(("memory", rest)) => self.open_memory(rest, context),
            Some(("sqlite", _)) => {
                self.expect_native("SQLite")?;
                self.expect_nothing_of_redis(
                    "`replicas` asks for replicas, and `sqlite:` is a file of this machine, which \
                     has none",
                )?;
                self.expect_no_access("`sqlite:` is a file of this machine")?;
                open_sqlite(url, context)
            }
            Some(("postgres" | "postgresql", _)) => {
                self.expect_nothing_of_redis(
                    "`replicas` is for Redis; PostgreSQL waits for its standbys as its \
                     `synchronous_standby_names` says",
                )?;
                self.open_postgres(url, context)
            }
            Some(("zookeeper", _)) => {
                self.expect_nothing_of_redis(
                    "`replicas` is for Redis; on ZooKeeper, a majority of the servers has each \
                     lock",
                )?;
                self.open_zookeeper(url, context)
            }
            Some(("etcd", _)) => {
                self.expect_native("etcd")?;
                self.expect_nothing_of_redis(
                    "`replicas` is for Redis; on etcd, a majority of the servers has each lock",
                )?;
                self.open_etcd(url, context)
            }
            _ => self.open_redis(url, context),
        }
    }

    fn open_memory(&self, rest: &str, context: StoreContext) -> Result<Arc<dyn Store>, LockError> {
        self.expect_native("`memory:`")?;
        let none = "`replicas` asks for replicas, and `memory:` is a store of its own in this \
                    process, which has none";
        self.expect_nothing_of_redis(none)?;
        if rest.contains("replicas=") {
            return Err(LockError::config(none));
        }
        self.expect_no_access("`memory:` is a store of its own in this process")?;
        if !rest.trim_start_matches('/').is_empty() {
            return Err(LockError::config(
                "the URL `memory:` has a host, a path or an unknown option; only \
                 `?namespace=…` and `?name=…` may follow it",
            ));
        }
        Ok(MemoryStore::new().connect(context))
    }

    engine_with_access!(open_postgres, "postgres", lock_store_postgres);
    engine_with_access!(open_zookeeper, "zookeeper", lock_store_zookeeper);
    engine_with_access!(open_etcd, "etcd", lock_store_etcd);

    #[cfg(feature = "redis")]
    fn open_redis(&self, url: &str, context: StoreContext) -> Result<Arc<dyn Store>, LockError> {
        let settings = lock_store_redis::Settings {
            replicas: self.replicas,
            access: self.access.clone(),
            addresses: self.addresses.clone().unwrap_or_default(),
        };
        Ok(lock_store_redis::open(url, context, settings)?)
    }

    #[cfg(not(feature = "redis"))]
    fn open_redis(&self, _: &str, _: StoreContext) -> Result<Arc<dyn Store>, LockError> {
        Err(LockError::config(
            "the URL is not of `memory:`, `sqlite:`, `postgres:`, `zookeeper:` or `etcd:`, and \
             this build of lock-runtime does not know Redis; switch its feature `redis` on",
        ))
    }

    /// Refuses a layout that the engine does not have.
    fn expect_native(&self, engine: &str) -> Result<(), LockError> {
        match self.chosen_layout() {
            Layout::Native => Ok(()),
            other => Err(other.refused_by(engine).into()),
        }
    }

    /// Refuses what of the builder is for Redis only: `replicas`, for this reason, and
    /// `address_map`.
    fn expect_nothing_of_redis(&self, of_replicas: &str) -> Result<(), LockError> {
        #[cfg(feature = "redis")]
        let (replicas, addresses) = (self.replicas.is_some(), self.addresses.is_some());
        #[cfg(not(feature = "redis"))]
        let (replicas, addresses) = (false, false);
        if replicas {
            return Err(LockError::config(of_replicas));
        }
        if addresses {
            return Err(LockError::config(
                "`address_map` translates the addresses that sentinels and the nodes of a Redis \
                 Cluster announce, and this store has neither; leave it out",
            ));
        }
        Ok(())
    }
}

#[cfg(all(feature = "sqlite", any(target_os = "linux", target_os = "android")))]
fn open_sqlite(url: &str, context: StoreContext) -> Result<Arc<dyn Store>, LockError> {
    Ok(lock_store_sqlite::open(url, context)?)
}

#[cfg(not(all(feature = "sqlite", any(target_os = "linux", target_os = "android"))))]
fn open_sqlite(_url: &str, _context: StoreContext) -> Result<Arc<dyn Store>, LockError> {
    Err(LockError::config(if cfg!(feature = "sqlite") {
        "a URL with `sqlite:` works on Linux only; use a server, as Redis, or `memory:` within one \
         process"
    } else {
        "the URL begins with `sqlite:`, and this build of lock-runtime does not know that store; \
         switch its feature `sqlite` on"
    }))
}
