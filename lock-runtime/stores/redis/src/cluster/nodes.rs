//! [`Cluster`]: the map of slots, and a connection to each node that is needed.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use lock_store::{Failure, Instant, Link, Listener, Mutex, StoreError, StoreErrorKind};
use redis::{ConnectionAddr, ConnectionInfo, RedisError};

use super::slot_map::{self, SlotMap};
use crate::config::{CLUSTER_MAP_PAUSE, MOVE_SPREADS};
use crate::context::ClientContext;
use crate::errors;
use crate::topology::address::ServerAddress;
use crate::topology::endpoint::Endpoint;
use crate::topology::progress::{AnnouncedAddress, AnnouncedBy, ConnectStep};
use crate::topology::server::client_at;
use crate::topology::unreached;
use crate::transport::connected::Connected;
use crate::transport::connection::Connection;
use crate::transport::supervisor;

/// Fewer masters may not outvote one of them: the nodes in the URL are asked as well.
const FEW: usize = 3;

/// A client's view of a cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(super) context: ClientContext,
    template: ConnectionInfo,
    seeds: Vec<Arc<ServerAddress>>,
    /// Counts links, over all nodes.
    links: Arc<AtomicU64>,
    state: Mutex<ClusterState>,
    /// The time of the last request for the map. One task at a time asks.
    asking: tokio::sync::Mutex<Option<Instant>>,
    /// True while a task asks for the map in the background.
    looking: AtomicBool,
    this: Weak<Self>,
}

#[derive(Debug, Default)]
struct ClusterState {
    /// Empty until the map is known.
    map: SlotMap,
    /// Counts the maps.
    version: u64,
    nodes: HashMap<Arc<ServerAddress>, Arc<Connection>>,
    /// Where slots have moved, by a node's reply, and when. Most nodes may not know yet.
    moved: HashMap<u16, (Arc<ServerAddress>, Instant)>,
    closed: bool,
}

