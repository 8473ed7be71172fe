//! `rediss://`: a server that is trusted, and one that is not.

use std::net::TcpListener;

use lock_runtime::{LockClient, StoreErrorKind};
use lock_tests::{ChildProcess, RedisServer};

use crate::unavailable;

#[tokio::test]
async fn a_lock_over_tls_and_a_certificate_that_nobody_trusts() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (cert, key) = (
        folder.path().join("cert.pem"),
        folder.path().join("key.pem"),
    );
    std::fs::write(&cert, certificate.cert.pem()).unwrap();
    std::fs::write(&key, certificate.signing_key.serialize_pem()).unwrap();
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let server = RedisServer::builder()
        .arg("--tls-port")
        .arg(port.to_string())
        .arg("--tls-cert-file")
        .arg(&cert)
        .arg("--tls-key-file")
        .arg(&key)
        .arg("--tls-ca-cert-file")
        .arg(&cert)
        .arg("--tls-auth-clients")
        .arg("no")
        .start()
        .await;
    let url = format!("rediss://127.0.0.1:{port}");

    let untrusted = LockClient::builder().url(&url).connect().await;
    assert_eq!(unavailable(untrusted), StoreErrorKind::Disconnected);

    let trust = format!("SSL_CERT_FILE={}", cert.display());
    let mut worker = ChildProcess::start("env", &[&trust, env!("CARGO_BIN_EXE_lock-worker")]);
    worker.send(&format!("connect {url}"));
    worker.wait_for("connected").await;
    worker.send("hold a k fenced");
    worker.wait_for("held a").await;
    assert_eq!(server.keys("lock:k").await, ["lock:k"]);
    worker.send("release a");
    worker.wait_for("done a").await;
}
