//! TLS: to servers that are trusted only.

use std::time::Duration;

use lock_runtime::{LockClient, LockError, Tls};
use lock_testkit::{Port, ZooKeeperEnsemble, expect_an_expired_certificate};

/// A server that speaks TLS at a port of its own, and its certificate.
struct TlsServer {
    server: ZooKeeperEnsemble,
    port: Port,
    pem: String,
    /// The server reads its certificate when a client comes.
    _folder: tempfile::TempDir,
}

/// With a certificate that is valid, or was so in the year 2001.
async fn server(is_over: bool) -> TlsServer {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    if is_over {
        parameters.not_before = rcgen::date_time_ymd(2001, 1, 1);
        parameters.not_after = rcgen::date_time_ymd(2001, 12, 31);
    }
    let pem = parameters.self_signed(&key).unwrap().pem();
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("server.pem");
    std::fs::write(&store, format!("{}{pem}", key.serialize_pem())).unwrap();
    let port = Port::free();
    let more = format!(
        "secureClientPort={}\nsecureClientPortAddress=127.0.0.1\n\
         serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
         ssl.keyStore.location={}\nssl.keyStore.type=PEM\nssl.clientAuth=none\n",
        port.number(),
        store.display()
    );
    let server = ZooKeeperEnsemble::of(1, &more, &[]).await;
    TlsServer {
        server,
        port,
        pem,
        _folder: folder,
    }
}

#[tokio::test]
async fn a_trusted_server_is_used_over_tls_and_one_that_is_not_is_refused() {
    let tls = server(false).await;
    let (server, port, pem) = (&tls.server, &tls.port, tls.pem.clone());
    let url = server.url_at(&[port.number()], "?tls=on");
    let trusting = |url: &str, pem: &str| {
        let builder = LockClient::builder().url(url).tls(Tls::new().ca_pem(pem));
        // The first handshake of a JVM takes its time.
        let builder = builder.command_timeout(Duration::from_secs(5));
        builder.connect_timeout(Duration::from_secs(20))
    };
    let client = trusting(&url, &pem).connect().await.unwrap();
    client.lock("k").run(async {}).await.unwrap();
    let health = client.health().await.unwrap();
    assert!(health.servers[0].version.starts_with('3'), "{health:?}");
    let another = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    for (url, ca) in [
        (url.clone(), another.cert.pem()),
        // A name that the certificate does not have.
        (url.replace("127.0.0.1", "localhost"), pem.clone()),
    ] {
        let error = trusting(&url, &ca).connect().await.unwrap_err();
        assert!(matches!(error, LockError::Unavailable { .. }), "{error:?}");
        assert!(error.to_string().contains("Tls::ca_file"), "{error}");
    }
    // Neither understands the other.
    let plain = LockClient::builder().url(server.url_at(&[port.number()], ""));
    let plain = plain.connect_timeout(Duration::from_secs(3));
    let error = plain.connect().await.unwrap_err();
    assert!(matches!(error, LockError::Unavailable { .. }), "{error:?}");
    assert!(error.to_string().contains("`tls=on`"), "{error}");
    let error = trusting(&server.url("?tls=on"), &pem)
        .connect()
        .await
        .unwrap_err();
    assert!(matches!(error, LockError::Unavailable { .. }), "{error:?}");
    let off = trusting(&server.url("?tls=off"), &pem)
        .connect()
        .await
        .unwrap_err();
    assert!(matches!(off, LockError::Config { .. }), "{off:?}");
}

#[tokio::test]
async fn a_certificate_that_is_over_is_told_within_the_time_limit() {
    let tls = server(true).await;
    let url = tls.server.url_at(&[tls.port.number()], "?tls=on");
    let builder = LockClient::builder().url(url);
    expect_an_expired_certificate(builder.tls(Tls::new().ca_pem(tls.pem.clone()))).await;
}
