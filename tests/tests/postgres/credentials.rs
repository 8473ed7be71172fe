//! User and password outside the URL, and those that change while a client runs.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use lock_runtime::{Credentials, Guard, LockClient, LockClientBuilder, LockError};
use lock_testkit::{PostgresServer, eventually};
use tokio::task::{JoinHandle, JoinSet};

/// Time for a reconnect on a machine that is busy.
const LEASE: Duration = Duration::from_secs(15);

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
    let client = client.lease(LEASE).connect().await.unwrap();
    let guard = client.lock("k").acquire().await.unwrap();
    has_password(&server, "two").await;
    *password.lock().unwrap() = "two".to_owned();
    server.end_connections().await;
    until_renewed(&server, &guard).await;
    guard.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_are_replaced_before_their_credentials_end() {
    let server = server("one").await;
    let (builder, asked) = short_lived(builder(&server));
    let client = builder.lease(LEASE).connect().await.unwrap();
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

/// Who holds the lock, and who waits for it, with one provider.
async fn holder_and_waiter(
    server: &PostgresServer,
    with_provider: LockClientBuilder,
) -> (Guard, JoinHandle<Result<Guard, LockError>>) {
    let client = with_provider.lease(LEASE);
    let (one, other) = (client.clone().connect().await, client.connect().await);
    let guard = one.unwrap().lock("k").acquire().await.unwrap();
    let other = other.unwrap();
    let waits = other.lock("k").wait(Duration::from_secs(60));
    let waiter = tokio::spawn(async move { waits.acquire().await });
    let place = "SELECT count(*) FROM lock_store.place";
    eventually("it waits", async || server.number(place).await == 1).await;
    (guard, waiter)
}

/// Several times.
async fn until_renewed(server: &PostgresServer, guard: &Guard) {
    let ends = "SELECT (date_part('epoch', ends) * 1000)::bigint FROM lock_store.hold
        WHERE name = 'lock:k'";
    let before = server.number(ends).await;
    eventually("the hold is renewed several times", async || {
        assert!(guard.is_held());
        server.number(ends).await > before + 4000
    })
    .await;
}

/// The holder renews its lease; then the lock is handed over.
async fn go_on(
    server: &PostgresServer,
    guard: Guard,
    waiter: JoinHandle<Result<Guard, LockError>>,
) {
    until_renewed(server, &guard).await;
    guard.release().await.unwrap();
    waiter.await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_goes_on_when_the_server_knows_a_new_password_before_the_provider() {
    let server = server("one").await;
    let password = Arc::new(Mutex::new("one".to_owned()));
    let asked = Arc::new(AtomicUsize::new(0));
    let (current, counted) = (Arc::clone(&password), Arc::clone(&asked));
    let patient = builder(&server).unavailable_after(Duration::from_secs(60));
    let with_provider = patient.credentials(move || {
        counted.fetch_add(1, Ordering::SeqCst);
        given(current.lock().unwrap().clone())
    });
    let (guard, waiter) = holder_and_waiter(&server, with_provider).await;
    has_password(&server, "two").await;
    let before = asked.load(Ordering::SeqCst);
    server.end_connections().await;
    // Each of them is refused.
    eventually("both have tried", async || {
        asked.load(Ordering::SeqCst) >= before + 4
    })
    .await;
    *password.lock().unwrap() = "two".to_owned();
    go_on(&server, guard, waiter).await;
}

/// As two users that are rotated in turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_that_is_replaced_by_another_loses_nothing() {
    let server = server("one").await;
    server
        .run(
            "CREATE ROLE next LOGIN PASSWORD 'one';
             GRANT USAGE ON SCHEMA lock_store TO next;
             GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA lock_store TO next",
        )
        .await;
    server.let_in("host all app,next all scram-sha-256").await;
    let user = Arc::new(Mutex::new("app"));
    let current = Arc::clone(&user);
    let (guard, waiter) = holder_and_waiter(
        &server,
        builder(&server).credentials(move || {
            let user = *current.lock().unwrap();
            std::future::ready(Ok::<_, io::Error>(Credentials::new(user, "one")))
        }),
    )
    .await;
    *user.lock().unwrap() = "next";
    server.run("ALTER ROLE app NOLOGIN").await;
    server.end_connections().await;
    go_on(&server, guard, waiter).await;
}

/// Counts how often it was asked for credentials that end after a second.
pub(crate) fn short_lived(builder: LockClientBuilder) -> (LockClientBuilder, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let builder = builder.credentials(move || {
        counted.fetch_add(1, Ordering::SeqCst);
        let credentials = Credentials::new("app", "one").valid_for(Duration::from_secs(1));
        std::future::ready(Ok::<_, io::Error>(credentials))
    });
    (builder, asked)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_session_is_used_until_there_is_another() {
    let server = server("one").await;
    let (builder, asked) = short_lived(builder(&server));
    let client = builder.connect().await.unwrap();
    server.run("ALTER ROLE app NOLOGIN").await;
    let before = asked.load(Ordering::SeqCst);
    eventually("others are refused", async || {
        client.lock("k").run(async {}).await.unwrap();
        asked.load(Ordering::SeqCst) >= before + 3
    })
    .await;
    let session = "SELECT min(pid)::bigint FROM pg_stat_activity
        WHERE usename = 'app' AND query NOT LIKE 'LISTEN%'";
    let old = server.number(session).await;
    server.run("ALTER ROLE app LOGIN").await;
    eventually("another one takes its place", async || {
        client.lock("k").run(async {}).await.unwrap();
        server.number(session).await != old
    })
    .await;
    let health = client.health().await.unwrap();
    assert_eq!(health.servers[0].reconnects, 0, "{health:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_session_of_an_idle_client_is_replaced_as_well() {
    let server = server("one").await;
    let url = format!("{}?listen=off", server.app_url().replace("app@", ""));
    let (builder, asked) = short_lived(crate::builder(&url));
    let _client = builder.connect().await.unwrap();
    eventually("new ones are made", async || {
        asked.load(Ordering::SeqCst) >= 4
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_never_idle_is_replaced_as_well() {
    let server = server("one").await;
    let url = format!(
        "{}?connections=1&listen=off",
        server.app_url().replace("app@", "")
    );
    let (builder, asked) = short_lived(crate::builder(&url));
    let client = builder.connect().await.unwrap();
    let mut tasks = JoinSet::new();
    for task in 0..16 {
        let client = client.clone();
        tasks.spawn(async move {
            loop {
                client.lock(format!("{task}")).run(async {}).await.unwrap();
            }
        });
    }
    eventually("new ones are made", async || {
        asked.load(Ordering::SeqCst) >= 4
    })
    .await;
    let died = tasks.try_join_next();
    assert!(died.is_none(), "{died:?}");
}

/// The sessions are gone, and it takes longer than an attempt to connect.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_is_slow_when_sessions_are_cut_costs_no_lock() {
    let server = server("one").await;
    let is_slow = Arc::new(AtomicBool::new(false));
    let slow = Arc::clone(&is_slow);
    let patient = builder(&server).unavailable_after(Duration::from_secs(60));
    let with_provider = patient.connect_timeout(Duration::from_secs(3));
    let (guard, waiter) = holder_and_waiter(
        &server,
        with_provider.credentials(move || {
            let pause = Duration::from_secs(4) * u32::from(slow.load(Ordering::SeqCst));
            async move {
                tokio::time::sleep(pause).await;
                Ok::<_, io::Error>(Credentials::new("app", "one"))
            }
        }),
    )
    .await;
    is_slow.store(true, Ordering::SeqCst);
    server.end_connections().await;
    go_on(&server, guard, waiter).await;
}
