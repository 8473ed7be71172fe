//! What the servers say about themselves, and what of it endangers locks.
//!
//! Each is asked `srvr` over a connection of its own: the one of the four-letter words that is
//! allowed by default.

use std::sync::Arc;
use std::time::Duration;

use lock_store::ordered::{EngineServers, at_some_address, gone};
use lock_store::{Clock, Finding, Host, Role, ServerHealth, StoreError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::lookup_host;

use crate::connection::Live;
use crate::store::ZooKeeperEngine;
use crate::transport::Transport;

/// Allowed by default.
const QUESTION: &[u8] = b"srvr";
/// A longer answer is none of ZooKeeper's.
const LONGEST: u64 = 64 << 10;

impl EngineServers for ZooKeeperEngine {
    type Said = String;

    fn hosts(&self) -> &[Host] {
        &self.settings.hosts
    }

    fn ask(
        &self,
        _: &Live,
        host: Host,
    ) -> impl Future<Output = Result<String, StoreError>> + Send + use<> {
        ask(self.clock.clone(), self.transport.clone(), host)
    }

    async fn about_session(&self, live: &Arc<Live>) -> Vec<Finding> {
        let (asked, granted) = (self.settings.session, live.timeout);
        let mut findings = Vec::new();
        if granted > asked {
            findings.push(format!(
                "its sessions last at least {granted:?}, and the URL asks for {asked:?}: the locks \
                 of a process that has died stay taken for longer; lower its `tickTime` or its \
                 `minSessionTimeout`"
            ));
        }
        // Another member may have granted less than this one.
        let shortest = live.trust.lock().timeout();
        if shortest < asked {
            findings.push(format!(
                "its session lasts {shortest:?} at most, and the URL asks for {asked:?}: holds are \
                 lost sooner if the servers do not answer; set `maxSessionTimeout` of all members \
                 to {asked:?} or more, or ask for no more than they allow with `session`"
            ));
        }
        if let Some(tick) = self.settings.tick
            && let Some(shortest) = self.shortest_session().await
            && shortest > 2 * tick
        {
            findings.push(format!(
                "its sessions last at least {shortest:?}, two of its ticks by default, and the \
                 URL says `tick={tick:?}`: with less than its `tickTime` there, two can hold a \
                 lock; write its `tickTime`, or, if its `minSessionTimeout` was raised, leave \
                 `tick` out"
            ));
        }
        findings.into_iter().map(Finding::other).collect()
    }

    fn describe(health: &mut ServerHealth, said: &String) {
        describe(health, said);
    }
}

impl ZooKeeperEngine {
    /// How long a session lasts at least, if a server says so.
    async fn shortest_session(&self) -> Option<Duration> {
        let session = Arc::clone(&self.session);
        // On the client's own runtime: who asks may have none.
        let shortest = async move { session.dialer.shortest_session().await };
        self.clock.handle().spawn(shortest).await.ok()?
    }
}

async fn ask(clock: Clock, transport: Transport, host: Host) -> Result<String, StoreError> {
    let server = host.to_string();
    let failed = |error: std::io::Error| gone(&server, &error.to_string());
    let found = lookup_host((host.name.clone(), host.port)).await;
    let connect = |address| transport.connect(&host.name, address);
    let (_, (read, mut write)) = at_some_address(&server, found, &clock, connect).await?;
    write.write_all(QUESTION).await.map_err(failed)?;
    write.flush().await.map_err(failed)?;
    let mut answer = Vec::new();
    // A server over TLS may end it without a word.
    let _ = read.take(LONGEST).read_to_end(&mut answer).await;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn describe(health: &mut ServerHealth, text: &str) {
    let value = |name: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    if let Some(version) = value("Zookeeper version") {
        let end = version.find(['-', ',', ' ']).unwrap_or(version.len());
        health.version = version.get(..end).unwrap_or_default().to_owned();
    }
    match value("Mode") {
        Some("standalone") => {
            health.role = Role::Master;
            health.replicas = Some(0);
            health.findings.push(Finding::other(
                "it is an ensemble of one: without it there are no locks, and with its disk they \
                 are lost; run three or five servers"
                    .to_owned(),
            ));
        }
        // A follower takes writes as well, and hands them to the leader.
        Some("leader" | "follower") => health.role = Role::Master,
        Some(_) => health.role = Role::Replica,
        None if text.contains("whitelist") => health.findings.push(Finding::unknown(
            "the state of the server",
            "srvr in 4lw.commands.whitelist",
        )),
        None => health.findings.push(Finding::no_answer(
            "it serves nobody, as without a majority of its ensemble".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_describes_itself() {
        let text = "Zookeeper version: 3.8.0-5a02a05eddb59aee6ac762f7ea82e92a68eb9c0f, built on\n\
                    Latency min/avg/max: 0/0.5/3\nMode: standalone\nNode count: 5\n";
        let mut health = ServerHealth::new("h:1".to_owned());
        describe(&mut health, text);
        assert_eq!((&*health.version, health.role), ("3.8.0", Role::Master));
        assert_eq!(health.findings.len(), 1);
        let mut health = ServerHealth::new("h:1".to_owned());
        describe(
            &mut health,
            "This ZooKeeper instance is not currently serving requests\n",
        );
        assert!(matches!(health.findings[..], [Finding::NoAnswer { .. }]));
    }
}
