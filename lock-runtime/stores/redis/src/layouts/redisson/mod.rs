//! Locks as Redisson keeps them: `RLock`, `RFencedLock`, `RFairLock`, `RReadWriteLock` and
//! `RPermitExpirableSemaphore`. The names are in [`names`], each command is a script beside this.
//!
//! Others wait for a message and then all try, so a lock is not handed over here: a message makes
//! the first request of this process ask again.

mod capabilities;
mod claim;
mod ends;
pub(super) mod found;
mod names;
mod rivals;
mod take;

use std::sync::Arc;

use lock_store::{
    Asked, Capabilities, ForeignNames, Holder, Instant, LockKey, Mutex, Store, SweepingMap,
    delegate,
};

pub(super) use self::capabilities::check;
use self::rivals::Rivals;
use crate::store::RedisStore;
use crate::transport::foreign_channels::ForeignChannels;

/// A client that gets its locks in Redisson's way.
#[derive(Debug)]
pub(super) struct RedissonStore {
    store: RedisStore,
    channels: Arc<ForeignChannels>,
    /// The holders that replies have told of, for errors.
    names: ForeignNames,
    rivals: Rivals,
    /// The heads of queues for whom nobody listens, since when.
    silent: Mutex<SweepingMap<LockKey, (String, Instant)>>,
}

impl RedissonStore {
    pub(super) fn new(store: RedisStore, channels: Arc<ForeignChannels>) -> Self {
        Self {
            store,
            channels,
            names: ForeignNames::default(),
            rivals: Rivals::default(),
            silent: Mutex::default(),
        }
    }
}

impl Store for RedissonStore {
    delegate! {
        tell forget_unused_views ping await_connection is_connected log_findings servers link
        link_of close is_closed
    }

    lock_store::boxed! {
        acquire: take, renew: renew_each, fence: fence_now, release: release_each,
        shrink: shrink_to, abandon: abandon_request, inspect: inspect_now, holders: holders_now,
        force_release: force_release_now,
    }

    fn foreign_name(&self, holder: Holder) -> Option<String> {
        self.names.of(holder)
    }

    fn foreign_lock(&self, key: LockKey, by: Instant) -> Asked<'_, Option<&'static str>> {
        Box::pin(self.other_kind(key, by))
    }

    fn capabilities(&self) -> Capabilities {
        capabilities::capabilities(self.store.capabilities())
    }
}
