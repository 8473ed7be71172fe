//! Maps of a cluster that name no host, or a host that is another one from here.

use std::time::Duration;

use lock_runtime::{LockClient, LockError};
use lock_store::memory::MemoryStore;
use lock_testkit::{Proxy, RedisCluster, RedisServer};

use crate::self_descriptions::rewritten;
use crate::{client, patient_client};

/// Keys that are spread over all masters.
fn keys() -> impl Iterator<Item = String> {
    (0..24).map(|key| format!("stock:{key}"))
}

async fn take_every_key(client: &LockClient) {
    for key in keys() {
        let guard = client.lock(key).acquire().await.unwrap();
        guard.release().await.unwrap();
    }
}

async fn set_everywhere(cluster: &RedisCluster, name: &str, value: &str) {
    for node in &cluster.nodes {
        node.command(&["CONFIG", "SET", name, value]).await;
    }
}

const ENDPOINT_TYPE: &str = "cluster-preferred-endpoint-type";

/// `?` in hostname mode without names, and null in the map, empty in redirects, without endpoints.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_map_and_redirects_without_a_host_lead_to_the_right_node() {
    let cluster = RedisCluster::start_patient().await;
    for kind in ["hostname", "unknown-endpoint"] {
        set_everywhere(&cluster, ENDPOINT_TYPE, kind).await;
        let (new, old) = (
            client(&cluster.url()).await,
            patient_client(&cluster.url()).await,
        );
        take_every_key(&new).await;
        take_every_key(&old).await;
        let key = "moves";
        let slot = cluster.slot(&format!("lock:{key}")).await;
        let from = cluster.master_of(slot).await;
        let others = cluster.nodes[..3].iter();
        let to = others.filter(|node| node.port() != from.port());
        let to: &RedisServer = to.last().unwrap();
        let from = cluster.begin_move(slot, to).await;
        // The key is not there yet, so that the old node answers `ASK`.
        let guard = old.lock(key).acquire().await.unwrap();
        assert_eq!(to.keys("lock:moves").await.len(), 1, "{kind}");
        cluster.end_move(slot, from, to).await;
        // Its map has the old node, which answers `MOVED`.
        guard.release().await.unwrap();
        assert_eq!(to.keys("lock:moves").await.len(), 0, "{kind}");
        let guard = old.lock(key).acquire().await.unwrap();
        assert!(new.lock(key).try_acquire().await.unwrap().is_none());
        guard.release().await.unwrap();
        cluster.move_slot(slot, from).await;
    }
}

