//! The process that a client belongs to: `fork()` copies its memory, and neither its thread nor a
//! connection of its own.
//!
//! The copy has the original's owner tokens, so it would hold what that one holds, and waits for a
//! thread that is not there. The process id is checked before each request and each release,
//! before any lock is taken that another thread may have had at the fork. This costs one short
//! system call.

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

    /// Refuses everything in a child process, and every request after a shutdown.
    pub(super) fn check_client(&self) -> Result<(), LockError> {
        self.check_process()?;
        if self.is_closing() {
            return Err(LockError::Shutdown);
        }
        Ok(())
    }
}
