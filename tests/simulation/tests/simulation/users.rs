//! What users do with locks: everything, at random.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lock_runtime::{Lock, LockClient, LockError, Rate};
use lock_store::SimulatedStop;
use lock_testkit_core::polled;

use crate::lies::{Asked, check_error};
use crate::oracle::check_waited;
use crate::rng::Rng;
use crate::world::{World, now, sleep};

pub(crate) const EXCLUSIVE: [&str; 3] = ["a", "b", "c"];
const PERMITS: u32 = 3;
/// The longest lease that clients have.
const LONGEST_LEASE: Duration = Duration::from_secs(30);

/// One client, as its users see it.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) world: Arc<World>,
    pub(crate) number: usize,
    pub(crate) client: LockClient,
    pub(crate) pause: SimulatedStop,
    /// How many milliseconds it was stopped so far.
    pub(crate) stopped: Arc<AtomicU64>,
    pub(crate) command_timeout: Duration,
    /// The default for requests that set none.
    pub(crate) lease: Duration,
    /// The same. It is also how long a wait without end bears a silent server.
    pub(crate) wait: Duration,
}

/// A task of a client.
pub(crate) struct User {
    pub(crate) service: Service,
    pub(crate) name: String,
    pub(crate) rng: Rng,
}

/// A request to be made.
pub(crate) struct Wanted {
    pub(crate) keys: Vec<&'static str>,
    pub(crate) lock: Lock,
    /// `None` waits for ever.
    pub(crate) wait: Option<Duration>,
    /// Its lease leaves room for the network's delays.
    pub(crate) roomy: bool,
    /// So does its wait.
    pub(crate) patient: bool,
    /// The hold is renewed without end.
    pub(crate) renewed: bool,
}

impl Wanted {
    pub(crate) fn asked(&self) -> Asked {
        Asked {
            keys: self.keys.clone(),
            at: now(),
            roomy: self.roomy,
            patient: self.patient,
        }
    }
}

impl User {
    pub(crate) fn new(service: &Service, task: usize, rng: Rng) -> Self {
        Self {
            name: format!("c{}t{task}", service.number),
            service: service.clone(),
            rng,
        }
    }

    pub(crate) async fn run(mut self, steps: usize) {
        for _ in 0..steps {
            sleep(self.rng.ms(0..=300)).await;
            self.step().await;
        }
    }

    async fn step(&mut self) {
        self.service.world.counts.add("requests");
        match self.rng.below(100) {
            0..45 => {
                let key = self.rng.pick(&EXCLUSIVE);
                let lock = self.service.client.lock(key);
                self.request(vec![key], lock).await;
            }
            45..55 => self.several().await,
            55..70 => {
                let lock = self.service.client.rw_lock("rw");
                let write = self.rng.chance(400);
                let lock = if write { lock.write() } else { lock.read() };
                self.request(vec!["rw"], lock).await;
            }
            70..82 => {
                let semaphore = self.service.client.semaphore("sem", PERMITS);
                let many = u32::try_from(1 + self.rng.below(3)).unwrap();
                self.request(vec!["sem"], semaphore.permits(many)).await;
            }
            82..91 => self.latch().await,
            91..99 => self.rate().await,
            _ => {
                let _ = self.service.client.inspect("a").await;
            }
        }
    }

    async fn several(&mut self) {
        let mut keys = EXCLUSIVE.to_vec();
        if self.rng.chance(600) {
            let out = self.rng.pick(&EXCLUSIVE);
            keys.retain(|key| *key != out);
        }
        if self.rng.chance(500) {
            keys.reverse();
        }
        let lock = self.service.client.multi_lock(keys.clone());
        self.request(keys, lock).await;
    }

    /// Adds random options.
    async fn request(&mut self, keys: Vec<&'static str>, lock: Lock) {
        let wanted = self.options(keys, lock);
        self.ask(wanted).await;
    }

