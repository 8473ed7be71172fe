//! [`OfTask`]: what holds for the code that is polled in one task, and not for other tasks that it
//! polls.

use tokio::task::{Id, try_id};

/// A value of the task in which it was set, or of no task.
///
/// A task-local value alone is also seen by each other task that is polled meanwhile, such as those
/// of a `LocalSet`.
#[derive(Debug)]
pub(crate) struct OfTask<T> {
    value: T,
    task: Option<Id>,
}

impl<T> OfTask<T> {
    /// For one poll: a future may be moved into another task before the next.
    pub(crate) fn new(value: T) -> Self {
        Self {
            value,
            task: try_id(),
        }
    }

    /// The value, unless another task is polled.
    pub(crate) fn get(&self) -> Option<&T> {
        (self.task == try_id()).then_some(&self.value)
    }
}
