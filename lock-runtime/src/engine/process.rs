//! The process that a client belongs to: `fork()` copies its memory, and neither its thread nor a
//! connection of its own.
//!
//! The copy would go on with the same owner tokens as the original and so hold what that holds, or
//! wait for ever for a thread that is not there. So it is asked for before every request and every
//! release, before any lock is taken that another thread may have had at the fork. It costs one
//! short system call.

use super::Engine;
use crate::error::LockError;

impl Engine {
    /// Whether this is a copy, in a child process.
    pub(super) fn is_forked(&self) -> bool {
        std::process::id() != self.process
    }

    /// Refuses everything in a child process.
    pub(super) fn check_process(&self) -> Result<(), LockError> {
        if self.is_forked() {
            return Err(LockError::config(
                "the client was made before a fork, and its thread is not in this process; \
                 connect in the child",
            ));
        }
        Ok(())
    }

    /// The same, and every request after a shutdown.
    pub(super) fn check_client(&self) -> Result<(), LockError> {
        self.check_process()?;
        if self.is_closing() {
            return Err(LockError::Shutdown);
        }
        Ok(())
    }
}
