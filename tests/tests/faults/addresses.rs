//! Names with several addresses, of which the first is silent or leads to the wrong server.
//!
//! The client is in a process of its own, which has its own `/etc/hosts`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lock_testkit::{ChildProcess, Port, Proxy, RedisServer, eventually, server_speaks_tls};
use tokio::net::{TcpListener, TcpStream};

use crate::tls::{Certificate, has_all_slots};

const NAME: &str = "two-addresses.test";
const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

/// A worker for which `NAME` has the addresses `::1` and `127.0.0.1`, in this order. `None`, with a
/// word about it, for a user who may not decide about names.
fn worker(environment: &str) -> Option<(tempfile::TempDir, ChildProcess)> {
    let folder = tempfile::tempdir().unwrap();
    let hosts = folder.path().join("hosts");
    let lines = format!("{V6} {NAME}\n{} {NAME}\n", Ipv4Addr::LOCALHOST);
    std::fs::write(&hosts, lines).unwrap();
    let shell = format!(
        "mount --bind {} /etc/hosts && exec env \"$@\"",
        hosts.display()
    );
    let inside = [
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        &shell,
        "sh",
    ];
    let mut trial = std::process::Command::new("unshare");
    let trial = trial.args(inside).args(["getent", "ahosts", NAME]).output();
    let found = trial.map(|found| String::from_utf8_lossy(&found.stdout).into_owned());
    if !found.is_ok_and(|found| found.starts_with("::1")) {
        println!("this user may not decide about names, or there is no IPv6");
        return None;
    }
    let mut arguments = inside.to_vec();
    arguments.extend([environment, env!("CARGO_BIN_EXE_lock-worker")]);
    Some((folder, ChildProcess::start("unshare", &arguments)))
}

/// The other address: a way to `target`, or silence. Counts the connections.
async fn at_the_other(port: u16, target: Option<SocketAddr>) -> Arc<AtomicUsize> {
    let listener = TcpListener::bind((V6, port)).await.unwrap();
    let count = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        let mut silent = Vec::new();
        while let Ok((mut client, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let Some(target) = target else {
                silent.push(client);
                continue;
            };
            tokio::spawn(async move {
                let mut server = TcpStream::connect(target).await?;
                tokio::io::copy_bidirectional(&mut client, &mut server).await
            });
        }
    });
    count
}

async fn hold_a_lock(worker: &mut ChildProcess, id: &str) {
    worker.send(&format!("hold {id} {id} wait=20000"));
    worker.wait_for(&format!("held {id}")).await;
}

#[tokio::test]
async fn a_silent_first_address_of_a_name_keeps_no_kind_of_client_from_the_second() {
    if !server_speaks_tls() {
        return;
    }
    let certificate = Certificate::for_names(&[NAME, "127.0.0.1"]);
    let trust = format!("SSL_CERT_FILE={}", certificate.path().display());
    let (over_tls, of_sentinel) = (Port::free(), Port::free());
    let server = certificate.server(&over_tls).start().await;
    let port = server.port();
    let monitor = |port: u16| format!("sentinel monitor mymaster 127.0.0.1 {port} 1\n");
    let sentinel = RedisServer::builder().sentinel(monitor(port)).start().await;
    let tls_sentinel = certificate
        .server(&of_sentinel)
        .sentinel(monitor(over_tls.number()));
    let tls_sentinel = tls_sentinel.arg("--tls-replication").arg("yes");
    let _tls_sentinel = tls_sentinel.start().await;
    let node = RedisServer::builder().cluster_node();
    let node = node.arg("--cluster-announce-hostname").arg(NAME);
    let node = node
        .arg("--cluster-preferred-endpoint-type")
        .arg("hostname");
    let node = node.start().await;
    has_all_slots(&node).await;
    let (two, three) = tokio::join!(RedisServer::start(), RedisServer::start());
    let members = [port, two.port(), three.port()].map(|port| format!("{NAME}:{port}"));
    let mut others = vec![
        at_the_other(over_tls.number(), None).await,
        at_the_other(of_sentinel.number(), None).await,
    ];
    for server in [&server, &sentinel, &node, &two, &three] {
        others.push(at_the_other(server.port(), None).await);
    }
    for url in [
        format!("redis://{NAME}:{port}"),
        format!("rediss://{NAME}:{over_tls}"),
        format!("redis-sentinel://{NAME}:{}/mymaster", sentinel.port()),
        format!("rediss-sentinel://{NAME}:{of_sentinel}/mymaster"),
        format!("redis-cluster://{NAME}:{}", node.port()),
        format!("redis-quorum://{}?rejoin_after=0s", members.join(",")),
    ] {
        let Some((_hosts, mut worker)) = worker(&trust) else {
            return;
        };
        worker.send(&format!("connect {url}"));
        let connected = tokio::time::timeout(Duration::from_secs(20), worker.wait_for("connected"));
        assert!(connected.await.is_ok(), "{url}");
        hold_a_lock(&mut worker, "a").await;
        worker.send("release a");
        worker.wait_for("done a").await;
    }
    assert!(others.iter().all(|other| other.load(Ordering::SeqCst) > 0));
}

