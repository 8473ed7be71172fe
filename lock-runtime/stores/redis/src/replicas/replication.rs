//! [`Replication`]: renews holds and has `WAIT` confirm the renewal.
//!
//! `WAIT` covers earlier writes of its own connection, and blocks every later command there. So it
//! has a connection of its own, on which each hold is renewed once more before the `WAIT`. Replicas
//! get this write after the one that made the hold. The renewal finds the hold only on a server
//! that still has it, whichever server is the master by now. Holds to be confirmed at the same time
//! share one script for each slot, and one `WAIT` for each node.

use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::{Arc, Weak};

use futures_util::future::join_all;
use lock_store::timing::Timeouts;
use lock_store::{
    Clock, Failure, HandedOver, Instant, Link, Listener, Mutex, Renewal, Renewed, StoreError,
    StoreErrorKind, WakeUp,
};
use redis::{FromRedisValue, RedisError, Value};
use tokio::sync::oneshot;

use super::wait::{confirmed_together, with_wait};
use crate::cluster::nodes::Cluster;
use crate::commands::renew::{self, lie_apart, renewed_each};
use crate::config::Replicas;
use crate::errors;
use crate::names::Prefix;
use crate::servers::Servers;
use crate::topology::address::ServerAddress;
use crate::transport::connected::Connected;
use crate::transport::script_or_command::Request;

/// The maximum number of holds in one script.
const BATCH: usize = 100;

#[derive(Debug)]
pub(crate) struct Replication {
    policy: Replicas,
    timeouts: Timeouts,
    clock: Clock,
    servers: Servers,
    namespace: Prefix,
    /// The jobs to confirm next, for each node that is busy confirming others.
    next: Mutex<HashMap<Lane, Vec<ConfirmJob>>>,
}

/// The place of the holds: a node of a cluster, or the one server.
type Lane = Option<Arc<ServerAddress>>;

#[derive(Debug)]
struct ConfirmJob {
    /// In a cluster, the slot of all its holds.
    slot: Option<u16>,
    holds: Vec<Renewal>,
    done: oneshot::Sender<Result<Vec<Renewed>, Failure>>,
}

/// The outcome for the holds of one slot.
#[derive(Debug)]
struct Confirmed {
    renewed: Vec<Renewed>,
    /// The number of replicas that confirmed them.
    replicas: u32,
}

