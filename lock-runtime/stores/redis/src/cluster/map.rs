//! The map of a cluster: which node has which slots, by the word of any node.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Instant;

use lock_store::{StoreError, StoreErrorKind};
use redis::Value;
use tokio::task::JoinSet;

use super::{Cluster, State};
use crate::config::CLUSTER_MAP_PAUSE;
use crate::connection::Connected;
use crate::errors;
use crate::slots::SLOTS;
use crate::target::Place;

/// The master of each slot, where there is one.
pub(super) type Slots = Vec<Option<Arc<Place>>>;

impl Cluster {
    /// Asks for the map in the background, unless somebody does already.
    pub(super) fn look_again_soon(&self) {
        if self.looking.swap(true, Ordering::AcqRel) {
            return;
        }
        let (version, cluster) = (self.state().version, Weak::clone(&self.this));
        self.clock.handle().spawn(async move {
            let Some(cluster) = cluster.upgrade() else {
                return;
            };
            let by = cluster.clock.now() + cluster.timeouts.connect + cluster.timeouts.command;
            let learned = cluster.learn(version, by).await;
            cluster.looking.store(false, Ordering::Release);
            match learned {
                Err(error) => {
                    tracing::debug!(%error, "no node of the cluster tells where slots are")
                }
                Ok(()) => {
                    if let Some(listener) = cluster.listener.upgrade() {
                        listener.recheck();
                    }
                }
            }
        });
    }

    /// Gets a newer map than that of this version. One at a time, and not too often.
    pub(super) async fn learn(&self, version: u64, by: Instant) -> Result<(), StoreError> {
        let slow = || StoreError::new(StoreErrorKind::Timeout, "connecting takes too long");
        let turn = self.clock.by(by, self.asking.lock()).await;
        let mut last = turn.ok_or_else(slow)?;
        if self.state().version > version {
            return Ok(());
        }
        let now = self.clock.now();
        if let Some(last) = *last
            && now < last + CLUSTER_MAP_PAUSE
        {
            let pause = self.clock.sleep_until(last + CLUSTER_MAP_PAUSE);
            self.clock.by(by, pause).await.ok_or_else(slow)?;
        }
        *last = Some(self.clock.now());
        let up: Vec<_> = {
            let state = self.state();
            let nodes = state.nodes.iter().filter(|(_, node)| node.is_up());
            nodes.map(|(place, _)| Arc::clone(place)).collect()
        };
        // Half of the time, so that there is some left for the nodes of the URL.
        let half = self.clock.now() + by.saturating_duration_since(self.clock.now()) / 2;
        let known = match up.is_empty() {
            true => None,
            false => self.ask(up, half).await.ok(),
        };
        let slots = match known {
            Some(slots) => slots,
            None => self.ask(self.seeds.clone(), by).await?,
        };
        let mut state = self.state();
        if state.slots != slots {
            state.moving.clear();
        }
        state.slots = slots;
        state.version += 1;
        let State { slots, nodes, .. } = &mut *state;
        let mut gone = Vec::new();
        nodes.retain(|place, node| {
            let stays = slots.iter().flatten().any(|owner| owner == place);
            if !stays {
                gone.push(Arc::clone(node));
            }
            stays
        });
        // Commands that are under way there keep their connection until they are answered.
        drop(state);
        drop(gone);
        Ok(())
    }

    /// The map, from the first of these nodes that tells.
    async fn ask(&self, places: Vec<Arc<Place>>, by: Instant) -> Result<Slots, StoreError> {
        let mut asked = JoinSet::new();
        for place in places {
            let node = self.node(&place)?;
            asked.spawn(async move {
                let question = async |mut up: Connected| {
                    let mut slots = redis::cmd("CLUSTER");
                    slots.arg("SLOTS").query_async(&mut up.connection).await
                };
                let answer = node.exchange::<Vec<Value>>(node.link(), by, question).await;
                let reply = match answer {
                    Ok((_, Ok(reply))) => reply,
                    Ok((_, Err(error))) => {
                        return Err(errors::store_error(&error).of(&place.to_string()));
                    }
                    Err(failure) => return Err(failure.error.of(&place.to_string())),
                };
                Ok(read(&reply, &place))
            });
        }
        let mut errors = Vec::<StoreError>::new();
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok(Ok(slots)) if slots.iter().any(Option::is_some) => return Ok(slots),
                Ok(Ok(_)) => errors.push(StoreError::new(
                    StoreErrorKind::Loading,
                    "CLUSTERDOWN no node of the cluster has any slots",
                )),
                Ok(Err(error)) => errors.push(error),
                Err(_) => {}
            }
        }
        let telling = |error: &&StoreError| !error.kind().is_transient();
        let told = errors.iter().find(telling).or(errors.first());
        Err(told.cloned().unwrap_or_else(|| {
            StoreError::new(
                StoreErrorKind::Disconnected,
                "no node of the cluster answers",
            )
        }))
    }
}

/// Reads the reply to `CLUSTER SLOTS`: {first, last, {host, port, …} of the master, …replicas} for each range.
fn read(reply: &[Value], asked: &Place) -> Slots {
    let mut slots = vec![None; usize::from(SLOTS)];
    for range in reply {
        let Value::Array(range) = range else { continue };
        let [
            Value::Int(first),
            Value::Int(last),
            Value::Array(master),
            ..,
        ] = &range[..]
        else {
            continue;
        };
        let [host, Value::Int(port), ..] = &master[..] else {
            continue;
        };
        let host = match host {
            Value::BulkString(host) if !host.is_empty() => {
                String::from_utf8_lossy(host).into_owned()
            }
            _ => asked.host.clone(),
        };
        let (Ok(port), Ok(first), Ok(last)) = (
            u16::try_from(*port),
            usize::try_from(*first),
            usize::try_from(*last),
        ) else {
            continue;
        };
        let place = Arc::new(Place { host, port });
        if let Some(range) = slots.get_mut(first..=last) {
            range.fill(Some(place));
        }
    }
    slots
}
