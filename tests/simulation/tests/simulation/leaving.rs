//! Nested requests that leave the body in which they began, that other tasks make inside of it, or
//! that nobody polls.

use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use lock_runtime::{Guard, Lock, LockError};
use lock_testkit_core::polled;
use tokio::task::LocalSet;

use crate::users::{User, start};
use crate::world::{Check, sleep};

/// A nested request that is not polled is skipped within this time.
const SKIPPED_WITHIN: Duration = Duration::from_secs(3);

impl User {
    /// A request that can share the hold.
    fn nested(&self, keys: &[&str]) -> Lock {
        let client = &self.service.client;
        match keys {
            ["rw"] => client.rw_lock("rw").read(),
            ["sem"] => client.semaphore("sem", 3).permit(),
            keys => client.multi_lock(keys.iter().copied()),
        }
    }

    pub(crate) async fn leave(&mut self, guard: &Guard, keys: &[&str]) {
        match self.rng.below(3) {
            0 => self.keep_a_body(guard, keys).await,
            1 => self.poll_another_task(guard, keys).await,
            _ => self.forget_a_sibling(guard, keys).await,
        }
    }

    /// A nested body goes on in a task of its own. It ends with the outer guard.
    async fn keep_a_body(&mut self, guard: &Guard, keys: &[&str]) {
        let world = Arc::clone(&self.service.world);
        world.counts.add("nested bodies that leave their outer one");
        let (name, probe, mut rng) = (self.name.clone(), guard.probe(), self.rng.fork());
        let (lines, noted) = (self.rng.below(12), Arc::clone(&world));
        let body = async move {
            for _ in 0..lines {
                sleep(rng.ms(0..=400)).await;
                if !probe.is_trusted() {
                    let what = format!("{name}: a nested body runs on after its outer one");
                    noted.violated(Check::Body, what);
                }
            }
        };
        let mut kept = Box::pin(self.nested(keys).run(body));
        if guard.scope(polled(1, &mut kept)).await.is_some() {
            return;
        }
        let name = self.name.clone();
        drop(start(&self.service, async move {
            match kept.await {
                Ok(()) | Err(LockError::Lost { .. }) => {}
                Err(error) => world.violated(Check::Waiting, format!("{name}: {error}")),
            }
        }));
    }

    /// Another task is polled inside of the hold. It does not share it.
    async fn poll_another_task(&self, guard: &Guard, keys: &[&str]) {
        let world = &self.service.world;
        world.counts.add("tasks polled inside of a hold");
        let attempt = self.nested(keys).try_acquire();
        if guard.scope(async { get_in_a_task(attempt) }).await {
            let what = format!("{}: another task shares its hold of {keys:?}", self.name);
            world.violated(Check::Exclusion, what);
        }
    }

    /// A sibling waits and is not polled. Another one behind it gets the hold all the same.
    async fn forget_a_sibling(&self, guard: &Guard, keys: &[&str]) {
        let world = &self.service.world;
        world.counts.add("nested requests not polled");
        // A reader would not wait for another one.
        let alone = || match keys {
            ["rw"] => self.service.client.rw_lock("rw").write(),
            keys => self.nested(keys),
        };
        let siblings = async {
            let first = alone().acquire().await?;
            let mut unpolled = Box::pin(alone().wait_forever().acquire());
            let answer = polled(1, &mut unpolled).await;
            let mut behind = Box::pin(alone().wait_forever().acquire());
            drop(first);
            loop {
                let stopped = self.stopped();
                match tokio::time::timeout(SKIPPED_WITHIN, &mut behind).await {
                    Ok(got) => break got.map(drop),
                    // The patrol was stopped as well.
                    Err(_) if self.stopped() > stopped => {}
                    Err(_) => {
                        let what = format!("{}: an unpolled sibling keeps {keys:?}", self.name);
                        world.violated(Check::Waiting, what);
                        break Ok(());
                    }
                }
            }?;
            drop(answer);
            Ok(())
        };
        match guard.scope(siblings).await {
            // A reader can't write.
            Ok(()) | Err(LockError::Lost { .. } | LockError::WouldDeadlock { .. }) => {}
            Err(LockError::Shutdown) => {}
            Err(error) => world.violated(Check::Waiting, format!("{}: {error}", self.name)),
        }
    }
}

/// Whether another task, polled here and now, gets what it wants at once.
fn get_in_a_task(
    request: impl Future<Output = Result<Option<Guard>, LockError>> + 'static,
) -> bool {
    let (tasks, got) = (LocalSet::new(), Rc::new(Cell::new(false)));
    let gets = Rc::clone(&got);
    tasks.spawn_local(async move { gets.set(matches!(request.await, Ok(Some(_)))) });
    let _: Poll<()> = pin!(tasks).poll(&mut Context::from_waker(Waker::noop()));
    got.get()
}
