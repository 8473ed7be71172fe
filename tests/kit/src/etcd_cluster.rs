//! Real etcd servers for tests: one, or a cluster of several.

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::path::Path;
use std::pin::Pin;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lock_runtime::{LockClient, LockClientBuilder};
use lock_store::{ClientId, Clock, Listener, Store};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::etcd_gateway::EtcdGateway;
use crate::member_process::MemberProcess;
use crate::temporary_folder;
use crate::{Asks, Backend, StoreUnderTest};
use crate::{PATIENT, context};
use crate::{PeerNetwork, Port, eventually};

/// More than a server needs on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
/// The user of the clients, who may read and write what begins with a test's prefix, and no more.
const APP: &str = "app";
const ROOT: &str = "root";

/// One or several servers in folders of their own, on free ports. They end with this value.
///
/// Each test has a part of the keys for itself, the prefix of its URLs.
pub struct EtcdCluster {
    members: Vec<Member>,
    prefix: AtomicU64,
    /// What else the URL has.
    has_users: bool,
    scheme: &'static str,
}

impl fmt::Debug for EtcdCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ports()).finish()
    }
}

struct Member {
    // First: fields are dropped in order, and the process uses the others.
    process: MemberProcess,
    client: Port,
    peer: Port,
    folder: TempDir,
    arguments: Vec<String>,
}

impl Member {
    fn spawn(&self) {
        let log = fs::File::create(self.folder.path().join("log")).expect("a log");
        let mut command = Command::new("etcd");
        // It collects garbage less often: tests have memory to spare, and few processors.
        command.env("GOGC", "400");
        command
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        self.process.start(&mut command);
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// From 3.6 on, a server with users tells it to users only.
    async fn status(&self) -> Option<Value> {
        let (nobody, path) = (EtcdGateway::at(self.client.number()), "maintenance/status");
        if let Ok(status) = nobody.ask(path, &json!({})).await {
            return Some(status);
        }
        let root = nobody.log_in(ROOT, ROOT).await.ok()?;
        root.ask(path, &json!({})).await.ok()
    }
}

/// How servers are started.
#[derive(Clone, Debug, Default)]
pub struct EtcdOptions {
    /// More arguments for each.
    pub arguments: Vec<String>,
    /// Whether there are users, and clients have the least rights.
    pub has_users: bool,
    /// Whether clients need TLS. The arguments have the files.
    pub has_tls: bool,
}

impl EtcdCluster {
    /// One server.
    pub async fn one() -> Self {
        Self::of(1, EtcdOptions::default()).await
    }

    /// A cluster of three.
    pub async fn three() -> Self {
        Self::of(3, EtcdOptions::default()).await
    }

    /// This number of members, started like this.
    pub async fn of(members: usize, options: EtcdOptions) -> Self {
        let ports: Vec<(Port, Port)> = (0..members).map(|_| (Port::free(), Port::free())).collect();
        let known = ports.iter().map(|(_, peer)| peer.number()).collect();
        Self::at(ports, known, options).await
    }

    /// A cluster of three, each of which can be cut off from the others.
    ///
    /// # Panics
    /// If there are no ports.
    pub async fn three_apart() -> (Self, PeerNetwork) {
        let ports: Vec<(Port, Port)> = (0..3).map(|_| (Port::free(), Port::free())).collect();
        let own: Vec<Vec<u16>> = ports.iter().map(|(_, peer)| vec![peer.number()]).collect();
        let mut network = PeerNetwork::new(&own).await;
        let known = network.route().await;
        let cluster = Self::at(ports, known, EtcdOptions::default()).await;
        (cluster, network)
    }

