//! What else than a lock processes agree by.

mod latch;

pub use self::latch::Latch;
