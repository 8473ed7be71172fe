//! [`Mutex`]: a mutex without poisoning.

use std::sync::{Mutex as StdMutex, MutexGuard, PoisonError};

/// `std`'s mutex, without poisoning. Its content is consistent between any two statements that can
/// panic.
#[derive(Debug, Default)]
pub struct Mutex<T: ?Sized>(StdMutex<T>);

impl<T> Mutex<T> {
    /// An unlocked mutex.
    pub const fn new(value: T) -> Self {
        Self(StdMutex::new(value))
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Blocks until the value is free.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
