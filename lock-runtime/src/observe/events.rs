//! [`Events`]: the way from what happens to the observers.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use lock_store::LockKey;
use tokio::sync::oneshot;

use super::event::{Event, LockKind, Subject, What};

/// How far behind the observers may be with what happens in the background.
const BEHIND: usize = 10_000;

/// Tells a client's observers what happens. Nothing, if there are none.
#[derive(Clone, Default)]
pub(crate) struct Events(Option<Arc<Audience>>);

/// The observers of one client.
struct Audience {
    observers: Arc<Observers>,
    later: SyncSender<Later>,
    /// Events were left out, and that was logged.
    overflowed: AtomicBool,
}

/// The observers of a client, which all hear the same.
struct Observers {
    client: Arc<str>,
    observers: Vec<Arc<dyn Observer>>,
    /// One has panicked, and that was logged.
    panicked: AtomicBool,
}

/// An event that the thread tells.
type Later = Box<dyn FnOnce(&Observers) + Send>;

impl Events {
    /// For these observers. Starts their thread, which ends with the last clone of this.
    pub(crate) fn new(
        client: Arc<str>,
        observers: Vec<Arc<dyn Observer>>,
    ) -> std::io::Result<Self> {
        if observers.is_empty() {
            return Ok(Self::none());
        }
        let all = Arc::new(Observers {
            client,
            observers,
            panicked: AtomicBool::new(false),
        });
        let (later, events) = sync_channel(BEHIND);
        let thread = std::thread::Builder::new().name("lock-observer".into());
        let tells = Arc::clone(&all);
        thread.spawn(move || run(&tells, &events))?;
        Ok(Self(Some(Arc::new(Audience {
            observers: all,
            later,
            overflowed: AtomicBool::new(false),
        }))))
    }

    /// For nobody.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// Whether anybody wants to know.
    pub(crate) fn are_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Calls the observers now, on this thread. Not under a lock or on the client's own thread.
    pub(crate) fn record(&self, lock: Option<Subject<'_>>, what: What<'_>) {
        self.record_queued(lock, what, false);
    }

    /// The same, of a request that may have been queued.
    pub(crate) fn record_queued(
        &self,
        lock: Option<Subject<'_>>,
        what: What<'_>,
        was_queued: bool,
    ) {
        if let Some(audience) = &self.0 {
            audience.observers.record(lock, what, was_queued);
        }
    }

    /// Has the observers' thread tell it: for what happens in the background, or under a lock.
    pub(crate) fn record_later(
        &self,
        lock: Option<OwnedSubject>,
        what: impl FnOnce(LaterRecorder<'_>) + Send + 'static,
    ) {
        let Some(audience) = &self.0 else { return };
        let later: Later = Box::new(move |observers| {
            what(LaterRecorder {
                observers,
                lock: lock.as_ref(),
            })
        });
        if let Err(TrySendError::Full(_)) = audience.later.try_send(later)
            && !audience.overflowed.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                "an observer of the lock client is {BEHIND} events behind; events are left out"
            );
        }
    }
}

impl Events {
    /// Ends when the observers' thread has told what happened before.
    pub(crate) async fn flush(&self) {
        if self.are_wanted() {
            let (told, all) = oneshot::channel();
            self.record_later(None, move |_| _ = told.send(()));
            let _ = all.await;
        }
    }
}

/// A [`Subject`] for later.
#[derive(Clone, Debug)]
pub(crate) struct OwnedSubject {
    pub(crate) key: LockKey,
    pub(crate) more_keys: usize,
    pub(crate) kind: LockKind,
}

/// Records one event on the observers' thread.
pub(crate) struct LaterRecorder<'t> {
    observers: &'t Observers,
    lock: Option<&'t OwnedSubject>,
}

impl LaterRecorder<'_> {
    pub(crate) fn record(self, what: What<'_>) {
        let subject = self
            .lock
            .map(|lock| Subject::new(&lock.key, lock.more_keys, lock.kind));
        self.observers.record(subject, what, false);
    }
}

impl Observers {
    fn record(&self, lock: Option<Subject<'_>>, what: What<'_>, was_queued: bool) {
        let event = Event {
            was_queued,
            ..Event::new(&self.client, lock, what)
        };
        for observer in &self.observers {
            let told = catch_unwind(AssertUnwindSafe(|| observer.observe(&event)));
            let Err(panic) = told else { continue };
            // What an observer panics with may panic itself when it is dropped.
            std::mem::forget(panic);
            if !self.panicked.swap(true, Ordering::Relaxed) {
                tracing::error!("an observer of the lock client panicked; it is told what follows");
            }
        }
    }
}

fn run(told: &Observers, events: &Receiver<Later>) {
    while let Ok(event) = events.recv() {
        event(told);
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let observers = self.0.as_ref().map(|all| all.observers.observers.len());
        f.debug_tuple("Events")
            .field(&observers.unwrap_or(0))
            .finish()
    }
}

/// Hears what a client does; see the [builder](crate::LockClientBuilder::observer)
/// and the [module](crate::observe). Every `Fn(&Event<'_>)` is one.
///
/// # What it may do
/// It is called outside of all locks of this library, one event after the other or several at once,
/// from any thread:
/// - What a request does, its task tells: `Asked` to `Cancelled`, `Released`, `Candidate`,
///   `TermBegan`, `TermEnded`, most of `Command`.
///   A slow observer makes that task slow, and what waits for it. At `Command`, a request has its
///   answer but not yet its lock, and asks again if the lease ends meanwhile. At `Granted`, the
///   lock is held and renewed as long as the observer takes. A task that releases in `Drop` tells
///   there. So count and return; send what takes longer to a task of your own.
/// - What happens in the background is told on a thread that does nothing else: `Lost`, `Renewed`,
///   `Undoing`, `Undone`, `Started`, `Unreachable`, `Connected`, `Disconnected`, and the commands
///   for them. A slow observer delays only later events of these. If it is more than 10,000 events
///   behind, events are left out, and that is logged once.
///
/// So no observer costs a lock that is held: leases are renewed whatever it does. If it panics, the
/// panic is caught and logged once, and the next event is told as before.
///
/// It may call the client: its methods without `async`, or the others in a task that it spawns. If
/// it owns a clone of the client, that client lives for ever: give it a `Weak` or a `OnceLock`.
/// A guard that it drops tells the next event inside of this one, so hold no mutex meanwhile. A
/// [shutdown](crate::LockClient::shutdown) waits until everything is told, for at most two command
/// timeouts. Events of one thread come in their order. Across threads the order is not defined: a
/// `Lost` may be told before its `Granted`.
pub trait Observer: Send + Sync + 'static {
    /// Something happened.
    fn observe(&self, event: &Event<'_>);
}

impl<F: Fn(&Event<'_>) + Send + Sync + 'static> Observer for F {
    fn observe(&self, event: &Event<'_>) {
        self(event);
    }
}
