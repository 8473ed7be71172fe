//! [`ObservedStore`]: a store whose commands the observers hear of.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use lock_store::{Clock, Failure, Instant, Operation, Replied, Store, StoreFuture};

use super::event::{Verb, What};
use super::events::Events;

/// Passes everything on, and tells how long each command took.
#[derive(Debug)]
pub(crate) struct ObservedStore {
    store: Arc<dyn Store>,
    clock: Clock,
    events: Events,
    is_own_thread: fn() -> bool,
}

impl ObservedStore {
    /// `is_own_thread` says whether the caller is the client's own thread, on which no observer is
    /// called.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Clock,
        events: Events,
        is_own_thread: fn() -> bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            clock,
            events,
            is_own_thread,
        })
    }

    fn timed<'s, T: 's>(&'s self, verb: Verb, command: StoreFuture<'s, T>) -> StoreFuture<'s, T> {
        Box::pin(Timed {
            store: self,
            verb,
            sent: self.clock.now(),
            command,
        })
    }

    fn record(&self, verb: Verb, took: Duration, failure: Option<&Failure>) {
        let error = failure.map(|failure| &failure.error);
        if !(self.is_own_thread)() {
            return self
                .events
                .record(None, What::Command { verb, took, error });
        }
        let error = error.cloned();
        self.events.record_later(None, move |recorder| {
            let error = error.as_ref();
            recorder.record(What::Command { verb, took, error });
        });
    }
}

/// A command, and when it was sent. By hand, since an `async` block would copy its result.
struct Timed<'s, T> {
    store: &'s ObservedStore,
    verb: Verb,
    sent: Instant,
    command: StoreFuture<'s, T>,
}

impl<T> Future for Timed<'_, T> {
    type Output = Replied<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = ready!(self.command.as_mut().poll(cx));
        let took = self.store.clock.now().saturating_duration_since(self.sent);
        self.store.record(self.verb, took, result.as_ref().err());
        Poll::Ready(result)
    }
}

macro_rules! timed {
    ($($method:ident($($argument:ident: $type:ty),*) -> $Name:ident($reply:ty);)*) => {
        impl Store for ObservedStore {
            $(fn $method(&self, $($argument: $type,)* by: Instant) -> StoreFuture<'_, $reply> {
                let command = self.store.$method($($argument,)* by);
                self.timed(verb(Operation::$Name), command)
            })*

            lock_store::delegate! {
                capabilities owner_of foreign_name foreign_lock tell forget_unused_views
                await_connection is_connected log_findings migrate servers link link_of finish
                close is_closed
            }
        }
    };
}

lock_store::operations!(timed);

fn verb(operation: Operation) -> Verb {
    match operation {
        Operation::Acquire => Verb::Acquire,
        Operation::AcquireAll => Verb::AcquireAll,
        Operation::Renew => Verb::Renew,
        Operation::Release => Verb::Release,
        Operation::Fence => Verb::Fence,
        Operation::Shrink => Verb::Downgrade,
        Operation::Abandon => Verb::Undo,
        Operation::Inspect | Operation::Holders => Verb::Inspect,
        Operation::ForceRelease => Verb::ForceRelease,
        Operation::Rate => Verb::Rate,
        Operation::LatchSet
        | Operation::LatchCountDown
        | Operation::LatchLook
        | Operation::LatchWait
        | Operation::LatchLeave => Verb::Latch,
        Operation::Ping => Verb::Ping,
    }
}