impl Replication {
    pub(crate) fn new(
        policy: Replicas,
        timeouts: Timeouts,
        clock: Clock,
        servers: Servers,
        namespace: Prefix,
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

    pub(crate) fn policy(&self) -> Replicas {
        self.policy
    }

    /// Waits until its first attempt to connect has succeeded or failed.
    pub(crate) async fn await_first_attempt(&self, by: Instant) -> Result<(), StoreError> {
        self.servers.await_first_attempt(by).await
    }

    pub(crate) fn close(&self) {
        self.servers.close();
    }

    /// Renews holds of one slot. They count as renewed if enough replicas confirm that. Too few
    /// replicas are a failure, unless some holds are gone: then the others are unanswered.
    pub(crate) async fn renew(
        self: &Arc<Self>,
        slot: Option<u16>,
        holds: Vec<Renewal>,
        by: Instant,
    ) -> Result<Vec<Renewed>, Failure> {
        let (done, renewed) = oneshot::channel();
        let job = ConfirmJob { slot, holds, done };
        let lane = match (&self.servers, slot) {
            // The hold may exist, whatever is known of the cluster.
            (Servers::Cluster(cluster), Some(slot)) => {
                let address = cluster.owner(slot, by).await;
                let unknown = |failure: Failure| Failure::unknown(failure.error, Link::SEVERAL);
                Some(address.map_err(unknown)?)
            }
            _ => None,
        };
        let idle = {
            let mut next = self.next.lock();
            let idle = !next.contains_key(&lane);
            next.entry(lane.clone()).or_default().push(job);
            idle
        };
        if idle {
            // On the client's own runtime: the caller may stop polling, and other jobs depend on
            // this one too.
            self.clock.spawn(Arc::clone(self).work(lane));
        }
        match self.clock.by(by, renewed).await {
            Some(Ok(outcome)) => outcome,
            // Gives no count of replicas. The server may be dead, and this error must not look like
            // its answer.
            _ => {
                let text = "there was no answer whether they confirmed it";
                let error = StoreError::new(StoreErrorKind::Timeout, text);
                Err(Failure::unknown(error, Link::SEVERAL))
            }
        }
    }

    async fn work(self: Arc<Self>, lane: Lane) {
        while let Some(jobs) = self.take(&lane) {
            let mut slots = BTreeMap::<Option<u16>, Vec<ConfirmJob>>::new();
            for job in jobs {
                slots.entry(job.slot).or_default().push(job);
            }
            let slots: Vec<(Option<u16>, Vec<ConfirmJob>)> = slots.into_iter().collect();
            let holds = |(slot, jobs): &(_, Vec<ConfirmJob>)| {
                let holds = jobs.iter().flat_map(|job| job.holds.iter().cloned());
                (*slot, holds.collect::<Vec<Renewal>>())
            };
            let asked: Vec<_> = slots.iter().map(holds).collect();
            let outcomes = match (&self.servers, &lane) {
                (Servers::Cluster(cluster), Some(address)) if asked.len() > 1 => {
                    self.ask_together(cluster, address, &asked).await
                }
                _ => self.ask_each(asked.iter()).await,
            };
            for ((_, jobs), outcome) in slots.into_iter().zip(outcomes) {
                self.distribute(jobs, &outcome);
            }
        }
    }

    /// Gives each job the outcome for its holds. Too few replicas are a failure, unless some holds
    /// are gone: then the others are unanswered.
    fn distribute(&self, jobs: Vec<ConfirmJob>, outcome: &Result<Confirmed, Failure>) {
        let mut at = 0;
        for job in jobs {
            let of_it = outcome.as_ref().map_err(Failure::clone);
            let of_it = of_it.and_then(|Confirmed { renewed, replicas }| {
                let its_own = renewed.iter().skip(at).take(job.holds.len());
                let mut renewed: Vec<Renewed> = its_own.copied().collect();
                if *replicas >= self.policy.count {
                    return Ok(renewed);
                }
                if !renewed.contains(&Renewed::Gone) {
                    let (asked, timeout) = (self.policy.count, self.policy.timeout);
                    let text = format!("{replicas} of the {asked} asked for, within {timeout:?}");
                    return Err(not_replicated(text));
                }
                for one in &mut renewed {
                    if *one == Renewed::Renewed {
                        *one = Renewed::Unanswered;
                    }
                }
                Ok(renewed)
            });
            at += job.holds.len();
            // The caller may have stopped waiting.
            let _ = job.done.send(of_it);
        }
    }

    /// The jobs to confirm together now. If there are none, the next job starts a new task.
    fn take(&self, lane: &Lane) -> Option<Vec<ConfirmJob>> {
        let mut next = self.next.lock();
        let waiting = next.get_mut(lane)?;
        waiting.retain(|job| !job.done.is_closed());
        let mut holds = 0;
        let fits = |job: &&ConfirmJob| {
            holds += job.holds.len();
            holds <= BATCH
        };
        let many = waiting.iter().take_while(fits).count().max(1);
        if waiting.is_empty() {
            next.remove(lane);
            return None;
        }
        Some(waiting.drain(..many).collect())
    }

    fn by(&self) -> Instant {
        self.clock.now() + self.policy.timeout + self.timeouts.command
    }

    fn renewal(&self, holds: &[Renewal]) -> Request {
        let holds: Vec<&Renewal> = holds.iter().collect();
        renew::request(self.servers.is_cluster(), &self.namespace, &holds)
    }

    /// Confirms holds of several slots of one node, with a script for each slot and one `WAIT`.
    async fn ask_together(
        &self,
        cluster: &Cluster,
        address: &Arc<ServerAddress>,
        slots: &[(Option<u16>, Vec<Renewal>)],
    ) -> Vec<Result<Confirmed, Failure>> {
        let scripts: Vec<_> = slots.iter().map(|(_, holds)| self.renewal(holds)).collect();
        let exchange = async |up: &Connected| confirmed_together(up, &scripts, self.policy).await;
        let answer = cluster.exchange_at(address, self.by(), exchange).await;
        let answer = answer.and_then(|result| result.map_err(|error| unknown(&error)));
        let (replies, replicas) = match answer {
            Ok(answer) => answer,
            Err(failure) => return slots.iter().map(|_| Err(failure.clone())).collect(),
        };
        let mut outcomes: Vec<Option<Result<Confirmed, Failure>>> = replies
            .into_iter()
            .zip(slots)
            .map(|(reply, (_, holds))| match reply {
                Err(error) if may_go_alone(&error) => None,
                reply => Some(Confirmed::read(reply, holds.len(), replicas)),
            })
            .collect();
        outcomes.resize_with(slots.len(), || None);
        let missing = slots.iter().zip(&outcomes);
        let missing = missing.filter_map(|(slot, outcome)| outcome.is_none().then_some(slot));
        let mut alone = self.ask_each(missing).await.into_iter();
        let outcomes = outcomes.into_iter();
        outcomes
            .filter_map(|outcome| outcome.or_else(|| alone.next()))
            .collect()
    }

    /// Confirms each slot on its own, all at the same time.
    async fn ask_each(
        &self,
        slots: impl Iterator<Item = &(Option<u16>, Vec<Renewal>)>,
    ) -> Vec<Result<Confirmed, Failure>> {
        join_all(slots.map(|(slot, holds)| self.ask(*slot, holds))).await
    }

    async fn ask(&self, slot: Option<u16>, holds: &[Renewal]) -> Result<Confirmed, Failure> {
        let request = with_wait(self.renewal(holds), self.policy);
        let answered = self.servers.exchange(slot, self.by(), &request);
        let reply = answered.await?.result;
        if lie_apart(&reply, holds.len()) {
            return self.ask_apart(slot, holds).await;
        }
        let pair = reply.and_then(|reply| Ok(<(Value, u32)>::from_redis_value(reply)?));
        let (reply, replicas) = pair.map_err(|error| unknown(&error))?;
        Confirmed::read(Ok(reply), holds.len(), replicas)
    }

    /// Confirms each hold on its own: half of their slot has moved, and each key is on one node.
    fn ask_apart<'s>(
        &'s self,
        slot: Option<u16>,
        holds: &'s [Renewal],
    ) -> Pin<Box<dyn Future<Output = Result<Confirmed, Failure>> + Send + 's>> {
        let each = holds.chunks(1).map(move |hold| self.ask(slot, hold));
        let each = join_all(each);
        Box::pin(async move {
            let outcomes = each.await;
            let replicas = outcomes.iter().flatten().map(|one| one.replicas).min();
            let renewed = |one: Confirmed| one.renewed.first().copied();
            let renewed = outcomes
                .into_iter()
                .map(|one| Ok(renewed(one?).unwrap_or(Renewed::Unanswered)));
            Ok(Confirmed {
                renewed: renewed_each(renewed.collect())?,
                replicas: replicas.unwrap_or(0),
            })
        })
    }
}

