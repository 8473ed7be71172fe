//! The table `shedlock`, in which ShedLock's JDBC providers keep their locks, by the server's time
//! (`usingDbTime()`).

pub(crate) mod greeting;
mod statements;
pub(crate) mod store;
