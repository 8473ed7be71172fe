//! What runs beside the requests, on the client's own thread.

pub(super) mod active;
pub(crate) mod cleanup;
mod schedule;
mod shutdown;
mod start;
pub(crate) mod thread;
mod views;
pub(super) mod watchdog;
