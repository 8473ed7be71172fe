//! A Redis Cluster: three masters, each with a replica if wanted.

use std::collections::BTreeSet;
use std::time::Duration;

use redis::Value;

use crate::{RedisServer, eventually, eventually_within};

const MASTERS: usize = 3;
const SLOTS: u16 = 16384;
/// How long a node may be silent before its replica takes over. With less, it happens by accident
/// on a loaded machine.
const NODE_TIMEOUT_MS: &str = "1500";
/// The default of Redis.
const PATIENT_TIMEOUT_MS: &str = "15000";
/// A replica takes over after some time of silence and an election. A failed election is repeated.
const FAILOVER_LIMIT: Duration = Duration::from_secs(60);

/// Three masters that share the slots evenly, each with a replica: separate `redis-server`
/// processes for this test.
///
/// # Examples
///
/// ```no_run
/// # async fn example() {
/// use lock_testkit::RedisCluster;
///
/// let cluster = RedisCluster::start().await;
/// let slot = cluster.slot("lock:a").await;
/// let (from, to) = (cluster.master_of(slot).await, 0);
/// cluster.move_slot(slot, &cluster.nodes[to]).await;
/// assert_ne!(from.port(), cluster.master_of(slot).await.port());
/// # }
/// ```
#[derive(Debug)]
pub struct RedisCluster {
    /// The initial masters, then their replicas in the same order, if there are any.
    pub nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts a cluster. Returns when all nodes agree that it is complete.
    pub async fn start() -> Self {
        Self::start_with(NODE_TIMEOUT_MS, 2 * MASTERS, "no").await
    }

    /// The same, and each node writes each command to its disk.
    pub async fn start_durable() -> Self {
        Self::start_with(NODE_TIMEOUT_MS, 2 * MASTERS, "yes").await
    }

    /// Starts a cluster in which no replica takes over: for tests of something else, on a busy
    /// machine.
    pub async fn start_patient() -> Self {
        Self::start_with(PATIENT_TIMEOUT_MS, 2 * MASTERS, "no").await
    }

    /// Starts a cluster of masters without replicas: for measurements, where replicas would take
    /// processor time.
    pub async fn start_masters() -> Self {
        Self::start_with(PATIENT_TIMEOUT_MS, MASTERS, "no").await
    }

    async fn start_with(timeout: &str, count: usize, appendonly: &str) -> Self {
        let mut nodes = Vec::new();
        for _ in 0..count {
            let node = RedisServer::builder().cluster_node();
            let node = node.arg("--cluster-node-timeout").arg(timeout);
            // If one part is down, the others still work. Every replica may take over.
            let node = node.arg("--cluster-require-full-coverage").arg("no");
            let node = node.arg("--cluster-replica-validity-factor").arg("0");
            let node = node.arg("--cluster-allow-replica-migration").arg("no");
            let node = node.arg("--appendonly").arg(appendonly);
            let node = node.arg("--appendfsync").arg("always");
            nodes.push(
                node.arg("--repl-diskless-sync-delay")
                    .arg("0")
                    .start()
                    .await,
            );
        }
        let cluster = Self { nodes };
        cluster.form().await;
        cluster
    }

