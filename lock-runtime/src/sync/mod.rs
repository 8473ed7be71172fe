//! What else processes agree on with a lock store.

mod rate;
mod rate_limiter;

pub use self::rate::Rate;
pub use self::rate_limiter::{Decision, RateLimiter};
