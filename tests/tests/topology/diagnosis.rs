//! What servers say of their own settings: logged once at the start, shown in `health`, and refused
//! if the client is strict.

use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use lock_runtime::{Finding, Health, LockClient, Role, StoreErrorKind};
use lock_testkit::nemesis::ClockShim;
use lock_testkit::{
    Log, Proxy, RedisCluster, RedisQuorum, RedisServer, all_documented_rights, documented_rights,
    eventually,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::{SLACK, client, config, unavailable};

/// What all clients of this process logged about the server with this address.
fn logged(address: &str) -> Vec<String> {
    static LOG: OnceLock<Log> = OnceLock::new();
    let log = LOG.get_or_init(|| {
        let log = Log::default();
        let writer = log.clone();
        tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(tracing::Level::INFO)
            .with_writer(move || writer.clone())
            .init();
        log
    });
    let text = log.text();
    let about = text
        .lines()
        .filter(|line| line.ends_with(&format!("server={address}")));
    about.map(str::to_owned).collect()
}

/// The findings about the only server.
fn findings(health: &Health) -> Vec<String> {
    assert_eq!(health.servers.len(), 1);
    let findings = health.servers[0].findings.iter();
    findings.map(Finding::to_string).collect()
}

fn strict(url: &str) -> lock_runtime::LockClientBuilder {
    LockClient::builder().url(url).strict_checks(true)
}

#[tokio::test]
async fn a_server_that_is_set_up_for_locks_has_no_findings() {
    let server = RedisServer::builder().appendonly(true).start().await;
    let client = strict(&server.url()).connect().await.unwrap();
    let health = client.health().await.unwrap();
    let about = &health.servers[0];
    assert_eq!(findings(&health), Vec::<String>::new());
    assert_eq!(about.address, server.addr().to_string());
    let information: String = server.query(&["INFO", "server"]).await;
    assert!(information.contains(&format!("redis_version:{}\r", about.version)));
    assert_eq!(
        (about.role, about.replicas, about.reconnects),
        (Role::Master, Some(0), 0)
    );
    assert!(health.round_trip > Duration::ZERO);
    server.restart().await;
    eventually("it is connected again", async || {
        client
            .health()
            .await
            .is_ok_and(|health| health.servers[0].reconnects > 0)
    })
    .await;
    // Snapshots are some persistence.
    let snapshots = RedisServer::builder().arg("--save").arg("3600 1");
    let snapshots = snapshots.start().await;
    strict(&snapshots.url()).connect().await.unwrap();
}

/// The length of the reply or message at the front, if it is there as a whole.
fn length(bytes: &[u8]) -> Option<usize> {
    let line = bytes.windows(2).position(|end| end == b"\r\n")? + 2;
    let count = || {
        std::str::from_utf8(&bytes[1..line - 2])
            .unwrap()
            .parse::<i64>()
    };
    let parts = match bytes[0] {
        b'$' | b'=' | b'!' => {
            let text = usize::try_from(count().unwrap()).map_or(0, |text| text + 2);
            return (bytes.len() >= line + text).then_some(line + text);
        }
        b'*' | b'~' | b'>' => count().unwrap().max(0),
        b'%' => 2 * count().unwrap(),
        _ => 0,
    };
    (0..parts).try_fold(line, |at, _| Some(at + length(bytes.get(at..)?)?))
}

/// A proxy that forwards replies, and no message.
async fn passing_on_no_message(target: SocketAddr) -> (SocketAddr, watch::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let cut = watch::Sender::new(());
    let cuts = cut.clone();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut cut = cuts.subscribe();
            tokio::spawn(async move {
                let mut server = TcpStream::connect(target).await.unwrap();
                let (mut from_client, mut to_client) = client.split();
                let (mut from_server, mut to_server) = server.split();
                let replies = async {
                    let mut bytes = Vec::new();
                    while let Ok(1..) = from_server.read_buf(&mut bytes).await {
                        while let Some(length) = length(&bytes) {
                            let one: Vec<u8> = bytes.drain(..length).collect();
                            let is_message = one.starts_with(b">3\r\n$7\r\nmessage\r\n");
                            if !is_message && to_client.write_all(&one).await.is_err() {
                                return;
                            }
                        }
                    }
                };
                tokio::select! {
                    _ = tokio::io::copy(&mut from_client, &mut to_server) => {}
                    () = replies => {}
                    _ = cut.changed() => {}
                }
            });
        }
    });
    (address, cut)
}

