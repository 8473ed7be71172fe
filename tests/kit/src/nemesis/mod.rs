//! Several real processes take locks of all kinds while random faults are injected, and their
//! records are checked.
//!
//! A [`run`] takes its choices from a seed: which faults, when, for how long, and on which
//! processes. What the processes and the machine make of it differs each time. First come the
//! faults that a lock must survive, in all combinations. Then faults are added that it can't
//! survive, in which the store forgets what it acknowledged. Last, the store's clock is moved. Then
//! all faults end, each process must get each key again, and nothing may be left behind.

mod arguments;
mod clock_shim;
mod fault;
mod inject;
mod log;
mod mistake;
mod plan;
mod redis;
mod report;
mod resource;
mod server;
mod service;
mod verdict;
mod worker;
mod wrongly;

use std::path::PathBuf;
use std::time::{Duration, Instant};

pub use self::clock_shim::ClockShim;
pub use self::fault::Fault;
pub use self::mistake::Mistake;
pub use self::report::Report;
pub use self::server::Engine;
use self::service::Service;
pub use self::worker::run_worker;
use crate::seeded::Seeded;

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What keeps the locks.
    pub engine: Engine,
    /// The program, which becomes a worker process if its first argument is `worker`; see
    /// [`run_worker`].
    pub program: PathBuf,
    /// The program of every second process, as of another version of the library.
    pub beside: Option<PathBuf>,
    /// The seed of all choices.
    pub seed: u64,
    /// How long faults are injected, and at least until each was injected once.
    pub length: Duration,
    /// The number of processes that take locks.
    pub processes: usize,
    /// The number of tasks in each process.
    pub tasks: usize,
    /// The faults to inject.
    pub faults: Vec<Fault>,
    /// How long each process may then wait for each key, and for its leftovers to go.
    pub patience: Duration,
    /// A mistake that the processes make.
    pub mistake: Option<Mistake>,
}

impl Settings {
    /// A run of this length on Redis, with all faults.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>, seed: u64, length: Duration) -> Self {
        let faults = [
            &Fault::IN_MODEL[..],
            &Fault::DATA_LOST[..],
            &Fault::CLOCK_MOVED[..],
        ];
        Self {
            engine: Engine::Redis,
            program: program.into(),
            beside: None,
            seed,
            length,
            processes: 4,
            tasks: 6,
            faults: faults.concat(),
            patience: Duration::from_secs(20),
            mistake: None,
        }
    }

    /// The same on this engine, with the faults that it can have.
    #[must_use]
    pub fn on(mut self, engine: Engine) -> Self {
        self.engine = engine;
        self.faults.retain(|fault| engine.can_have(*fault));
        self
    }

    /// The same without the faults of clients and networks.
    #[must_use]
    pub fn of_servers_only(mut self) -> Self {
        self.faults.retain(|fault| !fault.is_anywhere());
        self
    }
}

/// One run, from an empty server to the verdict.
///
/// # Panics
/// If the harness fails. What the locks do wrong is in the report.
pub async fn run(settings: &Settings) -> Report {
    let mut random = Seeded::new(settings.seed);
    let service = Service::start(settings, &mut random).await;
    let bears = Phase::new(settings, 0, 60, &Fault::IN_MODEL);
    let loses = Phase::new(settings, 60, 85, &Fault::DATA_LOST);
    let moves = Phase::new(settings, 85, 100, &Fault::CLOCK_MOVED);
    let started = Instant::now();
    for phase in [bears, loses, moves] {
        phase.run(&service, started, &mut random).await;
    }
    service.finish().await
}

/// The maximum time that a run continues in search of a stale access.
const SEARCH: Duration = Duration::from_secs(180);

/// Part of a run, with its faults.
struct Phase {
    faults: Vec<Fault>,
    until: Duration,
    /// Holders are stopped until one of them has come back too late: the case for fencing tokens.
    wants_stale_access: bool,
}

impl Phase {
    /// The part of the run between two percentages. Besides the phase's own faults, those that a
    /// lock must survive continue.
    fn new(settings: &Settings, from: u32, to: u32, own: &[Fault]) -> Self {
        let among = |faults: &[Fault]| -> Vec<Fault> {
            let chosen = settings.faults.iter().copied();
            chosen.filter(|fault| faults.contains(fault)).collect()
        };
        let mut faults = among(own);
        let wants_stale_access = from == 0
            && settings.mistake.is_none()
            && settings.engine.frees_soon()
            && faults.contains(&Fault::ClientStop);
        // Without faults of its own, a phase's time goes to the others.
        if from > 0 {
            let besides = among(&Fault::IN_MODEL);
            let some = (2 * faults.len().max(2)).min(besides.len());
            let mut random = Seeded::new(settings.seed ^ u64::from(from));
            faults.extend(random.shuffled(&besides).into_iter().take(some));
        }
        Self {
            faults,
            until: settings.length * to / 100,
            wants_stale_access,
        }
    }

    async fn run(&self, service: &Service, started: Instant, random: &mut Seeded) {
        if self.faults.is_empty() {
            return tokio::time::sleep(self.until.saturating_sub(started.elapsed())).await;
        }
        // Each fault once, in random order, before any is repeated or the time is up.
        let mut coming = random.shuffled(&self.faults);
        loop {
            if coming.is_empty() {
                let over = started.elapsed().checked_sub(self.until);
                coming = match over {
                    None => random.shuffled(&self.faults),
                    Some(over)
                        if self.wants_stale_access
                            && over < SEARCH
                            && !service.has_refused().await =>
                    {
                        vec![Fault::ClientStop]
                    }
                    Some(_) => return,
                };
            }
            let Some(fault) = coming.pop() else { return };
            // What has happened before is not the next fault's doing.
            service.note_failovers().await;
            let beside = random.pick(&self.faults);
            let mut other = Seeded::new(random.any());
            if fault.place() != beside.place() && random.chance(30) {
                tokio::join!(
                    service.inject(fault, random),
                    service.inject(*beside, &mut other)
                );
            } else {
                service.inject(fault, random).await;
            }
            // Now and then, a pause long enough to see when everything works again.
            let calm = if random.chance(40) {
                (800, 2500)
            } else {
                (20, 400)
            };
            tokio::time::sleep(random.millis(calm.0, calm.1)).await;
        }
    }
}
