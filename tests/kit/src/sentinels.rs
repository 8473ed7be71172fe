//! A master, its replicas, and the sentinels that watch them.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use crate::{RedisServer, eventually, eventually_within};

/// The sentinels' name for the master.
const NAME: &str = "mymaster";
/// How long a master may be silent before the sentinels replace it. With less, it happens by
/// accident on a loaded machine.
const DOWN_AFTER_MS: u32 = 1000;
/// Sentinels leave a restarted server as it is for ten seconds, and then for a failover's timeout.
const SETTLE_LIMIT: Duration = Duration::from_secs(90);

/// One master and two replicas under three sentinels: separate `redis-server` processes for this
/// test.
///
/// # Examples
///
/// ```no_run
/// # async fn example() {
/// use lock_testkit::SentinelGroup;
///
/// let group = SentinelGroup::start().await;
/// let old = group.master().await;
/// old.kill();
/// group.until_failed_over(old).await;
/// assert_ne!(group.master().await.port(), old.port());
/// # }
/// ```
#[derive(Debug)]
pub struct SentinelGroup {
    /// The initial master, then its replicas.
    pub servers: Vec<RedisServer>,
    /// The sentinels.
    pub sentinels: Vec<RedisServer>,
    settings: SentinelGroupBuilder,
}

/// Settings of a [`SentinelGroup`] before its start.
#[derive(Clone, Debug, Default)]
pub struct SentinelGroupBuilder {
    password: Option<String>,
    sentinel_password: Option<String>,
    args: Vec<String>,
    patient: bool,
}

impl SentinelGroupBuilder {
    /// The password of the master and of its replicas.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// The password of the sentinels.
    #[must_use]
    pub fn sentinel_password(mut self, password: &str) -> Self {
        self.sentinel_password = Some(password.to_owned());
        self
    }

    /// One more word on the command line of the master and its replicas.
    #[must_use]
    pub fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    /// No master is replaced: for tests of something else, on a busy machine.
    #[must_use]
    pub fn patient(mut self) -> Self {
        self.patient = true;
        self
    }

    /// Starts all servers. Returns when the sentinels know the replicas and each other.
    pub async fn start(self) -> SentinelGroup {
        let master = self.server(None).await;
        let (first, second) = tokio::join!(self.server(Some(&master)), self.server(Some(&master)));
        let sentinel = || self.sentinel(&master);
        let (a, b, c) = tokio::join!(sentinel(), sentinel(), sentinel());
        let group = SentinelGroup {
            servers: vec![master, first, second],
            sentinels: vec![a, b, c],
            settings: self,
        };
        for sentinel in &group.sentinels {
            eventually("a sentinel knows everybody", async || {
                let state: Vec<String> = sentinel.query(&["SENTINEL", "MASTER", NAME]).await;
                let number = |of: &str| {
                    let mut pairs = state.chunks(2);
                    pairs.find(|pair| pair[0] == of).map(|pair| pair[1].clone())
                };
                number("num-slaves").as_deref() == Some("2")
                    && number("num-other-sentinels").as_deref() == Some("2")
            })
            .await;
        }
        for replica in &group.servers[1..] {
            eventually("a replica is in step", async || {
                let information: String = replica.query(&["INFO", "replication"]).await;
                information.contains("master_link_status:up")
            })
            .await;
        }
        group
    }

    async fn server(&self, of: Option<&RedisServer>) -> RedisServer {
        let mut builder = RedisServer::builder()
            // Do not wait for more replicas before a full copy is sent.
            .arg("--repl-diskless-sync-delay")
            .arg("0");
        for arg in &self.args {
            builder = builder.arg(arg);
        }
        if let Some(password) = &self.password {
            builder = builder.password(password).arg("--masterauth").arg(password);
        }
        let server = builder.start().await;
        // Not on the command line: a replica that has become the master must be one after a
        // restart. Of a server that comes back and is none, sentinels make a replica again.
        if let Some(master) = of {
            let port = master.port().to_string();
            server.command(&["REPLICAOF", "127.0.0.1", &port]).await;
        }
        server
    }

