//! Locks on a majority of independent Redis servers.
//!
//! After the Redis documentation, *Distributed locks with Redis*, "The Redlock algorithm", with its criticism (Martin
//! Kleppmann, *How to do distributed locking*) taken seriously: holds have fencing tokens that rise, and a server that
//! may have forgotten what it granted does not count. There are `n` servers that know nothing of each other; any `n / 2 + 1` of
//! them decide, and any two majorities have a server in common.
//!
//! # The protocol
//! - **Take.** A round asks every server at once for its part of the lock: to write the round's owner token with the
//!   lease, if nobody else's is there. It is granted as soon as a majority has done so; a server that is dead or slow
//!   costs nothing then, and its part, if it comes later, is ended with the rest.
//! - **Validity** is that of the engine for every store: counted from before the first command was sent, and cut by 1 % of
//!   the lease and 2 ms for clocks that run at different rates. Each server's part lasts longer.
//! - **One owner token for each round.** A round that got no majority is ended on every server that may have its token, in
//!   the background until that is sure, while the next round is under way. If both had the same token, a late end of
//!   the first could end the second's grant.
//! - **Split votes.** Several rounds can have parts and none a majority. Each gives its parts back and tries again after a random
//!   pause, ever longer. Replies name the holder, so this is told from a lock that somebody has. Where servers say nothing, a
//!   part elsewhere can be either: whoever is met in several rounds in a row has the lock.
//! - **Release** goes to all servers, whatever they said before, and is repeated until each has surely done it or the
//!   lease is over.
//! - **Renewal** counts when a majority has renewed, and the hold is gone when a majority no longer can.
//! - **A server that was restarted** may have forgotten what it granted. It does not count before the longest lease there
//!   is has passed, by the clock of a client that knew it before, and by its own uptime for others; it does everything else.
//!   No lease is longer than that.
//! - **Waiting.** There is no queue: no server knows whose turn it is in all of them. The end of a hold is told to those who wait,
//!   who try when a majority of the servers has told them, in slots chosen at random by how many they are. A lost message costs a
//!   poll.
//!
//! # Fencing tokens
//! The highest of counters that the servers keep, taken together with their parts, is not enough: a server whose lease
//! ended in between, or whose reply was lost, can have proposed the same number to two. So there are two phases:
//! 1. *Collect*: with its part, each server proposes the next number of its counter (at least its clock, so that tokens
//!    rise also where counters were lost), and keeps nothing yet. The token is the highest that a majority proposed.
//! 2. *Confirm*: each server keeps the token, **if** the round still has its part **and** the counter is below it. The grant
//!    counts when a majority has.
//!
//! Unique: two grants have been confirmed by one server in common, which kept the second above the first. Rising: a
//! round that begins after a grant collects from a server that had confirmed it. Neither depends on any clock. That a server comes back
//! without its counter is what the floor of time is for: then tokens rise as long as the servers' clocks differ by less than the
//! server stays out.
//!
//! `tests/tests/models/quorum.rs` goes through every order in which this can happen with three servers.
//!
//! # What can't be done
//! Locks in shares (three users on three servers each can all have two of them), strict order of arrival, rate limiters
//! and latches, which are counts that every server would keep differently. They are refused.

mod ending;
mod health;
mod hints;
mod round;
mod verbs;
mod votes;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use lock_store::timing::Timeouts;
use lock_store::{
    ClientId, Clock, ConfigError, Failure, Link, Listener, Owner, StoreError, StoreErrorKind,
};
use tokio::sync::mpsc;

use self::health::Logged;
use self::hints::{Ear, Hints};
use self::round::Round;
use self::votes::{majority, too_few};
use crate::RedisStore;
use crate::config::Replicas;
use crate::names::Prefix;
use crate::roster::{Roster, Seat};
use crate::url::quorum::Quorum;

/// Everything a quorum answers comes over this: what it does at its servers late, it ends there by itself.
const LINK: Link = Link(1);

/// A client's handle to the servers of a quorum.
#[derive(Debug)]
pub(crate) struct QuorumStore {
    nodes: Vec<Arc<RedisStore>>,
    roster: Arc<Roster>,
    clock: Clock,
    command_timeout: Duration,
    client: ClientId,
    rounds: AtomicU64,
    /// The round by which each owner of the engine's has its hold, or may have.
    holds: Mutex<Holds>,
    /// Of each server, what was logged of what it says of itself.
    logged: tokio::sync::Mutex<Vec<Logged>>,
    /// What listens to the servers, which know it weakly.
    _ears: Vec<Arc<dyn Listener>>,
}

