//! Servers that say the wrong thing about themselves: `HELLO` calls a node of a cluster a server of
//! its own, or the reverse.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use lock_runtime::LockClient;
use lock_runtime::StoreErrorKind;
use lock_testkit::{RedisCluster, RedisServer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::{client, config, unavailable};

const CLUSTER: &str = "$4\r\nmode\r\n$7\r\ncluster\r\n";
const STANDALONE: &str = "$4\r\nmode\r\n$10\r\nstandalone\r\n";

/// A way to the server on which these words of its replies are others.
async fn mistaken(server: SocketAddr, says: &'static str, instead: &'static str) -> SocketAddr {
    rewritten(server, move |reply| reply.replace(says, instead)).await
}

/// A way to the server on which short replies are others.
pub(crate) async fn rewritten(
    server: SocketAddr,
    rewrite: impl Fn(&str) -> String + Clone + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(forward(client, server, rewrite.clone()));
        }
    });
    address
}

async fn forward(client: TcpStream, server: SocketAddr, rewrite: impl Fn(&str) -> String) {
    let Ok(server) = TcpStream::connect(server).await else {
        return;
    };
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let requests = tokio::io::copy(&mut from_client, &mut to_server);
    let replies = async {
        let mut part = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = from_server.read(&mut part).await {
            // A short reply comes in one part.
            let reply = rewrite(&String::from_utf8_lossy(&part[..length]));
            if to_client.write_all(reply.as_bytes()).await.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        _ = requests => {}
        () = replies => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_whose_nodes_call_themselves_servers_of_their_own_is_used() {
    let cluster = RedisCluster::start_patient().await;
    let (mut pairs, mut seed) = (Vec::new(), None);
    for node in &cluster.nodes {
        let way = mistaken(node.addr(), CLUSTER, STANDALONE).await;
        pairs.push(format!("{}>{way}", node.addr()));
        seed.get_or_insert(way);
    }
    let seed = seed.unwrap();
    let url = format!("redis-cluster://{seed}?map={}", pairs.join(","));
    let client = client(&url).await;
    for key in 0..24 {
        let guard = client.lock(format!("stock:{key}")).acquire().await.unwrap();
        guard.release().await.unwrap();
    }
    // By the URL of one server it is told which URL to write, as soon as a lock is asked for.
    let alone = LockClient::builder().url(format!("redis://{seed}"));
    let alone = alone
        .connect_timeout(Duration::from_secs(9))
        .connect_lazy()
        .unwrap();
    let mut told = 0;
    for key in 0..24 {
        let begun = Instant::now();
        let lock = alone.lock(format!("stock:{key}"));
        if let Err(error) = lock.wait(Duration::from_secs(20)).acquire().await {
            let said = error.to_string();
            assert!(said.contains("`redis-cluster://"), "{said}");
            assert!(!said.contains("wait until"), "{said}");
            assert_eq!(unavailable::<()>(Err(error)), StoreErrorKind::Misconfigured);
            assert!(begun.elapsed() < Duration::from_secs(10));
            told += 1;
        }
    }
    assert!(told > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_calls_itself_a_node_and_has_no_slots_is_used() {
    let server = RedisServer::start().await;
    let way = mistaken(server.addr(), STANDALONE, CLUSTER).await;
    let alone = client(&format!("redis://{way}")).await;
    drop(alone.lock("k").acquire().await.unwrap());
    let url = format!("redis-cluster://{way}");
    let said = config(LockClient::builder().url(url).connect().await);
    assert!(said.contains("redis://host:port"), "{said}");
}

/// A proxy that translates RESP3 for itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_describes_itself_in_a_list_is_used() {
    let server = RedisServer::start().await;
    let way = rewritten(server.addr(), |reply| reply.replace("%7\r\n", "*14\r\n")).await;
    let client = client(&format!("redis://{way}")).await;
    drop(client.lock("k").acquire().await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_at_a_server_of_a_quorum_is_told() {
    let cluster = RedisCluster::start_masters().await;
    let mut ways = Vec::new();
    for node in &cluster.nodes {
        ways.push(mistaken(node.addr(), CLUSTER, STANDALONE).await.to_string());
    }
    let url = format!("redis-quorum://{}?rejoin_after=0s", ways.join(","));
    let client = LockClient::builder().url(url).connect_lazy().unwrap();
    let refused = client
        .lock("k")
        .wait(Duration::from_secs(5))
        .acquire()
        .await;
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("`redis-cluster://"), "{said}");
}
