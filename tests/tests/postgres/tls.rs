//! TLS: every session, and only to servers that are trusted.

use std::time::Duration;

use lock_runtime::{LockClient, LockError, StoreErrorKind, Tls};
use lock_testkit::{PostgresServer, eventually};

use crate::builder;

/// A server with TLS, and its certificate.
pub(crate) async fn server() -> (PostgresServer, String) {
    let names = vec!["127.0.0.1".to_owned()];
    let certificate = rcgen::generate_simple_self_signed(names).unwrap();
    let (pem, key) = (certificate.cert.pem(), certificate.signing_key);
    let server = PostgresServer::start().await;
    server.enable_tls(&pem, &key.serialize_pem()).await;
    (server, pem)
}

async fn refused(url: String, tls: Option<Tls>) -> LockError {
    let builder = LockClient::builder().url(url);
    let builder = match tls {
        Some(tls) => builder.tls(tls),
        None => builder,
    };
    builder.connect().await.unwrap_err()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_sessions_speak_tls() {
    let (server, pem) = server().await;
    for sslmode in ["", "?sslmode=require", "?sslmode=verify-full"] {
        let builder = builder(&format!("{}{sslmode}", server.app_url()));
        let client = builder.tls(Tls::new().ca_pem(&*pem)).connect().await;
        let client = client.unwrap();
        let held = client.lock("k").acquire().await.unwrap();
        let over_tls = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
            WHERE usename = 'app' AND ssl";
        eventually("one works, and one listens", async || {
            server.number(over_tls).await >= 2
        })
        .await;
        let plain = over_tls.replace("AND ssl", "AND NOT ssl");
        assert_eq!(server.number(&plain).await, 0);
        held.release().await.unwrap();
        client.shutdown(Duration::ZERO).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_not_trusted_is_refused_and_told_what_to_do() {
    let ((server, pem), (_, of_another)) = tokio::join!(server(), server());
    let url = format!("{}?sslmode=require", server.app_url());
    for (url, ca) in [
        (url.clone(), of_another),
        // A name that the certificate does not have.
        (url.replace("127.0.0.1", "localhost"), pem),
    ] {
        let error = refused(url, Some(Tls::new().ca_pem(ca))).await;
        assert!(error.to_string().contains("Tls::ca_file"), "{error}");
        let LockError::Unavailable { source, .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!(source.kind(), StoreErrorKind::Disconnected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_tls_is_told_and_so_is_a_contradiction() {
    let plain = PostgresServer::start().await;
    let (_, ca) = server().await;
    let url = |sslmode: &str| format!("{}?sslmode={sslmode}", plain.app_url());
    let tls = || Some(Tls::new().ca_pem(&*ca));
    let error = refused(url("require"), tls()).await.to_string();
    assert!(error.contains("does not support TLS"), "{error}");
    assert!(error.contains("`sslmode=disable`"), "{error}");
    let error = refused(url("disable"), tls()).await.to_string();
    assert!(error.starts_with("lock configuration"), "{error}");
    assert!(error.contains("leave one"), "{error}");
    let error = refused(url("perhaps"), None).await.to_string();
    assert!(error.contains("verify-full"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_takes_tls_only_or_none_says_which_sslmode() {
    let (server, ca) = server().await;
    let url = |sslmode: &str| format!("{}?sslmode={sslmode}", server.app_url());
    let tls = || Some(Tls::new().ca_pem(&*ca));
    for (lines, wrong, tls, right) in [
        (
            "hostssl all app all trust",
            "disable",
            None,
            "`sslmode=require`",
        ),
        (
            "hostnossl all app all trust",
            "require",
            tls(),
            "`sslmode=disable`",
        ),
    ] {
        server.let_in(lines).await;
        eventually("the server says so", async || {
            let refused = LockClient::builder().url(url(wrong));
            let refused = match tls.clone() {
                Some(tls) => refused.tls(tls),
                None => refused,
            };
            let refused = refused.connect().await;
            refused.is_err_and(|error| error.to_string().contains(right))
        })
        .await;
    }
}
