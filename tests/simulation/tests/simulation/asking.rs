//! How users request locks: they wait, give up, forget to poll, or run a body.

use std::sync::Arc;
use std::time::Duration;

use lock_runtime::{Guard, LockError, OnLost, StoreErrorKind};
use lock_testkit_core::polled;

use crate::lies::{Asked, check_error, check_held, check_patience};
use crate::oracle::check_waited;
use crate::users::{User, Wanted};
use crate::world::{Check, now, sleep};

/// How long a request may exist beyond its wait.
const GIVES_UP: Duration = Duration::from_secs(2);
/// A task that is not polled is skipped within this time of its turn.
const SKIPPED_WITHIN: Duration = Duration::from_secs(5);
/// Longer than any run.
const FOR_EVER: Duration = Duration::from_secs(24 * 60 * 60);

impl User {
    /// Makes the request in one of several ways.
    pub(crate) async fn ask(&mut self, wanted: Wanted) {
        let unpolled = self.service.world.faults.unpolled / 10;
        if !wanted.roomy {
            let until = now() + wanted.wait.unwrap_or(FOR_EVER) + GIVES_UP;
            let (client, witness) = (self.service.number, &self.service.world.witness);
            for key in &wanted.keys {
                witness.note_vain_request(client, key, until);
            }
        }
        match self.rng.below(100) {
            0..12 => self.drop_request(wanted).await,
            12..20 => self.give_up(wanted).await,
            20..35 => self.run_body(wanted).await,
            way if way < 35 + unpolled => self.stop_polling(wanted).await,
            _ => self.wait(wanted).await,
        }
    }

    async fn wait(&mut self, wanted: Wanted) {
        let world = Arc::clone(&self.service.world);
        let asked = wanted.asked();
        let Wanted {
            keys, lock, wait, ..
        } = wanted;
        let (started, stopped) = (now(), self.stopped());
        let invoked = world.oracle.invoke(&keys);
        world.note(format_args!(
            "{} asks for {keys:?}, waits {wait:?}",
            self.name
        ));
        let result = lock.acquire().await;
        let stopped = self.stopped() - stopped;
        match wait {
            Some(wait) => {
                let most = wait.max(self.service.command_timeout);
                check_waited(&world, &self.name, started, stopped, most);
            }
            None => check_patience(&self.service, &self.name, &asked, stopped),
        }
        match result {
            Ok(guard) => {
                world.counts.add("grants");
                world.note(format_args!("{} has {keys:?}", self.name));
                let writers = world.oracle.granted(&world, &self.name, &invoked, &guard);
                let keeps = wanted.renewed.then_some(asked);
                self.hold(guard, &keys, &writers, keeps).await;
            }
            Err(error) => self.judge(&asked, &error),
        }
    }

    async fn drop_request(&mut self, Wanted { keys, lock, .. }: Wanted) {
        let world = &self.service.world;
        world.counts.add("requests dropped at a random poll");
        let polls = usize::try_from(self.rng.below(9)).unwrap();
        let invoked = world.oracle.invoke(&keys);
        if let Some(Ok(guard)) = polled(polls, lock.acquire()).await {
            world.oracle.granted(world, &self.name, &invoked, &guard);
        }
    }

    async fn give_up(&mut self, Wanted { keys, lock, .. }: Wanted) {
        let world = &self.service.world;
        world.counts.add("requests given up");
        let patience = self.rng.ms(0..=700);
        let invoked = world.oracle.invoke(&keys);
        if let Ok(Ok(guard)) = tokio::time::timeout(patience, lock.acquire()).await {
            world.oracle.granted(world, &self.name, &invoked, &guard);
        }
    }

    /// A request whose future is not polled for a while, or never again.
    async fn stop_polling(&mut self, wanted: Wanted) {
        let Wanted { keys, lock, .. } = wanted;
        let world = Arc::clone(&self.service.world);
        world.counts.add("requests not polled for a while");
        let polls = usize::try_from(self.rng.below(6)).unwrap();
        let time = self.rng.ms(0..=20_000);
        // A task that has the first of several locks keeps it, like a task that never ends.
        let never = self.rng.chance(400) && keys.len() == 1;
        let stands_before_others = || {
            let time = if never {
                FOR_EVER
            } else {
                time + SKIPPED_WITHIN
            };
            for key in &keys {
                let witness = &world.witness;
                witness.is_not_polled(self.service.number, key, now() + time);
            }
        };
        stands_before_others();
        let invoked = world.oracle.invoke(&keys);
        let mut request = Box::pin(lock.acquire());
        let result = match polled(polls, &mut request).await {
            Some(result) => result,
            None if never => {
                world.note(format_args!("{} polls {keys:?} never again", self.name));
                world.park(request);
                return;
            }
            None => {
                // The polls before may have waited, with a client that was stopped.
                stands_before_others();
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
                self.hold(guard, &keys, &writers, None).await;
            }
            Err(error) => self.refused(&error),
        }
    }

    pub(crate) fn refused(&self, error: &LockError) {
        let world = &self.service.world;
        world.note(format_args!("{} gets {error:?}", self.name));
        match error {
            LockError::Busy { .. } => world.counts.add("busy"),
            LockError::Unavailable { source, .. } => match source.kind() {
                StoreErrorKind::Timeout | StoreErrorKind::Disconnected => {
                    world.counts.add("unavailable");
                }
                StoreErrorKind::OutOfMemory | StoreErrorKind::Denied | StoreErrorKind::Loading => {
                    world.counts.add("unavailable: refused");
                }
                _ => world.violated(Check::Lies, format!("{}: {error}", self.name)),
            },
            LockError::Lost { .. } => world.counts.add("lost"),
            other => world.violated(Check::Waiting, format!("{}: {other}", self.name)),
        }
    }

    /// A body under the lock. It is stopped at the loss, or not.
    async fn run_body(&mut self, wanted: Wanted) {
        let asked = wanted.asked();
        let Wanted {
            keys,
            lock,
            renewed,
            ..
        } = wanted;
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
        let invoked = world.oracle.invoke(&keys);
        let body = async |guard: &Guard| {
            let writers = world.oracle.granted(&world, &self.name, &invoked, guard);
            let probe = guard.probe();
            for _ in 0..self.rng.below(6) {
                sleep(self.rng.ms(1..=800)).await;
                if cancel && !probe.is_trusted() {
                    let what = format!("{} runs on after its hold was lost", self.name);
                    world.violated(Check::Body, what);
                }
                if renewed {
                    check_held(&self.service, &self.name, &asked, &probe);
                }
                self.write(&writers);
            }
        };
        let result = polled(polls, lock.run_with(body)).await;
        if let Some(Err(error)) = result {
            self.judge(&asked, &error);
        }
    }

    pub(crate) fn judge(&self, asked: &Asked, error: &LockError) {
        check_error(&self.service, &self.name, asked, error);
        self.refused(error);
    }
}
