//! What users do with their holds.

use lock_runtime::Guard;
use lock_testkit_core::polled;

use crate::lies::{Asked, check_held};
use crate::oracle::Writer;
use crate::users::User;
use crate::world::sleep;

impl User {
    async fn work(&mut self, writers: &[(String, Writer)]) {
        for _ in 0..self.rng.below(4) {
            sleep(self.rng.ms(1..=500)).await;
            self.write(writers);
        }
    }

    /// Whatever the guard says: the resource has to refuse a stale write.
    pub(crate) fn write(&self, writers: &[(String, Writer)]) {
        let world = &self.service.world;
        for (key, writer) in writers {
            world.oracle.write(world, &self.name, key, *writer);
        }
        world.oracle.check_losers(world);
    }

    /// `keeps` if the hold is renewed until its release.
    pub(crate) async fn hold(
        &mut self,
        guard: Guard,
        keys: &[&str],
        writers: &[(String, Writer)],
        keeps: Option<Asked>,
    ) {
        self.work(writers).await;
        let extended = match self.service.world.faults.silence_every {
            None => 150,
            Some(_) => 350,
        };
        if self.rng.chance(extended) {
            self.extend(&guard).await;
        }
        if self.rng.chance(200) && keys == ["rw"] {
            let _ = guard.downgrade().await;
            self.work(writers).await;
        }
        if self.rng.chance(300) {
            self.nest(&guard, keys).await;
        }
        if self.rng.chance(80) {
            // Longer than a lease, if it is renewed.
            for _ in 0..self.rng.below(30) {
                sleep(self.rng.ms(100..=2000)).await;
                self.write(writers);
            }
        }
        if let Some(asked) = keeps {
            check_held(&self.service, &self.name, &asked, &guard.probe());
        }
        let polls = usize::try_from(self.rng.below(4)).unwrap();
        match self.rng.below(100) {
            0..25 => drop(guard),
            25..40 => drop(polled(polls, guard.release()).await),
            40..50 => panic_with(guard).await,
            _ => drop(guard.release().await),
        }
    }

    async fn extend(&mut self, guard: &Guard) {
        let lease = u64::try_from(guard.probe().lease().as_millis()).unwrap();
        let world = &self.service.world;
        let long = self.rng.chance(500) && world.faults.are_inside_the_model();
        // Otherwise by at most its lease, since a loser may take that long to learn of the loss.
        let by = match long {
            true => self.rng.ms(100_000..=600_000),
            false => self.rng.ms(lease.min(50)..=lease),
        };
        let _ = guard.extend(by).await;
    }
}

/// A task that panics while it has the guard.
async fn panic_with(guard: Guard) {
    let task = async move {
        let _guard = guard;
        tokio::task::yield_now().await;
        // Without the panic hook's message.
        std::panic::resume_unwind(Box::new("a panic in a body"));
    };
    let _: Result<(), _> = tokio::spawn(task).await;
}
