//! The parts of a run: the server, the resource, and the processes, each behind a network of its
//! own.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tempfile::TempDir;

use super::arguments::Arguments;
use super::clock_shim::ClockShim;
use super::redis::Masters;
use super::report::{Injected, Report};
use super::server::{Engine, Server};
use super::{Fault, Settings, verdict};
use crate::history::{Check, Effect, Violation};
use crate::monotonic_nanos;
use crate::seeded::Seeded;
use crate::{ChildProcess, Proxy, RedisServer};

/// One process at a time, behind its network.
pub(super) struct Slot {
    pub(super) process: ChildProcess,
    /// Its number in the history, which no other process has.
    pub(super) number: u32,
}

/// Everything that a run has started. It ends with this value.
pub(super) struct Service {
    settings: Settings,
    pub(super) server: Server,
    pub(super) clock: Option<ClockShim>,
    resource: RedisServer,
    /// The networks of one client after the other.
    pub(super) proxies: Vec<Proxy>,
    /// The masters, and when all agreed on them.
    masters: tokio::sync::Mutex<Option<(Masters, u64)>>,
    pub(super) slots: tokio::sync::Mutex<Vec<Slot>>,
    processes: AtomicU32,
    histories: TempDir,
    injected: Mutex<Vec<Injected>>,
    noticed: Mutex<Vec<Violation>>,
}

impl Service {
    pub(super) async fn start(settings: &Settings, random: &mut Seeded) -> Self {
        let moved = |fault: &Fault| Fault::CLOCK_MOVED.contains(fault);
        let clock = if settings.faults.iter().any(moved) {
            ClockShim::compile()
                .inspect_err(|why| eprintln!("the server's clock is not moved in this run: {why}"))
                .ok()
        } else {
            None
        };
        let server = Server::start(settings.engine, clock.as_ref()).await;
        let resource = RedisServer::start().await;
        let mut proxies = Vec::new();
        for _ in 0..settings.processes {
            proxies.extend(server.proxies().await);
        }
        let service = Self {
            settings: settings.clone(),
            server,
            clock,
            resource,
            proxies,
            masters: tokio::sync::Mutex::default(),
            slots: tokio::sync::Mutex::default(),
            processes: AtomicU32::new(0),
            histories: tempfile::tempdir().expect("a temporary folder can be made"),
            injected: Mutex::default(),
            noticed: Mutex::default(),
        };
        if let Some(redis) = service.server.redis() {
            redis.until_settled().await;
        }
        service.note_failovers().await;
        let mut slots = Vec::new();
        for at in 0..settings.processes {
            slots.push(service.worker(at, random).await);
        }
        *service.slots.lock().await = slots;
        service
    }

    /// Starts a process behind its proxy.
    pub(super) async fn worker(&self, at: usize, random: &mut Seeded) -> Slot {
        let number = self.processes.fetch_add(1, Ordering::Relaxed);
        let each = self.proxies.len() / self.settings.processes;
        let arguments = Arguments {
            url: self.server.url(&self.proxies[at * each..(at + 1) * each]),
            resource: self.resource.url(),
            history: self.history(number).to_string_lossy().into_owned(),
            process: number,
            tasks: self.settings.tasks,
            seed: random.any(),
            mistake: self.settings.mistake,
        };
        let words = arguments.words();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let other = self.settings.beside.as_ref().filter(|_| at % 2 == 1);
        let program = other.unwrap_or(&self.settings.program);
        let mut process = ChildProcess::start(program, &words);
        process.wait_for("up").await;
        Slot { process, number }
    }

    pub(super) fn can_have(&self, fault: Fault) -> bool {
        self.settings.engine.can_have(fault)
    }

    pub(super) fn history(&self, number: u32) -> PathBuf {
        self.histories.path().join(number.to_string())
    }

    /// Records a fault and its meaning for the checks.
    pub(super) fn note(&self, fault: Fault, from: u64, effect: Effect) {
        let to = monotonic_nanos();
        let injected = Injected {
            fault,
            from,
            to,
            effect,
        };
        self.injected
            .lock()
            .expect("nobody panics here")
            .push(injected);
    }

    /// Records whether others have taken the place of masters since the last look at which all
    /// servers agreed: before that, one that was replaced may have granted locks beside the next.
    /// Where each lock is confirmed by all replicas, that changes nothing.
    pub(super) async fn note_failovers(&self) {
        let Some(redis) = self.server.redis() else {
            return;
        };
        // Whoever takes over during the look is seen at the next one.
        let looked = monotonic_nanos();
        let Some(now) = redis.settled_masters().await else {
            return;
        };
        let mut known = self.masters.lock().await;
        if let Some((before, at)) = &*known
            && *before != now
        {
            let effect = match self.settings.engine.forgets_at_failover() {
                true => Effect::DataLost,
                false => Effect::Other,
            };
            self.note(Fault::Failover, *at, effect);
        }
        *known = Some((now, looked));
    }