    async fn form(&self) {
        for (at, node) in self.nodes.iter().enumerate() {
            let epoch = (at + 1).to_string();
            node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]).await;
        }
        let share = SLOTS / MASTERS as u16;
        for (at, master) in self.nodes.iter().take(MASTERS).enumerate() {
            let first = share * at as u16;
            let last = if at + 1 == MASTERS {
                SLOTS - 1
            } else {
                first + share - 1
            };
            let (first, last) = (first.to_string(), last.to_string());
            master
                .command(&["CLUSTER", "ADDSLOTSRANGE", &first, &last])
                .await;
        }
        for node in &self.nodes[1..] {
            let (port, bus) = (node.port().to_string(), bus_port(node).await);
            self.nodes[0]
                .command(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus])
                .await;
        }
        self.each(&self.nodes, "it knows all nodes", async |node| {
            let information: String = node.query(&["CLUSTER", "INFO"]).await;
            information.contains(&format!("cluster_known_nodes:{}", self.nodes.len()))
                && information.contains("cluster_state:ok")
        })
        .await;
        for (replica, master) in self.nodes[MASTERS..].iter().zip(&self.nodes) {
            let id = id_of(master).await;
            replica.command(&["CLUSTER", "REPLICATE", &id]).await;
        }
        self.each(&self.nodes[MASTERS..], "it is in step", async |replica| {
            let information: String = replica.query(&["INFO", "replication"]).await;
            information.contains("master_link_status:up")
        })
        .await;
        self.each(&self.nodes, "it knows every replica", async |node| {
            let ranges: Vec<Vec<Value>> = node.query(&["CLUSTER", "SLOTS"]).await;
            // A range has its ends, and then its nodes.
            let length = 2 + self.nodes.len() / MASTERS;
            ranges.len() == MASTERS && ranges.iter().all(|range| range.len() == length)
        })
        .await;
    }

    async fn each(
        &self,
        nodes: &[RedisServer],
        what: &str,
        condition: impl AsyncFn(&RedisServer) -> bool,
    ) {
        for node in nodes {
            eventually(&format!("of a node: {what}"), async || {
                condition(node).await
            })
            .await;
        }
    }

    /// `redis-cluster://…`, with the initial masters.
    #[must_use]
    pub fn url(&self) -> String {
        let masters = self.nodes[..MASTERS].iter();
        let hosts: Vec<String> = masters.map(|node| node.addr().to_string()).collect();
        format!("redis-cluster://{}", hosts.join(","))
    }

    /// The slot of a name.
    pub async fn slot(&self, name: &str) -> u16 {
        for node in &self.nodes {
            if let Ok(slot) = node.try_command(&["CLUSTER", "KEYSLOT", name]).await {
                return redis::from_redis_value(slot).expect("a slot is a number");
            }
        }
        panic!("no node answers");
    }

    /// The master of a slot, according to the first node that answers at once.
    pub async fn master_of(&self, slot: u16) -> &RedisServer {
        for node in &self.nodes {
            if node.responds_within(Duration::from_secs(1)).await
                && let Some(port) = port_of(node, slot).await
            {
                let mut nodes = self.nodes.iter();
                return nodes
                    .find(|node| node.port() == port)
                    .expect("it is one of ours");
            }
        }
        panic!("no node knows who has slot {slot}");
    }

    /// The ports of the masters, according to the first node that answers at once.
    pub async fn masters(&self) -> BTreeSet<u16> {
        for node in &self.nodes {
            if node.responds_within(Duration::from_secs(1)).await
                && let Some(ranges) = ranges(node).await
            {
                return ranges.into_iter().map(|of| of[0]).collect();
            }
        }
        panic!("no node answers");
    }

    /// Waits until all nodes agree who has which slots, and each master has its replica.
    pub async fn until_settled(&self) {
        let what = "all nodes agree about three masters with their replicas";
        eventually_within(FAILOVER_LIMIT, what, async || {
            self.settled_masters().await.is_some()
        })
        .await;
    }

    /// The ports of the masters and the number of the last election that was won, if all nodes
    /// agree who has which slots, and each master has its replica.
    pub async fn settled_masters(&self) -> Option<(BTreeSet<u16>, u64)> {
        let mut first = None;
        let mut last_epoch = 0;
        for node in &self.nodes {
            if !node.responds_within(Duration::from_secs(1)).await {
                return None;
            }
            // It may be stopped between two questions.
            let replication = node.try_query::<String>(&["INFO", "replication"]).await;
            let replication = replication.ok()?;
            let in_step = replication.contains("state=online")
                || replication.contains("master_link_status:up");
            let mut ranges = ranges(node).await?;
            ranges.sort();
            if !in_step || ranges.len() != MASTERS || ranges.iter().any(|of| of.len() != 2) {
                return None;
            }
            if *first.get_or_insert_with(|| ranges.clone()) != ranges {
                return None;
            }
            let state = node.try_query::<String>(&["CLUSTER", "INFO"]).await.ok()?;
            let mut lines = state.lines();
            // Of a replica, its master's. A lost election does not raise it.
            let epoch = lines.find_map(|line| line.strip_prefix("cluster_my_epoch:"))?;
            last_epoch = last_epoch.max(epoch.trim().parse().ok()?);
        }
        let masters = first?.into_iter().map(|of| of[0]).collect();
        Some((masters, last_epoch))
    }

    /// Waits until all nodes that answer name another master than `old` for a slot.
    pub async fn until_failed_over(&self, slot: u16, old: &RedisServer) {
        let what = "another node has the slot for everybody";
        eventually_within(FAILOVER_LIMIT, what, async || {
            let mut answers = 0;
            for node in &self.nodes {
                if node.port() == old.port() || !node.responds_within(Duration::from_secs(1)).await
                {
                    continue;
                }
                answers += 1;
                let owner = port_of(node, slot).await;
                if owner.is_none() || owner == Some(old.port()) {
                    return false;
                }
            }
            answers >= MASTERS
        })
        .await;
    }

    /// Moves a slot with its keys to another master, like `redis-cli --cluster reshard`.
    pub async fn move_slot(&self, slot: u16, to: &RedisServer) {
        let from = self.begin_move(slot, to).await;
        self.end_move(slot, from, to).await;
    }

    /// The first half of a move: from now on, each key of the slot may be on either node. Returns
    /// the node that the slot comes from.
    pub async fn begin_move(&self, slot: u16, to: &RedisServer) -> &RedisServer {
        let from = self.master_of(slot).await;
        let slot = slot.to_string();
        let (from_id, to_id) = (id_of(from).await, id_of(to).await);
        to.command(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id])
            .await;
        from.command(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id])
            .await;
        from
    }

    /// The second half of a move: first the keys, one by one, then the slot.
    pub async fn end_move(&self, slot: u16, from: &RedisServer, to: &RedisServer) {
        let (slot, port) = (slot.to_string(), to.port().to_string());
        loop {
            let keys: Vec<String> = from.query(&["CLUSTER", "GETKEYSINSLOT", &slot, "10"]).await;
            if keys.is_empty() {
                break;
            }
            for key in keys {
                from.command(&["MIGRATE", "127.0.0.1", &port, &key, "0", "5000"])
                    .await;
            }
        }
        let id = id_of(to).await;
        for node in [to, from] {
            node.command(&["CLUSTER", "SETSLOT", &slot, "NODE", &id])
                .await;
        }
        let slot = slot.parse().expect("it was a number");
        self.each(&self.nodes, "it knows where the slot is", async |node| {
            port_of(node, slot).await == Some(to.port())
        })
        .await;
    }
}

