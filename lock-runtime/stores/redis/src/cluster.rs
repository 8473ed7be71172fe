//! A Redis Cluster: which node has a slot, a connection to each node that is needed, and what to do when a slot moves.
//!
//! A command goes to the node that the map says; MOVED, ASK and TRYAGAIN are followed within the command's time, ever more
//! slowly. Those replies say that nothing was carried out, so nothing is ever sent twice that had an effect: whatever else
//! fails is the engine's to repeat, as with one server.

mod map;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use lock_store::timing::Timeouts;
use lock_store::{Clock, Failure, Link, Listener, StoreError, StoreErrorKind};
use redis::{ConnectionInfo, ErrorKind, FromRedisValue, RedisError, ServerErrorKind};
use tokio::task::JoinSet;

use super::connection::{Connected, Connection};
use super::errors;
use super::names::Prefix;
use super::request::Request;
use super::target::{Place, Target, client_at};
use crate::config::SLOT_MOVES;

/// The first pause between two tries of a command that was sent on; each is twice as long as the one before.
const REDIRECT_PAUSE: Duration = Duration::from_millis(5);

/// A client's view of a cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    clock: Clock,
    timeouts: Timeouts,
    template: ConnectionInfo,
    seeds: Vec<Arc<Place>>,
    listener: Weak<dyn Listener>,
    /// The numbers of links, over all nodes.
    numbers: Arc<AtomicU64>,
    state: Mutex<State>,
    /// One at a time asks for the map; when that was last done.
    asking: tokio::sync::Mutex<Option<Instant>>,
    /// Somebody asks for the map in the background.
    looking: AtomicBool,
    this: Weak<Self>,
}

#[derive(Debug, Default)]
struct State {
    /// Empty until the map is known.
    slots: map::Slots,
    /// Counts the maps.
    version: u64,
    nodes: HashMap<Arc<Place>, Arc<Connection>>,
    /// Slots of which keys were seen to be on their way to another node, and when.
    moving: HashMap<u16, Instant>,
    closed: bool,
}

/// What a connection to a node knows of its cluster.
#[derive(Clone, Debug)]
pub(super) struct Membership {
    cluster: Weak<Cluster>,
    place: Arc<Place>,
}

impl Membership {
    /// Whether this node is the only one that can have granted the locks of a channel: else a message of one node may be
    /// older than a reply of another.
    pub(super) fn serves(&self, channel: &[u8]) -> bool {
        let channel = std::str::from_utf8(channel).ok();
        let slot = channel.and_then(Prefix::slot_of_channel);
        let (Some(slot), Some(cluster)) = (slot, self.cluster.upgrade()) else {
            return false;
        };
        let now = cluster.clock.now();
        let state = cluster.state();
        let moves = state.moving.get(&slot);
        state.owner(slot) == Some(&self.place) && moves.is_none_or(|seen| now > *seen + SLOT_MOVES)
    }
}

impl State {
    fn owner(&self, slot: u16) -> Option<&Arc<Place>> {
        self.slots.get(usize::from(slot))?.as_ref()
    }
}

/// Where to send a command instead.
enum Redirect {
    /// The slot has gone there.
    Moved(Place),
    /// This key may already be there.
    Ask(Place),
    /// The keys of the lock are not all in one place for the moment.
    TryAgain,
}

impl Cluster {
    pub(super) fn open(
        seeds: Vec<Place>,
        template: ConnectionInfo,
        timeouts: Timeouts,
        clock: Clock,
        listener: Weak<dyn Listener>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            clock,
            timeouts,
            template,
            seeds: seeds.into_iter().map(Arc::new).collect(),
            listener,
            numbers: Arc::default(),
            state: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
            looking: AtomicBool::new(false),
            this: Weak::clone(this),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest link to the node that has a slot; 0, over which nothing goes, if that is not known.
    pub(super) fn link(&self, slot: u16) -> Link {
        let state = self.state();
        let node = state.owner(slot).and_then(|place| state.nodes.get(place));
        node.map_or(Link(0), |node| node.link())
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state().closed
    }

    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.nodes.values().for_each(|node| node.close());
    }

    /// Waits until the cluster is known, or nobody tells.
    pub(super) async fn first_attempt(&self, by: Instant) -> Result<(), StoreError> {
        self.learn(0, by).await
    }

    /// Every node that has slots, in the order of their addresses.
    pub(super) async fn masters(&self, by: Instant) -> Result<Vec<Arc<Connection>>, StoreError> {
        self.learn(0, by).await?;
        let mut places: Vec<_> = self.state().slots.iter().flatten().cloned().collect();
        places.sort();
        places.dedup();
        places.iter().map(|place| self.node(place)).collect()
    }

    /// Asks every node that has slots for a sign of life.
    pub(super) async fn ping(&self, by: Instant) -> Result<Link, Failure> {
        let failed = |error| Failure {
            error,
            unknown: None,
        };
        let mut asked = JoinSet::new();
        for node in self.masters(by).await.map_err(failed)? {
            asked.spawn(async move {
                let ping = async |mut up: Connected| {
                    redis::cmd("PING").query_async(&mut up.connection).await
                };
                let (_, reply) = node.exchange::<String>(node.link(), by, ping).await?;
                reply.map(drop).map_err(|error| Failure {
                    error: errors::store_error(&error),
                    unknown: None,
                })
            });
        }
        while let Some(answer) = asked.join_next().await {
            if let Ok(Err(failure)) = answer {
                self.look_again_soon();
                return Err(failure);
            }
        }
        Ok(Link::SEVERAL)
    }

