//! [`QuorumStore`]: a client's handle to the servers of a quorum.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lock_store::{
    Answer, ClientId, Clock, ConfigError, Failure, Instant, Link, Listener, Mutex, Owner,
    StoreError, StoreErrorKind, SweepingMap,
};
use redis::ConnectionInfo;
use tokio::sync::{mpsc, watch};

use super::hints::{Hints, ServerListener};
use super::majority::{majority, too_few};
use super::round::Round;
use crate::context::ClientContext;
use crate::names::Prefix;
use crate::store::RedisStore;
use crate::topology::members::{Member, Members};

/// The link of all answers of a quorum. The quorum itself ends what its servers carry out late.
pub(super) const LINK: Link = Link(1);

/// What was logged about one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FindingsLogged {
    Nothing,
    /// It was logged that the server does not answer.
    NoAnswer,
    Findings,
}

/// A client's handle to the servers of a quorum.
#[derive(Debug)]
pub(crate) struct QuorumStore {
    pub(super) nodes: Vec<Arc<RedisStore>>,
    pub(super) members: Arc<Members>,
    pub(super) clock: Clock,
    pub(super) command_timeout: Duration,
    client: ClientId,
    rounds: AtomicU32,
    /// For each server, how many ends of rounds are under way.
    pub(super) ending: watch::Sender<Vec<usize>>,
    /// For each of the engine's owners, the round that has its hold or may have it.
    holds: Mutex<SweepingMap<Owner, Arc<Round>>>,
    /// For each server, what was logged about it.
    pub(super) logged: tokio::sync::Mutex<Vec<FindingsLogged>>,
    /// Kept alive here: the connections hold weak references.
    _listeners: Vec<Arc<dyn Listener>>,
}

impl QuorumStore {
    /// Starts to connect, in the background.
    pub(crate) fn open(
        servers: Vec<ConnectionInfo>,
        rejoin_after: Duration,
        namespace: &Prefix,
        client: ClientId,
        context: &ClientContext,
    ) -> Result<Self, ConfigError> {
        let (count, clock) = (servers.len(), context.clock.clone());
        if count % 2 == 0 {
            tracing::warn!(
                servers = count,
                "a quorum of an even number of servers survives no more failures than with one \
                 server fewer; add one, or leave one out"
            );
        }
        let names = servers.iter().map(|info| info.addr().to_string());
        let members = Members::new(names.collect(), rejoin_after, clock.clone());
        let hints = Hints::new(count, context.listener.clone(), clock.clone(), namespace);
        let (mut nodes, mut listeners) = (Vec::new(), Vec::<Arc<dyn Listener>>::new());
        for (at, server) in servers.into_iter().enumerate() {
            let listener: Arc<dyn Listener> = Arc::new(ServerListener::new(at, &hints));
            let member = Member {
                members: Arc::clone(&members),
                at,
            };
            let context = ClientContext {
                listener: Arc::downgrade(&listener),
                ..context.clone()
            };
            let node = RedisStore::member(server, member, namespace.clone(), client, context)?;
            nodes.push(Arc::new(node));
            listeners.push(listener);
        }
        Ok(Self {
            nodes,
            members,
            clock,
            command_timeout: context.timeouts.command,
            client,
            rounds: AtomicU32::new(0),
            ending: watch::Sender::new(vec![0; count]),
            holds: Mutex::default(),
            logged: tokio::sync::Mutex::new(vec![FindingsLogged::Nothing; count]),
            _listeners: listeners,
        })
    }