async fn id_of(node: &RedisServer) -> String {
    node.query(&["CLUSTER", "MYID"]).await
}

/// The ports of each range's master and replicas, according to this node, if it answers.
async fn ranges(node: &RedisServer) -> Option<Vec<Vec<u16>>> {
    let ranges = node.try_query::<Vec<Vec<Value>>>(&["CLUSTER", "SLOTS"]);
    let ranges = ranges.await.ok()?;
    let port = |node: &Value| match node {
        Value::Array(node) => redis::from_redis_value(node[1].clone()).ok(),
        _ => None,
    };
    let of = |range: &Vec<Value>| range[2..].iter().filter_map(port).collect();
    Some(ranges.iter().map(of).collect())
}

async fn bus_port(node: &RedisServer) -> String {
    let (_, port): (String, String) = node.query(&["CONFIG", "GET", "cluster-port"]).await;
    port
}

/// The port of a slot's master, according to this node.
async fn port_of(node: &RedisServer, slot: u16) -> Option<u16> {
    let ranges = node.try_query::<Vec<Vec<Value>>>(&["CLUSTER", "SLOTS"]);
    let ranges = ranges.await.ok()?;
    let number = |value: &Value| redis::from_redis_value::<u16>(value.clone()).ok();
    let range = ranges.iter().find(|range| {
        let (first, last) = (number(&range[0]), number(&range[1]));
        first.is_some_and(|first| first <= slot) && last.is_some_and(|last| slot <= last)
    })?;
    match &range[2] {
        Value::Array(master) => number(&master[1]),
        _ => None,
    }
}
