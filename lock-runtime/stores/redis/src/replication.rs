//! Holds that replicas must have as well, confirmed by `WAIT` (Redis documentation, *WAIT*).
//!
//! `WAIT` covers what its own connection wrote before it, and blocks whatever comes behind it there. So it has a connection
//! of its own, on which each hold is renewed once more in front of it: a write behind the one that made the hold, in the one
//! order in which replicas get both; and one that finds the hold only in a server that has it, whichever that is by now.
//! Holds to be confirmed at the same time share one script for each slot, and one `WAIT` for each node.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use lock_store::timing::Timeouts;
use lock_store::{
    Clock, Failure, Link, Listener, Owner, Renewal, Renewed, StoreError, StoreErrorKind, WakeUp,
};
use redis::{FromRedisValue, RedisError, Value};
use tokio::sync::oneshot;

use super::cluster::Cluster;
use super::connection::Connected;
use super::names::Prefix;
use super::request;
use super::target::Place;
use super::{Servers, batch, errors, scripts};
use crate::config::Replicas;

/// So many holds at most in one script.
const BATCH: usize = 100;

#[derive(Debug)]
pub(super) struct Replication {
    policy: Replicas,
    timeouts: Timeouts,
    clock: Clock,
    servers: Servers,
    namespace: Prefix,
    /// What is to be confirmed next, for each node that is confirming something.
    next: Mutex<HashMap<Lane, Vec<Job>>>,
}

/// Where the holds are: a node of a cluster, or the one server.
type Lane = Option<Arc<Place>>;

#[derive(Debug)]
struct Job {
    /// In a cluster, that of all its holds.
    slot: Option<u16>,
    holds: Vec<Renewal>,
    done: oneshot::Sender<Result<Vec<Renewed>, Failure>>,
}

/// What became of the holds of one slot.
#[derive(Debug)]
struct Confirmed {
    renewed: Vec<Renewed>,
    /// By how many replicas.
    replicas: u32,
}

