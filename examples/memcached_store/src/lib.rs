//! Locks in memcached (1.6 or later): an example of an engine that is not part of lock-runtime.
//!
//! ```no_run
//! # async fn run() -> Result<(), lock_runtime::LockError> {
//! use lock_runtime::LockClient;
//!
//! let open = |context| lock_example_memcached::open("127.0.0.1:11211", context);
//! let client = LockClient::builder().store(open).connect().await?;
//! client.lock("nightly").run(async { /* … */ }).await?;
//! # Ok(())
//! # }
//! ```
//!
//! A lock is an item whose value is the owner token. `add` takes it. Renewals and releases compare
//! first, by the item's CAS number (memcached's *meta commands*, `doc/protocol.txt` there).
//!
//! What it guarantees: mutual exclusion as long as the server runs and keeps the item; only the
//! owner renews and releases; after a crash the lock is free when its lease ends, up to 4 s later,
//! because memcached counts in whole seconds, and its clock moves once a second.
//!
//! What it lacks, and a client refuses:
//! - fencing tokens: a counter could be evicted, and would begin anew;
//! - a queue: those who wait ask again after 20 to 60 ms, and who comes first gets it. A process
//!   whose tasks hand a lock off leaves it alone for as long, now and then;
//! - messages: errors do not name the holder's process;
//! - shares, latches, rate limiters.
//!
//! What loses locks: a restart, `flush_all`, and eviction when the memory is full. Run memcached
//! with `--disable-evictions`, and not without CAS numbers (`-C`): the client's log and its
//! [`health`](https://docs.rs/lock-runtime) say so otherwise.

mod connection;
mod contract;
mod item;
mod protocol;
mod store;

// So that unit tests can use the same server as the others.
#[cfg(test)]
extern crate self as lock_example_memcached;

use std::sync::Arc;
use std::time::Duration;

use lock_store::{Capabilities, ConfigError, Store, StoreContext};

use self::store::MemcachedStore;

/// What memcached can do.
#[must_use]
pub fn capabilities() -> Capabilities {
    let mut can = Capabilities::none("memcached");
    can.namespaces = true;
    can.rounds_up = Duration::from_secs(4);
    can
}

/// Opens the store on this server, `host:port`, and connects with the first command.
///
/// # Errors
/// [`ConfigError`] for an address without a port.
pub fn open(address: &str, context: StoreContext) -> Result<Arc<dyn Store>, ConfigError> {
    let port = address
        .rsplit_once(':')
        .map(|(_, port)| port.parse::<u16>());
    if !matches!(port, Some(Ok(_))) {
        return Err(ConfigError::new(format!(
            "the address of memcached is `{address}`; write it as `host:port`, such as \
             `127.0.0.1:11211`"
        )));
    }
    Ok(Arc::new(MemcachedStore::new(address, context)))
}