    /// Sends a request to the node that has the slot, wherever that is.
    pub(super) async fn exchange<T: FromRedisValue>(
        &self,
        slot: u16,
        by: Instant,
        request: &Request,
    ) -> Result<(Link, Result<T, RedisError>), Failure> {
        let mut place = self.place(slot, by).await?;
        let (mut asking, mut pause) = (false, Duration::ZERO);
        loop {
            let node = self.node(&place).map_err(|error| Failure {
                error,
                unknown: None,
            })?;
            let answer = node.exchange(node.link(), by, async |mut up| {
                request.run(&mut up, asking).await
            });
            let (link, result) = match answer.await {
                Ok(answered) => answered,
                Err(failure) => {
                    // By the next time, another node may have its slots.
                    self.look_again_soon();
                    return Err(failure);
                }
            };
            let Err(error) = &result else {
                return Ok((link, result));
            };
            let Some(redirect) = redirect(error, &place) else {
                if errors::is_cluster_down(error) {
                    self.look_again_soon();
                }
                return Ok((link, result));
            };
            let now = self.clock.now();
            if now + pause >= by {
                return Ok((link, result));
            }
            if !pause.is_zero() {
                self.clock.sleep_until(now + pause).await;
            }
            pause = (2 * pause).max(REDIRECT_PAUSE);
            match redirect {
                Redirect::Moved(to) => (place, asking) = (self.moved(slot, to), false),
                Redirect::Ask(to) => {
                    self.state().moving.insert(slot, now);
                    (place, asking) = (Arc::new(to), true);
                }
                // Where the slot is in the map, all of them may be by now, or still.
                Redirect::TryAgain => {
                    self.state().moving.insert(slot, now);
                    (place, asking) = (self.place(slot, by).await?, false);
                }
            }
        }
    }

    /// One exchange with the node that is there, wherever its slots go meanwhile.
    pub(super) async fn exchange_at<T>(
        &self,
        place: &Arc<Place>,
        by: Instant,
        exchange: impl AsyncFnOnce(Connected) -> Result<T, RedisError>,
    ) -> Result<(Link, Result<T, RedisError>), Failure> {
        let node = self.node(place).map_err(|error| Failure {
            error,
            unknown: None,
        })?;
        let answer = node.exchange(node.link(), by, exchange).await;
        if answer.is_err() {
            self.look_again_soon();
        }
        answer
    }

    /// Where a slot is.
    pub(super) async fn place(&self, slot: u16, by: Instant) -> Result<Arc<Place>, Failure> {
        let failed = |error| Failure {
            error,
            unknown: None,
        };
        let version = {
            let state = self.state();
            if let Some(place) = state.owner(slot) {
                return Ok(Arc::clone(place));
            }
            state.version
        };
        self.learn(version, by).await.map_err(failed)?;
        let known = self.state().owner(slot).cloned();
        known.ok_or_else(|| {
            let text = format!("CLUSTERDOWN no node serves the slot {slot}");
            failed(StoreError::new(StoreErrorKind::Loading, text))
        })
    }

    /// The connection to a node, made when it is first needed.
    fn node(&self, place: &Arc<Place>) -> Result<Arc<Connection>, StoreError> {
        let mut state = self.state();
        if let Some(node) = state.nodes.get(place) {
            return Ok(Arc::clone(node));
        }
        if state.closed {
            let text = "the client was shut down";
            return Err(StoreError::new(StoreErrorKind::Refused, text));
        }
        let node = Connection::open(
            Target::Node(client_at(&self.template, place)?),
            self.timeouts,
            Arc::clone(&self.numbers),
            self.clock.clone(),
            Weak::clone(&self.listener),
            Some(Membership {
                cluster: Weak::clone(&self.this),
                place: Arc::clone(place),
            }),
        );
        state.nodes.insert(Arc::clone(place), Arc::clone(&node));
        Ok(node)
    }

    /// A node said so itself, which is newer than the map.
    fn moved(&self, slot: u16, to: Place) -> Arc<Place> {
        let to = Arc::new(to);
        let mut state = self.state();
        if let Some(owner) = state.slots.get_mut(usize::from(slot)) {
            *owner = Some(Arc::clone(&to));
        }
        // Only the new node's messages count from now on, and those come in the order of its replies.
        state.moving.remove(&slot);
        drop(state);
        // One slot seldom moves alone.
        self.look_again_soon();
        to
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.close();
    }
}

fn redirect(error: &RedisError, asked: &Place) -> Option<Redirect> {
    if errors::is_try_again(error) {
        return Some(Redirect::TryAgain);
    }
    let (addr, _) = error.redirect_node()?;
    let (host, port) = addr.rsplit_once(':')?;
    // No host: the one that was asked.
    let host = if host.is_empty() { &asked.host } else { host };
    let to = Place {
        host: host.to_owned(),
        port: port.parse().ok()?,
    };
    match error.kind() {
        ErrorKind::Server(ServerErrorKind::Ask) => Some(Redirect::Ask(to)),
        _ => Some(Redirect::Moved(to)),
    }
}
