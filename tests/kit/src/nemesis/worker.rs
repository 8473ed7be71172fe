//! One process of a service under load, which records what it does.
//!
//! It takes locks from its start on. Commands on its standard input:
//! - `prove MS`: take each key once more, with this wait.
//! - `stop MS`: end the load, and give the client this time to become idle.
//!
//! It ends when its input ends. Its output:
//! - `up`
//! - `unproved KEY after TIME: ERROR` for each key that it could not get, then `proved`
//! - `unexpected ERROR` for an answer that no fault explains
//! - `stopped HELD WAITING`

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lock_runtime::{Guard, LockClient, LockError, LostReason};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::task::JoinSet;

use super::arguments::Arguments;
use super::log::{Log, nanos, released, trusted};
use super::mistake::Mistake;
use super::plan::{EXCLUSIVE, KEYS, Plan, Style};
use super::resource::Resource;
use super::wrongly::Wrongly;
use crate::history::{Operation, Outcome, Recorder};
use crate::monotonic_nanos;
use crate::seeded::Seeded;

/// Shorter than the default, so that a minute has many timeouts.
pub(super) const COMMAND_TIMEOUT: Duration = Duration::from_millis(300);

/// The state that all tasks of the process share.
pub(super) struct Worker {
    pub(super) client: LockClient,
    pub(super) resource: Resource,
    pub(super) recorder: Recorder,
    pub(super) process: u32,
    /// What it takes.
    keys: &'static [&'static str],
    /// Whether a grant may have less time than its lease: what is left of a session's.
    in_a_session: bool,
    attempts: AtomicU64,
    stop: AtomicBool,
    pub(super) wrongly: Option<Wrongly>,
}

/// Runs a worker process. `words` are its arguments after the word `worker`.
///
/// # Panics
/// If it can't start. Then the process that started it fails as well.
pub async fn run_worker(words: &[String]) {
    let arguments = Arguments::parse(words).expect("the arguments of a worker");
    let client = LockClient::builder()
        .url(&arguments.url)
        .command_timeout(COMMAND_TIMEOUT)
        .connect_timeout(Duration::from_millis(500))
        // Each request has one of its own. A quorum refuses what it could forget.
        .lease(Duration::from_secs(2))
        .connect_lazy()
        .expect("a client");
    let checks = arguments.mistake != Some(Mistake::NoTokenCheck);
    let resource = Resource::connect(&arguments.resource, checks)
        .await
        .expect("the resource is up");
    let worker = Arc::new(Worker {
        client,
        resource,
        recorder: Recorder::append_to(Path::new(&arguments.history)),
        process: arguments.process,
        keys: match arguments.url.starts_with("redis-quorum") {
            true => &EXCLUSIVE,
            false => &KEYS,
        },
        in_a_session: ["zookeeper:", "etcd:"]
            .iter()
            .any(|scheme| arguments.url.starts_with(scheme)),
        attempts: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        wrongly: arguments
            .mistake
            .map(|mistake| Wrongly::new(mistake, &arguments.url)),
    });
    let mut random = Seeded::new(arguments.seed);
    // Most mistakes show at the end of a lease.
    let long = if worker.wrongly.is_some() { 40 } else { 8 };
    let mut load = JoinSet::new();
    for _ in 0..arguments.tasks {
        let (worker, mut random) = (Arc::clone(&worker), Seeded::new(random.any()));
        load.spawn(async move {
            while !worker.stop.load(Ordering::Relaxed) {
                let _ = worker
                    .take(&Plan::random(&mut random, long, worker.keys))
                    .await;
                tokio::time::sleep(random.millis(0, 10)).await;
            }
        });
    }
    say("up");
    let mut commands = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(command)) = commands.next_line().await {
        let (command, millis) = command.split_once(' ').unwrap_or((&command, ""));
        let patience = Duration::from_millis(millis.parse().unwrap_or(0));
        match command {
            "prove" => worker.prove(patience).await,
            "stop" => {
                worker.stop.store(true, Ordering::Relaxed);
                while let Some(task) = load.join_next().await {
                    task.expect("no task panics");
                }
                let (held, waiting) = worker.until_idle(patience).await;
                say(&format!("stopped {held} {waiting}"));
            }
            other => say(&format!("unexpected command {other}")),
        }
    }
}