    /// Waits until every server was reached or not. A majority must be reached, and no server may
    /// differ from what the URL says.
    pub(crate) async fn await_first_attempt(&self, by: Instant) -> Result<(), StoreError> {
        let mut attempts =
            self.each(move |_, node| async move { node.servers.await_first_attempt(by).await });
        let mut failures = Vec::new();
        while let Some((at, attempt)) = attempts.recv().await {
            match attempt {
                // What waiting does not mend would be missed when it is needed most.
                Err(error) if is_permanent(error.kind()) => {
                    return Err(error.of(self.members.name(at)));
                }
                Err(error) => failures.push((at, error)),
                Ok(()) => {}
            }
        }
        if self.nodes.len() - failures.len() >= self.majority() {
            return Ok(());
        }
        Err(too_few(&self.members, self.nodes.len(), &failures))
    }

    pub(super) fn majority(&self) -> usize {
        majority(self.nodes.len())
    }

    /// Runs a request on all servers at once. Each runs to its end, even if the receiver of the
    /// replies is dropped.
    pub(super) fn each<T, F>(
        &self,
        verb: impl Fn(usize, Arc<RedisStore>) -> F,
    ) -> mpsc::UnboundedReceiver<(usize, T)>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let (sender, replies) = mpsc::unbounded_channel();
        for (at, node) in self.nodes.iter().enumerate() {
            let (sender, reply) = (sender.clone(), verb(at, Arc::clone(node)));
            self.clock.spawn(async move {
                // The receiver is gone if the majority has decided.
                let _ = sender.send((at, reply.await));
            });
        }
        replies
    }

    /// Collects replies until they decide. An error if they never do: too few servers answered.
    pub(super) async fn decide<T, D>(
        &self,
        mut replies: mpsc::UnboundedReceiver<(usize, Result<T, Failure>)>,
        mut decide: impl FnMut(T) -> Option<D>,
    ) -> Result<D, StoreError> {
        let mut failures = Vec::new();
        while let Some((at, reply)) = replies.recv().await {
            match reply.map(&mut decide) {
                Ok(Some(decision)) => return Ok(decision),
                Ok(None) => {}
                Err(failure) => failures.push((at, failure.error)),
            }
        }
        Err(too_few(&self.members, self.nodes.len(), &failures))
    }

    /// The owner token of a round. It keeps the random part of the request's number.
    pub(super) fn next_owner(&self, request: u64) -> Owner {
        let count = u64::from(self.rounds.fetch_add(1, Ordering::Relaxed));
        let random = request & !u64::from(u32::MAX);
        Owner::new(self.client, random | count)
    }

    pub(super) fn round_of(&self, owner: Owner) -> Option<Arc<Round>> {
        self.holds.lock().get(&owner).cloned()
    }

    /// The engine's owner whose round this is.
    pub(super) fn owner_of_round(&self, shown: Owner) -> Owner {
        let holds = self.holds.lock();
        let mut rounds = holds.iter();
        let round = rounds.find(|(_, round)| round.owner == shown);
        round.map_or(shown, |(owner, _)| *owner)
    }

    pub(super) fn keep(&self, owner: Owner, round: &Arc<Round>) {
        let now = self.clock.now();
        let mut holds = self.holds.lock();
        holds.sweep(|round| round.until() > now);
        holds.insert(owner, Arc::clone(round));
    }

    /// Removes an owner's round, unless the owner has another one by now.
    pub(super) fn forget(&self, owner: Owner, round: &Arc<Round>) {
        let mut holds = self.holds.lock();
        let current = holds.get(&owner);
        if current.is_some_and(|current| Arc::ptr_eq(current, round)) {
            holds.remove(&owner);
        }
    }

    pub(super) fn too_few<T>(&self, failures: &[(usize, StoreError)]) -> Result<T, Failure> {
        let error = too_few(&self.members, self.nodes.len(), failures);
        Err(Failure::without_effect(error))
    }
}

fn is_permanent(kind: StoreErrorKind) -> bool {
    matches!(kind, StoreErrorKind::Misconfigured | StoreErrorKind::Denied)
}

/// An answer of the quorum.
pub(super) fn answer_of_quorum<T>(value: T) -> Answer<T> {
    Answer::new(value, LINK)
}
