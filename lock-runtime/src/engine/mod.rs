//! Everything that happens between a request and a store, the same for every store.
//!
//! The parts of [`Engine`] stand here. What it does is in the folders: `acquire` and `hold` are the
//! life of a lock, `local_queue` is the way from task to task inside the process, `reentrancy` the
//! way inside a call chain, and `background` is what runs beside them. `timing`, `liveness` and
//! `fencing` decide about time, about a store that does not answer, and about tokens. `latch`,
//! `rate` and `admin` are the questions that need no hold.

mod acquire;
mod admin;
pub(crate) mod background;
mod errors;
mod fencing;
mod grants;
pub(crate) mod hold;
pub(crate) mod holder_names;
mod latch;
pub(crate) mod late_acquire;
mod liveness;
pub(crate) mod local_queue;
pub(crate) mod messages;
mod observed;
mod other_limits;
pub(crate) mod rate;
pub(crate) mod reentrancy;
pub(crate) mod request_numbers;
pub(crate) mod revocation_inbox;
mod revoke;
mod short_lease;
pub(crate) mod term;
#[cfg(all(test, feature = "test-util"))]
mod tests;
mod timing;
mod who_holds;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use lock_store::{
    Capabilities, ClientId, Clock, Holder, Instant, LockKey, Namespace, Owner, Store, Wish,
};
use tokio::sync::Notify;

use self::acquire::foreign::ForeignTurns;
use self::background::active::Active;
use self::background::cleanup::Cleanup;
use self::background::thread::ThreadEnd;
use self::background::watchdog::Watchdog;
use self::errors::unavailable;
use self::fencing::rising::LastTokens;
use self::grants::Grants;
use self::hold::Hold;
use self::holder_names::HolderNames;
use self::latch::store_time::StoreTime;
use self::latch::watch::LatchWatches;
use self::liveness::Liveness;
use self::liveness::busy_or_unavailable::Verdict;
use self::local_queue::LocalQueues;
use self::messages::Messages;
use self::observed::Observed;
use self::other_limits::OtherLimits;
use self::request_numbers::RequestNumbers;
use self::revocation_inbox::Revocations;
use self::short_lease::ShortLease;
use self::timing::Budget;
use crate::config::Defaults;
use crate::error::LockError;
use crate::observe::Stats;

/// What all clones of a client and all its guards share. When the last is gone, its thread ends its
/// work and itself.
pub(crate) struct Engine {
    /// Tells a copy in a child process. `None`: nor could a thread be started.
    fork: Option<forkguard::Guard>,
    /// Why it could not be started, if so.
    refusal: Option<Box<str>>,
    clock: Clock,
    store: Arc<dyn Store>,
    capabilities: Capabilities,
    /// The one that the client was built with.
    namespace: Namespace,
    defaults: Defaults,
    local_queues: Arc<LocalQueues>,
    grants: Arc<Grants>,
    /// The store tells it what it has to say, as long as it is there.
    messages: Arc<Messages>,
    latches: Arc<LatchWatches>,
    store_time: StoreTime,
    liveness: Arc<Liveness>,
    watchdog: Arc<Watchdog>,
    cleanup: Cleanup,
    numbers: Arc<RequestNumbers>,
    names: Arc<HolderNames>,
    revocations: Arc<Revocations>,
    observed: Arc<Observed>,
    last_tokens: LastTokens,
    other_limits: OtherLimits,
    short_lease: ShortLease,
    foreign_turns: ForeignTurns,
    closing: AtomicBool,
    /// Wakes at a shutdown what waits without standing in a local queue: nested requests, latches,
    /// rate limiters, and the pause between two rounds for several keys.
    closed: Notify,
    active: Arc<Active>,
    /// A request of a view has begun.
    views_used: Arc<Notify>,
    /// Dropped last, when nothing keeps the thread from its end.
    _end: Option<ThreadEnd>,
}