    /// Members at these ports, for clients and for each other, who know each other by those.
    async fn at(ports: Vec<(Port, Port)>, known: Vec<u16>, options: EtcdOptions) -> Self {
        let scheme = if options.has_tls { "https" } else { "http" };
        let peer = |(at, port)| format!("m{at}=http://127.0.0.1:{port}");
        let peers: Vec<String> = known.iter().enumerate().map(peer).collect();
        let member = |(at, (client, peer)): (usize, (Port, Port))| {
            let folder = temporary_folder();
            let client_url = format!("{scheme}://127.0.0.1:{}", client.number());
            let peer_url = format!("http://127.0.0.1:{}", peer.number());
            let arguments = [
                ("--name", format!("m{at}")),
                (
                    "--data-dir",
                    folder.path().join("data").display().to_string(),
                ),
                ("--listen-client-urls", client_url.clone()),
                ("--advertise-client-urls", client_url),
                ("--listen-peer-urls", peer_url),
                (
                    "--initial-advertise-peer-urls",
                    format!("http://127.0.0.1:{}", known[at]),
                ),
                ("--initial-cluster", peers.join(",")),
                ("--logger", "zap".to_owned()),
                ("--log-level", "warn".to_owned()),
                // A password is worth little here, and each client's login takes its time.
                ("--bcrypt-cost", "4".to_owned()),
            ];
            let arguments = arguments
                .into_iter()
                .flat_map(|(name, value)| [name.to_owned(), value]);
            Member {
                process: MemberProcess::default(),
                client,
                peer,
                folder,
                arguments: arguments.chain(options.arguments.clone()).collect(),
            }
        };
        let cluster = Self {
            members: ports.into_iter().enumerate().map(member).collect(),
            prefix: AtomicU64::new(0),
            has_users: options.has_users,
            scheme,
        };
        for member in &cluster.members {
            member.spawn();
        }
        cluster.until_serving().await;
        if options.has_users {
            cluster.make_users().await;
        }
        cluster
    }

    /// One server under test.
    pub async fn one_under_test() -> Backend {
        Backend::new(Self::with_users(1).await)
    }

    /// A cluster of three under test.
    pub async fn three_under_test() -> Backend {
        Backend::new(Self::with_users(3).await)
    }

    /// This number of members, with users. Clients have the least rights.
    pub async fn with_users(members: usize) -> Self {
        let options = EtcdOptions {
            has_users: true,
            ..EtcdOptions::default()
        };
        Self::of(members, options).await
    }

    async fn make_users(&self) {
        let gateway = EtcdGateway::at(self.members[0].client.number());
        let user = |name: &str| json!({ "name": name, "password": name });
        let of = |name: &str| json!({ "user": name, "role": name });
        for name in [ROOT, APP] {
            let role = json!({ "name": name });
            for (path, body) in [
                ("auth/user/add", user(name)),
                ("auth/role/add", role),
                ("auth/user/grant", of(name)),
            ] {
                gateway.ask(path, &body).await.expect("users can be made");
            }
        }
        // What each test's prefix begins with.
        gateway.grant(APP, "t").await.expect("roles can be changed");
        let enabled = gateway.ask("auth/enable", &json!({})).await;
        enabled.expect("users can be switched on");
    }

