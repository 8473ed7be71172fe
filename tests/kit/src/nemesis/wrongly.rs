//! A worker that makes a deliberate mistake.

use std::time::{Duration, Instant};

use lock_runtime::{Guard, Lock};

use super::log::{Log, nanos, released, trusted};
use super::mistake::Mistake;
use super::worker::Worker;
use crate::history::{Kind, Operation, Outcome};
use crate::monotonic_nanos;

/// How the names of its own keys begin.
pub(super) const OWN: &str = "wrong:";

/// A worker's mistake, and what it needs for it.
#[derive(Debug)]
pub(super) struct Wrongly {
    mistake: Mistake,
    /// The lock's own server, for commands that a lock should never send.
    client: redis::Client,
}

impl Wrongly {
    pub(super) fn new(mistake: Mistake, url: &str) -> Self {
        let client = redis::Client::open(url).expect("a URL");
        Self { mistake, client }
    }

    pub(super) fn request(&self, request: Lock) -> Lock {
        match self.mistake {
            Mistake::WaitForever => request.wait_forever(),
            _ => request,
        }
    }

    /// Makes the mistake after a grant, instead of the usual work.
    pub(super) async fn work(&self, worker: &Worker, log: &Log<'_>, guard: Guard) {
        let plain = log
            .plan
            .keys
            .iter()
            .all(|(_, kind)| *kind == Kind::Exclusive);
        let token = match self.mistake {
            Mistake::TokenByIncr if plain => {
                let words = ["INCR", &format!("{OWN}{}", log.plan.keys[0].0)];
                self.ask::<u64>(&words).await
            }
            _ => None,
        };
        log.granted(&guard, token);
        match self.mistake {
            Mistake::ForgetGuard if log.plan.renew => {
                std::mem::forget(guard);
                return;
            }
            Mistake::NoLease if plain => {
                for (key, _) in &log.plan.keys {
                    let _: Option<i64> = self.ask(&["PERSIST", &lock(key)]).await;
                }
            }
            _ => {}
        }
        let until = Instant::now() + log.plan.hold;
        let mut own = Vec::new();
        if self.mistake == Mistake::RenewBySet && plain {
            for (key, _) in &log.plan.keys {
                own.push((*key, self.ask::<String>(&["GET", &lock(key)]).await));
            }
        }
        let mut late = 0;
        loop {
            let sent = monotonic_nanos();
            let mut believes = trusted(&guard);
            for (key, owner) in &own {
                let lease = log.plan.lease.as_millis().to_string();
                let owner = owner.as_deref().unwrap_or("nobody");
                let set = ["SET", &lock(key), owner, "PX", &lease];
                if self.ask::<String>(&set).await.is_some() {
                    believes = Some((monotonic_nanos(), sent + nanos(log.plan.lease)));
                }
            }
            if believes.is_none() && late < 40 {
                believes = match self.mistake {
                    Mistake::TrustPastDeadline => {
                        Some((sent, sent + nanos(Duration::from_millis(50))))
                    }
                    Mistake::IgnoreLoss => Some((sent, 0)),
                    _ => None,
                };
                late += 1;
            }
            let Some((at, deadline)) = believes else {
                log.all(monotonic_nanos(), Operation::Hold, Outcome::Failed, None);
                break;
            };
            log.all(at, Operation::Hold, Outcome::Ok, Some(deadline));
            if log.plan.writes() {
                let tokens = guard.fencing_tokens().unwrap_or_default();
                for ((key, _), token) in log.plan.keys.iter().zip(tokens) {
                    worker.read_and_write(key, token.into()).await;
                }
            }
            if Instant::now() >= until {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        log.all(monotonic_nanos(), Operation::Release, Outcome::Asked, None);
        if self.mistake == Mistake::ReleaseByDel && plain {
            // A late release destroys the most.
            tokio::time::sleep(Duration::from_millis(50)).await;
            for (key, _) in &log.plan.keys {
                let _: Option<i64> = self.ask(&["DEL", &lock(key)]).await;
            }
        }
        let outcome = released(&guard.release().await);
        log.all(monotonic_nanos(), Operation::Release, outcome, None);
    }

    /// Sends one command over a new connection.
    async fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> Option<T> {
        let mut connection = self.client.get_multiplexed_async_connection().await.ok()?;
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query_async(&mut connection).await.ok()
    }
}

fn lock(key: &str) -> String {
    format!("lock:{key}")
}