impl Engine {
    pub(crate) fn id(&self) -> ClientId {
        self.numbers.client()
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn defaults(&self) -> &Defaults {
        &self.defaults
    }

    pub(crate) fn held(&self) -> usize {
        self.watchdog.held()
    }

    pub(crate) fn holds(&self) -> Vec<Arc<Hold>> {
        self.watchdog.holds()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.local_queues.waiting() + self.latches.waiting()
    }

    /// Counters and states. Waits for nobody.
    pub(crate) fn stats(&self) -> Stats {
        let now = self.clock.now();
        let since = |earlier: Instant| now.saturating_duration_since(earlier);
        Stats {
            held: self.held(),
            waiting: self.waiting(),
            longest_waiting: self.local_queues.oldest().map(since),
            connected: !self.has_no_thread()
                && !self.store.is_closed()
                && self.store.is_connected(),
            since_last_answer: self.liveness.answered().map(since),
            release_failures: self.cleanup.release_failures(),
            undoing: self.cleanup.pending(),
            ..self.observed.counters.stats()
        }
    }

    pub(crate) fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    pub(crate) fn tells_namespaces_apart(&self) -> bool {
        self.capabilities.namespaces
    }

    fn next_owner(&self) -> Owner {
        self.numbers.next_owner()
    }

    /// Since when nothing was heard of the store. Of one with several servers this says nothing
    /// about a key.
    fn silent_since(&self) -> Option<Instant> {
        let (since, _) = self.liveness.silence()?;
        (!self.capabilities.fails_over).then_some(since)
    }

    /// False if each request is refused: its thread is not there, or it was shut down.
    pub(crate) fn may_begin(&self) -> bool {
        self.check_client().is_ok()
    }

    /// From now on each new request is refused, as the beginning of a shutdown.
    pub(crate) fn refuse_requests(&self) {
        self.closing.store(true, Ordering::Release);
    }

    /// Whether it was shut down.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    fn command_by(&self) -> Instant {
        self.clock.now() + self.defaults.command_timeout
    }

    /// Refuses a bad key, and every key after a shutdown or a fork.
    fn check_key_and_client(&self, key: &LockKey) -> Result<(), LockError> {
        check_key(key)?;
        self.check_client()
    }

    /// When a command that asked for this lease and was sent then can't be carried out any more.
    fn late_until(&self, sent: Instant, lease: Duration) -> Instant {
        sent + self.capabilities.carried_out_within.unwrap_or(lease)
    }

    /// Refuses what the store can't do.
    fn check_wish(&self, wish: Wish) -> Result<(), LockError> {
        match self.capabilities.refusal(wish) {
            Some(reason) => Err(LockError::config(reason)),
            None => Ok(()),
        }
    }

    fn busy(&self, key: &LockKey, budget: &Budget, holder: Option<Holder>) -> LockError {
        LockError::Busy {
            key: key.clone(),
            held_by: self.held_by(key, holder),
            waited: self.clock.now().saturating_duration_since(budget.started),
        }
    }

    /// The error of a request that is to wait no longer.
    fn check_verdict(
        &self,
        verdict: Verdict,
        key: &LockKey,
        budget: &Budget,
        holder: impl FnOnce() -> Option<Holder>,
    ) -> Result<(), LockError> {
        match verdict {
            Verdict::Waits => Ok(()),
            Verdict::Busy => Err(self.busy(key, budget, holder())),
            Verdict::Unavailable(error) => Err(unavailable(Some(key), error)),
        }
    }
}

/// Pauses without a claim on the engine, so that the pausing task does not keep it alive. `None`:
/// it is gone.
async fn sleep_unowned(engine: &Weak<Engine>, pause: Duration) -> Option<Arc<Engine>> {
    let clock = engine.upgrade()?.clock.clone();
    clock.sleep_until(clock.now() + pause).await;
    engine.upgrade()
}

fn check_key(key: &LockKey) -> Result<(), LockError> {
    key.fault().map_or(Ok(()), |fault| {
        let key = key.for_error();
        Err(LockError::InvalidKey { key, fault })
    })
}

lock_store::show!(Engine as it: id = it.id(), defaults = it.defaults, held = it.watchdog.held());

impl Drop for Engine {
    fn drop(&mut self) {
        if self.has_no_thread() {
            return;
        }
        self.watchdog.close();
        self.local_queues.stop();
        self.views_used.notify_one();
    }
}

/// `fork()` copies a client's memory, and neither its thread nor a connection of its own.
///
/// The copy would go on with the same owner tokens as the original and so hold what that holds, or
/// wait for ever for a thread that is not there. So this is checked before each request and each
/// release, before any lock is taken that another thread may have had at the fork.
impl Engine {
    /// Whether its thread is not there: in a child process, or since it could not be started.
    pub(crate) fn has_no_thread(&self) -> bool {
        let is_forked = |mut fork: forkguard::Guard| fork.detected_fork();
        self.refusal.is_some() || self.fork.clone().is_some_and(is_forked)
    }

    /// Refuses everything without a thread.
    fn check_process(&self) -> Result<(), LockError> {
        if let Some(reason) = &self.refusal {
            return Err(LockError::config(&**reason));
        }
        if self.has_no_thread() {
            return Err(LockError::config(
                "the client was made before a fork, and its thread is not in this process; \
                 connect in the child",
            ));
        }
        Ok(())
    }

    /// The same, and every request after a shutdown.
    fn check_client(&self) -> Result<(), LockError> {
        self.check_process()?;
        if self.is_closing() {
            return Err(LockError::Shutdown);
        }
        Ok(())
    }
}