#[tokio::test]
async fn a_subscription_over_which_nothing_is_heard_is_found_out_and_told_once() {
    let server = RedisServer::builder().appendonly(true).start().await;
    let (proxy, cut) = passing_on_no_message(server.addr()).await;
    let (address, url) = (proxy.to_string(), format!("redis://{proxy}"));
    assert!(logged(&address).is_empty());
    let deaf = client(&url).await;
    for _ in 0..2 {
        // On a busy machine the first answer may come before it is known.
        eventually("it is found out", async || {
            let found = deaf.health().await;
            let found = found.map_or(Vec::new(), |health| findings(&health));
            matches!(&found[..], [one] if one.contains("`SUBSCRIBE`"))
        })
        .await;
        let mut log = logged(&address);
        log.retain(|line| line.contains("`SUBSCRIBE`"));
        assert!(matches!(&log[..], [one] if one.contains("WARN")), "{log:?}");
        cut.send_replace(());
        eventually("it is connected again", async || {
            let health = deaf.health().await;
            health.is_ok_and(|health| health.servers[0].reconnects > 0)
        })
        .await;
    }
    eventually("a strict client refuses it", async || {
        let refused = strict(&url).connect().await;
        refused.is_err_and(|error| error.to_string().contains("`SUBSCRIBE`"))
    })
    .await;
    // Whoever waits asks.
    let hearing = strict(&server.url()).connect().await.unwrap();
    let held = hearing.lock("k").acquire().await.unwrap();
    let waits = tokio::spawn(deaf.lock("k").acquire());
    crate::until_waiting(&hearing, "k", 1).await;
    held.release().await.unwrap();
    assert!(waits.await.unwrap().unwrap().is_held());
}

#[tokio::test]
async fn findings_are_logged_once_and_a_strict_client_names_all_of_them() {
    let server = RedisServer::builder().arg("--maxmemory-policy");
    let server = server.arg("volatile-lru").start().await;
    let _replica = server.start_replica().await;
    let says = [
        "`maxmemory-policy` is `volatile-lru`",
        "set `appendonly yes`",
        "set `min-replicas-to-write 1`",
    ];
    let address = server.addr().to_string();
    assert!(logged(&address).is_empty());

    let client = client(&server.url()).await;
    assert!(client.lock("k").acquire().await.unwrap().is_held());
    eventually("the findings are logged", async || {
        logged(&address).len() >= says.len()
    })
    .await;
    for _ in 0..3 {
        let found = findings(&client.health().await.unwrap());
        assert_eq!(found.len(), says.len(), "{found:?}");
        for (found, says) in found.iter().zip(says) {
            assert!(found.contains(says), "{found}");
        }
    }
    let log = logged(&address);
    assert_eq!(log.len(), says.len(), "{log:?}");
    for (line, says) in log.iter().zip(says) {
        assert!(line.contains("WARN") && line.contains(says), "{line}");
    }

    let refused = config(strict(&server.url()).connect().await);
    for says in says {
        assert!(refused.contains(says), "{refused}");
    }
    assert!(refused.contains(&address), "{refused}");
    // More confirmations than there are replicas are one more finding.
    let builder = strict(&server.url()).replicas(2, Duration::from_millis(100));
    let refused = config(builder.connect().await);
    assert!(
        refused.contains("2 replica(s) are to confirm each lock and 1 are connected"),
        "{refused}"
    );
    for (name, value) in [
        ("maxmemory-policy", "noeviction"),
        ("appendonly", "yes"),
        ("min-replicas-to-write", "1"),
    ] {
        server.command(&["CONFIG", "SET", name, value]).await;
    }
    strict(&server.url()).connect().await.unwrap();
}

