//! Real ZooKeeper servers for tests: one, or an ensemble of several.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lock_runtime::{LockClient, LockClientBuilder};
use lock_store::{ClientId, Clock, Listener, Store};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::ZooKeeperSession;
use crate::member_process::MemberProcess;
use crate::temporary_folder;
use crate::{Asks, Backend, StoreUnderTest};
use crate::{PATIENT, context};
use crate::{PeerNetwork, Port};

/// Where Debian and Homebrew have the server.
const JARS: [&str; 3] = [
    "/usr/share/java/zookeeper.jar",
    "/opt/homebrew/opt/zookeeper/libexec/lib/*",
    "/usr/local/opt/zookeeper/libexec/lib/*",
];

const NETTY: [&str; 2] = [
    "/usr/share/java/netty-codec.jar",
    "/usr/share/java/netty-resolver.jar",
];

/// The servers' unit of time, in milliseconds.
const TICK: u64 = 500;
/// After this many of them without a word from the others, a member knows that they are gone: more
/// than a busy machine lets a JVM stand still, since an election would end what a test is about.
const PATIENCE: u32 = 20;
/// The same where a test wants them to know.
const QUICK: u32 = 4;
/// A new leader has so many of them to bring a majority to its own state. A follower whose first
/// words come in the wrong order is not counted, and the leader waits for the whole of this time
/// before the next election (ZOOKEEPER-4685, seen in 8 of 42 elections without a third member).
const AGREEMENT: u32 = 20;
/// The messages from client to client.
const MAIL: &str = "%mail";
/// Who has the least rights, where there are users.
const USER: &str = "app:word";
/// More than a JVM needs on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// One or several servers in folders of their own, on free ports. They end with this value.
///
/// Each test has a part of the tree for itself, the chroot of its URLs.
pub struct ZooKeeperEnsemble {
    members: Vec<Member>,
    chroot: AtomicU64,
    /// The chroots belong to a user.
    has_user: bool,
}

impl fmt::Debug for ZooKeeperEnsemble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports = self.members.iter().map(|member| member.client.number());
        f.debug_list().entries(ports).finish()
    }
}

struct Member {
    // First: fields are dropped in order, and the process uses the others.
    process: MemberProcess,
    client: Port,
    follow: Port,
    elect: Port,
    folder: TempDir,
    classpath: String,
}

/// The server's jars.
fn classpath() -> String {
    if let Ok(given) = std::env::var("ZOOKEEPER_JARS") {
        return given;
    }
    let is_there = |path: &&&str| Path::new(path.trim_end_matches('*')).exists();
    let found = JARS.iter().find(is_there).expect("ZooKeeper is installed");
    // What the manifest of Debian's jar leaves out of what TLS needs.
    let more = NETTY.iter().filter(is_there);
    let all: Vec<&str> = std::iter::once(found).chain(more).copied().collect();
    all.join(":")
}

/// The line of a member in the configurations.
fn peer(at: usize, ports: &[u16]) -> String {
    format!("server.{}=127.0.0.1:{}:{}\n", at + 1, ports[0], ports[1])
}

impl Member {
    fn new(classpath: String) -> Self {
        Self {
            classpath,
            process: MemberProcess::default(),
            client: Port::free(),
            follow: Port::free(),
            elect: Port::free(),
            folder: temporary_folder(),
        }
    }

    fn configure(&self, number: usize, peers: &str, more: &str, patience: u32) {
        let data = self.folder.path().join("data");
        fs::create_dir_all(&data).expect("the folder is this user's");
        fs::write(data.join("myid"), number.to_string()).expect("its number");
        let text = format!(
            "tickTime={TICK}\ninitLimit={AGREEMENT}\nsyncLimit={patience}\ndataDir={}\n\
             clientPort={}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n\
             maxClientCnxns=0\nmaxSessionTimeout=120000\n\
             4lw.commands.whitelist=srvr\n{peers}{more}",
            data.display(),
            self.client.number()
        );
        fs::write(self.configuration(), text).expect("its configuration");
    }

    /// By which it follows and elects.
    fn peer_ports(&self) -> Vec<u16> {
        vec![self.follow.number(), self.elect.number()]
    }

