//! Options of the URL: used, or refused.

use std::time::{Duration, Instant};

use lock_runtime::{LockClient, LockError};
use lock_testkit::PostgresServer;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_connect_timeout_of_the_url_counts() {
    // The kernel accepts, and nobody answers.
    let quiet = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = quiet.local_addr().unwrap();
    let url = |seconds: u32| format!("postgres://app@{address}/d?connect_timeout={seconds}");
    for seconds in [1, 3] {
        let began = Instant::now();
        let refused = LockClient::builder().url(url(seconds)).connect().await;
        let is_unavailable = matches!(refused, Err(LockError::Unavailable { .. }));
        assert!(is_unavailable, "{refused:?}");
        let took = began.elapsed();
        assert!(took >= Duration::from_secs(seconds.into()), "{took:?}");
    }
    let builder = LockClient::builder().url(url(1));
    let refused = builder
        .connect_timeout(Duration::from_secs(2))
        .connect_lazy();
    let said = refused.unwrap_err().to_string();
    assert!(
        said.contains("`connect_timeout` is given by the builder and"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_connect_timeout_of_the_url_counts_for_who_listens() {
    let server = PostgresServer::start().await;
    for seconds in [2, 4] {
        let quiet = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = quiet.local_addr().unwrap();
        let url = format!(
            "{}?listen={address}&connect_timeout={seconds}",
            server.app_url()
        );
        let client = LockClient::builder().url(url).connect_lazy().unwrap();
        let (mut session, _) = quiet.accept().await.unwrap();
        let (began, mut bytes) = (Instant::now(), Vec::new());
        // Until the client gives it up.
        let _ = session.read_to_end(&mut bytes).await;
        let took = began.elapsed();
        // The client began a moment before.
        let least = Duration::from_millis(seconds * 1000 - 500);
        assert!(took >= least && took < 2 * least, "{took:?}");
        drop(client);
    }
}

#[tokio::test]
async fn options_that_can_not_be_used_are_refused_with_the_way_here() {
    for (option, says) in [
        ("connect_timeout=0", "seconds"),
        ("connect_timeout=soon", "seconds"),
        ("sslrootcert=/ca.pem", "Tls::ca_file"),
        ("sslcert=/c.pem", "Tls::identity_files"),
        ("target_session_attrs=primary", "`read-write`"),
        ("target_session_attrs=standby", "read-write"),
        ("load_balance_hosts=random", "first host"),
        ("connections=1&connections=2", "gives `connections` twice"),
        ("sslmode=require&sslmode=disable", "gives `sslmode` twice"),
        ("user=bob", "gives `user` twice"),
        ("dbname=e", "gives `dbname` twice"),
        ("host=b", "gives `host` twice"),
        ("port=2", "gives `port` twice"),
        ("keepalives_idle=soon", "its `keepalives_idle`"),
        ("listen=::1", "`[::1]:5432`"),
        ("listen=db.example", "`host:port`"),
        ("hostaddr=127.0.0.1,127.0.0.2", "`hostaddr`"),
    ] {
        let url = format!("postgres://app@127.0.0.1:1/d?{option}");
        let refused = LockClient::builder().url(url).connect_lazy().unwrap_err();
        let is_config = matches!(refused, LockError::Config { .. });
        let said = refused.to_string();
        assert!(is_config && said.contains(says), "{option}: {said}");
    }
    // What a password with a `@` leaves is no host.
    for (url, says) in [
        ("postgres://app:p@canary@h/d", "%40"),
        ("postgres://app@h,/d", "host"),
        ("postgres://app@h:canary/d", "its `port`"),
        ("postgres://app:canary%@h/d", "`%25`"),
        ("postgres://canary%4:secret@h/d", "`%25`"),
        ("postgres://app:%zzcanary@g,h/d", "`%25`"),
        ("postgres://app@h/d?password=canary%x", "`%25`"),
    ] {
        let refused = LockClient::builder().url(url).connect_lazy();
        let said = format!("{}", refused.unwrap_err());
        assert!(said.contains(says) && !said.contains("canary"), "{said}");
    }
}
