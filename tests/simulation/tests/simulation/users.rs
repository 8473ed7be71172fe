//! What users do with locks: everything, at random.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lock_runtime::{Guard, Lock, LockClient, LockError, OnLost, Rate, StoreErrorKind};
use lock_store::Pause;
use lock_testkit::polled;

use crate::oracle::{Writer, check_waited};
use crate::rng::Rng;
use crate::world::{Check, World, now, sleep};

const EXCLUSIVE: [&str; 3] = ["a", "b", "c"];
const PERMITS: u32 = 3;
/// The longest lease that clients have.
const LONGEST_LEASE: Duration = Duration::from_secs(30);

/// One client, as its users see it.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) world: Arc<World>,
    pub(crate) number: usize,
    pub(crate) client: LockClient,
    pub(crate) pause: Pause,
    /// For how many milliseconds it was stopped so far.
    pub(crate) stopped: Arc<AtomicU64>,
    pub(crate) command_timeout: Duration,
}

/// A task of a client.
pub(crate) struct User {
    service: Service,
    name: String,
    rng: Rng,
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
                let request = self.exclusive();
                self.request(request).await;
            }
            45..55 => {
                let request = self.several();
                self.request(request).await;
            }
            55..70 => {
                let lock = self.service.client.rw_lock("rw");
                let write = self.rng.chance(400);
                let request = self.options(if write { lock.write() } else { lock.read() });
                self.request((vec!["rw"], request.0, request.1)).await;
            }
            70..82 => {
                let semaphore = self.service.client.semaphore("sem", PERMITS);
                let many = u32::try_from(1 + self.rng.below(3)).unwrap();
                let request = self.options(semaphore.acquire_many(many));
                self.request((vec!["sem"], request.0, request.1)).await;
            }
            82..91 => self.latch().await,
            _ => self.rate().await,
        }
    }

    fn exclusive(&mut self) -> (Vec<&'static str>, Lock, Option<Duration>) {
        let key = self.rng.pick(&EXCLUSIVE);
        let lock = self.service.client.lock(key);
        let (lock, wait) = self.options(lock);
        (vec![key], lock, wait)
    }

    fn several(&mut self) -> (Vec<&'static str>, Lock, Option<Duration>) {
        let mut keys = EXCLUSIVE.to_vec();
        if self.rng.chance(600) {
            let out = self.rng.pick(&EXCLUSIVE);
            keys.retain(|key| *key != out);
        }
        if self.rng.chance(500) {
            keys.reverse();
        }
        let lock = self.service.client.multi_lock(keys.clone());
        let (lock, wait) = self.options(lock);
        (keys, lock, wait)
    }

    /// Random options, and how long the request may take.
    fn options(&mut self, mut lock: Lock) -> (Lock, Option<Duration>) {
        let rng = &mut self.rng;
        if rng.chance(400) {
            let lease = rng.ms(200..=6000);
            lock = lock.lease(lease).renew(rng.chance(500));
        }
        if rng.chance(200) {
            lock = lock.max_hold(LONGEST_LEASE + rng.ms(0..=5000)).renew(true);
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
        if rng.chance(100) {
            return (lock.wait_forever(), None);
        }
        let wait = rng.pick(&[0, 0, 20, 300, 1500, 5000, 20_000]);
        let wait = Duration::from_millis(wait);
        (lock.wait(wait), Some(wait))
    }

    fn stopped(&self) -> Duration {
        Duration::from_millis(self.service.stopped.load(Ordering::Relaxed))
    }

    async fn request(&mut self, (keys, lock, wait): (Vec<&str>, Lock, Option<Duration>)) {
        let world = Arc::clone(&self.service.world);
        let name = self.name.clone();
        match self.rng.below(100) {
            0..12 => {
                world.counts.add("requests dropped at a random poll");
                let polls = usize::try_from(self.rng.below(9)).unwrap();
                let invoked = world.oracle.invoke(&keys);
                if let Some(Ok(guard)) = polled(polls, lock.acquire()).await {
                    world.oracle.granted(&world, &name, &invoked, &guard);
                }
            }
            12..20 => {
                world.counts.add("requests given up");
                let patience = self.rng.ms(0..=700);
                let invoked = world.oracle.invoke(&keys);
                if let Ok(Ok(guard)) = tokio::time::timeout(patience, lock.acquire()).await {
                    world.oracle.granted(&world, &name, &invoked, &guard);
                }
            }
            20..35 => self.run_body(&keys, lock).await,
            35..42 => self.stops_polling(&keys, lock).await,
            _ => {
                let (started, stopped) = (now(), self.stopped());
                let invoked = world.oracle.invoke(&keys);
                world.note(format_args!("{name} asks for {keys:?}, waits {wait:?}"));
                let result = lock.acquire().await;
                if let Some(wait) = wait {
                    let stopped = self.stopped() - stopped;
                    let most = wait.max(self.service.command_timeout);
                    check_waited(&world, &name, started, stopped, most);
                }
                match result {
                    Ok(guard) => {
                        world.counts.add("grants");
                        world.note(format_args!("{name} has {keys:?}"));
                        let writers = world.oracle.granted(&world, &name, &invoked, &guard);
                        self.hold(guard, &keys, &writers).await;
                    }
                    Err(error) => self.refused(&error),
                }
            }
        }
    }

    /// A request whose future is not polled for a while, or never again.
    async fn stops_polling(&mut self, keys: &[&str], lock: Lock) {
        let world = Arc::clone(&self.service.world);
        world.counts.add("requests that nobody polled for a while");
        let polls = usize::try_from(self.rng.below(6)).unwrap();
        let time = self.rng.ms(0..=20_000);
        // One that has the first of several locks holds it, as a task does that does not end.
        let never = self.rng.chance(400) && keys.len() == 1;
        let invoked = world.oracle.invoke(keys);
        let mut request = Box::pin(lock.acquire());
        let result = match polled(polls, &mut request).await {
            Some(result) => result,
            None if never => {
                world.note(format_args!("{} polls {keys:?} never again", self.name));
                world.park(request);
                return;
            }
            None => {
                world.note(format_args!(
                    "{} polls {keys:?} in {time:?} again",
                    self.name
                ));
                sleep(time).await;
                request.await
            }
        };
        match result {
            Ok(guard) => {
                let writers = world.oracle.granted(&world, &self.name, &invoked, &guard);
                self.hold(guard, keys, &writers).await;
            }
            Err(error) => self.refused(&error),
        }
    }

    fn refused(&self, error: &LockError) {
        let world = &self.service.world;
        world.note(format_args!("{} gets {error:?}", self.name));
        match error {
            LockError::Busy { .. } => world.counts.add("busy"),
            LockError::Unavailable { source, .. }
                if matches!(
                    source.kind(),
                    StoreErrorKind::Timeout | StoreErrorKind::Disconnected
                ) =>
            {
                world.counts.add("unavailable");
            }
            LockError::Lost { .. } => world.counts.add("lost"),
            other => world.violated(Check::Waiting, format!("{}: {other}", self.name)),
        }
    }

    async fn work(&mut self, writers: &[(String, Writer)]) {
        for _ in 0..self.rng.below(4) {
            sleep(self.rng.ms(1..=500)).await;
            self.write(writers);
        }
    }

    /// Whatever its guard says: the resource has to see to it.
    fn write(&self, writers: &[(String, Writer)]) {
        let world = &self.service.world;
        for (key, writer) in writers {
            world.oracle.write(world, &self.name, key, *writer);
        }
        world.oracle.check_losers(world);
    }

    async fn hold(&mut self, guard: Guard, keys: &[&str], writers: &[(String, Writer)]) {
        self.work(writers).await;
        if self.rng.chance(150) {
            // By no more than its lease, which is how long losers may take to learn of it.
            let lease = u64::try_from(guard.probe().lease().as_millis()).unwrap();
            let _ = guard.extend(self.rng.ms(50..=lease)).await;
        }
        if self.rng.chance(200) && keys == ["rw"] {
            let _ = guard.downgrade().await;
            self.work(writers).await;
        }
        if self.rng.chance(300) && EXCLUSIVE.contains(&keys[0]) {
            self.nested(&guard, keys).await;
        }
        if self.rng.chance(80) {
            // Longer than a lease, if it is renewed.
            for _ in 0..self.rng.below(30) {
                sleep(self.rng.ms(100..=2000)).await;
                self.write(writers);
            }
        }
        let polls = usize::try_from(self.rng.below(4)).unwrap();
        match self.rng.below(100) {
            0..25 => drop(guard),
            25..40 => drop(polled(polls, guard.release()).await),
            40..50 => panic_with(guard).await,
            _ => drop(guard.release().await),
        }
    }

    /// A nested request shares the hold, and its token.
    async fn nested(&mut self, guard: &Guard, keys: &[&str]) {
        let nested = self.service.client.multi_lock(keys.iter().copied());
        let nested = nested.fenced().acquire();
        let time = self.rng.ms(0..=100);
        let outer = guard.fencing_tokens();
        let body = async {
            let inner = nested.await?;
            sleep(time).await;
            Ok::<_, LockError>(inner.fencing_tokens())
        };
        match guard.scope(body).await {
            Ok(inner) => {
                if outer.is_some() && inner != outer {
                    let what = format!("{}: nested {inner:?} in {outer:?}", self.name);
                    self.service.world.violated(Check::Tokens, what);
                }
            }
            Err(error) => self.refused(&error),
        }
    }

    /// A body under the lock: stopped when it is lost, or not.
    async fn run_body(&mut self, keys: &[&str], lock: Lock) {
        let world = Arc::clone(&self.service.world);
        let cancel = self.rng.chance(700);
        let lock = lock.on_lost(if cancel {
            OnLost::Cancel
        } else {
            OnLost::Continue
        });
        let polls = if self.rng.chance(200) {
            usize::try_from(self.rng.below(12)).unwrap()
        } else {
            usize::MAX
        };
        let invoked = world.oracle.invoke(keys);
        let body = async |guard: &Guard| {
            let writers = world.oracle.granted(&world, &self.name, &invoked, guard);
            let probe = guard.probe();
            for _ in 0..self.rng.below(6) {
                sleep(self.rng.ms(1..=800)).await;
                if cancel && !probe.is_trusted() {
                    let what = format!("{} runs on after its hold was lost", self.name);
                    world.violated(Check::Body, what);
                }
                self.write(&writers);
            }
        };
        let result = polled(polls, lock.run_with(body)).await;
        if let Some(Err(error)) = result {
            self.refused(&error);
        }
    }

    async fn latch(&mut self) {
        let latch = self
            .service
            .client
            .latch("latch")
            .ttl(self.rng.ms(500..=3000));
        let world = &self.service.world;
        let polls = if self.rng.chance(200) {
            usize::try_from(self.rng.below(6)).unwrap()
        } else {
            usize::MAX
        };
        let _ = match self.rng.below(4) {
            0 => polled(polls, latch.set(2)).await.map(drop),
            1 => polled(polls, latch.count_down()).await.map(drop),
            2 => polled(polls, latch.count()).await.map(drop),
            _ => {
                let wait = self.rng.ms(0..=4000);
                let (started, stopped) = (now(), self.stopped());
                let waited = polled(polls, latch.wait(wait)).await;
                let stopped = self.stopped() - stopped;
                let most = wait.max(self.service.command_timeout);
                check_waited(world, &self.name, started, stopped, most);
                waited.map(drop)
            }
        };
    }

    async fn rate(&mut self) {
        let rate = Rate::per_second(10).burst(3);
        let wait = self.rng.ms(0..=300);
        let limiter = self.service.client.rate_limiter("rate", rate).wait(wait);
        let (started, stopped) = (now(), self.stopped());
        let _ = limiter.acquire().await;
        let stopped = self.stopped() - stopped;
        let most = wait.max(self.service.command_timeout);
        check_waited(&self.service.world, &self.name, started, stopped, most);
    }
}

/// A task that panics with the guard in its hands.
async fn panic_with(guard: Guard) {
    let task = async move {
        let _guard = guard;
        tokio::task::yield_now().await;
        // Without the panic hook's message.
        std::panic::resume_unwind(Box::new("a panic in a body"));
    };
    let _: Result<(), _> = tokio::spawn(task).await;
}

/// The future, as a task that stops with its client.
pub(crate) fn start(
    service: &Service,
    task: impl Future<Output = ()> + Send + 'static,
) -> tokio::task::JoinHandle<()> {
    let pause = service.pause.clone();
    tokio::spawn(async move { pause.gate(task).await })
}