/// A cluster whose nodes announce names that nobody here can resolve, and a proxy before each node.
async fn behind_a_translation() -> (RedisCluster, Vec<(String, Proxy)>) {
    let cluster = RedisCluster::start_patient().await;
    let mut nodes = Vec::new();
    for (at, node) in cluster.nodes.iter().enumerate() {
        let name = format!("node-{at}.invalid");
        node.command(&["CONFIG", "SET", "cluster-announce-hostname", &name])
            .await;
        let announced = format!("{name}:{}", node.port());
        nodes.push((announced, Proxy::start(node.addr()).await));
    }
    set_everywhere(&cluster, ENDPOINT_TYPE, "hostname").await;
    // Everybody has to hear of the names.
    for node in &cluster.nodes {
        lock_testkit::eventually("a node knows all names", async || {
            let slots = format!("{:?}", node.command(&["CLUSTER", "SLOTS"]).await);
            (0..cluster.nodes.len()).all(|at| slots.contains(&format!("node-{at}.invalid")))
        })
        .await;
    }
    (cluster, nodes)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_behind_a_translation_of_addresses_is_reached_by_its_map() {
    let (cluster, nodes) = behind_a_translation().await;
    let pairs: Vec<String> = nodes
        .iter()
        .map(|(announced, proxy)| format!("{announced}>{}", proxy.addr()))
        .collect();
    let seed = format!("redis-cluster://{}", nodes[0].1.addr());
    let by_url = client(&format!("{seed}?map={}", pairs.join(","))).await;
    let all: Vec<(String, std::net::SocketAddr)> = nodes
        .iter()
        .map(|(announced, proxy)| (announced.clone(), proxy.addr()))
        .collect();
    let by_builder = LockClient::builder()
        .url(&seed)
        .address_map(move |host, port| {
            let announced = format!("{host}:{port}");
            let found = all.iter().find(|(name, _)| *name == announced)?;
            Some((found.1.ip().to_string(), found.1.port()))
        });
    let by_builder = by_builder.connect_timeout(Duration::from_secs(9));
    let by_builder = by_builder.connect().await.unwrap();
    for client in [&by_url, &by_builder] {
        take_every_key(client).await;
    }
    for (announced, proxy) in &nodes[..3] {
        assert!(proxy.open_connections() >= 2, "{announced}");
    }
    // A redirect is translated as well.
    let slot = cluster.slot("lock:moves").await;
    let from = cluster.master_of(slot).await;
    let mut others = cluster.nodes[..3].iter();
    let to = others.find(|node| node.port() != from.port()).unwrap();
    cluster.move_slot(slot, to).await;
    let guard = by_url.lock("moves").acquire().await.unwrap();
    assert_eq!(to.keys("lock:moves").await.len(), 1);
    guard.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_announced_address_that_leads_nowhere_is_told_to_be_announced() {
    let (cluster, _nodes) = behind_a_translation().await;
    let client = client(&cluster.url()).await;
    let lock = client.lock("k").wait(Duration::from_secs(1));
    let said = lock.acquire().await.unwrap_err().to_string();
    assert!(said.contains("the cluster's map names"), "{said}");
    assert!(said.contains("`?map=node-"), "{said}");
    let said = client.health().await.unwrap_err().to_string();
    assert!(said.contains("the cluster's map names"), "{said}");
}

/// `MOVED 1234 ` and what `to` makes of the address behind it, at each node.
async fn redirected(cluster: &RedisCluster, to: fn(&str) -> String) -> String {
    let mut pairs = Vec::new();
    for node in &cluster.nodes {
        let way = rewritten(node.addr(), move |reply| {
            let Some((code, rest)) = reply.split_once("-MOVED ") else {
                return reply.to_owned();
            };
            let (line, behind) = rest.split_once("\r\n").unwrap_or((rest, ""));
            let (slot, address) = line.split_once(' ').unwrap_or((line, ""));
            format!("{code}-MOVED {slot} {}\r\n{behind}", to(address))
        });
        pairs.push((node.addr(), way.await));
    }
    let map: Vec<_> = pairs
        .iter()
        .map(|(at, way)| format!("{at}>{way}"))
        .collect();
    format!("redis-cluster://{}?map={}", pairs[0].1, map.join(","))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_that_can_not_be_read_is_followed_by_the_map() {
    let cluster = RedisCluster::start_patient().await;
    let forms: [fn(&str) -> String; 4] = [
        |_| String::new(),
        |_| "somewhere".to_owned(),
        |_| "somewhere:else".to_owned(),
        |address| format!("{}:0", address.split(':').next().unwrap_or_default()),
    ];
    for (at, to) in forms.into_iter().enumerate() {
        let client = patient_client(&redirected(&cluster, to).await).await;
        let key = format!("moves:{at}");
        let slot = cluster.slot(&format!("lock:{key}")).await;
        take_every_key(&client).await;
        let from = cluster.master_of(slot).await;
        let mut others = cluster.nodes[..3].iter();
        let there = others.find(|node| node.port() != from.port()).unwrap();
        cluster.move_slot(slot, there).await;
        let guard = client.lock(&key).acquire().await;
        let guard = guard.unwrap_or_else(|error| panic!("{at}: {error}"));
        guard.release().await.unwrap();
    }
}

/// Some nodes are reached with TLS only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_port_is_not_in_the_map_is_told_with_the_other_scheme() {
    let cluster = RedisCluster::start_patient().await;
    let port = format!(":{}\r\n", cluster.nodes[1].port());
    let way = rewritten(cluster.nodes[0].addr(), move |reply| {
        reply.replace(&port, ":0\r\n")
    });
    let url = format!("redis-cluster://{}", way.await);
    let client = LockClient::builder().url(url).connect_lazy().unwrap();
    let mut told = 0;
    for key in keys() {
        if let Err(error) = client.lock(key).acquire().await {
            let said = error.to_string();
            assert!(said.contains("write `rediss-cluster://` instead"), "{said}");
            told += 1;
        }
    }
    assert!(told > 0);
}

fn refused(builder: lock_runtime::LockClientBuilder) -> String {
    match builder.connect_lazy() {
        Err(error @ LockError::Config { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_map_that_can_not_be_read_is_refused_with_its_form() {
    let url = |url: &str| LockClient::builder().url(url);
    for map in [
        "",
        "a",
        "a:1",
        "a:1>",
        "a>b",
        "a:1>b:x",
        "a:1>b:2,a:1>c:3",
        "a:1>b:0",
    ] {
        let said = refused(url(&format!("redis-cluster://h?map={map}")));
        assert!(
            said.contains("announced:port>reachable:port"),
            "{map}: {said}"
        );
    }
    for good in ["a:1>b:2", "a:1%3Eb:2,[::1]:7>[::2]:8", "a:1>b:2,a:2>b:3"] {
        url(&format!("redis-cluster://h?map={good}"))
            .connect_lazy()
            .unwrap();
        url(&format!("redis-sentinel://h/m?map={good}"))
            .connect_lazy()
            .unwrap();
    }
    let none = [
        "redis://h",
        "redis-quorum://h1,h2,h3",
        "memory:",
        "sqlite:///tmp/locks",
        "postgres://h/d",
        "zookeeper://h",
        "etcd://h",
    ];
    for none in none {
        refused(url(&format!("{none}?map=a:1>b:2")));
        let said = refused(url(none).address_map(|_, _| None));
        assert!(said.contains("`address_map`"), "{said}");
    }
    let own = || LockClient::builder().store(|context| Ok(MemoryStore::new().connect(context)));
    let said = refused(own().address_map(|_, _| None));
    assert!(said.contains("`address_map`"), "{said}");
    let said = refused(own().replicas(1, Duration::from_secs(1)));
    assert!(said.contains("`replicas`"), "{said}");
    let twice = url("redis-cluster://h?map=a:1>b:2").address_map(|_, _| None);
    assert!(refused(twice).contains("leave one of them out"));
}