impl Cluster {
    pub(crate) fn open(
        seeds: Vec<ServerAddress>,
        template: ConnectionInfo,
        context: ClientContext,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            context,
            template,
            seeds: seeds.into_iter().map(Arc::new).collect(),
            links: Arc::default(),
            state: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
            looking: AtomicBool::new(false),
            this: Weak::clone(this),
        })
    }

    /// The newest link to the node that has a slot. If that node is not known, link 0, which
    /// nothing uses.
    pub(crate) fn link(&self, slot: u16) -> Link {
        let state = self.state.lock();
        let node = state
            .map
            .owner(slot)
            .and_then(|address| state.nodes.get(address));
        node.map_or(Link(0), |node| node.link())
    }

    /// Whether any node can be reached now.
    pub(crate) fn is_up(&self) -> bool {
        let state = self.state.lock();
        state.nodes.values().any(|node| node.is_up())
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.nodes.values().for_each(|node| node.close());
    }

    /// Listens on another of the client's own channels, at each node.
    pub(crate) fn subscribe(&self, channel: &str) {
        let nodes: Vec<_> = self.state.lock().nodes.values().cloned().collect();
        nodes.iter().for_each(|node| node.subscribe(channel));
    }

    /// Listens on these of the client's own channels no longer, at each node.
    pub(crate) fn unsubscribe(&self, channels: &[String]) {
        let nodes: Vec<_> = self.state.lock().nodes.values().cloned().collect();
        nodes.iter().for_each(|node| node.unsubscribe(channels));
    }

    /// Waits until the map is known, or no node reports it.
    pub(crate) async fn await_first_attempt(&self, by: Instant) -> Result<(), StoreError> {
        self.learn(0, by).await
    }

    /// All nodes that have slots, ordered by address.
    pub(crate) async fn masters(
        &self,
        by: Instant,
    ) -> Result<Vec<(String, Arc<Connection>)>, StoreError> {
        self.learn(0, by).await?;
        let mut owners: Vec<_> = self.state.lock().map.owners().cloned().collect();
        owners.sort();
        owners.dedup();
        let owners = owners.iter();
        owners
            .map(|address| Ok((address.to_string(), self.node(address)?)))
            .collect()
    }

    /// Runs one exchange with the node at this address, even if its slots move meanwhile.
    pub(crate) async fn exchange_at<T>(
        &self,
        address: &Arc<ServerAddress>,
        by: Instant,
        exchange: impl AsyncFnOnce(&Connected) -> Result<T, RedisError>,
    ) -> Result<Result<T, RedisError>, Failure> {
        let node = self.node(address).map_err(Failure::without_effect)?;
        let answer = node.exchange_with(by, exchange).await;
        if answer.is_err() {
            self.learn_soon();
        }
        answer
    }

    /// The node that has a slot.
    pub(crate) async fn owner(
        &self,
        slot: u16,
        by: Instant,
    ) -> Result<Arc<ServerAddress>, Failure> {
        let version = {
            let state = self.state.lock();
            if let Some(address) = state.map.owner(slot) {
                return Ok(Arc::clone(address));
            }
            state.version
        };
        let learned = self.learn(version, by).await;
        learned.map_err(Failure::without_effect)?;
        let known = self.state.lock().map.owner(slot).cloned();
        known.ok_or_else(|| {
            let text = format!("CLUSTERDOWN no node serves the slot {slot}");
            Failure::without_effect(StoreError::new(StoreErrorKind::Loading, text))
        })
    }

    /// The connection to a node, made when it is first needed.
    pub(super) fn node(&self, address: &Arc<ServerAddress>) -> Result<Arc<Connection>, StoreError> {
        let mut state = self.state.lock();
        if let Some(node) = state.nodes.get(address) {
            return Ok(Arc::clone(node));
        }
        if state.closed {
            return Err(errors::shut_down());
        }
        if address.port == 0 {
            return Err(self.without_port(address));
        }
        let announced = self.announcement(&state.map, address);
        let node = supervisor::open(
            Endpoint::Node(client_at(&self.template, address)?, announced),
            self.context.clone(),
            Arc::clone(&self.links),
        );
        state.nodes.insert(Arc::clone(address), Arc::clone(&node));
        Ok(node)
    }

    /// The error for a node that is reached with TLS only, or without only.
    fn without_port(&self, address: &ServerAddress) -> StoreError {
        let is_tls = matches!(self.template.addr(), ConnectionAddr::TcpTls { .. });
        let write = self.context.access.other_scheme(is_tls);
        let text = format!("the cluster's map names no port for connections of this kind; {write}");
        StoreError::new(StoreErrorKind::Misconfigured, text).of(&address.to_string())
    }

    /// The word of the cluster for an address, unless that is in the URL.
    fn announcement(
        &self,
        map: &SlotMap,
        address: &Arc<ServerAddress>,
    ) -> Option<AnnouncedAddress> {
        (!self.seeds.contains(address)).then(|| AnnouncedAddress {
            by: AnnouncedBy::ClusterMap,
            announced: map.announced(address).unwrap_or(address).clone(),
            reachable: ServerAddress::clone(address),
        })
    }

    /// Where a node sends a command that it does not carry out itself. `None` if it names no host,
    /// and the port tells nothing.
    pub(super) fn redirected(
        &self,
        host: Option<&str>,
        port: u16,
        asked: &ServerAddress,
    ) -> Option<Arc<ServerAddress>> {
        let reachable = |host: &str| {
            let host = host.to_owned();
            let announced = ServerAddress { host, port };
            Arc::new(self.context.addresses.reachable(&announced))
        };
        if let Some(host) = host {
            return Some(reachable(host));
        }
        let state = self.state.lock();
        let mut known = state.map.with_port(port);
        match (known.next(), known.next()) {
            (Some(only), None) => Some(Arc::clone(only)),
            (Some(_), Some(_)) => None,
            (None, _) => Some(reachable(&asked.host)).filter(|to| **to != *asked),
        }
    }

    /// The node that has a slot, by a map that is newer than the present one.
    pub(super) async fn next_owner(
        &self,
        slot: u16,
        by: Instant,
    ) -> Result<Arc<ServerAddress>, Failure> {
        let version = self.state.lock().version;
        let learned = self.learn(version, by).await;
        learned.map_err(Failure::without_effect)?;
        self.owner(slot, by).await
    }

    /// Records a node's reply that a slot has moved. The reply is newer than the map.
    pub(super) fn note_moved(&self, slot: u16, to: &Arc<ServerAddress>) {
        let now = self.context.clock.now();
        let mut state = self.state.lock();
        state.map.set_owner(slot, to);
        state.moved.insert(slot, (Arc::clone(to), now));
        drop(state);
        // A slot seldom moves alone.
        self.learn_soon();
    }

    /// Asks for the map in the background, unless a task does so already.
    pub(crate) fn learn_soon(&self) {
        if self.looking.swap(true, Ordering::AcqRel) {
            return;
        }
        let (version, cluster) = (self.state.lock().version, Weak::clone(&self.this));
        self.context.clock.handle().spawn(async move {
            let Some(cluster) = cluster.upgrade() else {
                return;
            };
            let ClientContext {
                timeouts, clock, ..
            } = &cluster.context;
            let by = clock.now() + timeouts.connect + timeouts.command;
            let learned = cluster.learn(version, by).await;
            cluster.looking.store(false, Ordering::Release);
            match learned {
                Err(error) => {
                    tracing::debug!(%error, "no node of the cluster reports its map of slots")
                }
                Ok(()) => cluster.context.listener.recheck(),
            }
        });
    }

    /// The error if no node in the URL reported the map in time.
    fn map_not_reported(&self) -> StoreError {
        let seeds: Vec<String> = self.seeds.iter().map(ToString::to_string).collect();
        // Another task asks, which has more time. What it has met so far is known.
        let met = {
            let state = self.state.lock();
            let met = self.seeds.iter().filter_map(|seed| {
                let error = state.nodes.get(seed)?.error()?;
                Some(error.of(&seed.to_string()))
            });
            met.collect()
        };
        if let Some(error) = slot_map::most_telling(met) {
            return error;
        }
        let progress = {
            let state = self.state.lock();
            let mut nodes = state.nodes.values().map(|node| node.progress());
            nodes.find(|progress| progress.step() != ConnectStep::Reaching)
        };
        unreached::slow(&self.context.access, &progress.unwrap_or_default()).of(&seeds.join(", "))
    }

    /// Gets a map newer than this version. One task at a time asks, and not too often.
    async fn learn(&self, version: u64, by: Instant) -> Result<(), StoreError> {
        let clock = &self.context.clock;
        let asking = clock.by(by, self.asking.lock()).await;
        let mut last = asking.ok_or_else(|| self.map_not_reported())?;
        if self.state.lock().version > version {
            return Ok(());
        }
        if let Some(last) = *last
            && clock.now() < last + CLUSTER_MAP_PAUSE
        {
            let pause = clock.sleep_until(last + CLUSTER_MAP_PAUSE);
            let paused = clock.by(by, pause).await;
            paused.ok_or_else(|| self.map_not_reported())?;
        }
        *last = Some(clock.now());
        // Half of the time, which leaves the other half for the nodes in the URL.
        let half = clock.now() + by.saturating_duration_since(clock.now()) / 2;
        let known = self.to_ask();
        let known = known.into_iter().filter_map(|address| {
            let node = self.node(&address).ok()?;
            Some((address, node))
        });
        let known: Vec<_> = known.collect();
        let reported = match known.is_empty() {
            true => None,
            false => slot_map::ask(known, half, &self.context).await.ok(),
        };
        let map = match reported {
            Some(map) => map,
            None => {
                let seeds = self.seeds.iter();
                let seeds = seeds.map(|seed| Ok((Arc::clone(seed), self.node(seed)?)));
                let seeds = seeds.collect::<Result<_, StoreError>>()?;
                slot_map::ask(seeds, by, &self.context).await?
            }
        };
        let gone = self.replace_map(map);
        // Commands under way there keep their connection until they are answered.
        drop(gone);
        Ok(())
    }

    /// Which nodes to ask for the map, before those in the URL: all that have slots, if any node is
    /// connected.
    fn to_ask(&self) -> Vec<Arc<ServerAddress>> {
        let state = self.state.lock();
        let up = state.nodes.iter().filter(|(_, node)| node.is_up());
        let mut known: BTreeSet<_> = up.map(|(address, _)| Arc::clone(address)).collect();
        if !known.is_empty() {
            known.extend(state.map.owners().cloned());
            if known.len() < FEW {
                known.extend(self.seeds.iter().cloned());
            }
        }
        known.into_iter().collect()
    }

    /// Stores a new map. Returns the connections to nodes that have no slots any more.
    fn replace_map(&self, mut map: SlotMap) -> Vec<Arc<Connection>> {
        let mut state = self.state.lock();
        let now = self.context.clock.now();
        state
            .moved
            .retain(|_, (_, seen)| now < *seen + MOVE_SPREADS);
        for (slot, (to, _)) in &state.moved {
            map.set_owner(*slot, to);
        }
        state.map = map;
        state.version += 1;
        let ClusterState { map, nodes, .. } = &mut *state;
        let mut gone = Vec::new();
        nodes.retain(|address, node| {
            let stays = map.owners().any(|owner| owner == address);
            if !stays {
                gone.push(Arc::clone(node));
            }
            stays
        });
        gone
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.close();
    }
}