    fn options(&mut self, keys: Vec<&'static str>, mut lock: Lock) -> Wanted {
        let (rng, service) = (&mut self.rng, &self.service);
        let (mut lease, mut renewed) = (service.lease, true);
        if rng.chance(400) {
            let short = service.world.faults.short_leases && rng.chance(600);
            lease = rng.ms(if short { 10..=400 } else { 200..=6000 });
            renewed = rng.chance(500);
            lock = lock.lease(lease).renew(renewed);
        }
        if rng.chance(200) {
            lock = lock.max_hold(LONGEST_LEASE + rng.ms(0..=5000)).renew(true);
            renewed = false;
        }
        if rng.chance(150) {
            lock = lock.hold_at_least(rng.ms(1..=400));
        }
        if rng.chance(600) {
            lock = lock.fenced();
        }
        if rng.chance(300) {
            lock = lock.fair();
        }
        let wait = if rng.chance(100) {
            lock = lock.wait_forever();
            None
        } else {
            let wait = rng.pick(&[0, 0, 20, 300, 1500, 5000, 20_000]);
            let wait = Duration::from_millis(wait);
            lock = lock.wait(wait);
            Some(wait)
        };
        Wanted {
            roomy: service.world.is_roomy(lease, service.command_timeout),
            patient: service.world.is_patient(wait),
            keys,
            lock,
            wait,
            renewed,
        }
    }

    pub(crate) fn stopped(&self) -> Duration {
        Duration::from_millis(self.service.stopped.load(Ordering::Relaxed))
    }

    async fn latch(&mut self) {
        let latch = self
            .service
            .client
            .latch("latch")
            .ttl(self.rng.ms(500..=3000));
        let asked = self.asked("latch");
        let world = &self.service.world;
        let polls = if self.rng.chance(200) {
            usize::try_from(self.rng.below(6)).unwrap()
        } else {
            usize::MAX
        };
        let result = match self.rng.below(4) {
            0 => polled(polls, latch.set(2)).await.map(|result| result.err()),
            1 => polled(polls, latch.count_down())
                .await
                .map(|result| result.err()),
            2 => polled(polls, latch.count())
                .await
                .map(|result| result.err()),
            _ => {
                let wait = self.rng.ms(0..=4000);
                let (started, stopped) = (now(), self.stopped());
                let waited = polled(polls, latch.wait(wait)).await;
                let stopped = self.stopped() - stopped;
                let most = wait.max(self.service.command_timeout);
                check_waited(world, &self.name, started, stopped, most);
                waited.map(|result| result.err())
            }
        };
        let error = result
            .flatten()
            .filter(|error| !matches!(error, LockError::LatchClosed { .. }));
        if let Some(error) = error {
            check_error(&self.service, &self.name, &asked, &error);
        }
    }

    /// A request that needs no lease.
    fn asked(&self, key: &'static str) -> Asked {
        let (world, timeout) = (&self.service.world, self.service.command_timeout);
        Asked {
            keys: vec![key],
            at: now(),
            roomy: world.is_roomy(LONGEST_LEASE, timeout),
            patient: true,
        }
    }

    async fn rate(&mut self) {
        let rate = Rate::per_second(10).burst(3);
        let wait = self.rng.ms(0..=300);
        let limiter = self.service.client.rate_limiter("rate", rate).wait(wait);
        let (asked, started, stopped) = (self.asked("rate"), now(), self.stopped());
        if let Err(error) = limiter.acquire().await {
            check_error(&self.service, &self.name, &asked, &error);
        }
        let stopped = self.stopped() - stopped;
        let most = wait.max(self.service.command_timeout);
        check_waited(&self.service.world, &self.name, started, stopped, most);
    }
}

/// Starts the future as a task that stops with its client.
pub(crate) fn start(
    service: &Service,
    task: impl Future<Output = ()> + Send + 'static,
) -> tokio::task::JoinHandle<()> {
    let pause = service.pause.clone();
    tokio::spawn(async move { pause.gate(task).await })
}