#[tokio::test]
async fn the_address_that_worked_last_is_tried_first() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let other = at_the_other(proxy.addr().port(), None).await;
    let Some((_hosts, mut worker)) = worker("A=b") else {
        return;
    };
    worker.send(&format!("connect redis://{NAME}:{}", proxy.addr().port()));
    worker.wait_for("connected").await;
    hold_a_lock(&mut worker, "a").await;
    let silent = other.load(Ordering::SeqCst);
    assert!(silent > 0);
    for id in ["b", "c"] {
        let before = proxy.connections();
        proxy.cut();
        hold_a_lock(&mut worker, id).await;
        eventually("it is connected again", async || {
            proxy.connections() > before
        })
        .await;
    }
    assert_eq!(other.load(Ordering::SeqCst), silent);
}

#[tokio::test]
async fn a_replica_at_the_first_address_is_left_for_the_master() {
    let (master, replica) = tokio::join!(RedisServer::start(), RedisServer::start());
    let port = master.port().to_string();
    replica.command(&["REPLICAOF", "127.0.0.1", &port]).await;
    eventually("it has the master's data", async || {
        let info: String = replica.query(&["INFO", "replication"]).await;
        info.contains("master_link_status:up")
    })
    .await;
    at_the_other(master.port(), Some(replica.addr())).await;
    let Some((_hosts, mut worker)) = worker("A=b") else {
        return;
    };
    worker.send(&format!("connect redis://{NAME}:{port}"));
    worker.wait_for("connected").await;
    hold_a_lock(&mut worker, "a").await;
    // Another takes its place: the first stands still, and its connections stay open.
    replica.command(&["REPLICAOF", "NO", "ONE"]).await;
    master.pause();
    hold_a_lock(&mut worker, "b").await;
    assert_eq!(replica.keys("lock:b").await.len(), 1);
}

#[tokio::test]
async fn of_two_masters_at_one_name_a_client_uses_the_one_that_others_use() {
    let (one, other) = tokio::join!(RedisServer::start(), RedisServer::start());
    // The first of the list.
    at_the_other(other.port(), Some(one.addr())).await;
    let url = format!("redis://{NAME}:{}", other.port());
    let Some((_hosts, mut first)) = worker("A=b") else {
        return;
    };
    let Some((_more_hosts, mut second)) = worker("A=b") else {
        return;
    };
    for worker in [&mut first, &mut second] {
        worker.send(&format!("connect {url}"));
        worker.wait_for("connected").await;
    }
    hold_a_lock(&mut first, "a").await;
    second.send("hold b a wait=0");
    second.wait_for("failed b").await;
    // It is silent to one of them for longer than both of them connect.
    one.pause();
    first.send("hold c c wait=6000");
    let failed = first.wait_for("failed c").await.text;
    assert!(failed.contains("Unavailable"), "{failed}");
    assert!(other.keys("lock:*").await.is_empty());
    one.resume();
    for (worker, id) in [(&mut first, "d"), (&mut second, "e")] {
        hold_a_lock(worker, id).await;
        assert_eq!(one.keys(&format!("lock:{id}")).await.len(), 1);
    }
}

#[tokio::test]
async fn a_member_of_a_quorum_does_not_stand_in_for_another() {
    let (one, two, three) = tokio::join!(
        RedisServer::start(),
        RedisServer::start(),
        RedisServer::start()
    );
    // The second address of the first member is that of another member.
    let other_way = Proxy::start(two.addr()).await;
    let port = other_way.addr().port();
    at_the_other(port, Some(one.addr())).await;
    let Some((_hosts, mut worker)) = worker("A=b") else {
        return;
    };
    let (two_at, three_at) = (two.addr(), three.addr());
    let members = format!("{NAME}:{port},{two_at},{three_at}");
    worker.send(&format!("connect redis-quorum://{members}?rejoin_after=0s"));
    worker.wait_for("connected").await;
    hold_a_lock(&mut worker, "a").await;
    one.pause();
    three.pause();
    // Both are left, and the way to the first leads to the second.
    worker.send("hold b b wait=4000");
    let failed = worker.wait_for("failed b").await.text;
    assert!(failed.contains("Unavailable"), "{failed}");
    assert!(other_way.connections() > 0);
    three.resume();
    hold_a_lock(&mut worker, "c").await;
}
