//! [`Job`]: a request on its way to the thread, and its answer on the way back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lock_store::{Answer, Failure, Instant, Replied};
use tokio::sync::oneshot;

use crate::mailbox::LINK;
use crate::step::Step;

/// A request.
pub(crate) trait Job: Send {
    /// By when its caller wants the answer.
    fn by(&self) -> Instant;
    /// False if its caller has stopped waiting. Then it must not be carried out.
    fn begin(&self) -> bool;
    /// Carries it out. May be repeated, when the transaction was undone.
    fn run(&mut self, step: &mut Step<'_>) -> rusqlite::Result<()>;
    /// Answers.
    fn finish(self: Box<Self>, failed: Option<Failure>);
}

/// Whether a request was begun or given up, whichever comes first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Begun(Arc<AtomicBool>);

impl Begun {
    /// True the first time.
    pub(crate) fn is_first(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

/// A request with a reply of this type.
pub(crate) struct Call<T, V> {
    pub(crate) verb: V,
    pub(crate) by: Instant,
    pub(crate) begun: Begun,
    pub(crate) reply: oneshot::Sender<Replied<T>>,
    pub(crate) value: Option<T>,
}

impl<T: Send, V: FnMut(&mut Step<'_>) -> rusqlite::Result<T> + Send> Job for Call<T, V> {
    fn by(&self) -> Instant {
        self.by
    }

    fn begin(&self) -> bool {
        self.begun.is_first()
    }

    fn run(&mut self, step: &mut Step<'_>) -> rusqlite::Result<()> {
        self.value = Some((self.verb)(step)?);
        Ok(())
    }

    fn finish(self: Box<Self>, failed: Option<Failure>) {
        let result = match (failed, self.value) {
            (Some(failure), _) => Err(failure),
            (None, Some(value)) => Ok(Answer::new(value, LINK)),
            // It was not run: dropping the way back says so.
            (None, None) => return,
        };
        let _ = self.reply.send(result);
    }
}
