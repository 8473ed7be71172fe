//! What runs beside the requests, on the client's own thread.

pub(super) mod active;
mod backlog;
mod backlogs;
mod pending_jobs;
mod schedule;
mod shutdown;
mod start;
pub(crate) mod thread;
pub(crate) mod undo;
mod views;
pub(super) mod watchdog;
