//! What all parts of one run share: time, the trace, and the violations found.

use std::cell::Cell;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use lock_store::Instant;
use lock_testkit_core::runtime_now;

use lock_runtime::{Guard, LockError};

use crate::faults::{Counts, Faults};
use crate::oracle::Oracle;
use crate::server::Server;
use crate::wires::Wires;
use crate::witness::Witness;
use crate::wrong::Mistake;

/// What a run is checked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Check {
    /// Two clients believe that they hold what only one can.
    Exclusion,
    /// Tokens are unique and rise.
    Tokens,
    /// The guarded resource accepts no write of an earlier holder after one of a later holder.
    StaleWrite,
    /// After a fault outside the model, a loser learns of its loss within a lease.
    LoserLearns,
    /// A body under `on_lost = cancel` runs no line after its hold is lost.
    Body,
    /// No request waits longer than its wait allows, or for ever.
    Waiting,
    /// A key reported busy was held. A key reported unavailable got no answer from a server, or a
    /// refusal.
    Lies,
    /// A renewed hold is kept as long as its servers answer.
    Loss,
    /// No lock, place in a queue, or count of a client is left.
    Leftover,
    /// No task and no client is left.
    Tasks,
}

pub(crate) struct World {
    pub(crate) faults: Faults,
    /// Each key belongs to one of them.
    pub(crate) servers: Vec<Server>,
    pub(crate) oracle: Oracle,
    pub(crate) witness: Witness,
    pub(crate) counts: Counts,
    /// The network of each client, as long as it exists.
    pub(crate) wires: Mutex<Vec<Weak<Wires>>>,
    /// Each command on its way to a server has one.
    pub(crate) under_way: Arc<()>,
    /// No more faults from now on.
    calm: AtomicBool,
    started: Instant,
    trace: Mutex<Trace>,
    violations: Mutex<Vec<(Check, String)>>,
    /// Requests that are no longer polled.
    parked: Mutex<Vec<Pin<Box<dyn Acquire>>>>,
}

/// A request under way.
trait Acquire: Future<Output = Result<Guard, LockError>> + Send {}

impl<F: Future<Output = Result<Guard, LockError>> + Send> Acquire for F {}

#[derive(Default)]
struct Trace {
    hash: u64,
    /// `None` unless the trace was asked for.
    lines: Option<Vec<String>>,
}

thread_local! {
    /// How long the machines of this thread's run were suspended, in total.
    static SUSPENDED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// The paused time of this runtime, plus the time for which the machines were suspended.
pub(crate) fn now() -> Instant {
    runtime_now() + SUSPENDED.get()
}

pub(crate) async fn sleep(duration: Duration) {
    tokio::time::sleep(duration).await;
}

/// Networks and servers are not suspended. If the machines were, this wakes a second late at most.
pub(crate) async fn sleep_until(at: Instant) {
    const SLICE: Duration = Duration::from_secs(1);
    loop {
        let left = at - now();
        sleep(left.min(SLICE)).await;
        if left <= SLICE {
            return;
        }
    }
}

impl World {
    pub(crate) fn new(faults: Faults, mistake: Option<Mistake>, traced: bool) -> Arc<Self> {
        SUSPENDED.set(Duration::ZERO);
        let servers = (0..faults.servers).map(|_| Server::new(mistake));
        Arc::new(Self {
            servers: servers.collect(),
            faults,
            oracle: Oracle::default(),
            witness: Witness::default(),
            counts: Counts::default(),
            wires: Mutex::default(),
            under_way: Arc::default(),
            calm: AtomicBool::new(false),
            started: now(),
            trace: Mutex::new(Trace {
                hash: 0xcbf2_9ce4_8422_2325,
                lines: traced.then(Vec::new),
            }),
            violations: Mutex::default(),
            parked: Mutex::default(),
        })
    }

    /// The server that has the key.
    pub(crate) fn server_of(&self, key: &str) -> usize {
        let hash = key.bytes().fold(self.faults.placement, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let servers = u64::try_from(self.servers.len()).unwrap();
        usize::try_from((hash >> 32) % servers).unwrap()
    }

    /// All machines sleep, and their timers with them. Their clocks go on.
    pub(crate) fn suspend(&self, milliseconds: u64) {
        let time = Duration::from_millis(milliseconds);
        SUSPENDED.set(SUSPENDED.get() + time);
        for server in &self.servers {
            server.jump(i64::try_from(milliseconds).unwrap());
        }
    }

    /// Keeps a request until the end without polling it.
    pub(crate) fn park(
        &self,
        request: Pin<Box<impl Future<Output = Result<Guard, LockError>> + Send + 'static>>,
    ) {
        self.parked.lock().unwrap().push(request);
    }

    pub(crate) fn drop_parked(&self) {
        let parked = std::mem::take(&mut *self.parked.lock().unwrap());
        drop(parked);
    }

    /// Adds one line to the trace. Two runs of a seed must have the same hash of all lines.
    pub(crate) fn note(&self, what: fmt::Arguments<'_>) {
        let line = format!("{:>9} {what}", self.elapsed().as_millis());
        let mut trace = self.trace.lock().unwrap();
        for byte in line.bytes() {
            trace.hash = (trace.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if let Some(lines) = &mut trace.lines {
            lines.push(line);
        }
    }

    pub(crate) fn violated(&self, check: Check, what: String) {
        self.note(format_args!("!! {check:?}: {what}"));
        self.violations.lock().unwrap().push((check, what));
    }

    pub(crate) fn violations(&self) -> Vec<(Check, String)> {
        self.violations.lock().unwrap().clone()
    }

    pub(crate) fn elapsed(&self) -> Duration {
        now() - self.started
    }

    pub(crate) fn hash(&self) -> u64 {
        self.trace.lock().unwrap().hash
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.trace.lock().unwrap().lines.clone().unwrap_or_default()
    }

    pub(crate) fn calm_down(&self) {
        self.be_calm(true);
    }

    pub(crate) fn be_calm(&self, calm: bool) {
        self.calm.store(calm, Ordering::Relaxed);
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed)
    }

    pub(crate) fn all_wires(&self) -> Vec<Arc<Wires>> {
        let wires = self.wires.lock().unwrap();
        wires.iter().filter_map(Weak::upgrade).collect()
    }
}
