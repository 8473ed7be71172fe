//! [`Mutex`]: a mutex without poisoning.

use std::sync::{Mutex as StdMutex, MutexGuard, PoisonError, TryLockError};

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
    /// None if another thread has it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(value) => Some(value),
            Err(TryLockError::Poisoned(value)) => Some(value.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Blocks until the value is free.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
