//! Several real processes take locks of all kinds while faults are injected at random, and what
//! they wrote down is checked.
//!
//! A [`run`] has its choices from a seed: which faults, when, for how long, on whom. What the
//! processes and the machine make of it is different each time. First come the faults that a lock
//! must bear, in all combinations; then, too, those that it can't bear, where the store forgets
//! what it acknowledged; last, the store's clock is moved. Then everything is healed, each process
//! must get each key again, and nothing may be left behind.

mod arguments;
mod clock_shim;
mod fault;
mod inject;
mod log;
mod mistake;
mod plan;
mod report;
mod resource;
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
use self::service::Service;
pub use self::worker::run_worker;
use crate::seeded::Seeded;

/// What a run is like.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The program whose first argument `worker` makes it a worker process, see [`run_worker`].
    pub program: PathBuf,
    /// What all choices come from.
    pub seed: u64,
    /// For how long faults are injected, and at least until each of them was.
    pub length: Duration,
    /// How many processes take locks.
    pub processes: usize,
    /// How many tasks each of them has.
    pub tasks: usize,
    /// Which faults there are.
    pub faults: Vec<Fault>,
    /// For how long each process may then wait for each key, and all that it left to be gone.
    pub patience: Duration,
    /// What the processes do wrong.
    pub mistake: Option<Mistake>,
}

impl Settings {
    /// A run of the whole length with all faults.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>, seed: u64, length: Duration) -> Self {
        let faults = [
            &Fault::IN_MODEL[..],
            &Fault::DATA_LOST[..],
            &Fault::CLOCK_MOVED[..],
        ];
        Self {
            program: program.into(),
            seed,
            length,
            processes: 4,
            tasks: 6,
            faults: faults.concat(),
            patience: Duration::from_secs(20),
            mistake: None,
        }
    }
}

/// One run, from an empty server to the verdict.
///
/// # Panics
/// If the harness can't do what it is to do. What the locks do wrong is in the report.
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

/// For so long at most a run goes on in search of a stale access.
const SEARCH: Duration = Duration::from_secs(180);

/// Part of a run, with its faults.
struct Phase {
    faults: Vec<Fault>,
    until: Duration,
    /// Holders are stopped until one of them has come back too late: what fencing tokens are for.
    wants_stale_access: bool,
}

impl Phase {
    /// From one to another percentage of the run. What a lock must bear goes on beside the faults
    /// of the phase.
    fn new(settings: &Settings, from: u32, to: u32, own: &[Fault]) -> Self {
        let among = |faults: &[Fault]| -> Vec<Fault> {
            let chosen = settings.faults.iter().copied();
            chosen.filter(|fault| faults.contains(fault)).collect()
        };
        let mut faults = among(own);
        let wants_stale_access =
            from == 0 && settings.mistake.is_none() && faults.contains(&Fault::ClientStop);
        // A phase without faults of its own goes to the others.
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
        // Each of them once, in any order, before one comes again or the time is up.
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
            // Now and then long enough to see when all is well again.
            let calm = if random.chance(40) {
                (800, 2500)
            } else {
                (20, 400)
            };
            tokio::time::sleep(random.millis(calm.0, calm.1)).await;
        }
    }
}
