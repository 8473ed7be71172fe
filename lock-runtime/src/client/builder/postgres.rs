//! `postgres:` URLs, as far as this build knows them.

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
