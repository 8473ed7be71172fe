//! `postgres:`, `sqlite:`, `zookeeper:` and `etcd:` URLs, as far as this build knows them.

use std::sync::Arc;
use std::time::Duration;

use lock_store::{Store, StoreContext};

use super::LockClientBuilder;
use crate::error::LockError;

pub(super) fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres:") || url.starts_with("postgresql:")
}

/// The time limit in a URL, if it is of PostgreSQL.
#[cfg(feature = "postgres")]
pub(super) fn connect_timeout_of(url: &str) -> Result<Option<Duration>, LockError> {
    match is_postgres(url) {
        true => Ok(lock_store_postgres::connect_timeout(url)?),
        false => Ok(None),
    }
}

#[cfg(not(feature = "postgres"))]
pub(super) fn connect_timeout_of(_url: &str) -> Result<Option<Duration>, LockError> {
    Ok(None)
}

#[cfg(feature = "postgres")]
pub(super) fn open_postgres(
    builder: &LockClientBuilder,
    url: &str,
    context: StoreContext,
) -> Result<Arc<dyn Store>, LockError> {
    let access = lock_store_postgres::Access {
        login: builder.login.clone(),
        provider: builder.provider.clone(),
        #[cfg(feature = "tls")]
        tls: builder.tls.clone(),
    };
    Ok(lock_store_postgres::open(url, context, &access)?)
}

#[cfg(not(feature = "postgres"))]
pub(super) fn open_postgres(
    _builder: &LockClientBuilder,
    _url: &str,
    _context: StoreContext,
) -> Result<Arc<dyn Store>, LockError> {
    Err(LockError::config(
        "the URL begins with `postgres:`, and this build of lock-runtime does not know that \
         store; switch its feature `postgres` on",
    ))
}

#[cfg(all(feature = "sqlite", any(target_os = "linux", target_os = "android")))]
pub(super) fn open_sqlite(url: &str, context: StoreContext) -> Result<Arc<dyn Store>, LockError> {
    Ok(lock_store_sqlite::open(url, context)?)
}

#[cfg(not(all(feature = "sqlite", any(target_os = "linux", target_os = "android"))))]
pub(super) fn open_sqlite(_url: &str, _context: StoreContext) -> Result<Arc<dyn Store>, LockError> {
    Err(LockError::config(if cfg!(feature = "sqlite") {
        "a URL with `sqlite:` works on Linux only; use a server, as Redis, or `memory:` within one \
         process"
    } else {
        "the URL begins with `sqlite:`, and this build of lock-runtime does not know that store; \
         switch its feature `sqlite` on"
    }))
}

#[cfg(feature = "zookeeper")]
pub(super) fn open_zookeeper(
    builder: &LockClientBuilder,
    url: &str,
    context: StoreContext,
) -> Result<Arc<dyn Store>, LockError> {
    let access = lock_store_zookeeper::Access {
        login: builder.login.clone(),
        provider: builder.provider.clone(),
        #[cfg(feature = "tls")]
        tls: builder.tls.clone(),
    };
    Ok(lock_store_zookeeper::open(url, context, &access)?)
}

#[cfg(not(feature = "zookeeper"))]
pub(super) fn open_zookeeper(
    _builder: &LockClientBuilder,
    _url: &str,
    _context: StoreContext,
) -> Result<Arc<dyn Store>, LockError> {
    Err(LockError::config(
        "the URL begins with `zookeeper:`, and this build of lock-runtime does not know that \
         store; switch its feature `zookeeper` on",
    ))
}

#[cfg(feature = "etcd")]
pub(super) fn open_etcd(
    builder: &LockClientBuilder,
    url: &str,
    context: StoreContext,
) -> Result<Arc<dyn Store>, LockError> {
    let access = lock_store_etcd::Access {
        login: builder.login.clone(),
        provider: builder.provider.clone(),
        #[cfg(feature = "tls")]
        tls: builder.tls.clone(),
    };
    Ok(lock_store_etcd::open(url, context, &access)?)
}

#[cfg(not(feature = "etcd"))]
pub(super) fn open_etcd(
    _builder: &LockClientBuilder,
    _url: &str,
    _context: StoreContext,
) -> Result<Arc<dyn Store>, LockError> {
    Err(LockError::config(
        "the URL begins with `etcd:`, and this build of lock-runtime does not know that \
         store; switch its feature `etcd` on",
    ))
}
