//! What is built from holds, and what else processes agree by.

mod latch;
mod rate;
mod rate_limiter;
mod rw_lock;
mod semaphore;

pub use self::latch::Latch;
pub use self::rate::Rate;
pub use self::rate_limiter::{Decision, RateLimiter};
pub use self::rw_lock::RwLock;
pub use self::semaphore::Semaphore;
