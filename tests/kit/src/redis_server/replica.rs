//! Replicas of a server.

use std::net::SocketAddr;

use super::RedisServer;
use crate::eventually;

impl RedisServer {
    /// Starts a replica of this server; returns when it has everything that this one has.
    pub async fn start_replica(&self) -> Self {
        self.start_replica_by(self.addr()).await
    }

    /// The same by way of another address, such as a [`Proxy`](crate::Proxy)'s.
    pub async fn start_replica_by(&self, addr: SocketAddr) -> Self {
        // No waiting for more of them before a full copy is sent.
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
        // A replica that has just been copied to says so a moment later, and only then gets what
        // comes after. A message goes to replicas, and leaves nothing.
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

    /// Makes a replica a master, as a failover does.
    pub async fn promote(&self) {
        self.command(&["REPLICAOF", "NO", "ONE"]).await;
    }
}
