//! What the tests of users' services use (feature `test-util`): a client that follows the paused
//! clock, and a store with faults.
#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod faults;
mod no_thread;
mod paused;

use std::time::Duration;

use lock_runtime::LockError;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// The paused clock, or any other clock of the calling runtime.
fn now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

fn is_busy<T>(result: &Result<T, LockError>) -> bool {
    result.as_ref().is_err_and(LockError::is_busy)
}

fn is_unavailable<T>(result: &Result<T, LockError>) -> bool {
    result.as_ref().is_err_and(LockError::is_unavailable)
}