impl Confirmed {
    /// Reads the reply to one slot's script for so many holds.
    fn read(
        reply: Result<Value, RedisError>,
        holds: usize,
        replicas: u32,
    ) -> Result<Self, Failure> {
        let replies = reply.and_then(|reply| Ok(Vec::<i64>::from_redis_value(reply)?));
        let replies = replies.map_err(|error| unknown(&error))?;
        let renewed = renew::read(&replies, holds, Link::SEVERAL)?;
        Ok(Self { renewed, replicas })
    }
}

/// True if nothing was carried out, and the slot's script may succeed when it is sent alone: as
/// text, or to another node.
fn may_go_alone(error: &RedisError) -> bool {
    use StoreErrorKind::{Loading, ReadOnly};
    errors::is_no_script(error)
        || errors::is_redirect(error)
        || matches!(errors::kind(error), Loading | ReadOnly)
}

fn unknown(error: &RedisError) -> Failure {
    Failure::unknown(errors::store_error(error), Link::SEVERAL)
}

fn not_replicated(text: impl Into<Box<str>>) -> Failure {
    let error = StoreError::new(StoreErrorKind::NotReplicated, text);
    Failure::unknown(error, Link::SEVERAL)
}

/// No request waits for messages on the connections that confirm holds.
#[derive(Debug)]
pub(crate) struct Nobody;

impl Nobody {
    pub(crate) fn listener() -> Weak<dyn Listener> {
        Weak::<Self>::new()
    }
}

impl Listener for Nobody {
    fn on_granted(&self, _: HandedOver) -> WakeUp {
        WakeUp::default()
    }

    fn recheck(&self) {}
}