#[tokio::test]
async fn a_user_who_may_not_ask_learns_which_right_is_missing_and_is_denied_nothing() {
    const BASE: &str = "every client, rate limiters";
    const LOCKS: &str = "locks of one or several keys";
    const OPTIONAL: &str = "optional: start-up checks, health";
    let server = RedisServer::builder().appendonly(true).start().await;
    let mut rights = documented_rights(BASE);
    rights.extend(documented_rights(LOCKS));
    let connect = async |name: &str, strictly: bool, more: &[&str]| {
        let rule = [
            "ACL",
            "SETUSER",
            name,
            "on",
            ">word",
            "~lock:*",
            "resetchannels",
            "&lock:*",
        ];
        let rule: Vec<_> = rule.iter().chain(&rights).chain(more).copied().collect();
        server.command(&rule).await;
        let url = format!("redis://{name}:word@{}", server.addr());
        let builder = LockClient::builder().url(url).strict_checks(strictly);
        builder.connect().await
    };
    let unknown = async |name: &str, more: &[&str]| {
        let client = connect(name, false, more).await.unwrap();
        assert!(client.lock("k").acquire().await.unwrap().is_held());
        let health = client.health().await.unwrap();
        let found = findings(&health);
        assert!(
            found.iter().all(|one| one.contains("allow it")),
            "{found:?}"
        );
        found.join(" ")
    };
    let none = unknown("may-none", &[]).await;
    assert!(none.contains("`+info`"), "{none}");
    let refused = config(connect("may-strict", true, &[]).await);
    assert!(refused.contains("`+info`"), "{refused}");
    assert_eq!(unknown("may-all", &documented_rights(OPTIONAL)).await, "");
    // Whether there are snapshots matters only without an append-only file.
    server.command(&["CONFIG", "SET", "appendonly", "no"]).await;
    let client = connect("may-info", false, &documented_rights(OPTIONAL)).await;
    let found = client.unwrap().health().await.unwrap();
    assert_eq!(found.servers[0].findings, [Finding::SnapshotsUnknown]);
    let refused = config(connect("may-info", true, &documented_rights(OPTIONAL)).await);
    assert!(refused.contains("set `appendonly yes`"), "{refused}");
    let log: Vec<Vec<redis::Value>> = server.query(&["ACL", "LOG"]).await;
    assert!(log.is_empty(), "{log:?}");
}

/// The checks have as long again as connecting. What is connected by then is not taken for unfit.
#[tokio::test]
async fn strict_checks_that_are_not_answered_end_one_connect_timeout_after_connecting() {
    const CONNECT: Duration = Duration::from_secs(2);
    let server = RedisServer::start().await;
    let connect = async || {
        let proxy = Proxy::start(server.addr()).await;
        // Long enough to lose the reply to a question that has been seen.
        proxy.delay_replies(Duration::from_millis(100));
        let builder = strict(&proxy.url()).connect_timeout(CONNECT);
        let builder = builder.command_timeout(10 * CONNECT);
        let began = Instant::now();
        let (refused, ()) = tokio::join!(builder.connect(), async {
            eventually("it is connected and asked", async || {
                proxy.requests_named("CONFIG") > 0
            })
            .await;
            proxy.drop_replies(true);
        });
        (refused, began.elapsed())
    };
    let (mut refused, mut took) = connect().await;
    // On a busy machine the replies may come before they are dropped: then it ends early.
    for _ in 0..9 {
        if CONNECT < took {
            break;
        }
        (refused, took) = connect().await;
    }
    unavailable(refused);
    assert!(CONNECT < took && took < 2 * CONNECT + SLACK, "{took:?}");
}

#[tokio::test]
async fn a_server_without_these_commands_is_used_all_the_same() {
    let server = RedisServer::builder().arg("--rename-command").arg("CONFIG");
    let server = server.arg("").start().await;
    let client = client(&server.url()).await;
    assert!(client.lock("k").acquire().await.unwrap().is_held());
    let found = client.health().await.unwrap();
    assert_eq!(found.servers[0].findings, [Finding::SnapshotsUnknown]);
}

