//! Replicas of a server.

use std::net::SocketAddr;

use super::RedisServer;
use crate::eventually;

impl RedisServer {
    /// Starts a replica of this server. Returns when it has all the data of this one.
    pub async fn start_replica(&self) -> Self {
        self.start_replica_by(self.addr()).await
    }

    /// The same through another address, such as a [`Proxy`](crate::Proxy)'s.
    pub async fn start_replica_by(&self, addr: SocketAddr) -> Self {
        // Do not wait for more replicas before a full copy is sent.
        self.command(&["CONFIG", "SET", "repl-diskless-sync-delay", "0"])
            .await;
        let (host, port) = (addr.ip().to_string(), addr.port().to_string());
        let mut builder = Self::builder().arg("--replicaof").arg(host).arg(port);
        if let Some(password) = &self.settings.password {
            builder = builder.password(password).arg("--masterauth").arg(password);
        }
        let replica = builder.start().await;
        eventually("the replica is in step", async || {
            let information: String = replica.query(&["INFO", "replication"]).await;
            information.contains("master_link_status:up")
        })
        .await;
        // A replica that got its copy reports that a moment later, and only then gets what follows.
        // A message is replicated, and leaves nothing behind.
        self.command(&["PUBLISH", "replica", "welcome"]).await;
        let port = format!("port={},state=online,offset=", replica.port());
        eventually("the master knows that", async || {
            let information: String = self.query(&["INFO", "replication"]).await;
            let field = |line: &str, name: &str| {
                let (_, rest) = line.split_once(name)?;
                rest.split(',').next().map(str::to_owned)
            };
            let mut lines = information.lines();
            let has = lines.find_map(|line| field(line, &port));
            let written = information
                .lines()
                .find_map(|line| field(line, "master_repl_offset:"));
            has.is_some() && has == written
        })
        .await;
        replica
    }

    /// Makes a replica a master, like a failover.
    pub async fn promote(&self) {
        self.command(&["REPLICAOF", "NO", "ONE"]).await;
    }
}
