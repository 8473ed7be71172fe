//! `CLUSTER SLOTS`: the map of a cluster, from the first of its nodes that answers.

use std::sync::Arc;

use lock_store::{Instant, StoreError, StoreErrorKind};
use redis::{FromRedisValue, Value};
use tokio::task::JoinSet;

use crate::errors;
use crate::topology::server::ServerAddress;
use crate::topology::slots::SLOTS;
use crate::transport::connection::Connection;
use crate::transport::request::Request;

/// The master of each slot, if it has one.
pub(crate) type SlotMap = Vec<Option<Arc<ServerAddress>>>;

/// Asks all of these nodes at once.
pub(super) async fn ask(
    nodes: Vec<(Arc<ServerAddress>, Arc<Connection>)>,
    by: Instant,
) -> Result<SlotMap, StoreError> {
    let mut asked = JoinSet::new();
    for (address, node) in nodes {
        asked.spawn(async move {
            let answer = ask_one(&node, by).await;
            let slots = answer.map(|ranges| read(&ranges, &address));
            slots.map_err(|error| error.of(&address.to_string()))
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
    Err(most_telling(errors).unwrap_or_else(|| {
        let text = "no node of the cluster answers";
        StoreError::new(StoreErrorKind::Disconnected, text)
    }))
}

/// Of what is wrong with several nodes, what waiting does not mend, or else the first.
pub(super) fn most_telling(errors: Vec<StoreError>) -> Option<StoreError> {
    let lasts = |error: &StoreError| !error.kind().is_transient();
    let at = errors.iter().position(lasts).unwrap_or(0);
    errors.into_iter().nth(at)
}

async fn ask_one(node: &Connection, by: Instant) -> Result<Vec<Value>, StoreError> {
    let mut slots = redis::cmd("CLUSTER");
    slots.arg("SLOTS");
    let request = Request::command(slots);
    let answer = node.exchange(node.link(), by, &request, false).await;
    let reply = answer.map_err(|failure| failure.error)?.result;
    reply
        .and_then(|reply| Ok(Vec::from_redis_value(reply)?))
        .map_err(|error| errors::store_error(&error))
}

/// Reads the reply: {first, last, {host, port, …} of the master, …replicas} for each range.
pub(crate) fn read(reply: &[Value], asked: &ServerAddress) -> SlotMap {
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
        let address = Arc::new(ServerAddress { host, port });
        if let Some(range) = slots.get_mut(first..=last) {
            range.fill(Some(address));
        }
    }
    slots
}
