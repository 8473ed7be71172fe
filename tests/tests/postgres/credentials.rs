//! User and password outside the URL, and those that change while a client runs.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use lock_runtime::{Credentials, LockClient, LockClientBuilder, LockError};
use lock_testkit::{PostgresServer, eventually};

/// A server that asks `app` for this password.
async fn server(password: &str) -> PostgresServer {
    let server = PostgresServer::start().await;
    has_password(&server, password).await;
    server.let_in("host all app all scram-sha-256").await;
    eventually("it asks for a password", async || {
        let refused = tokio_postgres::connect(&server.app_url(), tokio_postgres::NoTls).await;
        refused.is_err()
    })
    .await;
    server
}

async fn has_password(server: &PostgresServer, password: &str) {
    let set = format!("ALTER ROLE app PASSWORD '{password}'");
    server.run(&set).await;
}

/// Without a user.
fn builder(server: &PostgresServer) -> LockClientBuilder {
    let url = server.app_url().replace("app@", "");
    crate::builder(&url)
}

fn config_error(builder: LockClientBuilder) -> String {
    let refused = builder.connect_lazy().unwrap_err();
    assert!(matches!(refused, LockError::Config { .. }), "{refused:?}");
    refused.to_string()
}

fn given(password: String) -> std::future::Ready<Result<Credentials, io::Error>> {
    std::future::ready(Ok(Credentials::new("app", password)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn user_and_password_may_stand_beside_the_url_and_only_once() {
    let server = server("canary").await;
    let client = builder(&server).username("app").password("canary");
    let client = client.connect().await.unwrap();
    client.lock("k").run(async {}).await.unwrap();
    let wrong = builder(&server).username("app").password("canary-x");
    let said = format!("{:?}", wrong.connect().await.unwrap_err());
    assert!(
        said.contains("Denied") && !said.contains("canary"),
        "{said}"
    );
    let said = config_error(builder(&server));
    assert!(said.contains("`username`"), "{said}");
    let with_user = || crate::builder(&server.app_url());
    let said = config_error(with_user().username("app"));
    assert!(said.contains("given by the builder and in"), "{said}");
    let provided = with_user().credentials(|| given(String::new()));
    assert!(config_error(provided).contains("`credentials` provides"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_that_is_rotated_under_a_holder_loses_nothing() {
    let server = server("one").await;
    let password = Arc::new(Mutex::new("one".to_owned()));
    let current = Arc::clone(&password);
    let client = builder(&server).credentials(move || given(current.lock().unwrap().clone()));
    let client = client
        .lease(Duration::from_secs(3))
        .connect()
        .await
        .unwrap();
    let guard = client.lock("k").acquire().await.unwrap();
    has_password(&server, "two").await;
    *password.lock().unwrap() = "two".to_owned();
    server.end_connections().await;
    // More than one lease passes.
    let ends = "SELECT (date_part('epoch', ends) * 1000)::bigint FROM lock_store.hold
        WHERE name = 'lock:k'";
    let before = server.number(ends).await;
    eventually("the hold is renewed several times", async || {
        server.number(ends).await > before + 4000
    })
    .await;
    assert!(guard.is_held());
    guard.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_are_replaced_before_their_credentials_end() {
    let server = server("one").await;
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let client = builder(&server).credentials(move || {
        counted.fetch_add(1, Ordering::SeqCst);
        let credentials = Credentials::new("app", "one").valid_for(Duration::from_secs(1));
        std::future::ready(Ok::<_, io::Error>(credentials))
    });
    let client = client
        .lease(Duration::from_secs(1))
        .connect()
        .await
        .unwrap();
    let guard = client.lock("k").acquire().await.unwrap();
    eventually("new ones are made", async || {
        asked.load(Ordering::SeqCst) >= 5
    })
    .await;
    assert!(guard.is_held());
    guard.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_answer_of_a_slow_provider_is_kept_for_the_next_attempt() {
    let server = server("one").await;
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let at_first = Arc::new(OnceLock::new());
    let until_answered = Arc::clone(&at_first);
    let url = server.app_url().replace("app@", "");
    let slow = LockClient::builder().url(format!("{url}?listen=off"));
    let slow = slow
        .unavailable_after(Duration::from_secs(30))
        .credentials(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            let (counted, at_first) = (Arc::clone(&counted), Arc::clone(&until_answered));
            async move {
                tokio::time::sleep(Duration::from_millis(1500)).await;
                at_first.get_or_init(|| counted.load(Ordering::SeqCst));
                Ok::<_, io::Error>(Credentials::new("app", "one"))
            }
        });
    let client = slow.clone().connect_lazy().unwrap();
    let lock = client.lock("k").wait(Duration::from_secs(20));
    lock.run(async {}).await.unwrap();
    let text = slow.connect().await;
    let times = at_first.get().copied();
    assert_eq!(times, Some(1), "it is asked once for the first connection");
    let said = text.unwrap_err().to_string();
    assert!(said.contains("credentials provider"), "{said}");
    assert!(said.contains("connect timeout of 1s"), "{said}");
}
