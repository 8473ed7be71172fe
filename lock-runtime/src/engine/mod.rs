//! Everything that happens between a request and a store, the same for every store.

mod acquire;
mod all;
mod attempt;
pub(crate) mod hold;
mod latch;
pub(crate) mod line;
mod patience;
mod pulse;
pub(crate) mod rate;
pub(crate) mod reaper;
mod release;
pub(crate) mod scope;
mod share;
mod shutdown;
pub(crate) mod thread;
mod time;
mod turn;
mod watchdog;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lock_store::{
    Answer, ClientId, Clock, Failure, Inspection, LockKey, Owner, Released, Renewed, ServerHealth,
    Share, Store, StoreError, StoreErrorKind, Wish,
};
use tokio::sync::Notify;

use self::hold::Hold;
use self::latch::LatchWatches;
use self::line::Lines;
use self::pulse::Pulse;
use self::reaper::Reaper;
use self::shutdown::Active;
use self::watchdog::Watchdog;
use crate::config::{Defaults, check_lease, check_permits};
use crate::error::{LockError, LostReason};

pub(crate) use self::acquire::Held;

/// What all clones of a client and all its guards share. When the last is gone, its thread ends its work and itself.
pub(crate) struct Engine {
    id: ClientId,
    clock: Clock,
    store: Arc<dyn Store>,
    defaults: Defaults,
    lines: Arc<Lines>,
    latches: Arc<LatchWatches>,
    pulse: Arc<Pulse>,
    watchdog: Arc<Watchdog>,
    reaper: Reaper,
    requests: AtomicU64,
    lost: AtomicU64,
    closing: AtomicBool,
    /// Wakes nested requests and those of latches at a shutdown; the others stand in a line.
    closed: Notify,
    active: Arc<Active>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = self.watchdog.held();
        f.debug_struct("Engine")
            .field("id", &self.id)
            .field("defaults", &self.defaults)
            .field("held", &held)
            .finish()
    }
}

impl Engine {
    /// An engine, and the task that its runtime must run until it ends.
    pub(crate) fn new(
        id: ClientId,
        clock: Clock,
        store: Arc<dyn Store>,
        lines: Arc<Lines>,
        defaults: Defaults,
    ) -> (Arc<Self>, reaper::Task) {
        let timeout = defaults.command_timeout;
        let pulse = Arc::new(Pulse::new(clock.clone(), timeout));
        let watchdog = Arc::new(Watchdog::new(
            clock.clone(),
            Arc::clone(&store),
            Arc::clone(&pulse),
            timeout,
        ));
        clock.spawn(Arc::clone(&watchdog).run());
        let (reaper, task) = Reaper::new(
            Arc::clone(&store),
            clock.clone(),
            Arc::clone(&pulse),
            timeout,
        );
        let engine = Self {
            id,
            clock,
            store,
            defaults,
            lines,
            latches: Arc::default(),
            pulse,
            watchdog,
            reaper,
            requests: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            closing: AtomicBool::new(false),
            closed: Notify::new(),
            active: Arc::default(),
        };
        let engine = Arc::new(engine);
        let patrol = release::patrol(Arc::downgrade(&engine), Arc::clone(&engine.lines));
        engine.clock.spawn(patrol);
        (engine, task)
    }

