//! `CLUSTER SLOTS`: the map of a cluster, as most of the nodes that are asked have it; or else as
//! most of those that answer soon.

use std::sync::Arc;
use std::time::Duration;

use lock_store::{Instant, StoreError, StoreErrorKind};
use redis::{FromRedisValue, Value};
use tokio::task::JoinSet;

use crate::context::ClientContext;
use crate::errors;
use crate::resp::Command;
use crate::topology::address::ServerAddress;
use crate::topology::address_map::AddressMap;
use crate::topology::key_slot::SLOTS;
use crate::transport::connection::Connection;
use crate::transport::script_or_command::Request;

/// How long the answers of other nodes are awaited after the first, until most report the same.
const OTHERS_WITHIN: Duration = Duration::from_millis(200);

/// What a node says about the others. Addresses are those that lead there from here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotMap {
    /// The master of each slot, if it has one.
    owners: Vec<Option<Arc<ServerAddress>>>,
    nodes: Vec<AnnouncedNode>,
}

/// A master or replica in the map.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AnnouncedNode {
    announced: ServerAddress,
    reachable: Arc<ServerAddress>,
}

impl SlotMap {
    pub(crate) fn owner(&self, slot: u16) -> Option<&Arc<ServerAddress>> {
        self.owners.get(usize::from(slot))?.as_ref()
    }

    /// The owner of each slot that has one.
    pub(super) fn owners(&self) -> impl Iterator<Item = &Arc<ServerAddress>> {
        self.owners.iter().flatten()
    }

    pub(super) fn set_owner(&mut self, slot: u16, to: &Arc<ServerAddress>) {
        if let Some(owner) = self.owners.get_mut(usize::from(slot)) {
            *owner = Some(Arc::clone(to));
        }
    }

    /// What the node is called in the map.
    pub(super) fn announced(&self, reachable: &ServerAddress) -> Option<&ServerAddress> {
        let mut nodes = self.nodes.iter();
        let node = nodes.find(|node| *node.reachable == *reachable)?;
        Some(&node.announced)
    }

    /// The nodes that announce this port.
    pub(super) fn with_port(&self, port: u16) -> impl Iterator<Item = &Arc<ServerAddress>> {
        let nodes = self.nodes.iter();
        nodes.filter_map(move |node| (node.announced.port == port).then_some(&node.reachable))
    }

    fn add(&mut self, announced: ServerAddress, addresses: &AddressMap) -> Arc<ServerAddress> {
        let mut nodes = self.nodes.iter();
        if let Some(known) = nodes.find(|node| node.announced == announced) {
            return Arc::clone(&known.reachable);
        }
        let reachable = Arc::new(addresses.reachable(&announced));
        self.nodes.push(AnnouncedNode {
            announced,
            reachable: Arc::clone(&reachable),
        });
        reachable
    }
}

