//! `rediss://` and its kin: servers that are trusted, and one that is not.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lock_runtime::{LockClient, StoreErrorKind, Tls};
use lock_testkit::{
    ChildProcess, Port, RedisServer, RedisServerBuilder, eventually, server_speaks_tls,
};
use tempfile::TempDir;

use crate::unavailable;

/// A certificate for this machine, trusted only on request.
pub(super) struct Certificate {
    folder: TempDir,
}

impl Certificate {
    pub(super) fn new() -> Self {
        Self::for_names(&["127.0.0.1"])
    }

    /// For these names and addresses.
    pub(super) fn for_names(names: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let certificate = rcgen::generate_simple_self_signed(names).unwrap();
        let (cert, key) = (certificate.cert.pem(), certificate.signing_key);
        std::fs::write(folder.path().join("cert.pem"), cert).unwrap();
        std::fs::write(folder.path().join("key.pem"), key.serialize_pem()).unwrap();
        Self { folder }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("cert.pem")
    }

    pub(super) fn key(&self) -> PathBuf {
        self.folder.path().join("key.pem")
    }

    /// A server that also listens on this port, with TLS.
    pub(super) fn server(&self, port: &Port) -> RedisServerBuilder {
        self.server_for(port, "no")
    }

    /// The same, with this setting for client certificates: `no`, or `yes`.
    pub(super) fn server_for(&self, port: &Port, asks: &str) -> RedisServerBuilder {
        let file = |name: &str| Path::join(self.folder.path(), name);
        let server = RedisServer::builder().port("--tls-port", port);
        let server = server.arg("--tls-cert-file");
        let server = server.arg(file("cert.pem")).arg("--tls-key-file");
        let server = server.arg(file("key.pem")).arg("--tls-ca-cert-file");
        let server = server.arg(file("cert.pem")).arg("--tls-auth-clients");
        server.arg(asks)
    }

    /// Another process that trusts the certificate takes a lock, and `server` has it.
    async fn hold_a_lock(&self, url: &str, server: &RedisServer) {
        let trust = format!("SSL_CERT_FILE={}", self.path().display());
        let mut worker = ChildProcess::start("env", &[&trust, env!("CARGO_BIN_EXE_lock-worker")]);
        worker.send(&format!("connect {url}"));
        worker.wait_for("connected").await;
        worker.send("hold a k fenced");
        worker.wait_for("held a").await;
        // On a quorum, perhaps later than the others.
        eventually("the server has it", async || {
            server.keys("lock:k").await == ["lock:k"]
        })
        .await;
        worker.send("release a");
        worker.wait_for("done a").await;
    }
}

async fn is_not_trusted(url: &str) {
    // The system's certificates are read first.
    let builder = LockClient::builder().url(url);
    let builder = builder.connect_timeout(Duration::from_secs(20));
    let refused = builder.connect().await;
    assert_eq!(unavailable(refused), StoreErrorKind::Disconnected);
}

