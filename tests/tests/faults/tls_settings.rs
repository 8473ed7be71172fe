//! `.tls(…)`, `.username(…)` and `.password(…)` of the builder.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use lock_runtime::{LockClient, LockError, StoreErrorKind, Tls};
use lock_testkit::{Port, RedisServer, eventually, server_speaks_tls};

use crate::tls::{Certificate, has_all_slots};
use crate::unavailable;

/// More than a busy machine takes for a handshake.
const PATIENCE: Duration = Duration::from_secs(20);
const CANARY: &str = "canary-in-the-tunnel";

/// The message of a `Config`.
fn config<T: std::fmt::Debug>(result: Result<T, LockError>) -> String {
    match result {
        Err(error @ LockError::Config { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

async fn has_a_lock(client: &LockClient, server: &RedisServer) {
    // Its own key: a quorum's slowest server may still have the lock before.
    let name = server.addr().port().to_string();
    let key = format!("lock:{name}");
    let guard = client.lock(name).acquire().await.unwrap();
    // On a quorum, perhaps later than the others.
    eventually("the server has it", async || {
        server.keys(&key).await == [key.as_str()]
    })
    .await;
    guard.release().await.unwrap();
}

#[tokio::test]
async fn the_authority_and_the_clients_certificate_come_from_files_or_from_memory() {
    if !server_speaks_tls() {
        return;
    }
    let (certificate, port) = (Certificate::new(), Port::free());
    let server = certificate.server_for(&port, "yes").start().await;
    let (cert, key) = (certificate.path(), certificate.key());
    let pem = |path: &Path| std::fs::read(path).unwrap();
    let builder = || LockClient::builder().url(format!("rediss://127.0.0.1:{port}"));
    let trusting = || Tls::new().ca_file(&cert);
    for tls in [
        trusting().identity_files(&cert, &key),
        Tls::new()
            .ca_pem(pem(&cert))
            .identity_pem(pem(&cert), pem(&key)),
    ] {
        let client = builder().tls(tls).connect().await.unwrap();
        has_a_lock(&client, &server).await;
    }
    // A client without a certificate is told what the server may ask for.
    let error = builder().tls(trusting()).connect().await.unwrap_err();
    let said = format!("{error}: {:?}", error.source());
    assert!(said.contains("`Tls::identity_files`"), "{said}");
    let another = Certificate::new();
    let untrusted = builder().tls(Tls::new().ca_file(another.path()));
    let error = untrusted.connect().await.unwrap_err();
    let said = format!("{error}: {:?}", error.source());
    assert!(said.contains("`Tls::ca_file`"), "{said}");
    assert_eq!(unavailable::<()>(Err(error)), StoreErrorKind::Disconnected);
}

#[tokio::test]
async fn every_server_of_every_kind_of_url_gets_it() {
    if !server_speaks_tls() {
        return;
    }
    let certificate = Certificate::new();
    let tls = || {
        let tls = Tls::new().ca_file(certificate.path());
        tls.identity_files(certificate.path(), certificate.key())
    };
    let connected = async |url: String| {
        let builder = LockClient::builder().url(url).tls(tls());
        // The last server of a quorum takes part if it is reached in the time of a command.
        let builder = builder.connect_timeout(PATIENCE).command_timeout(PATIENCE);
        builder.connect().await.unwrap()
    };
    let (port, of_sentinel, of_node) = (Port::free(), Port::free(), Port::free());
    let master = certificate.server_for(&port, "yes").start().await;
    let monitor = format!("sentinel monitor mymaster 127.0.0.1 {port} 1\n");
    let sentinel = certificate
        .server_for(&of_sentinel, "yes")
        .sentinel(monitor);
    let _sentinel = sentinel.arg("--tls-replication").arg("yes").start().await;
    let url = format!("rediss-sentinel://127.0.0.1:{of_sentinel}/mymaster");
    has_a_lock(&connected(url).await, &master).await;

    let node = certificate.server_for(&of_node, "yes").cluster_node();
    let node = node.arg("--tls-cluster").arg("yes");
    let node = node.arg("--cluster-announce-ip").arg("127.0.0.1");
    let node = node.start().await;
    has_all_slots(&node).await;
    let url = format!("rediss-cluster://127.0.0.1:{of_node}");
    has_a_lock(&connected(url).await, &node).await;

    let mut hosts = vec![format!("127.0.0.1:{port}")];
    let mut others = Vec::new();
    for _ in 0..2 {
        let port = Port::free();
        others.push(certificate.server_for(&port, "yes").start().await);
        hosts.push(format!("127.0.0.1:{port}"));
    }
    let url = format!("rediss-quorum://{}?rejoin_after=0s", hosts.join(","));
    let client = connected(url).await;
    for server in others.iter().chain([&master]) {
        has_a_lock(&client, server).await;
    }
}

#[tokio::test]
async fn a_mistake_in_a_file_is_reported_with_its_path() {
    let (certificate, folder) = (Certificate::new(), tempfile::tempdir().unwrap());
    let (cert, key) = (certificate.path(), certificate.key());
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let missing = folder.path().join("missing.pem");
    let text = file("text.pem", CANARY);
    let locked = format!(
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\n{CANARY}\n-----END ENCRYPTED PRIVATE KEY-----\n"
    );
    let locked = file("locked.key", &locked);
    let foreign = Certificate::new();
    let new = Tls::new;
    for (tls, path, says) in [
        (new().ca_file(&missing), &missing, "No such file"),
        (new().ca_file(&text), &text, "-----BEGIN CERTIFICATE-----"),
        (new().ca_file(&key), &key, "-----BEGIN CERTIFICATE-----"),
        (
            new().identity_files(&missing, &key),
            &missing,
            "No such file",
        ),
        (
            new().identity_files(&cert, &missing),
            &missing,
            "No such file",
        ),
        (
            new().identity_files(&cert, &text),
            &text,
            "-----BEGIN PRIVATE KEY-----",
        ),
        (
            new().identity_files(&cert, &locked),
            &locked,
            "is encrypted",
        ),
        (new().identity_files(foreign.path(), &key), &key, "together"),
    ] {
        let said = format!("{tls:?}");
        assert!(!said.contains("PRIVATE"), "{said}");
        let builder = LockClient::builder().url("rediss://127.0.0.1:1").tls(tls);
        for refused in [builder.clone().connect().await, builder.connect_lazy()] {
            let said = config(refused);
            let path = path.display().to_string();
            assert!(
                said.contains(&path) && said.contains(says),
                "{says}: {said}"
            );
            assert!(!said.contains(CANARY), "{said}");
        }
    }
    let tls = new().identity_pem(CANARY, CANARY).ca_pem(CANARY);
    let builder = LockClient::builder()
        .url("rediss://127.0.0.1:1")
        .tls(tls.clone());
    let said = format!(
        "{tls:?} {builder:?} {}",
        config(builder.clone().connect().await)
    );
    assert!(said.contains("the CA in memory"), "{said}");
    assert!(
        !said.contains(CANARY) && !said.contains("99, 97, 110"),
        "{said}"
    );
}

#[tokio::test]
async fn tls_without_a_url_for_it_is_reported() {
    let (certificate, unix) = (
        Certificate::new(),
        "redis+unix:///tmp/redis.sock".to_owned(),
    );
    for (url, says) in [
        ("redis://127.0.0.1:1".to_owned(), "write `rediss://`"),
        (
            "redis-cluster://127.0.0.1:1".to_owned(),
            "write `rediss-cluster://`",
        ),
        (
            "redis-sentinel://127.0.0.1:1/m".to_owned(),
            "write `rediss-sentinel://`",
        ),
        (
            "redis-quorum://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3".to_owned(),
            "write `rediss-quorum://`",
        ),
        (unix, "a Unix socket has no TLS"),
        ("memory:".to_owned(), "`tls` is for a server"),
        ("rediss://127.0.0.1:1#insecure".to_owned(), "`#insecure`"),
    ] {
        let builder = LockClient::builder().url(url);
        let tls = Tls::new().ca_file(certificate.path());
        let said = config(builder.tls(tls).connect().await);
        assert!(said.contains(says), "{said}");
    }
}

#[tokio::test]
async fn user_and_password_come_from_the_builder_or_from_the_url() {
    let server = RedisServer::start().await;
    let rule = format!(">{CANARY}/@:?#%");
    server
        .command(&["ACL", "SETUSER", "app", "on", &rule, "~*", "&*", "+@all"])
        .await;
    let (addr, password) = (server.addr(), format!("{CANARY}/@:?#%"));
    let at = |user: &str| LockClient::builder().url(format!("redis://{user}{addr}"));
    for builder in [
        at("").username("app").password(&password),
        at("app@").password(&password),
    ] {
        assert!(!format!("{builder:?}").contains(CANARY));
        let client = builder.connect().await.unwrap();
        let list: String = server.query(&["CLIENT", "LIST"]).await;
        assert!(list.contains("user=app"), "{list}");
        has_a_lock(&client, &server).await;
    }
    let wrong = format!("{CANARY}-wrong");
    let refused = at("").username("app").password(&wrong).connect().await;
    assert!(!format!("{refused:?}").contains(CANARY), "{refused:?}");
    assert_eq!(unavailable(refused), StoreErrorKind::Denied);
    for (builder, says) in [
        (
            at("app:word@").username("app"),
            "`username` is given by the builder and in the store's URL",
        ),
        (
            at(&format!("app:{CANARY}@")).password(CANARY),
            "`password` is given by the builder and in the store's URL",
        ),
        (at("").username("app"), "give the password"),
        (at("app@"), "give the password"),
        (
            LockClient::builder().url("memory:").password(CANARY),
            "`password` is for a server",
        ),
    ] {
        let said = config(builder.connect().await);
        assert!(said.contains(says) && !said.contains(CANARY), "{said}");
    }
}
