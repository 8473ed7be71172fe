//! Locks as other libraries keep them in PostgreSQL, a folder for each.

pub(crate) mod shedlock;
