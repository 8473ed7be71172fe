//! The part of a key that a hold takes: [`Permits`].

/// A part of a key that several can hold at once: some of its permits.
///
/// In a read-write lock, a reader takes one permit and a writer takes all. Tokio builds its
/// `RwLock` on its semaphore in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Permits {
    /// The number of permits to take; at least one, and at most `of`.
    pub count: u32,
    /// The capacity by this request. It is admitted if no more permits than that are in use then.
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

    /// True for a read-write lock, false for a semaphore.
    pub fn is_read_write(self) -> bool {
        self.of == Self::READ_WRITE
    }
}