    /// Records a violation that the histories do not show.
    pub(super) fn notice(&self, check: Check, text: String) {
        let violation = Violation {
            check,
            in_model: true,
            text,
        };
        self.noticed
            .lock()
            .expect("nobody panics here")
            .push(violation);
    }

    /// Records messages of a process about violations.
    pub(super) fn hear(&self, slot: &mut Slot) {
        for event in slot.process.take_events() {
            let text = format!("process {}: {}", slot.number, event.text);
            if event.text.starts_with("unproved") {
                self.notice(Check::Progress, text);
            } else {
                self.notice(Check::Answer, text);
            }
        }
    }

    /// True if the resource has refused a stale access.
    pub(super) async fn has_refused(&self) -> bool {
        super::resource::refused(&self.resource).await > 0
    }

    /// After the faults: every process gets every key again, nothing is left, and the histories are
    /// checked.
    pub(super) async fn finish(self) -> Report {
        self.heal().await;
        let mut slots = std::mem::take(&mut *self.slots.lock().await);
        let patience = self.settings.patience;
        let millis = patience.as_millis();
        // One key after the other, and some extra time for a slow machine.
        let limit = 7 * patience + Duration::from_secs(30);
        for slot in &mut slots {
            slot.process.send(&format!("prove {millis}"));
        }
        for slot in &mut slots {
            slot.process.wait_within(limit, "proved").await;
        }
        for slot in &mut slots {
            slot.process.send(&format!("stop {millis}"));
        }
        for slot in &mut slots {
            let stopped = slot.process.wait_within(limit, "stopped").await.text;
            if stopped != "0 0" {
                let text = format!("process {} holds and waits: {stopped}", slot.number);
                self.notice(Check::Leftovers, text);
            }
            self.hear(slot);
        }
        self.look_for_leftovers(slots.len()).await;
        let differ = self.look_for_differences().await;
        for slot in slots {
            let (status, _) = slot.process.finish().await;
            assert!(status.success(), "a process ended badly: {status}");
        }
        self.look_for_channels().await;
        if let Some(redis) = self.server.redis() {
            redis.until_settled().await;
        }
        self.note_failovers().await;
        let numbers = 0..self.processes.load(Ordering::Relaxed);
        let records: Vec<_> = numbers
            .flat_map(|number| crate::history::read_records(&self.history(number)))
            .collect();
        let (accesses, refused) = super::resource::accesses(&self.resource).await;
        let injected = self.injected.into_inner().expect("nobody panics here");
        let mut noticed = self.noticed.into_inner().expect("nobody panics here");
        for violation in &mut noticed {
            violation.in_model = !differ;
        }
        verdict::report(records, &accesses, refused, injected, noticed)
    }

    /// When no process uses a lock, only its fence counter stays in the server.
    async fn look_for_leftovers(&self, processes: usize) {
        let left = verdict::until_none(self.settings.patience, async || {
            self.server.leftovers().await
        });
        let left = left.await;
        if !left.is_empty() {
            self.notice(Check::Leftovers, format!("left in the server: {left:?}"));
        }
        let channels = self.server.channels().await;
        // On a quorum a channel is one for all.
        if channels.len() > processes && self.settings.engine != Engine::Quorum {
            let text = format!("{processes} processes have subscriptions to {channels:?}");
            self.notice(Check::Leftovers, text);
        }
    }

    /// Whether members differ although nobody writes: they have lost what they had acknowledged,
    /// and no client can know what that was. Such a run says nothing about locks. What comes and
    /// goes counts as none: each look must find the same.
    async fn look_for_differences(&self) -> bool {
        let mut lasting: Option<Vec<String>> = None;
        let differences = verdict::until_none(self.settings.patience, async || {
            let mut found = self.server.differences().await;
            if let Some(before) = &lasting {
                found.retain(|difference| before.contains(difference));
            }
            lasting = Some(found.clone());
            found
        });
        let differences = differences.await;
        let differ = !differences.is_empty();
        if differ {
            self.note(Fault::Differ, 0, Effect::DataLost);
            let text = format!("its members differ: {differences:?}");
            self.notice(Check::Leftovers, text);
        }
        differ
    }

    /// No subscription outlives its process.
    async fn look_for_channels(&self) {
        let left = verdict::until_none(self.settings.patience, async || {
            self.server.channels().await
        })
        .await;
        if !left.is_empty() {
            self.notice(Check::Leftovers, format!("subscriptions: {left:?}"));
        }
    }
}
