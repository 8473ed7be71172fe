//! [`RwLock`]: many readers, or one writer.

use std::sync::Arc;

use lock_store::LockKey;

use super::request::Lock;
use crate::config::{Mode, Spec};
use crate::engine::Engine;
use crate::one_or_more::OneOrMore;

/// A read-write lock: any number of readers at once, or one writer, over all processes.
///
/// - While a write guard is held, no other guard of this key is.
/// - While a read guard is held, no write guard is.
/// - Requests are served in the order of arrival over all processes. Later readers do not overtake
///   a writer that waits. Readers that wait next to each other enter together. (In
///   [Redisson's layout](crate::Layout::Redisson) there is no order, and readers do overtake.)
/// - A reader that died keeps a writer waiting no longer than its own lease.
///
/// Inside a write hold, read and write requests of the same call chain share it. Inside a read
/// hold, a read request shares it, and a write request is
/// [`LockError::WouldDeadlock`](crate::LockError::WouldDeadlock) at once, also where the read hold
/// is itself inside a write hold: other readers may be there beside it.
/// [`Guard::downgrade`](crate::Guard::downgrade) turns a writer into a reader.
///
/// While the key is held, another kind of lock on it is
/// [`LockError::KeyConflict`](crate::LockError::KeyConflict).
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_runtime::LockError> {
/// let client = lock_runtime::LockClient::in_memory();
/// let prices = client.rw_lock("prices");
/// let sum = prices.read().run(async { 1 + 1 }).await?;
/// prices.write().run(async { /* change them */ }).await?;
/// # assert_eq!(sum, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RwLock {
    engine: Arc<Engine>,
    key: LockKey,
    spec: Spec,
}

impl RwLock {
    pub(crate) fn new(engine: Arc<Engine>, key: LockKey, spec: Spec) -> Self {
        Self { engine, key, spec }
    }

    /// A request to read; see [`Lock`] for its options.
    pub fn read(&self) -> Lock {
        self.request(Mode::Read)
    }

    /// A request to write; see [`Lock`] for its options.
    pub fn write(&self) -> Lock {
        self.request(Mode::Write)
    }

    fn request(&self, mode: Mode) -> Lock {
        let key = OneOrMore::One(self.key.clone());
        Lock::new(&self.engine, key, self.spec).mode(mode)
    }
}
