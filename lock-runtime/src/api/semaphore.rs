//! [`Semaphore`]: at most N holders at once.

use std::sync::Arc;

use lock_store::{LockKey, Permits};

use super::request::Lock;
use crate::config::{Mode, Spec};
use crate::engine::Engine;
use crate::one_or_more::OneOrMore;

/// A semaphore: a number of permits over all processes, leased and renewed as locks are.
///
/// - The guards that are held never have more permits together than there are.
/// - Each guard counts once, however often its command had to be repeated.
/// - The permits of a holder that died come back at the end of its lease.
/// - Requests are served in the order of arrival over all processes. Small requests do not starve a
///   big one.
/// - A million permits cost no more than five.
///
/// Each request says how many permits there are. It is admitted when the permits in use and its own
/// are within that number, in the order of arrival. So two versions of a service may say different
/// numbers while one replaces the other. A client that meets another number logs that once. The
/// first request of the queue blocks all behind it, so requests with a smaller number are served,
/// too.
///
/// A request inside a hold of the same semaphore, in the same call chain, shares that hold. If it
/// asks for more permits than are held, it is [`WouldDeadlock`](crate::LockError::WouldDeadlock).
///
/// # Examples
/// ```
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_runtime::LockError> {
/// let client = lock_runtime::LockClient::in_memory();
/// let downloads = client.semaphore("downloads", 5);
/// let guard = downloads.permit().acquire().await?;
/// let three = downloads.permits(3).wait(Duration::from_secs(2)).acquire().await?;
/// three.release().await?;
/// # drop(guard);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Semaphore {
    engine: Arc<Engine>,
    key: LockKey,
    limit: u32,
    spec: Spec,
}

impl Semaphore {
    pub(crate) fn new(engine: Arc<Engine>, key: LockKey, limit: u32, spec: Spec) -> Self {
        Self {
            engine,
            key,
            limit,
            spec,
        }
    }

    /// A request for one permit; see [`Lock`] for its options.
    pub fn permit(&self) -> Lock {
        self.permits(1)
    }

    /// A request for several permits, all or none; see [`Lock`] for its options. Zero permits, or
    /// more than there are, give [`Config`](crate::LockError::Config) when the request is used.
    pub fn permits(&self, count: u32) -> Lock {
        let permits = Permits {
            count,
            of: self.limit,
        };
        let key = OneOrMore::One(self.key.clone());
        Lock::new(&self.engine, key, self.spec).mode(Mode::Permits(permits))
    }
}
