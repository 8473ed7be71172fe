//! What users hold in their hands: requests, guards, and what else processes agree by.

mod failure;
mod guard;
mod latch;
mod rate;
mod rate_limiter;
mod request;
mod revoke;
mod run;
mod rw_lock;
mod semaphore;

pub use self::guard::Guard;
pub use self::latch::Latch;
pub use self::rate::Rate;
pub use self::rate_limiter::{Decision, RateLimiter};
pub use self::request::Lock;
pub use self::revoke::Revoke;
pub use self::run::{GuardedBody, Slot, ThenRelease};
pub use self::rw_lock::RwLock;
pub use self::semaphore::Semaphore;
