//! What servers report about themselves that matters for locks. Asked at the start and for
//! `health`, never for a lock.

pub(crate) mod findings_log;
pub(crate) mod health;
