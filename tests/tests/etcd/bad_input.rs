//! Wrong URLs, certificates, and keys of others.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use lock_runtime::{LockClient, LockError, Tls};
use lock_testkit::{
    EtcdCluster, EtcdOptions, Port, Proxy, eventually, expect_an_expired_certificate,
};

use crate::client;

async fn refused(builder: lock_runtime::LockClientBuilder) -> LockError {
    let builder = builder.connect_timeout(Duration::from_secs(2));
    let began = Instant::now();
    let error = builder.connect().await.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(10), "{error}");
    error
}

#[tokio::test]
async fn what_can_not_be_reached_is_said_in_time_and_by_its_name() {
    let nobody = Port::free();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap();
    for (url, says) in [
        (format!("etcd://127.0.0.1:{}", nobody.number()), "refused"),
        (format!("etcd://{silent}"), "slow, stands still"),
        ("etcd://nowhere.invalid".to_owned(), "can't be resolved"),
    ] {
        let error = refused(LockClient::builder().url(url)).await;
        assert!(matches!(error, LockError::Unavailable { .. }), "{error:?}");
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[tokio::test]
async fn settings_that_can_not_be_meant_are_refused() {
    for (builder, says) in [
        (
            LockClient::builder().replicas(1, Duration::from_secs(1)),
            "`replicas`",
        ),
        (
            LockClient::builder().username("u"),
            "both user and password",
        ),
    ] {
        let error = builder.url("etcd://127.0.0.1").connect().await;
        let error = error.unwrap_err();
        assert!(matches!(error, LockError::Config { .. }), "{error:?}");
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[tokio::test]
async fn without_a_majority_it_is_said_in_time() {
    let servers = EtcdCluster::three().await;
    let leader = servers.leader().await;
    servers.kill_member((leader + 1) % 3);
    servers.kill_member((leader + 2) % 3);
    let error = refused(LockClient::builder().url(servers.url(""))).await;
    assert!(matches!(error, LockError::Unavailable { .. }), "{error:?}");
    let said = error.to_string();
    assert!(
        said.contains("majority") || said.contains("leader"),
        "{said}"
    );
}

#[tokio::test]
async fn keys_of_others_are_a_conflict_and_stay_as_they_are() {
    let servers = EtcdCluster::one().await;
    let client = client(&servers.url("")).await;
    let gateway = servers.gateway().await;
    let theirs = [
        ("t0/lock/data", "somebody's"),
        ("t0/lock/child/theirs", "x"),
    ];
    for (key, value) in theirs {
        gateway.put(key, value).await.unwrap();
    }
    for key in ["data", "child"] {
        for error in [
            client.lock(key).try_acquire().await.map(drop).unwrap_err(),
            client.lock(key).acquire().await.map(drop).unwrap_err(),
            client
                .rw_lock(key)
                .read()
                .acquire()
                .await
                .map(drop)
                .unwrap_err(),
        ] {
            assert!(matches!(error, LockError::KeyConflict { .. }), "{error:?}");
        }
        assert!(client.force_release(key).await.is_err());
    }
    let mut found = servers.locks().await;
    found.sort();
    let mut expected = theirs.map(|(key, value)| (key.to_owned(), value.to_owned()));
    expected.sort();
    assert_eq!(found, expected);
}

/// The servers make keys, and the answer is lost. Before the store asks again, another program
/// writes beside them.
#[tokio::test]
async fn what_was_made_is_undone_if_a_key_of_others_came_before_the_lost_answer_was_asked_for() {
    let servers = EtcdCluster::one().await;
    let gateway = servers.gateway().await;
    let address = SocketAddr::from(([127, 0, 0, 1], servers.ports()[0]));
    let proxy = Proxy::start_unread(address).await;
    let client = client(&servers.url_at(&[proxy.addr().port()], "?session=60s")).await;
    // It has a lease then.
    client.lock("first").run(async {}).await.unwrap();
    let mut expected = Vec::new();
    for (key, request) in [
        ("one", client.lock("one").try_acquire()),
        ("waits", client.lock("waits").fair().try_acquire()),
        ("part", client.semaphore("part", 2).permit().try_acquire()),
        ("b", client.multi_lock(["a", "b"]).try_acquire()),
    ] {
        proxy.drop_replies(true);
        let request = tokio::spawn(request);
        eventually("it is made", async || {
            servers.locks().await.len() > expected.len()
        })
        .await;
        let theirs = (format!("t0/lock/{key}/theirs"), "x".to_owned());
        gateway.put(&theirs.0, &theirs.1).await.unwrap();
        expected.push(theirs);
        expected.sort();
        proxy.drop_replies(false);
        proxy.cut();
        let error = request.await.unwrap().map(drop).unwrap_err();
        assert!(matches!(error, LockError::KeyConflict { .. }), "{error:?}");
        let mut found = servers.locks().await;
        found.sort();
        assert_eq!(found, expected, "{key}");
    }
}

#[tokio::test]
async fn a_base_of_another_program_is_a_conflict_by_its_name_and_stays_as_it_is() {
    let servers = EtcdCluster::one().await;
    let gateway = servers.gateway().await;
    let base = format!("{}/lock/%/base", servers.prefix());
    gateway.put(&base, "somebody's").await.unwrap();
    let client = client(&servers.url("")).await;
    let semaphore = client.semaphore("part", 2);
    for request in [
        client.lock("k").fenced(),
        client.multi_lock(["k", "l"]).fenced(),
        semaphore.permit().fenced(),
    ] {
        let error = request.acquire().await.map(drop).unwrap_err();
        assert!(matches!(error, LockError::KeyConflict { .. }), "{error:?}");
        assert!(error.to_string().contains(&base), "{error}");
        assert!(error.to_string().contains("do not delete it"), "{error}");
    }
    eventually("what was asked for is undone", async || {
        servers.locks().await.is_empty()
    })
    .await;
    let found = gateway.below(&base).await.unwrap();
    assert_eq!(found, [(base, "somebody's".to_owned())]);
}

#[tokio::test]
async fn a_hundred_keys_are_taken_at_once_and_more_than_a_transaction_has_are_refused() {
    let servers = EtcdCluster::one().await;
    let client = client(&servers.url("")).await;
    let keys = |count: usize| (0..count).map(|key| format!("k{key}"));
    for count in [63, 64, 127] {
        let guard = client.multi_lock(keys(count)).acquire().await.unwrap();
        assert_eq!(servers.locks().await.len(), count);
        guard.release().await.unwrap();
        assert_eq!(servers.locks().await.len(), 0);
    }
    // The same key twice is one.
    let twice = keys(127).chain(keys(1));
    drop(client.multi_lock(twice).acquire().await.unwrap());
    let error = client.multi_lock(keys(128)).acquire().await.map(drop);
    let error = error.unwrap_err();
    assert!(matches!(error, LockError::Config { .. }), "{error:?}");
    assert!(
        error.to_string().contains("lock fewer keys at once"),
        "{error}"
    );
    eventually("nothing is left", async || servers.locks().await.is_empty()).await;
    assert_eq!(servers.locks().await.len(), 0);
}

#[tokio::test]
async fn health_tells_of_a_cluster_of_one() {
    let servers = EtcdCluster::one().await;
    let client = client(&servers.url("")).await;
    let health = client.health().await.unwrap();
    let [server] = &health.servers[..] else {
        panic!("{health:?}")
    };
    assert!(server.version.starts_with("3."), "{server:?}");
    let findings: Vec<String> = server.findings.iter().map(ToString::to_string).collect();
    let of_version = usize::from(revokes_early(&server.version));
    assert!(
        findings.len() == 1 + of_version && findings[of_version].contains("cluster of one"),
        "{findings:?}"
    );
    let three = EtcdCluster::three().await;
    let client = crate::client(&three.url("")).await;
    for server in client.health().await.unwrap().servers {
        let of_version = usize::from(revokes_early(&server.version));
        assert_eq!(server.findings.len(), of_version, "{server:?}");
        assert_eq!(server.replicas, Some(2));
    }
}

fn revokes_early(version: &str) -> bool {
    let parts: Vec<u32> = version.split('.').map_while(|it| it.parse().ok()).collect();
    parts < vec![3, 4, 31] || parts >= vec![3, 5] && parts < vec![3, 5, 13]
}

#[tokio::test]
async fn health_tells_of_members_whose_leader_may_revoke_leases_early() {
    let servers = EtcdCluster::three().await;
    let client = client(&servers.url("")).await;
    let health = client.health().await.unwrap();
    assert_eq!(health.servers.len(), 3);
    for server in health.servers {
        let mut findings = server.findings.iter().map(ToString::to_string);
        let told = findings.find(|finding| finding.contains("15247"));
        let is_told = told.is_some_and(|told| told.contains("3.5.13") && told.contains("fencing"));
        assert!(!server.version.is_empty(), "{server:?}");
        assert_eq!(is_told, revokes_early(&server.version), "{server:?}");
    }
}

struct Authority {
    certificate: rcgen::Certificate,
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
}

fn authority() -> Authority {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = parameters.self_signed(&key).unwrap();
    let issuer = rcgen::Issuer::new(parameters, key);
    Authority {
        certificate,
        issuer,
    }
}

/// A certificate of this authority, and its key. One that `is_over` was valid in the year 2001.
fn signed(by: &Authority, is_over: bool) -> (String, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let mut parameters = rcgen::CertificateParams::new(names).unwrap();
    if is_over {
        parameters.not_before = rcgen::date_time_ymd(2001, 1, 1);
        parameters.not_after = rcgen::date_time_ymd(2001, 12, 31);
    }
    let certificate = parameters.signed_by(&key, &by.issuer).unwrap();
    (certificate.pem(), key.serialize_pem())
}

async fn over_tls(authority: &Authority, is_over: bool) -> (EtcdCluster, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = signed(authority, is_over);
    let file = |name: &str, pem: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, pem).unwrap();
        path.display().to_string()
    };
    let arguments = vec![
        "--cert-file".to_owned(),
        file("cert.pem", &certificate),
        "--key-file".to_owned(),
        file("key.pem", &key),
        "--trusted-ca-file".to_owned(),
        file("ca.pem", &authority.certificate.pem()),
        "--client-cert-auth".to_owned(),
    ];
    let options = EtcdOptions {
        arguments,
        has_tls: true,
        ..EtcdOptions::default()
    };
    (EtcdCluster::of(1, options).await, folder)
}

#[tokio::test]
async fn tls_asks_for_certificates_of_both() {
    let authority = authority();
    let (servers, _folder) = over_tls(&authority, false).await;
    let ca = || Tls::new().ca_pem(authority.certificate.pem());
    let (certificate, key) = signed(&authority, false);
    let url = servers.url("?tls=on");
    let builder = || LockClient::builder().url(&url);
    let client = builder()
        .tls(ca().identity_pem(certificate.clone(), key.clone()))
        // It listens, and may have no leader yet.
        .connect_timeout(Duration::from_secs(20))
        .connect()
        .await
        .unwrap();
    client.lock("k").run(async {}).await.unwrap();
    assert_eq!(client.health().await.unwrap().servers.len(), 1);
    // Without a certificate of its own, by another authority, and without TLS.
    let other = self::authority();
    for builder in [
        builder().tls(ca()),
        builder().tls(
            Tls::new()
                .ca_pem(other.certificate.pem())
                .identity_pem(certificate, key),
        ),
        LockClient::builder().url(servers.url("")),
    ] {
        let error = refused(builder).await;
        assert!(matches!(error, LockError::Unavailable { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_certificate_that_is_over_is_told_within_the_time_limit() {
    let authority = authority();
    let (servers, _folder) = over_tls(&authority, true).await;
    let (certificate, key) = signed(&authority, false);
    let tls = Tls::new().ca_pem(authority.certificate.pem());
    let tls = tls.identity_pem(certificate, key);
    let builder = LockClient::builder().url(servers.url("?tls=on"));
    expect_an_expired_certificate(builder.tls(tls)).await;
}