#[tokio::test]
async fn a_lock_over_tls_and_an_untrusted_certificate() {
    if !server_speaks_tls() {
        return;
    }
    let (certificate, port) = (Certificate::new(), Port::free());
    let server = certificate.server(&port).start().await;
    let url = format!("rediss://127.0.0.1:{port}");
    is_not_trusted(&url).await;
    certificate.hold_a_lock(&url, &server).await;
    // For trying out, whoever answers is trusted.
    let client = LockClient::builder().url(format!("{url}/#insecure"));
    let client = client.connect().await.unwrap();
    let many = (0..50).map(|number| tokio::spawn(client.lock(format!("k{number}")).acquire()));
    let many: Vec<_> = many.collect();
    for one in many {
        one.await.unwrap().unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn a_lock_over_tls_with_a_sentinel_and_its_master() {
    if !server_speaks_tls() {
        return;
    }
    let (certificate, port, of_sentinel) = (Certificate::new(), Port::free(), Port::free());
    let master = certificate.server(&port).start().await;
    let monitor = format!("sentinel monitor mymaster 127.0.0.1 {port} 1\n");
    let sentinel = certificate.server(&of_sentinel).sentinel(monitor);
    let sentinel = sentinel.arg("--tls-replication").arg("yes").start().await;
    let url = format!("rediss-sentinel://127.0.0.1:{of_sentinel}/mymaster");
    certificate.hold_a_lock(&url, &master).await;
    // TLS on half of the way is not enough.
    let mixed = format!("redis-sentinel://{}/mymaster", sentinel.addr());
    let refused = LockClient::builder().url(mixed).connect().await;
    assert!(refused.is_err(), "{refused:?}");
}

/// The certificate has the server's name, and the sentinel says its address.
#[tokio::test]
async fn an_announced_address_that_the_certificate_lacks_is_told_with_the_setting() {
    if !server_speaks_tls() {
        return;
    }
    let certificate = Certificate::for_names(&["localhost"]);
    let (port, of_sentinel) = (Port::free(), Port::free());
    let master = certificate.server(&port).start().await;
    let monitor = format!("sentinel monitor mymaster 127.0.0.1 {port} 1\n");
    let sentinel = certificate.server(&of_sentinel).sentinel(monitor);
    let sentinel = sentinel.arg("--tls-replication").arg("yes").start().await;
    let url = format!("rediss-sentinel://localhost:{of_sentinel}/mymaster");
    let tls = || Tls::new().ca_file(certificate.path());
    let refused = LockClient::builder().url(&url).tls(tls()).connect().await;
    let said = refused.unwrap_err().to_string();
    for says in [
        "the sentinels named 127.0.0.1",
        "`announce-hostnames yes`",
        "?map=",
    ] {
        assert!(said.contains(says), "{said}");
    }
    // Each of both mends it.
    let mapped = format!("{url}?map=127.0.0.1:{port}>localhost:{port}");
    certificate.hold_a_lock(&mapped, &master).await;
    for option in ["resolve-hostnames", "announce-hostnames"] {
        sentinel
            .command(&["SENTINEL", "CONFIG", "SET", option, "yes"])
            .await;
    }
    sentinel.command(&["SENTINEL", "REMOVE", "mymaster"]).await;
    let port = port.to_string();
    sentinel
        .command(&["SENTINEL", "MONITOR", "mymaster", "localhost", &port, "1"])
        .await;
    certificate.hold_a_lock(&url, &master).await;
}

#[tokio::test]
async fn a_node_whose_certificate_lacks_its_announced_address_is_told_the_setting() {
    if !server_speaks_tls() {
        return;
    }
    let certificate = Certificate::for_names(&["localhost"]);
    let port = Port::free();
    let node = certificate.server(&port).cluster_node();
    let node = node.arg("--tls-cluster").arg("yes");
    let node = node.arg("--cluster-announce-ip").arg("127.0.0.1");
    let node = node.start().await;
    has_all_slots(&node).await;
    let url = format!("rediss-cluster://localhost:{port}");
    let tls = Tls::new().ca_file(certificate.path());
    let client = LockClient::builder().url(&url).tls(tls);
    let client = client.connect().await.unwrap();
    let lock = client.lock("k").wait(Duration::from_secs(2));
    let said = lock.acquire().await.unwrap_err().to_string();
    assert!(said.contains("`cluster-announce-hostname NAME`"), "{said}");
    for (option, value) in [
        ("cluster-announce-hostname", "localhost"),
        ("cluster-preferred-endpoint-type", "hostname"),
    ] {
        node.command(&["CONFIG", "SET", option, value]).await;
    }
    certificate.hold_a_lock(&url, &node).await;
}

#[tokio::test]
async fn a_lock_over_tls_on_a_quorum() {
    if !server_speaks_tls() {
        return;
    }
    let certificate = Certificate::new();
    let ports = [Port::free(), Port::free(), Port::free()];
    let mut servers = Vec::new();
    for port in &ports {
        servers.push(certificate.server(port).start().await);
    }
    let all = ports.map(|port| format!("127.0.0.1:{port}")).join(",");
    let url = format!("rediss-quorum://{all}?rejoin_after=0s");
    is_not_trusted(&url).await;
    certificate.hold_a_lock(&url, &servers[0]).await;
}

#[tokio::test]
async fn a_lock_over_tls_in_a_cluster() {
    if !server_speaks_tls() {
        return;
    }
    let (certificate, port) = (Certificate::new(), Port::free());
    let node = certificate.server(&port).cluster_node();
    let node = node.arg("--tls-cluster").arg("yes");
    let node = node.arg("--cluster-announce-ip").arg("127.0.0.1");
    let node = node.start().await;
    has_all_slots(&node).await;
    let url = format!("rediss-cluster://127.0.0.1:{port}");
    certificate.hold_a_lock(&url, &node).await;
}

/// Makes the node a cluster of its own.
pub(super) async fn has_all_slots(node: &RedisServer) {
    node.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"])
        .await;
    eventually("the cluster is complete", async || {
        let information: String = node.query(&["CLUSTER", "INFO"]).await;
        information.contains("cluster_state:ok")
    })
    .await;
}