#[tokio::test]
async fn no_documented_right_reads_the_servers_passwords() {
    let server = RedisServer::builder()
        .password("of-the-admin")
        .start()
        .await;
    let mut rule = vec![
        "ACL",
        "SETUSER",
        "app",
        "on",
        ">word",
        "~lock:*",
        "resetchannels",
        "&lock:*",
    ];
    rule.extend(all_documented_rights());
    server.command(&rule).await;
    let question = ["ACL", "DRYRUN", "app", "CONFIG", "GET", "requirepass"];
    let told: String = server.query(&question).await;
    assert!(told.contains("no permissions"), "{told}");
}

#[tokio::test]
async fn the_first_lock_does_not_wait_for_the_diagnosis() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let builder = LockClient::builder().url(proxy.url());
    let builder = builder.command_timeout(Duration::from_secs(20));
    let client = builder.connect().await.unwrap();
    let way = Duration::from_secs(2);
    proxy.delay(way);
    let started = Instant::now();
    let guard = client.lock("k").try_acquire().await.unwrap();
    let took = started.elapsed();
    assert!(took < 3 * way, "{took:?}");
    // Else the client would wait for that at its end, behind a proxy that is gone.
    proxy.delay(Duration::ZERO);
    guard.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn clocks_that_differ_are_reported() {
    let shim = match ClockShim::compile() {
        Ok(shim) => shim,
        Err(why) => return eprintln!("not shown here: {why}"),
    };
    let mut server = RedisServer::builder().appendonly(true);
    for (name, value) in shim.environment() {
        server = server.env(name, value);
    }
    let server = server.start().await;
    let client = strict(&server.url()).connect().await.unwrap();
    for (shift, says) in [(20_000, "ahead of"), (-20_000, "behind")] {
        shim.shift(shift);
        let found = findings(&client.health().await.unwrap());
        assert!(found[0].contains(says), "{found:?}");
        let refused = config(strict(&server.url()).connect().await);
        assert!(refused.contains(says), "{refused}");
    }
    shim.shift(500);
    assert_eq!(
        findings(&client.health().await.unwrap()),
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn every_master_of_a_cluster_is_asked() {
    let cluster = RedisCluster::start_patient().await;
    let client = client(&cluster.url()).await;
    let health = client.health().await.unwrap();
    let mut masters: Vec<String> = cluster.nodes[..3]
        .iter()
        .map(|node| node.addr().to_string())
        .collect();
    masters.sort();
    let mut asked: Vec<String> = health.servers.iter().map(|it| it.address.clone()).collect();
    asked.sort();
    assert_eq!(asked, masters);
    for server in &health.servers {
        assert_eq!((server.role, server.replicas), (Role::Master, Some(1)));
        assert_eq!(server.findings.len(), 2, "{:?}", server.findings);
    }
    let refused = config(strict(&cluster.url()).connect().await);
    assert!(masters.iter().all(|master| refused.contains(master)));
}

#[tokio::test]
async fn a_silent_master_of_a_cluster_is_reported_beside_the_others() {
    let cluster = RedisCluster::start_patient().await;
    let client = client(&cluster.url()).await;
    assert_eq!(client.health().await.unwrap().servers.len(), 3);
    let silent = &cluster.nodes[1];
    silent.pause();
    let address = silent.addr().to_string();
    let health = client.health().await.unwrap();
    // The store answers no sooner than the slowest of those that do.
    let answered = health.servers.iter().filter(|it| it.role != Role::Unknown);
    let slowest = answered.map(|server| server.round_trip).max();
    assert_eq!(Some(health.round_trip), slowest);
    assert_eq!(health.servers.len(), 3);
    for server in &health.servers {
        let is_silent = server.findings.iter();
        let mut is_silent = is_silent.map(Finding::to_string);
        let is_silent = is_silent.any(|found| found.contains("it does not answer"));
        let expected = match server.address == address {
            true => (Role::Unknown, true),
            false => (Role::Master, false),
        };
        assert_eq!((server.role, is_silent), expected, "{server:?}");
    }
    let refused = config(strict(&cluster.url()).connect().await);
    let says = format!("{address}: it does not answer");
    assert!(refused.contains(&says), "{refused}");
    for other in cluster
        .nodes
        .iter()
        .filter(|one| one.addr() != silent.addr())
    {
        other.pause();
    }
    assert_eq!(unavailable(client.health().await), StoreErrorKind::Timeout);
    cluster.nodes.iter().for_each(RedisServer::resume);
}

#[tokio::test]
async fn the_log_names_the_server_whose_connection_is_replaced_and_no_password() {
    let server = RedisServer::start().await;
    let address = server.addr().to_string();
    assert!(logged(&address).is_empty());
    server
        .command(&[
            "ACL", "SETUSER", "app", "on", ">canary", "~*", "&*", "+@all",
        ])
        .await;
    let url = format!("redis://app:canary@{address}");
    let _client = LockClient::builder().url(url).connect().await.unwrap();
    server.restart_empty().await;
    let replaced = async || {
        let log = logged(&address);
        log.into_iter().find(|line| line.contains("is replaced"))
    };
    eventually("it is logged", async || replaced().await.is_some()).await;
    let line = replaced().await.unwrap();
    assert!(line.contains("WARN") && !line.contains("canary"), "{line}");
}

#[tokio::test]
async fn a_silent_server_of_a_quorum_is_logged_and_so_are_its_later_findings() {
    let quorum = RedisQuorum::start(3).await;
    let dead = &quorum.servers[2];
    dead.kill();
    let address = dead.addr().to_string();
    assert!(logged(&address).is_empty());
    let refused = config(strict(&quorum.url()).connect().await);
    assert!(
        refused.contains(&format!("{address}: it does not answer")),
        "{refused}"
    );
    let client = client(&quorum.url()).await;
    let health = client.health().await.unwrap();
    let roles: Vec<Role> = health.servers.iter().map(|server| server.role).collect();
    assert_eq!(roles, [Role::Master, Role::Master, Role::Unknown]);
    assert_eq!(health.servers[2].address, address);
    let silent = Finding::to_string(&health.servers[2].findings[0]);
    assert!(silent.contains("it does not answer"), "{silent}");
    eventually("its silence is logged", async || {
        logged(&address)
            .iter()
            .any(|line| line.contains("WARN") && line.contains("it does not answer"))
    })
    .await;
    dead.restart_empty().await;
    // It is logged unasked.
    eventually("what it says is logged as well", async || {
        logged(&address)
            .iter()
            .any(|line| line.contains("set `appendonly yes`"))
    })
    .await;
    let health = client.health().await.unwrap();
    assert_eq!(health.servers[2].role, Role::Master);
}

#[tokio::test]
async fn a_service_is_told_that_its_locks_are_in_its_own_memory() {
    let by_url = |url| LockClient::builder().url(url);
    for url in ["memory:", "memory:///?namespace=shop"] {
        let refused = config(strict(url).connect().await);
        assert!(refused.contains("LockClient::in_memory()"), "{refused}");
        let before = logged("memory:").len();
        let client = by_url(url).connect().await.unwrap();
        let lazy = by_url(url).connect_lazy().unwrap();
        assert_eq!(logged("memory:").len(), before + 2, "{url}");
        for client in [client, lazy] {
            let health = client.health().await.unwrap();
            assert_eq!(health.servers.len(), 1);
            assert_eq!(health.servers[0].findings, [Finding::InProcess]);
        }
    }
    // A caller that names the embedded store knows this.
    let before = logged("memory:").len();
    let meant = LockClient::in_memory();
    assert!(meant.health().await.unwrap().servers.is_empty());
    assert_eq!(logged("memory:").len(), before);
}

#[tokio::test]
async fn a_strict_client_needs_a_server_to_check() {
    let refused = config(strict("redis://127.0.0.1:1").connect_lazy());
    assert!(refused.contains("`connect`"), "{refused}");
    let unreachable = strict("redis://127.0.0.1:1").connect().await;
    assert_eq!(unavailable(unreachable), StoreErrorKind::Disconnected);
    let server = RedisServer::start().await;
    let replica = server.start_replica().await;
    let health = client(&replica.url()).await.health().await.unwrap();
    assert_eq!(health.servers[0].role, Role::Replica);
}
