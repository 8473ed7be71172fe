//! What servers report about themselves that matters for locks. Asked at the start and for
//! `health`, never for a lock.

mod config_get;
pub(crate) mod findings_log;
pub(crate) mod health;
mod time;