    pub(crate) fn id(&self) -> ClientId {
        self.id
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

    pub(crate) fn waiting(&self) -> usize {
        self.lines.waiting() + self.latches.waiting()
    }

    pub(crate) fn lost_holds(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(crate) fn release_failures(&self) -> u64 {
        self.reaper.release_failures()
    }

    pub(crate) fn count_loss(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    fn next_owner(&self) -> Owner {
        Owner {
            client: self.id,
            request: self.requests.fetch_add(1, Ordering::Relaxed),
        }
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    fn command_by(&self) -> Instant {
        self.clock.now() + self.defaults.command_timeout
    }

    /// Lets a hold last at least `lease` from now.
    pub(crate) async fn extend(&self, hold: &Hold, lease: Duration) -> Result<(), LockError> {
        check_lease("lease", lease)?;
        self.can(Wish::Lease(lease))?;
        if let Some(reason) = hold.loss() {
            return Err(hold.lost_error(reason));
        }
        if hold.ended() {
            return Err(hold.lost_error(LostReason::Gone));
        }
        let sent = self.clock.now();
        if hold.ends.is_some_and(|ends| sent + lease > ends) {
            return Err(LockError::config(format!(
                "an extension by {lease:?} would outlive the `max_hold` of this hold; extend by less, or allow a longer `max_hold`"
            )));
        }
        let renewals = hold.renewals(lease);
        let result = self.store.renew(renewals, self.command_by()).await;
        self.pulse.note(sent, &result);
        let answer = result.map_err(|failure| unavailable(Some(hold.key()), failure.error))?;
        if answer.value.contains(&Renewed::Unanswered) && !answer.value.contains(&Renewed::Gone) {
            return Err(unavailable(Some(hold.key()), unanswered()));
        }
        if answer.value.iter().any(|one| *one != Renewed::Renewed) {
            hold.lose(LostReason::Gone);
            self.watchdog.forget(hold);
        }
        hold.prolong(time::deadline(sent, lease));
        hold.loss()
            .map_or(Ok(()), |reason| Err(hold.lost_error(reason)))
    }

    /// Turns a writer into a reader.
    pub(crate) async fn downgrade(&self, hold: &Hold) -> Result<(), LockError> {
        if hold
            .share()
            .is_none_or(|share| share.of != Share::READ_WRITE)
        {
            return Err(LockError::config(
                "only the guard of a write lock can be downgraded; this is an exclusive lock or a semaphore",
            ));
        }
        if let Some(reason) = hold.loss() {
            return Err(hold.lost_error(reason));
        }
        let part = &hold.parts()[0];
        let claim = hold.claim(part);
        // From here on the store may have it as a reader.
        hold.set_share(Share::READ);
        let sent = self.clock.now();
        let result = self.store.shrink(claim, 1, self.command_by()).await;
        self.pulse.note(sent, &result);
        let answer = result.map_err(|failure| unavailable(Some(&part.key), failure.error))?;
        if answer.value == Released::NotHeld {
            hold.lose(LostReason::Gone);
            return Err(hold.lost_error(LostReason::Gone));
        }
        Ok(())
    }

    /// Changes the number of a semaphore's permits.
    pub(crate) async fn resize(&self, key: LockKey, of: u32) -> Result<(), LockError> {
        self.check(&key)?;
        check_permits(Share { permits: 1, of })?;
        self.can(Wish::Shares)?;
        let command = self.store.resize(key.clone(), of, self.command_by());
        if self.note(Some(&key), command).await? {
            Ok(())
        } else {
            Err(LockError::KeyConflict { key })
        }
    }

    pub(crate) async fn inspect(&self, key: LockKey) -> Result<Inspection, LockError> {
        self.check(&key)?;
        let answer = self
            .note(
                Some(&key),
                self.store.inspect(key.clone(), self.command_by()),
            )
            .await?;
        answer.ok_or(LockError::KeyConflict { key })
    }

    pub(crate) async fn force_release(&self, key: LockKey) -> Result<bool, LockError> {
        self.check(&key)?;
        let answer = self
            .note(
                Some(&key),
                self.store.force_release(key.clone(), self.command_by()),
            )
            .await?;
        answer.ok_or(LockError::KeyConflict { key })
    }

    pub(crate) async fn ping(&self) -> Result<Duration, LockError> {
        if self.is_closing() {
            return Err(LockError::Shutdown);
        }
        let sent = self.clock.now();
        self.note(None, self.store.ping(self.command_by())).await?;
        Ok(self.clock.now().saturating_duration_since(sent))
    }

    /// What the servers say of themselves.
    pub(crate) async fn diagnose(&self) -> Result<Vec<ServerHealth>, LockError> {
        let servers = self.store.servers(self.command_by()).await;
        servers.map_err(|source| unavailable(None, source))
    }

    async fn note<T>(
        &self,
        key: Option<&LockKey>,
        command: impl Future<Output = Result<Answer<T>, Failure>>,
    ) -> Result<T, LockError> {
        let sent = self.clock.now();
        let result = command.await;
        self.pulse.note(sent, &result);
        result
            .map(|answer| answer.value)
            .map_err(|failure| unavailable(key, failure.error))
    }

    fn check(&self, key: &LockKey) -> Result<(), LockError> {
        if let Some(fault) = key.fault() {
            return Err(LockError::InvalidKey {
                key: key.clone(),
                fault,
            });
        }
        if self.is_closing() {
            Err(LockError::Shutdown)
        } else {
            Ok(())
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.watchdog.close();
        self.lines.stop();
    }
}

fn unavailable(key: Option<&LockKey>, source: StoreError) -> LockError {
    LockError::Unavailable {
        key: key.cloned(),
        source,
    }
}

/// Of several locks of one hold, some could be renewed.
fn unanswered() -> StoreError {
    StoreError::new(
        StoreErrorKind::Timeout,
        "a part of the store did not answer",
    )
}

fn too_late() -> StoreError {
    StoreError::new(
        StoreErrorKind::Timeout,
        "its answer came after the lease it granted",
    )
}