impl Replication {
    pub(super) fn new(
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

    fn next(&self) -> MutexGuard<'_, HashMap<Lane, Vec<Job>>> {
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
        let job = Job { slot, holds, done };
        let lane = match (&self.servers, slot) {
            // The hold may be there whatever is known of the cluster.
            (Servers::Cluster(cluster), Some(slot)) => {
                let place = cluster.place(slot, by).await;
                Some(place.map_err(|failure| Failure {
                    unknown: Some(Link::SEVERAL),
                    ..failure
                })?)
            }
            _ => None,
        };
        let idle = {
            let mut next = self.next();
            let idle = !next.contains_key(&lane);
            next.entry(lane.clone()).or_default().push(job);
            idle
        };
        if idle {
            // On the client's own runtime: whoever asked may stop polling, and others wait for it as well.
            self.clock.spawn(Arc::clone(self).work(lane));
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

    async fn work(self: Arc<Self>, lane: Lane) {
        while let Some(jobs) = self.take(&lane) {
            let mut slots = BTreeMap::<Option<u16>, Vec<Job>>::new();
            for job in jobs {
                slots.entry(job.slot).or_default().push(job);
            }
            let slots: Vec<(Option<u16>, Vec<Job>)> = slots.into_iter().collect();
            let holds = |(slot, jobs): &(_, Vec<Job>)| {
                let holds = jobs.iter().flat_map(|job| job.holds.iter().cloned());
                (*slot, holds.collect::<Vec<Renewal>>())
            };
            let asked: Vec<_> = slots.iter().map(holds).collect();
            let outcomes = match (&self.servers, &lane) {
                (Servers::Cluster(cluster), Some(place)) if asked.len() > 1 => {
                    self.ask_together(cluster, place, &asked).await
                }
                _ => self.ask_each(asked.iter()).await,
            };
            for ((_, jobs), outcome) in slots.into_iter().zip(outcomes) {
                self.tell(jobs, &outcome);
            }
        }
    }

    /// Tells each job what became of its holds. Too few replicas are a failure, unless some of the holds are gone, and then
    /// the others are unanswered.
    fn tell(&self, jobs: Vec<Job>, outcome: &Result<Confirmed, Failure>) {
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
                    return Err(failure(text));
                }
                for one in &mut renewed {
                    if *one == Renewed::Renewed {
                        *one = Renewed::Unanswered;
                    }
                }
                Ok(renewed)
            });
            at += job.holds.len();
            // Nobody may wait for it any more.
            let _ = job.done.send(of_it);
        }
    }

    /// What is to be confirmed together now. None, and the next to come has to start anew.
    fn take(&self, lane: &Lane) -> Option<Vec<Job>> {
        let mut next = self.next();
        let waiting = next.get_mut(lane)?;
        waiting.retain(|job| !job.done.is_closed());
        let mut holds = 0;
        let fits = |job: &&Job| {
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

    fn renewal(&self, holds: &[Renewal]) -> request::Request {
        let sharded = matches!(self.servers, Servers::Cluster(_));
        let holds: Vec<&Renewal> = holds.iter().collect();
        batch::renewal(scripts::RENEW.form(sharded), &self.namespace, &holds)
    }

    /// The holds of several slots of one node: a script for each, and one `WAIT`.
    async fn ask_together(
        &self,
        cluster: &Cluster,
        place: &Arc<Place>,
        slots: &[(Option<u16>, Vec<Renewal>)],
    ) -> Vec<Result<Confirmed, Failure>> {
        let scripts: Vec<_> = slots.iter().map(|(_, holds)| self.renewal(holds)).collect();
        let exchange = async |mut up: Connected| {
            request::confirmed_together(&mut up, &scripts, self.policy).await
        };
        let answer = cluster.exchange_at(place, self.by(), exchange).await;
        let answer = answer.and_then(|(_, result)| result.map_err(|error| unknown(&error)));
        let (replies, replicas) = match answer {
            Ok(answer) => answer,
            Err(failure) => return slots.iter().map(|_| Err(failure.clone())).collect(),
        };
        let mut outcomes: Vec<Option<Result<Confirmed, Failure>>> = replies
            .into_iter()
            .map(|reply| match reply {
                Err(error) if may_go_alone(&error) => None,
                reply => Some(confirmed(reply, replicas)),
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

    /// Each slot for itself, all at once.
    async fn ask_each(
        &self,
        slots: impl Iterator<Item = &(Option<u16>, Vec<Renewal>)>,
    ) -> Vec<Result<Confirmed, Failure>> {
        let asking = slots.map(|(slot, holds)| Box::pin(self.ask(*slot, holds)));
        batch::all(asking.collect()).await
    }

    async fn ask(&self, slot: Option<u16>, holds: &[Renewal]) -> Result<Confirmed, Failure> {
        let by = self.by();
        let request = self.renewal(holds).confirmed_by(self.policy);
        let (_, result) = match (&self.servers, slot) {
            (Servers::Cluster(cluster), Some(slot)) => cluster.exchange(slot, by, &request).await?,
            (Servers::Cluster(_), None) => return Err(failure("no slot")),
            (Servers::One(connection), _) => {
                let exchange = async |mut up: Connected| request.run(&mut up, false).await;
                connection.exchange(connection.link(), by, exchange).await?
            }
        };
        let (reply, replicas): (Value, u32) = result.map_err(|error| unknown(&error))?;
        confirmed(Ok(reply), replicas)
    }
}

/// What the script of one slot replied.
fn confirmed(reply: Result<Value, RedisError>, replicas: u32) -> Result<Confirmed, Failure> {
    let replies = reply.and_then(|reply| Ok(Vec::<i64>::from_redis_value(reply)?));
    let replies = replies.map_err(|error| unknown(&error))?;
    let renewed = batch::renewed(&replies);
    Ok(Confirmed { renewed, replicas })
}

/// Whether nothing was carried out, and the slot's script may do better by itself, which is sent by its text or to another
/// node if it must be.
fn may_go_alone(error: &RedisError) -> bool {
    use StoreErrorKind::{Loading, ReadOnly};
    errors::is_no_script(error) || matches!(errors::kind(error), Loading | ReadOnly)
}

fn unknown(error: &RedisError) -> Failure {
    Failure {
        error: errors::store_error(error),
        unknown: Some(Link::SEVERAL),
    }
}

fn failure(text: impl Into<Box<str>>) -> Failure {
    Failure {
        error: StoreError::new(StoreErrorKind::NotReplicated, text),
        unknown: Some(Link::SEVERAL),
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

    fn recheck(&self) {}
}
