//! The servers of a workload, taken together.

use std::ops::Sub;

use lock_testkit::{RedisCluster, RedisServer, RequestLog};

use crate::plan::Topology;
use crate::process::{self, Usage};

#[derive(Debug)]
pub(crate) struct Servers {
    url: String,
    /// Those that clients talk to.
    masters: Vec<RedisServer>,
    replica: Option<RedisServer>,
}

/// A part of `INFO stats`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Reads from connections.
    pub(crate) reads: f64,
    /// Commands of clients, of scripts, and of replicas.
    pub(crate) commands: f64,
}

impl Sub for Counts {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            reads: self.reads - before.reads,
            commands: self.commands - before.commands,
        }
    }
}

impl Servers {
    pub(crate) async fn start(topology: Topology) -> Self {
        if topology == Topology::Cluster {
            let cluster = RedisCluster::start_masters().await;
            return Self {
                url: cluster.url(),
                masters: cluster.nodes,
                replica: None,
            };
        }
        let master = RedisServer::start().await;
        let (url, replica) = match topology {
            Topology::Replica => {
                let url = format!("{}?replicas=1", master.url());
                (url, Some(master.start_replica().await))
            }
            _ => (master.url(), None),
        };
        Self {
            url,
            masters: vec![master],
            replica,
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) async fn clear(&self) {
        for master in &self.masters {
            master.command(&["FLUSHALL"]).await;
        }
    }

    /// The usage of all processes.
    pub(crate) fn usage(&self) -> Usage {
        let all = self.masters.iter().chain(&self.replica);
        all.map(|server| process::usage(server.process_id())).sum()
    }

    /// What the masters have counted so far.
    pub(crate) async fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        for master in &self.masters {
            let stats: String = master.query(&["INFO", "stats"]).await;
            let count = |name| count(&stats, name).expect("INFO has it");
            sum.reads += count("total_reads_processed:");
            sum.commands += count("total_commands_processed:");
        }
        sum
    }

    /// Records from now on what clients send.
    pub(crate) async fn requests(&self) -> Requests {
        let mut logs = Vec::new();
        for master in &self.masters {
            logs.push(master.requests().await);
        }
        Requests(logs)
    }
}

/// The requests of clients to all masters.
#[derive(Debug)]
pub(crate) struct Requests(Vec<RequestLog>);

impl Requests {
    /// How many there were, without the commands of scripts.
    pub(crate) async fn count(mut self) -> f64 {
        let mut count = 0;
        for log in &mut self.0 {
            count += log.take().await.len();
        }
        count as f64
    }
}

fn count(stats: &str, name: &str) -> Option<f64> {
    let mut lines = stats.lines();
    lines.find_map(|line| line.strip_prefix(name)?.parse().ok())
}
