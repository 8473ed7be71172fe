//! Each command for a lock: how it is written and what its reply means, beside the Lua script that
//! it runs.

mod acquire;
mod acquire_all;
pub(crate) mod by_slot;
mod fence;
mod inspect;
mod latch;
mod leave_free;
mod ping;
pub(crate) mod quorum;
mod rate;
mod release;
pub(crate) mod renew;
mod renew_batch;
pub(crate) mod required_rights;
pub(crate) mod rights;
pub(crate) mod tell;
