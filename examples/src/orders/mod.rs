//! A service for orders of several tenants, in several replicas. What it needs from all of them
//! together is a line above a function. `examples/tests/orders.rs` tests it with paused time and
//! with faults.

mod error;
mod handlers;
mod report;
mod serve;
mod shop;

pub use self::error::OrderError;
pub use self::handlers::service;
pub use self::report::report;
pub use self::serve::serve;
pub use self::shop::Shop;