    /// Waits until all members that run have a leader.
    pub async fn until_serving(&self) {
        let began = Instant::now();
        for member in &self.members {
            if self.scheme == "https" {
                // Without a certificate, nobody is answered here.
                eventually("it listens", async || {
                    let address = ("127.0.0.1", member.client.number());
                    tokio::net::TcpStream::connect(address).await.is_ok()
                })
                .await;
                continue;
            }
            while leader_in(member.status().await.as_ref()).is_none() {
                assert!(
                    began.elapsed() < LIMIT,
                    "etcd did not start within {LIMIT:?}; it wrote:\n{}",
                    member.log()
                );
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    /// What the keys of the present test begin with, without the `/`.
    #[must_use]
    pub fn prefix(&self) -> String {
        format!("t{}", self.prefix.load(Ordering::Relaxed))
    }

    /// The ports of the members.
    #[must_use]
    pub fn ports(&self) -> Vec<u16> {
        let ports = self.members.iter().map(|member| member.client.number());
        ports.collect()
    }

    /// The ports by which the members speak with each other.
    #[must_use]
    pub fn peer_ports(&self) -> Vec<u16> {
        let ports = self.members.iter().map(|member| member.peer.number());
        ports.collect()
    }

    /// The URL for a client, with these options.
    #[must_use]
    pub fn url(&self, options: &str) -> String {
        self.url_at(&self.ports(), options)
    }

    /// The URL for a client that knows these ports, as a proxy's.
    #[must_use]
    pub fn url_at(&self, ports: &[u16], options: &str) -> String {
        let host = |port: &u16| format!("127.0.0.1:{port}");
        let hosts: Vec<String> = ports.iter().map(host).collect();
        let user = match self.has_users {
            true => format!("{APP}:{APP}@"),
            false => String::new(),
        };
        let prefix = self.prefix();
        format!("etcd://{user}{}/{prefix}{options}", hosts.join(","))
    }

    /// The gateway of the first member that answers, for who may do everything.
    ///
    /// # Panics
    /// If none does.
    pub async fn gateway(&self) -> EtcdGateway {
        let began = Instant::now();
        loop {
            for port in self.ports() {
                let gateway = EtcdGateway::at(port);
                let found = match self.has_users {
                    true => gateway.log_in(ROOT, ROOT).await,
                    false => Ok(gateway),
                };
                if let Ok(gateway) = found
                    && gateway.below("t").await.is_ok()
                {
                    return gateway;
                }
            }
            assert!(began.elapsed() < LIMIT, "no member serves");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The keys of the present test's locks, with their values.
    ///
    /// # Panics
    /// If no member serves.
    pub async fn locks(&self) -> Vec<(String, String)> {
        let below = format!("{}/", self.prefix());
        let found = self.gateway().await.below(&below).await;
        let mut found = found.expect("it answers");
        // The namespaces' own are no locks.
        found.retain(|(key, _)| {
            let mut parts = key.split('/').skip(1);
            parts.next() != Some("%mail") && parts.next() != Some("%")
        });
        found
    }

    /// The number of the member that leads.
    ///
    /// # Panics
    /// If none does for a minute.
    pub async fn leader(&self) -> usize {
        let began = Instant::now();
        loop {
            for (number, member) in self.members.iter().enumerate() {
                let status = member.status().await;
                let own = status
                    .as_ref()
                    .and_then(|status| status["header"]["member_id"].as_str());
                if own.is_some() && leader_in(status.as_ref()).as_deref() == own {
                    return number;
                }
            }
            assert!(began.elapsed() < LIMIT, "no member leads");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// SIGSTOP for one member.
    pub fn pause_member(&self, number: usize) {
        self.members[number].process.pause();
    }

    /// SIGCONT for one member.
    pub fn resume_member(&self, number: usize) {
        self.members[number].process.resume();
    }

    /// SIGKILL for one member.
    pub fn kill_member(&self, number: usize) {
        self.members[number].process.kill();
    }

    /// Starts one member again that was killed.
    pub fn start_member(&self, number: usize) {
        self.members[number].spawn();
    }

    /// Ends one member in good order.
    pub async fn stop_member(&self, number: usize) {
        self.members[number].process.stop().await;
    }

    /// Starts one member again, and waits until it has a leader.
    pub async fn restart_member(&self, number: usize) {
        self.start_member(number);
        let member = &self.members[number];
        eventually("the member has a leader", async || {
            leader_in(member.status().await.as_ref()).is_some()
        })
        .await;
    }

    /// Whether one member's process has ended by itself.
    #[must_use]
    pub fn has_ended(&self, number: usize) -> bool {
        self.members[number].process.has_ended()
    }

    /// Writes a snapshot of the only member to this file.
    ///
    /// # Panics
    /// If it can't.
    pub fn save_snapshot(&self, file: &Path) {
        let port = self.members[0].client.number();
        run_tool(
            "etcdctl",
            &[
                &format!("--endpoints=127.0.0.1:{port}"),
                "snapshot",
                "save",
                &file.display().to_string(),
            ],
        );
    }

    /// Kills the only member, and starts it with what the snapshot has: as the same cluster, or as
    /// one with this token.
    ///
    /// # Panics
    /// If it can't.
    pub async fn restore(&self, file: &Path, token: Option<&str>) {
        self.kill_member(0);
        let data = self.data(0);
        fs::remove_dir_all(&data).expect("its data");
        let peer = format!("http://127.0.0.1:{}", self.members[0].peer.number());
        let mut arguments = vec![
            "snapshot".to_owned(),
            "restore".to_owned(),
            file.display().to_string(),
            format!("--data-dir={}", data.display()),
            "--name=m0".to_owned(),
            format!("--initial-cluster=m0={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
        ];
        arguments.extend(token.map(|token| format!("--initial-cluster-token={token}")));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        // From 3.6 on, another tool does it, and 3.4 has only the first.
        let has_other = Command::new("etcdutl").arg("version").output().is_ok();
        run_tool(if has_other { "etcdutl" } else { "etcdctl" }, &arguments);
        self.restart_member(0).await;
    }

    /// The data folder of a member.
    #[must_use]
    pub fn data(&self, number: usize) -> std::path::PathBuf {
        self.members[number].folder.path().join("data")
    }
}

/// Runs one of etcd's tools.
fn run_tool(tool: &str, arguments: &[&str]) {
    let mut command = Command::new(tool);
    command.env("ETCDCTL_API", "3").args(arguments);
    let output = command.output().expect("it is installed");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
}

/// The number of the leader in a member's status, if it knows one.
fn leader_in(status: Option<&Value>) -> Option<String> {
    let leader = status?["leader"].as_str()?;
    (leader != "0").then(|| leader.to_owned())
}

impl StoreUnderTest for EtcdCluster {
    fn builder(&self) -> LockClientBuilder {
        // These tests are not about how soon clients report that a machine is busy.
        LockClient::builder()
            .url(self.url(""))
            .command_timeout(Duration::from_secs(5))
            .connect_timeout(Duration::from_secs(10))
    }

    fn store(&self, id: ClientId, listener: &Arc<dyn Listener>, clock: Clock) -> Arc<dyn Store> {
        let mut context = context("lock", id, listener, clock);
        context.timeouts = PATIENT;
        let access = lock_store::Access::default();
        let url = self.url("?session=30s");
        lock_store_etcd::open(&url, context, &access).expect("a good URL")
    }

    fn patience(&self) -> u32 {
        2
    }

    fn leftovers(&self) -> Asks<'_, usize> {
        Box::pin(async { self.locks().await.len() })
    }

    /// A lease is its client's own business.
    fn tells_rest(&self) -> bool {
        false
    }

    fn can_barge(&self) -> bool {
        false
    }

    /// The number of clients that have something here. A client that closes gives up its places.
    fn channels(&self) -> Asks<'_, usize> {
        Box::pin(async {
            let locks = self.locks().await;
            let owner = |key: &str| key.rsplit('/').next().unwrap_or_default().to_owned();
            let client = |(key, _): &(String, String)| owner(key).chars().take(32).collect();
            let clients: HashSet<String> = locks.iter().map(client).collect();
            clients.len()
        })
    }

    fn pause(&self) -> bool {
        (0..self.members.len()).for_each(|number| self.pause_member(number));
        true
    }

    fn resume(&self) {
        (0..self.members.len()).for_each(|number| self.resume_member(number));
    }

    fn kill(&self) -> bool {
        (0..self.members.len()).for_each(|number| self.kill_member(number));
        true
    }

    fn restart(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(async {
            (0..self.members.len()).for_each(|number| self.start_member(number));
            self.until_serving().await;
        })
    }

    /// The next test has another prefix.
    fn is_emptied(&self) -> Pin<Box<dyn Future<Output = bool> + '_>> {
        Box::pin(async {
            self.prefix.fetch_add(1, Ordering::Relaxed);
            true
        })
    }
}