impl Worker {
    /// Takes each key once more. A store that is silent for a while, as on a machine with too much
    /// to do, ends a request before its wait is over. Then it asks again, as a user would.
    async fn prove(&self, patience: Duration) {
        for key in self.keys {
            let asked = Instant::now();
            let left = || patience.saturating_sub(asked.elapsed());
            while let Err(error) = self.take(&Plan::proof(key, left())).await {
                if error.is_unavailable() && !left().is_zero() {
                    tokio::time::sleep(COMMAND_TIMEOUT).await;
                    continue;
                }
                let waited = asked.elapsed();
                let there = self.client.inspect(*key).await;
                say(&format!(
                    "unproved {key} after {waited:?}: {error}: {there:?}"
                ));
                break;
            }
        }
        say("proved");
    }

    /// The numbers of locks that the client still holds and waits for, once it is idle or patience
    /// has ended.
    async fn until_idle(&self, patience: Duration) -> (usize, usize) {
        let started = Instant::now();
        loop {
            match self.client.health().await {
                Ok(health) => {
                    let idle = health.held == 0 && health.waiting == 0;
                    if idle || started.elapsed() > patience {
                        return (health.held, health.waiting);
                    }
                }
                Err(error) if started.elapsed() > patience => {
                    say(&format!("unexpected {error:?}"));
                    return (0, 0);
                }
                Err(_) => {}
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// One use of a lock, from the request to the release.
    async fn take(&self, plan: &Plan) -> Result<(), LockError> {
        let number = self.attempts.fetch_add(1, Ordering::Relaxed);
        let log = Log {
            worker: self,
            plan,
            number,
        };
        let asked = monotonic_nanos();
        let by = asked + nanos(plan.wait.max(COMMAND_TIMEOUT));
        log.all(asked, Operation::Acquire, Outcome::Asked, Some(by));
        let mut request = plan.request(&self.client);
        if let Some(wrongly) = &self.wrongly {
            request = wrongly.request(request);
        }
        let result = if plan.style == Style::Body && self.wrongly.is_none() {
            self.with_body(&log, request).await
        } else {
            self.with_guard(&log, request).await
        };
        if let Err(error) = &result {
            self.answered(&log, error);
        }
        result
    }

    /// Records a request that was not granted.
    fn answered(&self, log: &Log<'_>, error: &LockError) {
        let outcome = match error {
            LockError::Busy { .. } => Outcome::Busy,
            LockError::Unavailable { .. } => Outcome::Failed,
            // The process stood still between the grant and the beginning of the body.
            LockError::Lost {
                reason: LostReason::Stalled | LostReason::Expired,
                ..
            } if log.plan.style == Style::Body => Outcome::Failed,
            // Little was left of the session, and the renewal that was sent at once got no answer.
            LockError::Lost {
                reason: LostReason::NotRenewed,
                ..
            } if log.plan.style == Style::Body && self.in_a_session => Outcome::Failed,
            other => {
                say(&format!("unexpected {:?} {other:?}", log.plan.keys));
                Outcome::Failed
            }
        };
        log.all(monotonic_nanos(), Operation::Acquire, outcome, None);
    }

    async fn with_guard(
        &self,
        log: &Log<'_>,
        request: lock_runtime::Lock,
    ) -> Result<(), LockError> {
        let acquire = request.acquire();
        let guard = match log.plan.gives_up {
            None => acquire.await?,
            Some(patience) => match tokio::time::timeout(patience, acquire).await {
                Ok(result) => result?,
                Err(_) => {
                    log.all(
                        monotonic_nanos(),
                        Operation::Acquire,
                        Outcome::Unknown,
                        None,
                    );
                    return Ok(());
                }
            },
        };
        if let Some(wrongly) = &self.wrongly {
            wrongly.work(self, log, guard).await;
            return Ok(());
        }
        log.granted(&guard, None);
        if self.work(log, &guard).await {
            match log.plan.as_reader() {
                None => self.release(log, guard).await,
                Some(plan) => self.go_on_as_reader(log, &plan, guard).await,
            }
        }
        Ok(())
    }

    async fn release(&self, log: &Log<'_>, guard: Guard) {
        log.all(monotonic_nanos(), Operation::Release, Outcome::Asked, None);
        if log.plan.style == Style::Drop {
            drop(guard);
            return;
        }
        let outcome = released(&guard.release().await);
        log.all(monotonic_nanos(), Operation::Release, outcome, None);
    }

    /// From this call on, whatever its result, it is a reader's guard: a separate hold in the
    /// history.
    async fn go_on_as_reader(&self, writer: &Log<'_>, plan: &Plan, guard: Guard) {
        let now = monotonic_nanos();
        writer.all(now, Operation::Release, Outcome::Asked, None);
        let log = Log {
            worker: self,
            plan,
            number: self.attempts.fetch_add(1, Ordering::Relaxed),
        };
        log.all(now, Operation::Acquire, Outcome::Asked, None);
        log.granted(&guard, None);
        let _ = guard.downgrade().await;
        if self.work(&log, &guard).await {
            self.release(&log, guard).await;
        }
    }

    async fn with_body(&self, log: &Log<'_>, request: lock_runtime::Lock) -> Result<(), LockError> {
        let began = AtomicBool::new(false);
        let body = async |guard: &Guard| {
            began.store(true, Ordering::Relaxed);
            log.granted(guard, None);
            self.work(log, guard).await;
            log.all(monotonic_nanos(), Operation::Release, Outcome::Asked, None);
        };
        let mut run = std::pin::pin!(request.run_with(body));
        let result = match log.plan.gives_up {
            None => run.await,
            Some(patience) => match tokio::time::timeout(patience, run.as_mut()).await {
                Ok(result) => result,
                Err(_) => {
                    // Record this before the drop: no other process may have the lock earlier.
                    let operation = if began.load(Ordering::Relaxed) {
                        (Operation::Hold, Outcome::Failed)
                    } else {
                        (Operation::Acquire, Outcome::Unknown)
                    };
                    log.all(monotonic_nanos(), operation.0, operation.1, None);
                    return Ok(());
                }
            },
        };
        if !began.load(Ordering::Relaxed) {
            return result;
        }
        let (operation, outcome) = match &result {
            Err(LockError::Lost { .. }) => (Operation::Hold, Outcome::Failed),
            other => (Operation::Release, released(other)),
        };
        log.all(monotonic_nanos(), operation, outcome, None);
        Ok(())
    }

    /// Works under a guard as long as it is trusted. Returns false if it was lost.
    async fn work(&self, log: &Log<'_>, guard: &Guard) -> bool {
        let until = Instant::now() + log.plan.hold;
        loop {
            let Some((at, deadline)) = trusted(guard) else {
                log.all(monotonic_nanos(), Operation::Hold, Outcome::Failed, None);
                return false;
            };
            log.all(at, Operation::Hold, Outcome::Ok, Some(deadline));
            if log.plan.writes() {
                let tokens = guard.fencing_tokens().unwrap_or_default();
                for ((key, _), token) in log.plan.keys.iter().zip(tokens) {
                    self.read_and_write(key, token.into()).await;
                }
            }
            if Instant::now() >= until {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Reads, decides and writes, like a body without time to check its guard in between.
    pub(super) async fn read_and_write(&self, key: &str, token: u64) {
        let read = self.resource.read(monotonic_nanos(), key, token).await;
        if let Some(base) = read {
            // Most mistakes show when another access comes in between.
            let decides = if self.wrongly.is_some() { 20 } else { 2 };
            tokio::time::sleep(Duration::from_millis(decides)).await;
            let _ = self
                .resource
                .write(monotonic_nanos(), key, token, base)
                .await;
        }
    }
}

/// Writes one event as one line, at once.
fn say(event: &str) {
    println!("{event}");
}
