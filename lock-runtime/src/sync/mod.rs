//! What is built from holds.

mod rw_lock;
mod semaphore;

pub use rw_lock::RwLock;
pub use semaphore::Semaphore;
