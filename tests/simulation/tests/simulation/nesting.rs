//! What users request inside of their own holds.

use std::sync::atomic::{AtomicBool, Ordering};

use lock_runtime::{Guard, Lock, LockError};
use lock_store::Instant;

use crate::lies::Asked;
use crate::users::{EXCLUSIVE, User};
use crate::world::{Check, now, sleep};

impl User {
    pub(crate) async fn nest(&mut self, guard: &Guard, keys: &[&str]) {
        if self.service.world.faults.leaving && self.rng.chance(700) {
            return self.leave(guard, keys).await;
        }
        match keys {
            ["rw"] => self.read_or_write(guard).await,
            ["sem"] => {}
            _ => match self.rng.below(10) {
                0..6 => self.share(guard, keys).await,
                6..8 => self.refuse_to_share(guard, keys).await,
                _ => self.take_turns(guard, keys).await,
            },
        }
    }

    /// A nested request shares the hold and its token.
    async fn share(&mut self, guard: &Guard, keys: &[&str]) {
        let nested = self.service.client.multi_lock(keys.iter().copied());
        let (nested, at) = (nested.fenced().acquire(), now());
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
            Err(error) => self.judge_nested(at, &error),
        }
    }

    /// A request that does not share would wait for itself.
    async fn refuse_to_share(&self, guard: &Guard, keys: &[&str]) {
        let lock = self.service.client.lock(keys[0]).reentrant(false);
        self.would_deadlock(guard, lock).await;
    }

    /// A read shares a write. A write in a read would wait for it.
    async fn read_or_write(&self, guard: &Guard) {
        let lock = self.service.client.rw_lock("rw");
        let (permits, at) = (guard.probe().permits(), now());
        if permits.is_some_and(|permits| permits.count == 1) {
            self.would_deadlock(guard, lock.write()).await;
        } else if let Err(error) = guard
            .scope(async { lock.read().acquire().await.map(drop) })
            .await
        {
            self.judge_nested(at, &error);
        }
    }

    async fn would_deadlock(&self, guard: &Guard, lock: Lock) {
        let (started, stopped) = (now(), self.stopped());
        let result = guard.scope(async { lock.acquire().await.map(drop) }).await;
        let took = (now() - started).saturating_sub(self.stopped() - stopped);
        let at_once = took.is_zero();
        match result {
            Err(LockError::WouldDeadlock { .. } | LockError::Lost { .. }) if at_once => {}
            other => {
                let what = format!("{} gets {other:?} after {took:?}", self.name);
                self.service.world.violated(Check::Waiting, what);
            }
        }
    }

    /// Two nested requests side by side exclude each other.
    async fn take_turns(&mut self, guard: &Guard, keys: &[&str]) {
        let inside = AtomicBool::new(false);
        let times = [self.rng.ms(0..=100), self.rng.ms(0..=100)];
        let (key, at) = (keys[0], now());
        let turn = async |time| {
            let _inner = self.service.client.lock(key).acquire().await?;
            if inside.swap(true, Ordering::Relaxed) {
                let what = format!("{} holds {key} twice, nested side by side", self.name);
                self.service.world.violated(Check::Exclusion, what);
            }
            sleep(time).await;
            inside.store(false, Ordering::Relaxed);
            Ok::<_, LockError>(())
        };
        let both = async { tokio::join!(turn(times[0]), turn(times[1])) };
        let (one, other) = guard.scope(both).await;
        for error in [one, other].into_iter().filter_map(Result::err) {
            self.judge_nested(at, &error);
        }
    }

    fn judge_nested(&self, at: Instant, error: &LockError) {
        let asked = Asked {
            keys: EXCLUSIVE.to_vec(),
            at,
            roomy: false,
            patient: true,
        };
        self.judge(&asked, error);
    }
}