    fn configuration(&self) -> PathBuf {
        self.folder.path().join("zoo.cfg")
    }

    fn spawn(&self, arguments: &[String]) {
        let log = fs::File::create(self.folder.path().join("log")).expect("a log");
        let mut command = Command::new("java");
        command
            .args(["-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
            // What is written to disk is no test's subject, and a busy disk would be slow.
            .arg("-Dzookeeper.forceSync=no")
            .args(arguments)
            .args(["-cp", &self.classpath])
            .arg("org.apache.zookeeper.server.quorum.QuorumPeerMain")
            .arg(self.configuration())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        self.process.start(&mut command);
    }

    /// Its word about itself. Empty if it does not answer.
    async fn says(&self) -> String {
        let ask = async {
            let mut stream = TcpStream::connect(("127.0.0.1", self.client.number())).await?;
            stream.write_all(b"srvr").await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await?;
            std::io::Result::Ok(answer)
        };
        let answer = tokio::time::timeout(Duration::from_secs(2), ask).await;
        answer.ok().and_then(Result::ok).unwrap_or_default()
    }

    async fn until_serving(&self) {
        let began = Instant::now();
        while !self.says().await.contains("Mode: ") {
            let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(
                began.elapsed() < LIMIT,
                "ZooKeeper did not start within {LIMIT:?}; it wrote:\n{log}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl ZooKeeperEnsemble {
    /// One server.
    pub async fn one() -> Self {
        Self::of(1, "", &[]).await
    }

    /// An ensemble of three.
    pub async fn three() -> Self {
        Self::of(3, "", &[]).await
    }

    /// An ensemble of three, which see within two seconds that one of them stands still.
    pub async fn three_quick() -> Self {
        let members = (0..3).map(|_| Member::new(classpath())).collect();
        Self::begin(Self::spawned(members, "", &[], QUICK), false).await
    }

    /// This number of members, with more lines in their configurations and more arguments for Java.
    pub async fn of(members: usize, more: &str, arguments: &[String]) -> Self {
        let members = (0..members).map(|_| Member::new(classpath())).collect();
        Self::begin(Self::spawned(members, more, arguments, PATIENCE), false).await
    }

    /// This number of members, whose chroots belong to a user: clients may create, read, write and
    /// delete there, others nothing.
    pub async fn with_user(members: usize) -> Self {
        let members = (0..members).map(|_| Member::new(classpath())).collect();
        Self::begin(Self::spawned(members, "", &[], PATIENCE), true).await
    }

    /// One server of this class path.
    pub async fn one_of(classpath: &str) -> Self {
        let member = Member::new(classpath.to_owned());
        Self::begin(Self::spawned(vec![member], "", &[], PATIENCE), false).await
    }

    fn spawned(
        members: Vec<Member>,
        more: &str,
        arguments: &[String],
        patience: u32,
    ) -> Vec<Member> {
        let peers: String = match members.len() {
            1 => String::new(),
            _ => {
                let ports = members.iter().map(Member::peer_ports).enumerate();
                ports.map(|(at, ports)| peer(at, &ports)).collect()
            }
        };
        for (at, member) in members.iter().enumerate() {
            member.configure(at + 1, &peers, more, patience);
            member.spawn(arguments);
        }
        members
    }

    /// An ensemble of three, each of which can be cut off from the others. The last one leads, and
    /// the `patient` one does not see for a minute that it is cut off.
    pub async fn three_apart(patient: usize) -> (Self, PeerNetwork) {
        let members: Vec<Member> = (0..3).map(|_| Member::new(classpath())).collect();
        let ports: Vec<Vec<u16>> = members.iter().map(Member::peer_ports).collect();
        let mut network = PeerNetwork::new(&ports).await;
        let known = network.zookeeper_ports().await;
        for (at, member) in members.iter().enumerate() {
            let seen = |to: usize| match to == at {
                true => ports[to].clone(),
                false => known[&(at, to)].clone(),
            };
            let peers: String = (0..members.len()).map(|to| peer(to, &seen(to))).collect();
            let patience = if at == patient { 120 } else { QUICK };
            member.configure(at + 1, &peers, "", patience);
            member.spawn(&[]);
        }
        let ensemble = Self::begin(members, false).await;
        ensemble.let_the_last_lead().await;
        (ensemble, network)
    }

    /// Sees to it that the last member leads: of those that know the same, it is elected.
    pub async fn let_the_last_lead(&self) {
        loop {
            let leader = self.leader().await;
            if leader + 1 == self.members.len() {
                break;
            }
            self.kill_member(leader);
            self.leader().await;
            self.restart_member(leader).await;
        }
        self.until_serving().await;
    }

    async fn begin(members: Vec<Member>, has_user: bool) -> Self {
        let ensemble = Self {
            members,
            chroot: AtomicU64::new(0),
            has_user,
        };
        ensemble.until_serving().await;
        ensemble.make_chroot().await;
        ensemble
    }

    /// One server under test.
    pub async fn one_under_test() -> Backend {
        Backend::new(Self::with_user(1).await)
    }

    /// An ensemble of three under test.
    pub async fn three_under_test() -> Backend {
        Backend::new(Self::with_user(3).await)
    }

    /// Waits until all members serve.
    pub async fn until_serving(&self) {
        for member in &self.members {
            member.until_serving().await;
        }
    }

    async fn make_chroot(&self) {
        let (chroot, mut session) = (self.chroot(), self.session().await);
        match self.has_user {
            true => assert_eq!(session.create_own(&chroot).await, 0, "{chroot}"),
            false => session.create(&chroot, b"").await,
        }
    }

    /// The part of the tree that the present test has.
    #[must_use]
    pub fn chroot(&self) -> String {
        format!("/t{}", self.chroot.load(Ordering::Relaxed))
    }

    /// The ports of the members.
    #[must_use]
    pub fn ports(&self) -> Vec<u16> {
        let ports = self.members.iter().map(|member| member.client.number());
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
        let user = match self.has_user {
            true => format!("{USER}@"),
            false => String::new(),
        };
        let (hosts, chroot) = (hosts.join(","), self.chroot());
        format!("zookeeper://{user}{hosts}{chroot}{options}")
    }

    /// A session of the test's own, at the first member that serves, as the user if there is one.
    ///
    /// # Panics
    /// If none does.
    pub async fn session(&self) -> ZooKeeperSession {
        self.session_at(&self.ports()).await
    }

    async fn session_at(&self, ports: &[u16]) -> ZooKeeperSession {
        let began = Instant::now();
        loop {
            for &port in ports {
                let opened = ZooKeeperSession::open(port);
                let opened = tokio::time::timeout(Duration::from_secs(2), opened).await;
                if let Ok(Ok(mut session)) = opened
                    && (!self.has_user || session.log_in(USER).await.is_ok())
                {
                    return session;
                }
            }
            assert!(began.elapsed() < LIMIT, "no member serves");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The number of the member that leads.
    ///
    /// # Panics
    /// If none does for a minute.
    pub async fn leader(&self) -> usize {
        let began = Instant::now();
        loop {
            for number in 0..self.members.len() {
                if self.leads(number).await {
                    return number;
                }
            }
            assert!(began.elapsed() < LIMIT, "no member leads");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Whether a member takes itself for the leader.
    pub async fn leads(&self, number: usize) -> bool {
        let says = self.members[number].says().await;
        says.contains("Mode: leader") || says.contains("Mode: standalone")
    }

    /// The folder of a member's data.
    #[must_use]
    pub fn data(&self, number: usize) -> PathBuf {
        self.members[number].folder.path().join("data")
    }

    /// From its next start, this member grants no session more than this.
    ///
    /// # Panics
    /// If its configuration can't be written.
    pub fn limit_sessions(&self, number: usize, longest: Duration) {
        self.configure(
            number,
            &format!("maxSessionTimeout={}", longest.as_millis()),
        );
    }

    /// From its next start, this member has these lines in its configuration as well.
    ///
    /// # Panics
    /// If its configuration can't be written.
    pub fn configure(&self, number: usize, more: &str) {
        let path = self.members[number].configuration();
        let before = fs::read_to_string(&path).expect("its configuration");
        // The last line counts.
        fs::write(path, format!("{before}\n{more}\n")).expect("its configuration");
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

    /// Ends one member in good order.
    pub async fn stop_member(&self, number: usize) {
        self.members[number].process.stop().await;
    }

    /// Starts one member again that was killed, and does not wait until it serves.
    pub fn spawn_member(&self, number: usize) {
        self.members[number].spawn(&[]);
    }

    /// Starts one member again that was killed.
    pub async fn restart_member(&self, number: usize) {
        self.spawn_member(number);
        self.members[number].until_serving().await;
    }
}

impl ZooKeeperEnsemble {
    async fn count_leftovers(&self) -> usize {
        let mut session = self.session().await;
        let places = self.places(&mut session).await;
        session.close().await;
        let mail = format!("{}/{MAIL}/", self.chroot());
        places
            .iter()
            .filter(|path| !path.starts_with(&mail))
            .count()
    }

    /// The children of all keys, and the messages, as the session's member has them.
    async fn places(&self, session: &mut ZooKeeperSession) -> BTreeSet<String> {
        let chroot = self.chroot();
        let mut places = BTreeSet::new();
        for namespace in session.children(&chroot).await {
            let namespace = format!("{chroot}/{namespace}");
            let keys = session.children(&namespace).await;
            let keys = keys.iter().map(|key| format!("{namespace}/{key}"));
            let keys: Vec<String> = keys.collect();
            for (key, names) in keys.iter().zip(session.children_of(&keys).await) {
                places.extend(names.iter().map(|name| format!("{key}/{name}")));
            }
        }
        places
    }

    /// A session at each member.
    ///
    /// # Panics
    /// If one does not serve.
    pub async fn session_at_each(&self) -> Vec<ZooKeeperSession> {
        let mut sessions = Vec::new();
        for port in self.ports() {
            sessions.push(self.session_at(&[port]).await);
        }
        sessions
    }

    /// What the first of these members has and another lacks, or the other way round. They are to
    /// be copies of each other: if nothing is written and none is behind, one has lost something.
    pub async fn differences(&self, members: &mut [ZooKeeperSession]) -> Vec<String> {
        let mut differences = Vec::new();
        let mut first = None;
        for (at, member) in members.iter_mut().enumerate() {
            let places = self.places(member).await;
            let first = first.get_or_insert_with(|| places.clone());
            let lacks = first.difference(&places).map(|path| ("lacks", path));
            let has = places.difference(first).map(|path| ("has", path));
            differences.extend(
                lacks
                    .chain(has)
                    .map(|(verb, path)| format!("{at} {verb} {path}")),
            );
        }
        differences
    }
}

impl StoreUnderTest for ZooKeeperEnsemble {
    fn builder(&self) -> LockClientBuilder {
        // These tests are not about how soon clients report that a machine is busy.
        LockClient::builder()
            .url(self.url("?tick=500ms&session=120s"))
            .command_timeout(Duration::from_secs(5))
            .connect_timeout(Duration::from_secs(10))
    }

    fn store(&self, id: ClientId, listener: &Arc<dyn Listener>, clock: Clock) -> Arc<dyn Store> {
        let mut context = context("lock", id, listener, clock);
        context.timeouts = PATIENT;
        let access = lock_store::Access::default();
        let url = self.url("?tick=500ms&session=120s");
        lock_store_zookeeper::open(&url, context, &access).expect("a good URL")
    }

    fn patience(&self) -> u32 {
        2
    }

    /// A member that stands still is asked for 5 s, then another.
    fn leftovers(&self) -> Asks<'_, usize> {
        Box::pin(async {
            loop {
                let look = tokio::time::timeout(Duration::from_secs(5), self.count_leftovers());
                if let Ok(count) = look.await {
                    return count;
                }
            }
        })
    }

    /// A lease is its client's own business.
    fn tells_rest(&self) -> bool {
        false
    }

    fn can_barge(&self) -> bool {
        false
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
            for member in &self.members {
                member.spawn(&[]);
            }
            self.until_serving().await;
        })
    }

    /// The next test has another part of the tree.
    fn is_emptied(&self) -> Pin<Box<dyn Future<Output = bool> + '_>> {
        Box::pin(async {
            self.chroot.fetch_add(1, Ordering::Relaxed);
            self.make_chroot().await;
            true
        })
    }
}