#[derive(Debug, Default)]
struct Holds {
    rounds: HashMap<Owner, Arc<Round>>,
    /// When there are so many, those whose time is over are removed.
    sweep_at: usize,
}

impl QuorumStore {
    /// Reads the URL, and starts to connect in the background; `None` if it is the URL of something else.
    pub(crate) fn open(
        url: &str,
        timeouts: Timeouts,
        namespace: &Prefix,
        client: ClientId,
        listener: Weak<dyn Listener>,
        clock: Clock,
        replicas: Option<Replicas>,
    ) -> Result<Option<Self>, ConfigError> {
        let Some(Quorum {
            servers,
            rejoin_after,
        }) = Quorum::parse(url, replicas)?
        else {
            return Ok(None);
        };
        let count = servers.len();
        if count % 2 == 0 {
            tracing::warn!(
                servers = count,
                "a quorum of an even number of servers outlives no more of them than one server fewer would; add one, or leave one out"
            );
        }
        let names = servers.iter().map(|info| info.addr().to_string());
        let roster = Roster::new(names.collect(), rejoin_after, clock.clone());
        let hints = Hints::new(count, listener, clock.clone());
        let (mut nodes, mut ears) = (Vec::new(), Vec::<Arc<dyn Listener>>::new());
        for (at, server) in servers.into_iter().enumerate() {
            let ear: Arc<dyn Listener> = Arc::new(Ear::new(at, &hints));
            let seat = Seat {
                roster: Arc::clone(&roster),
                at,
            };
            let node = RedisStore::member(
                server,
                seat,
                timeouts,
                namespace.clone(),
                client,
                Arc::downgrade(&ear),
                clock.clone(),
            )?;
            nodes.push(Arc::new(node));
            ears.push(ear);
        }
        Ok(Some(Self {
            nodes,
            roster,
            clock,
            command_timeout: timeouts.command,
            client,
            rounds: AtomicU64::new(0),
            holds: Mutex::default(),
            logged: tokio::sync::Mutex::new(vec![Logged::Nothing; count]),
            _ears: ears,
        }))
    }

    /// Waits until every server was reached or not: a majority must be, and none may be another than the URL says.
    pub(crate) async fn first_attempt(&self, by: Instant) -> Result<(), StoreError> {
        let mut attempts = self.each(move |_, node| async move { node.first_attempt(by).await });
        let mut failures = Vec::new();
        while let Some((at, attempt)) = attempts.recv().await {
            match attempt {
                Err(error) if error.kind() == StoreErrorKind::Misconfigured => {
                    return Err(error.of(self.roster.name(at)));
                }
                Err(error) => failures.push((at, error)),
                Ok(()) => {}
            }
        }
        if self.nodes.len() - failures.len() >= self.majority() {
            return Ok(());
        }
        Err(too_few(&self.roster, self.nodes.len(), &failures))
    }

    fn majority(&self) -> usize {
        majority(self.nodes.len())
    }

    /// Does something at every server, all at once and to its end, whoever waits for the replies.
    fn each<T, F>(
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
                // Nobody listens any more: the majority has decided.
                let _ = sender.send((at, reply.await));
            });
        }
        replies
    }

    fn next_owner(&self) -> Owner {
        Owner {
            client: self.client,
            request: self.rounds.fetch_add(1, Ordering::Relaxed),
        }
    }

    fn holds(&self) -> MutexGuard<'_, Holds> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn round_of(&self, owner: Owner) -> Option<Arc<Round>> {
        self.holds().rounds.get(&owner).cloned()
    }

    fn keep(&self, owner: Owner, round: &Arc<Round>) {
        let now = self.clock.now();
        let mut holds = self.holds();
        if holds.rounds.len() >= holds.sweep_at {
            holds.rounds.retain(|_, round| round.until() > now);
            holds.sweep_at = (2 * holds.rounds.len()).max(64);
        }
        holds.rounds.insert(owner, Arc::clone(round));
    }

    /// Forgets that an owner has this round, unless it has another by now.
    fn forget(&self, owner: Owner, round: &Arc<Round>) {
        let mut holds = self.holds();
        let current = holds.rounds.get(&owner);
        if current.is_some_and(|current| Arc::ptr_eq(current, round)) {
            holds.rounds.remove(&owner);
        }
    }

    fn too_few<T>(&self, failures: &[(usize, StoreError)]) -> Result<T, Failure> {
        Err(Failure {
            error: too_few(&self.roster, self.nodes.len(), failures),
            unknown: None,
        })
    }
}

/// Some time below this, another each time.
fn chance(below: Duration) -> Duration {
    let share = RandomState::new().hash_one(()) % 1024;
    below * u32::try_from(share).unwrap_or(0) / 1024
}
