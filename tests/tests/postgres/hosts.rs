//! Several hosts in a URL, and several addresses of a host.

use std::time::Duration;

use lock_runtime::{LockClient, LockError, Tls};
use lock_testkit::{PostgresServer, eventually, postgres_has_standbys};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::credentials::short_lived;
use crate::{builder, client};

/// What accepts there and says nothing, as the kernel of a server that stands still.
async fn silent(address: &str) -> u16 {
    let listener = TcpListener::bind(address).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut all = Vec::new();
        while let Ok(one) = listener.accept().await {
            all.push(one);
        }
    });
    port
}

fn url(ports: [u16; 2]) -> String {
    let [one, two] = ports;
    format!("postgres://app@127.0.0.1:{one},127.0.0.1:{two}/postgres")
}

/// With the time limits that users have.
async fn impatient(url: &str) -> LockClient {
    let builder = LockClient::builder().url(url);
    let client = builder.clone().connect().await;
    // A busy machine may take longer than a second for a connection.
    match client {
        Ok(client) => client,
        Err(error) => builder
            .connect()
            .await
            .unwrap_or_else(|_| panic!("{error}")),
    }
}

/// Also a request that ends during an attempt to connect.
async fn it_says_replaced(client: &LockClient) {
    for wait in [1, 3].map(Duration::from_secs) {
        eventually("it says so", async || {
            let lock = client.lock("k").wait(wait);
            let said = lock.acquire().await.map_err(|error| error.to_string());
            said.unwrap_err().contains("was replaced")
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_host_keeps_no_other_from_being_tried() {
    let server = PostgresServer::start().await;
    let quiet = silent("127.0.0.1:0").await;
    let first = url([quiet, server.port()]);
    let listens = format!(
        "{}?listen=127.0.0.1:{quiet},127.0.0.1:{}",
        server.app_url(),
        server.port()
    );
    for url in [first, listens] {
        let client = impatient(&url).await;
        client.lock("k").run(async {}).await.unwrap();
        let health = client.health().await.unwrap();
        assert!(health.servers[0].findings.is_empty(), "{url}: {health:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_host_keeps_no_other_from_being_tried_over_tls() {
    let names = vec!["127.0.0.1".to_owned()];
    let certificate = rcgen::generate_simple_self_signed(names).unwrap();
    let (pem, key) = (certificate.cert.pem(), certificate.signing_key);
    let server = PostgresServer::start().await;
    server.enable_tls(&pem, &key.serialize_pem()).await;
    let url = url([silent("127.0.0.1:0").await, server.port()]);
    let client = builder(&url).tls(Tls::new().ca_pem(pem)).connect().await;
    client.unwrap().lock("k").run(async {}).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_primary_is_left_for_the_standby_that_took_over_and_not_used_again() {
    if !postgres_has_standbys() {
        return;
    }
    let primary = PostgresServer::start().await;
    let standby = primary.standby(false).await;
    let url = url([primary.port(), standby.port()]);
    let url = format!("{url}?target_session_attrs=read-write");
    let old = impatient(&url).await;
    old.lock("before").run(async {}).await.unwrap();
    primary.pause();
    standby.promote().await;
    let new = impatient(&url).await;
    for client in [&old, &new] {
        let lock = client.lock("k").wait(Duration::from_secs(20));
        eventually("it uses the new primary", async || {
            lock.clone().run(async {}).await.is_ok()
        })
        .await;
    }
    let all = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'app'";
    assert!(standby.number(all).await >= 2);
    // The old one thinks that it is the primary, and is the first of the list.
    primary.resume();
    standby.pause();
    let lock = old.lock("k").wait(Duration::from_secs(3));
    let refused = lock.acquire().await;
    let is_unavailable = matches!(refused, Err(LockError::Unavailable { .. }));
    assert!(is_unavailable, "{refused:?}");
    it_says_replaced(&old).await;
    standby.resume();
    eventually("it goes on there", async || {
        old.lock("k").run(async {}).await.is_ok()
    })
    .await;
}

/// A host at which another server is from now and then on, as behind a name that changes.
struct Moving {
    port: u16,
    to: watch::Sender<u16>,
}

impl Moving {
    async fn to(first: u16) -> Self {
        Self::begin(first, true).await
    }

    /// Which leaves sessions where they are, if it does not cut them.
    async fn begin(first: u16, cuts: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (to, leads) = watch::channel(first);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut leads = leads.clone();
                tokio::spawn(async move {
                    let to = *leads.borrow_and_update();
                    let mut server = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                        _ = leads.changed(), if cuts => {}
                    }
                });
            }
        });
        Self { port, to }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_leads_back_to_a_primary_that_was_replaced_is_not_followed() {
    if !postgres_has_standbys() {
        return;
    }
    let primary = PostgresServer::start().await;
    let standby = primary.standby(false).await;
    let host = Moving::to(primary.port()).await;
    let url = format!("postgres://app@127.0.0.1:{}/postgres", host.port);
    let old = client(&url).await;
    old.lock("before").run(async {}).await.unwrap();
    standby.promote().await;
    host.to.send_replace(standby.port());
    eventually("it uses the new primary", async || {
        old.lock("k").run(async {}).await.is_ok()
    })
    .await;
    // The other one still takes writes.
    host.to.send_replace(primary.port());
    it_says_replaced(&old).await;
    host.to.send_replace(standby.port());
    eventually("it goes on there", async || {
        old.lock("k").run(async {}).await.is_ok()
    })
    .await;
}

/// A pooler does not tell a session that it leads to another server now.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_session_is_not_used_when_a_new_one_is_told_that_its_server_was_replaced() {
    if !postgres_has_standbys() {
        return;
    }
    let primary = PostgresServer::start().await;
    let standby = primary.standby(false).await;
    standby.promote().await;
    let host = Moving::begin(standby.port(), false).await;
    let url = format!("postgres://127.0.0.1:{}/postgres?listen=off", host.port);
    let (builder, _) = short_lived(builder(&url));
    let client = builder.connect().await.unwrap();
    client.lock("k").run(async {}).await.unwrap();
    host.to.send_replace(primary.port());
    eventually("its session is old", async || {
        client.lock("k").run(async {}).await.is_err()
    })
    .await;
    it_says_replaced(&client).await;
    host.to.send_replace(standby.port());
    eventually("it goes on there", async || {
        client.lock("k").run(async {}).await.is_ok()
    })
    .await;
}

/// The sessions that listen there.
const LISTENING: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE usename = 'app' AND query LIKE 'LISTEN%'";

/// The session that listens has nothing to send, and so never notices by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_listens_at_the_standby_that_took_over_from_a_frozen_primary() {
    if !postgres_has_standbys() {
        return;
    }
    let primary = PostgresServer::start().await;
    let standby = primary.standby(false).await;
    let client = impatient(&url([primary.port(), standby.port()])).await;
    eventually("it listens", async || primary.number(LISTENING).await == 1).await;
    primary.pause();
    standby.promote().await;
    eventually("it uses the new primary", async || {
        client.lock("k").run(async {}).await.is_ok()
    })
    .await;
    eventually("it listens there", async || {
        standby.number(LISTENING).await == 1
    })
    .await;
    primary.resume();
}

/// What the finding about a client that hears nothing says.
async fn deafness(client: &LockClient) -> Option<String> {
    let health = client.health().await.ok()?;
    let findings = &health.servers[0].findings;
    let mut findings = findings.iter().map(ToString::to_string);
    findings.find(|finding| finding.contains("`listen="))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_would_listen_at_a_primary_that_was_replaced_says_so() {
    if !postgres_has_standbys() {
        return;
    }
    let primary = PostgresServer::start().await;
    let standby = primary.standby(false).await;
    let (host, listens) = (
        Moving::to(primary.port()).await,
        Moving::to(primary.port()).await,
    );
    let url = format!(
        "postgres://app@127.0.0.1:{}/postgres?listen=127.0.0.1:{}",
        host.port, listens.port
    );
    let client = client(&url).await;
    eventually("it listens", async || primary.number(LISTENING).await == 1).await;
    standby.promote().await;
    host.to.send_replace(standby.port());
    eventually("it uses the new primary", async || {
        client.lock("k").run(async {}).await.is_ok()
    })
    .await;
    // The other one still takes writes.
    eventually("it says so, and what to do", async || {
        let said = deafness(&client).await;
        said.is_some_and(|said| {
            said.contains("was replaced")
                && said.contains("end a primary that was replaced")
                && !said.contains("pooler")
        })
    })
    .await;
    listens.to.send_replace(standby.port());
    eventually("it listens there", async || {
        standby.number(LISTENING).await == 1 && deafness(&client).await.is_none()
    })
    .await;
}

/// So clients do not split between them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_that_take_writes_the_first_in_the_list_is_used() {
    let (one, two) = (PostgresServer::start().await, PostgresServer::start().await);
    let url = url([one.port(), two.port()]);
    let first = client(&url).await;
    let held = first.lock("k").acquire().await.unwrap();
    for _ in 0..5 {
        let taken = client(&url).await.lock("k").try_acquire().await.unwrap();
        assert!(taken.is_none());
    }
    held.release().await.unwrap();
}