    async fn sentinel(&self, master: &RedisServer) -> RedisServer {
        let port = master.port();
        let down_after = if self.patient {
            60 * DOWN_AFTER_MS
        } else {
            DOWN_AFTER_MS
        };
        let mut lines = vec![
            format!("sentinel monitor {NAME} 127.0.0.1 {port} 2"),
            format!("sentinel down-after-milliseconds {NAME} {down_after}"),
            format!("sentinel failover-timeout {NAME} 6000"),
        ];
        if let Some(password) = &self.password {
            lines.push(format!("sentinel auth-pass {NAME} {password}"));
        }
        let mut builder = RedisServer::builder();
        if let Some(password) = &self.sentinel_password {
            builder = builder.password(password);
        }
        lines.push(String::new());
        builder.sentinel(lines.join("\n")).start().await
    }
}

impl SentinelGroup {
    /// Starts a group without passwords.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// A builder for a group with other settings.
    #[must_use]
    pub fn builder() -> SentinelGroupBuilder {
        SentinelGroupBuilder::default()
    }

    /// `redis-sentinel://…`, with the passwords.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_of(NAME)
    }

    /// The same for a master with another name.
    #[must_use]
    pub fn url_of(&self, name: &str) -> String {
        let hosts: Vec<String> = self
            .sentinels
            .iter()
            .map(|one| one.addr().to_string())
            .collect();
        let user = self.settings.password.as_ref();
        let user = user.map_or(String::new(), |password| format!(":{password}@"));
        let option = self.settings.sentinel_password.as_ref();
        let option = option.map_or(String::new(), |password| {
            format!("?sentinel_password={password}")
        });
        format!("redis-sentinel://{user}{}/{name}{option}", hosts.join(","))
    }

    /// The master, according to the first sentinel that answers.
    pub async fn master(&self) -> &RedisServer {
        for sentinel in &self.sentinels {
            if let Some(addr) = master_of(sentinel).await {
                let mut servers = self.servers.iter();
                return servers
                    .find(|server| server.addr() == addr)
                    .expect("the master is one of ours");
            }
        }
        panic!("no sentinel answers");
    }

    /// Waits until all sentinels name the same master, and both others are in step with it.
    pub async fn until_settled(&self) {
        let what = "all sentinels name one master, with two replicas in step";
        eventually_within(SETTLE_LIMIT, what, async || {
            self.settled_master().await.is_some()
        })
        .await;
    }

    /// The port of the master and the number of its election, if all sentinels name it and all
    /// others are its replicas.
    pub async fn settled_master(&self) -> Option<(u16, u64)> {
        let mut named = Vec::new();
        for sentinel in &self.sentinels {
            let details = sentinel.try_command(&["SENTINEL", "MASTER", NAME]).await;
            let details: HashMap<String, String> = redis::from_redis_value(details.ok()?).ok()?;
            let epoch = details.get("config-epoch")?.parse().ok()?;
            named.push((master_of(sentinel).await?, epoch));
        }
        let (addr, epoch): (SocketAddr, u64) = *named.first()?;
        let mut servers = self.servers.iter();
        let master = servers.find(|server| server.addr() == addr)?;
        let information = master.try_command(&["INFO", "replication"]).await.ok()?;
        let information: String = redis::from_redis_value(information).ok()?;
        let is_settled = named.iter().all(|one| *one == (addr, epoch))
            && information.contains("role:master")
            && information.matches("state=online").count() == self.servers.len() - 1;
        is_settled.then_some((addr.port(), epoch))
    }

    /// Waits until every sentinel names another master than `old`, and that master takes writes.
    pub async fn until_failed_over(&self, old: &RedisServer) {
        eventually("all sentinels agree on a new master", async || {
            let mut masters = Vec::new();
            for sentinel in &self.sentinels {
                masters.push(master_of(sentinel).await);
            }
            masters
                .iter()
                .all(|master| *master != Some(old.addr()) && *master == masters[0])
        })
        .await;
        let new = self.master().await;
        eventually("the new master is a master", async || {
            let role: redis::Value = new.command(&["ROLE"]).await;
            format!("{role:?}").contains("master")
        })
        .await;
    }
}

async fn master_of(sentinel: &RedisServer) -> Option<SocketAddr> {
    let question = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME];
    let reply = sentinel.try_command(&question).await.ok()?;
    let (host, port): (String, u16) = redis::from_redis_value(reply).ok()?;
    Some(SocketAddr::new(host.parse().ok()?, port))
}
