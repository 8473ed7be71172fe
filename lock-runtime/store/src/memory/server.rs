//! One server: its locks, buckets, latches, clock and clients.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard};

use super::latch::Latches;
use super::lock::ConnectedClient;
use super::rate::{Buckets, PassLogs};
use super::space::Space;
use crate::instant::{Instant, wall_micros};
use crate::{ClientId, Mutex};

/// A server in this process. A clone is another handle to the same server.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    server: Arc<Mutex<Server>>,
}

#[derive(Debug)]
pub(super) struct Server {
    pub(super) spaces: Vec<Space>,
    pub(super) rates: Buckets,
    pub(super) pass_logs: PassLogs,
    pub(super) latches: Latches,
    pub(super) listeners: BTreeMap<ClientId, ConnectedClient>,
    /// The server's clock at `started`, in microseconds since 1970.
    started_micros: u64,
    started: Option<Instant>,
    /// The latest time that its clock has shown.
    latest_micros: u64,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::started_at(wall_micros())
    }

    /// An empty store whose clock starts at this time, in microseconds since 1970.
    #[must_use]
    pub fn started_at(started_micros: u64) -> Self {
        let server = Server {
            spaces: Vec::new(),
            rates: Buckets::default(),
            pass_logs: PassLogs::default(),
            latches: Latches::default(),
            listeners: BTreeMap::new(),
            started_micros,
            started: None,
            latest_micros: 0,
        };
        Self {
            server: Arc::new(Mutex::new(server)),
        }
    }

    /// Loses all data, as a server without persistence does at a restart.
    pub fn lose_everything(&self) {
        let mut server = self.lock();
        server.spaces.iter_mut().for_each(Space::clear);
        server.rates.clear();
        server.pass_logs.clear();
        server.latches.clear();
        let listeners: Vec<_> = server
            .listeners
            .values()
            .filter_map(ConnectedClient::listener)
            .collect();
        drop(server);
        for listener in listeners {
            listener.recheck();
        }
    }

    /// The number of keys, places in queues, buckets that are not full and logs of exact limits.
    /// What has expired at `now` does not count.
    #[must_use]
    pub fn leftovers(&self, now: Instant) -> usize {
        let server = self.lock();
        let locks: usize = server.spaces.iter().map(|one| one.leftovers(now)).sum();
        let rates = server.rates.count(now) + server.pass_logs.count(now);
        locks + rates + server.latches.leftovers(now)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Server> {
        self.server.lock()
    }
}

impl Server {
    /// The index of a namespace's locks. No index is ever removed.
    pub(super) fn space(&mut self, namespace: &str) -> usize {
        let spaces = &mut self.spaces;
        let known = spaces.iter().position(|one| &*one.namespace == namespace);
        known.unwrap_or_else(|| {
            spaces.push(Space::new(namespace));
            spaces.len() - 1
        })
    }

    /// The server's clock, in microseconds since 1970. It never goes back, even if a simulation
    /// sets the clock back: tokens below it are forgotten, and must not be given again.
    pub(super) fn micros(&mut self, now: Instant) -> u64 {
        let started = *self.started.get_or_insert(now);
        let elapsed = now.saturating_duration_since(started).as_micros();
        let micros = self
            .started_micros
            .saturating_add(u64::try_from(elapsed).unwrap_or(u64::MAX));
        self.latest_micros = self.latest_micros.max(micros);
        self.latest_micros
    }
}