/// Asks all of these nodes at once, on the client's runtime: the caller may have none. A node that
/// others can't reach knows of no failover, and may be the first to answer.
pub(super) async fn ask(
    nodes: Vec<(Arc<ServerAddress>, Arc<Connection>)>,
    by: Instant,
    context: &ClientContext,
) -> Result<SlotMap, StoreError> {
    let (mut asked, count) = (JoinSet::new(), nodes.len());
    for (address, node) in nodes {
        let addresses = context.addresses.clone();
        let ask = async move {
            let answer = ask_one(&node, by).await;
            let slots = answer.map(|ranges| read(&ranges, &address, &addresses));
            slots.map_err(|error| error.of(&address.to_string()))
        };
        asked.spawn_on(ask, context.clock.handle());
    }
    let mut failed = Vec::<StoreError>::new();
    // Each with the number of nodes that report it.
    let mut maps = Vec::<(SlotMap, usize)>::new();
    let mut until = None;
    loop {
        let answer = match until {
            None => asked.join_next().await,
            Some(until) => context.clock.by(until, asked.join_next()).await.flatten(),
        };
        let Some(answer) = answer else { break };
        match answer {
            Ok(Ok(slots)) if slots.owners().next().is_some() => {
                until.get_or_insert_with(|| context.clock.now() + OTHERS_WITHIN);
                let known = maps.iter_mut().find(|(map, _)| map.owners == slots.owners);
                match known {
                    Some((_, nodes)) => *nodes += 1,
                    None => maps.push((slots, 1)),
                }
                if maps.iter().any(|(_, nodes)| 2 * nodes > count) {
                    break;
                }
            }
            Ok(Ok(_)) => failed.push(StoreError::new(
                StoreErrorKind::Loading,
                "CLUSTERDOWN no node of the cluster has any slots",
            )),
            Ok(Err(error)) => failed.push(error),
            Err(_) => {}
        }
    }
    // Of several, the first that was reported.
    if let Some((map, _)) = maps.into_iter().rev().max_by_key(|(_, nodes)| *nodes) {
        return Ok(map);
    }
    Err(most_telling(failed).unwrap_or_else(|| {
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
    let mut slots = Command::new("CLUSTER");
    slots.arg("SLOTS");
    let request = Request::command(slots);
    let answer = node.exchange(by, &request, false).await;
    let reply = answer.map_err(|failure| failure.error)?.result;
    let ranges = reply.and_then(|reply| Ok(Vec::from_redis_value(reply)?));
    ranges.map_err(|error| match errors::kind(&error) {
        StoreErrorKind::Refused => errors::no_cluster_node(),
        _ => errors::store_error(&error),
    })
}

/// Reads the reply: {first, last, master, …replicas} for each range.
pub(crate) fn read(reply: &[Value], asked: &ServerAddress, addresses: &AddressMap) -> SlotMap {
    let mut map = SlotMap {
        owners: vec![None; usize::from(SLOTS)],
        nodes: Vec::new(),
    };
    for range in reply {
        let Value::Array(range) = range else { continue };
        let [Value::Int(first), Value::Int(last), nodes @ ..] = &range[..] else {
            continue;
        };
        let nodes = nodes.iter().map(|node| address_of(node, asked));
        let nodes = nodes.map(|announced| Some(map.add(announced?, addresses)));
        let nodes: Vec<_> = nodes.collect();
        let (Some(Some(master)), Ok(first), Ok(last)) = (
            nodes.into_iter().next(),
            usize::try_from(*first),
            usize::try_from(*last),
        ) else {
            continue;
        };
        if let Some(range) = map.owners.get_mut(first..=last) {
            range.fill(Some(master));
        }
    }
    map
}

/// Reads a node: {host, port, id, metadata}.
fn address_of(node: &Value, asked: &ServerAddress) -> Option<ServerAddress> {
    let Value::Array(node) = node else {
        return None;
    };
    let [host, Value::Int(port), more @ ..] = &node[..] else {
        return None;
    };
    let host = match (host, word(host).filter(|host| is_host(host))) {
        (_, Some(host)) => Some(host),
        // A node whose endpoint is unknown on purpose is behind the address that was asked (Redis
        // documentation, `CLUSTER SLOTS`).
        (Value::Nil, None) => None,
        // A node without the kind of name that is preferred, or that does not know its address.
        (_, None) => more.get(1).and_then(host_in_metadata),
    };
    Some(ServerAddress {
        host: host.unwrap_or_else(|| asked.host.clone()),
        port: u16::try_from(*port).ok()?,
    })
}

/// Whether this names a host.
pub(super) fn is_host(text: &str) -> bool {
    !matches!(text, "" | "?")
}

fn word(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(word) => Some(String::from_utf8_lossy(word).into_owned()),
        Value::SimpleString(word) => Some(word.clone()),
        _ => None,
    }
}

/// The address, or the name, among the names and values of a node's metadata.
fn host_in_metadata(metadata: &Value) -> Option<String> {
    let pairs: Vec<(&Value, &Value)> = match metadata {
        Value::Map(pairs) => pairs.iter().map(|(name, value)| (name, value)).collect(),
        Value::Array(flat) => flat
            .chunks_exact(2)
            .map(|pair| (&pair[0], &pair[1]))
            .collect(),
        _ => return None,
    };
    let value = |name: &str| {
        let mut pairs = pairs.iter();
        let (_, value) = pairs.find(|(one, _)| word(one).as_deref() == Some(name))?;
        word(value).filter(|host| is_host(host))
    };
    value("ip").or_else(|| value("hostname"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    /// The address of a node with this host and this metadata.
    fn read_one(host: Value, metadata: Option<Value>) -> String {
        let mut node = vec![host, Value::Int(7001), text("id")];
        node.extend(metadata);
        let asked = ServerAddress {
            host: "asked".to_owned(),
            port: 7000,
        };
        let range = vec![Value::Int(0), Value::Int(16383), Value::Array(node)];
        let map = read(&[Value::Array(range)], &asked, &AddressMap::default());
        map.owner(9)
            .map_or_else(String::new, |owner| owner.to_string())
    }

    #[test]
    fn a_host_that_is_not_said_is_that_of_the_metadata_or_the_one_that_was_asked() {
        let (ip, name) = (
            (text("ip"), text("10.0.0.1")),
            (text("hostname"), text("n1")),
        );
        let map = |pairs: &[&(Value, Value)]| {
            Some(Value::Map(pairs.iter().map(|it| (*it).clone()).collect()))
        };
        let none = (text("ip"), text(""));
        let flat = Some(Value::Array(vec![ip.0.clone(), ip.1.clone()]));
        for (host, metadata, expected) in [
            (text("h"), map(&[&ip]), "h:7001"),
            (text("?"), map(&[&ip]), "10.0.0.1:7001"),
            (text("?"), flat, "10.0.0.1:7001"),
            (text("?"), map(&[&none, &name]), "n1:7001"),
            (text("?"), map(&[]), "asked:7001"),
            (text("?"), None, "asked:7001"),
            (text(""), map(&[&name]), "n1:7001"),
            (text(""), None, "asked:7001"),
            (Value::Nil, map(&[&ip]), "asked:7001"),
            (Value::Nil, None, "asked:7001"),
            (text("::1"), None, "::1:7001"),
        ] {
            assert_eq!(read_one(host.clone(), metadata), expected, "{host:?}");
        }
    }
}
