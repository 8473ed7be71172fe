//! One server: the embedded store with a clock that jumps, restarts, silences and refusals.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use lock_runtime::{LockKey, StoreError};
use lock_store::memory::MemoryStore;
use lock_store::{ClientId, Clock, HandedOver, Instant, Listener, Store, StoreFuture, WakeUp};
use lock_testkit_core::store_decorator::{Reply, Request, decorated};
use lock_testkit_core::{context, runtime_now};
use tokio::runtime::Handle;

use crate::refusals::Refusals;
use crate::world::now;
use crate::wrong::{Mistake, Wrong};

/// One server, for all clients.
pub(crate) struct Server {
    memory: MemoryStore,
    ahead: Arc<AtomicI64>,
    down_until: Mutex<Instant>,
    silence: Mutex<Silence>,
    pub(crate) refusals: Refusals,
    wrong: Arc<Wrong>,
    /// What it carries out now is told to nobody.
    mute: AtomicBool,
    /// How many messages of what it has carried out last were not told.
    untold: AtomicUsize,
}

/// A period in which a server is not heard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence {
    /// At first, only its answers are lost.
    pub(crate) hears_until: Instant,
    pub(crate) until: Instant,
    /// The server stands still: what arrives is carried out when it goes on. Otherwise that is
    /// lost.
    pub(crate) keeps: bool,
}

/// What happens to a command that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    Answered,
    /// Carried out, but the answer is lost.
    Heard,
    Lost,
    /// Carried out at this instant.
    Kept(Instant),
}

impl Server {
    pub(crate) fn new(mistake: Option<Mistake>) -> Self {
        Self {
            memory: MemoryStore::started_at(1_700_000_000_000_000),
            ahead: Arc::default(),
            down_until: Mutex::new(now()),
            silence: Mutex::new(Silence {
                hears_until: now(),
                until: now(),
                keeps: false,
            }),
            refusals: Refusals::default(),
            wrong: Arc::new(Wrong::new(mistake)),
            mute: AtomicBool::new(false),
            untold: AtomicUsize::new(0),
        }
    }

    pub(crate) fn memory(&self) -> &MemoryStore {
        &self.memory
    }

    pub(crate) fn ahead(&self) -> Arc<AtomicI64> {
        Arc::clone(&self.ahead)
    }

    /// Sets the clock forward, or back.
    pub(crate) fn jump(&self, milliseconds: i64) {
        self.ahead.fetch_add(milliseconds, Ordering::Relaxed);
    }

    /// The server's clock.
    pub(crate) fn now(&self) -> Instant {
        let ahead = self.ahead.load(Ordering::Relaxed);
        let by = Duration::from_millis(ahead.unsigned_abs());
        let now = runtime_now();
        if ahead < 0 { now - by } else { now + by }
    }

    /// The number of places in the queues of these keys.
    pub(crate) fn places(&self, keys: &[LockKey]) -> usize {
        let deaf: Arc<dyn Listener> = Arc::new(Deaf);
        let clock = Clock::simulated(Handle::current()).ahead(self.ahead());
        let store = self
            .memory
            .connect(context("lock", ClientId(0), &deaf, clock));
        let inspect = |key: &LockKey| answer(store.inspect(key.clone(), now()));
        let found = keys.iter().filter_map(inspect);
        found.map(|found| found.waiting).sum()
    }

    /// Until then no connection succeeds.
    pub(crate) fn unreachable_until(&self) -> Instant {
        let down_until = *self.down_until.lock().unwrap();
        down_until.max(self.silence.lock().unwrap().until)
    }

    pub(crate) fn be_silent(&self, silence: Silence) {
        *self.silence.lock().unwrap() = silence;
    }

    pub(crate) fn arrival(&self) -> Arrival {
        let silence = *self.silence.lock().unwrap();
        match now() {
            now if now >= silence.until => Arrival::Answered,
            now if now < silence.hears_until => Arrival::Heard,
            _ if silence.keeps => Arrival::Kept(silence.until),
            _ => Arrival::Lost,
        }
    }

    /// Carries the request out, or refuses it. `silently` tells nobody of a grant that comes of it.
    pub(crate) fn carry_out(
        &self,
        request: &Request,
        served: &dyn Store,
        silently: bool,
    ) -> Result<Reply, StoreError> {
        if let Some(error) = self.refusals.refusal(request) {
            return Err(error);
        }
        let serves_silently = matches!(request, Request::Acquire(_))
            && self.wrong.is(Mistake::ServesThoseBehindSilently);
        self.untold.store(0, Ordering::Relaxed);
        self.mute
            .store(silently || serves_silently, Ordering::Relaxed);
        let reply = answer(request.clone().send(served, now()));
        self.mute.store(false, Ordering::Relaxed);
        Ok(reply)
    }

    /// Whether a message that comes of what it carries out now is told to nobody.
    pub(crate) fn keeps_to_itself(&self) -> bool {
        let mute = self.mute.load(Ordering::Relaxed);
        self.untold.fetch_add(usize::from(mute), Ordering::Relaxed);
        mute
    }

    pub(crate) fn untold(&self) -> usize {
        self.untold.load(Ordering::Relaxed)
    }

    /// Loses everything, and cannot be reached for a while.
    pub(crate) fn restart(&self, down: Duration) {
        *self.down_until.lock().unwrap() = now() + down;
        self.memory.lose_everything();
        self.wrong.forget();
    }

    /// One client's handle to the server, with its mistakes.
    pub(crate) fn serve(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        decorated(store, Arc::clone(&self.wrong))
    }

    pub(crate) fn wrong(&self) -> &Wrong {
        &self.wrong
    }
}

/// A listener that waits for nothing.
#[derive(Debug)]
struct Deaf;

impl Listener for Deaf {
    fn on_granted(&self, _: HandedOver) -> WakeUp {
        WakeUp::default()
    }

    fn recheck(&self) {}
}

/// The embedded store answers at once.
pub(crate) fn answer<T>(mut future: StoreFuture<'_, T>) -> T {
    match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(Ok(answer)) => answer.value,
        Poll::Ready(Err(failure)) => panic!("{failure:?}"),
        Poll::Pending => panic!("the embedded store waits"),
    }
}
