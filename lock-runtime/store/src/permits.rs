//! How much of a key a hold takes: [`Permits`].

/// A part of a key that several can hold at once: so many permits of so many.
///
/// A read-write lock is the case where a reader takes one permit and a writer takes all, as tokio
/// builds its `RwLock` on its semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Permits {
    /// How many this one takes; at least one, and at most `of`.
    pub count: u32,
    /// How many there are, by this request. It is admitted if no more are in use then.
    pub of: u32,
}

impl Permits {
    /// The permits of a read-write lock.
    pub const READ_WRITE: u32 = i32::MAX.unsigned_abs();
    /// A reader.
    pub const READ: Self = Self {
        count: 1,
        of: Self::READ_WRITE,
    };
    /// A writer.
    pub const WRITE: Self = Self {
        count: Self::READ_WRITE,
        of: Self::READ_WRITE,
    };

    /// Whether these are of a read-write lock, not of a semaphore.
    pub fn is_read_write(self) -> bool {
        self.of == Self::READ_WRITE
    }
}
