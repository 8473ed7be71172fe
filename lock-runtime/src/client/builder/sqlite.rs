//! `sqlite:` URLs, as far as this build knows them.

use std::sync::Arc;

use lock_store::{Store, StoreContext};

use crate::error::LockError;

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
