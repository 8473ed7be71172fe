//! Holds that replicas must have as well, confirmed by `WAIT` (Redis documentation, *WAIT*).
//!
//! `WAIT` covers what its own connection wrote before it, and blocks whatever comes behind it there. So it has a connection
//! of its own, on which each hold is renewed once more in front of it: a write behind the one that made the hold, in the one
//! order in which replicas get both; and one that finds the hold only in a server that has it, whichever that is by now.
//! Holds to be confirmed at the same time share one script and one `WAIT`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use tokio::sync::oneshot;

use super::connection::Connected;
use super::names::Namespace;
use super::{Servers, batch, errors, scripts};
use crate::clock::Clock;
use crate::config::{Replicas, Timeouts};
use crate::error::{StoreError, StoreErrorKind};
use crate::store::{Failure, Link, Listener, Owner, Renewal, Renewed, WakeUp};

/// So many holds at most in one script.
const BATCH: usize = 100;

#[derive(Debug)]
pub(super) struct Replication {
    policy: Replicas,
    timeouts: Timeouts,
    clock: Clock,
    servers: Servers,
    namespace: Namespace,
    /// What is to be confirmed next, for each slot of which something is being confirmed.
    next: Mutex<HashMap<Option<u16>, Vec<Job>>>,
}

#[derive(Debug)]
struct Job {
    holds: Vec<Renewal>,
    done: oneshot::Sender<Result<Vec<Renewed>, Failure>>,
}

impl Replication {
    pub(super) fn new(
        policy: Replicas,
        timeouts: Timeouts,
        clock: Clock,
        servers: Servers,
        namespace: Namespace,
    ) -> Arc<Self> {
        Arc::new(Self {
            policy,
            timeouts,
            clock,
            servers,
            namespace,
            next: Mutex::default(),
        })
    }

    fn next(&self) -> MutexGuard<'_, HashMap<Option<u16>, Vec<Job>>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn policy(&self) -> Replicas {
        self.policy
    }

    pub(super) fn close(&self) {
        self.servers.close();
    }

    /// Renews holds of one slot. They are renewed if enough replicas have that; otherwise it is a failure, unless some of
    /// them are gone, and then the others are unanswered.
    pub(super) async fn renew(
        self: &Arc<Self>,
        slot: Option<u16>,
        holds: Vec<Renewal>,
        by: Instant,
    ) -> Result<Vec<Renewed>, Failure> {
        let (done, renewed) = oneshot::channel();
        let job = Job { holds, done };
        let idle = {
            let mut next = self.next();
            let idle = !next.contains_key(&slot);
            next.entry(slot).or_default().push(job);
            idle
        };
        if idle {
            // On the client's own runtime: whoever asked may stop polling, and others wait for it as well.
            self.clock.spawn(Arc::clone(self).work(slot));
        }
        match self.clock.by(by, renewed).await {
            Some(Ok(outcome)) => outcome,
            // Not even how many: the server may be dead, and this must not pass for an answer of it.
            _ => Err(Failure {
                error: StoreError::new(
                    StoreErrorKind::Timeout,
                    "whether replicas confirm it was not answered",
                ),
                unknown: Some(Link::SEVERAL),
            }),
        }
    }

    async fn work(self: Arc<Self>, slot: Option<u16>) {
        while let Some(jobs) = self.take(slot) {
            let holds: Vec<&Renewal> = jobs.iter().flat_map(|job| &job.holds).collect();
            let outcome = self.ask(slot, &holds).await;
            let mut renewed = outcome.as_ref().map_or(&[][..], Vec::as_slice).iter();
            for job in jobs {
                let of_it = match &outcome {
                    Err(failure) => Err(failure.clone()),
                    Ok(_) => Ok(renewed.by_ref().take(job.holds.len()).copied().collect()),
                };
                // Nobody may wait for it any more.
                let _ = job.done.send(of_it);
            }
        }
    }

    /// What is to be confirmed together now. None, and the next to come has to start anew.
    fn take(&self, slot: Option<u16>) -> Option<Vec<Job>> {
        let mut next = self.next();
        let waiting = next.get_mut(&slot)?;
        waiting.retain(|job| !job.done.is_closed());
        let mut holds = 0;
        let fits = |job: &&Job| {
            holds += job.holds.len();
            holds <= BATCH
        };
        let many = waiting.iter().take_while(fits).count().max(1);
        if waiting.is_empty() {
            next.remove(&slot);
            return None;
        }
        Some(waiting.drain(..many).collect())
    }

    async fn ask(&self, slot: Option<u16>, holds: &[&Renewal]) -> Result<Vec<Renewed>, Failure> {
        let by = self.clock.now() + self.policy.timeout + self.timeouts.command;
        let sharded = matches!(self.servers, Servers::Cluster(_));
        let form = scripts::RENEW.form(sharded);
        let request = batch::renewal(form, &self.namespace, holds).confirmed_by(self.policy);
        let (_, result) = match (&self.servers, slot) {
            (Servers::Cluster(cluster), Some(slot)) => cluster.exchange(slot, by, &request).await?,
            (Servers::Cluster(_), None) => return Err(self.failure("no slot")),
            (Servers::One(connection), _) => {
                let exchange = async |mut up: Connected| request.run(&mut up, false).await;
                connection.exchange(connection.link(), by, exchange).await?
            }
        };
        let (replies, replicas): (Vec<i64>, u32) = result.map_err(|error| Failure {
            error: errors::store_error(&error),
            unknown: Some(Link::SEVERAL),
        })?;
        let mut renewed = batch::renewed(&replies);
        if replicas < self.policy.count {
            let (asked, timeout) = (self.policy.count, self.policy.timeout);
            if !renewed.contains(&Renewed::Gone) {
                let text = format!("{replicas} of the {asked} asked for, within {timeout:?}");
                return Err(self.failure(&text));
            }
            for one in &mut renewed {
                if *one == Renewed::Renewed {
                    *one = Renewed::Unanswered;
                }
            }
        }
        Ok(renewed)
    }

    fn failure(&self, text: &str) -> Failure {
        Failure {
            error: StoreError::new(StoreErrorKind::NotReplicated, text),
            unknown: Some(Link::SEVERAL),
        }
    }
}

/// The connections on which holds are confirmed hear nothing that anybody waits for.
#[derive(Debug)]
pub(super) struct Nobody;

impl Nobody {
    pub(super) fn listens() -> Weak<dyn Listener> {
        Weak::<Self>::new()
    }
}

impl Listener for Nobody {
    fn granted(&self, _: Link, _: Owner, _: Option<u64>) -> WakeUp {
        WakeUp::default()
    }

    fn look_again(&self) {}
}
