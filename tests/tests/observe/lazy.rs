//! A client whose store is not there yet.

use std::time::Duration;

use lock_runtime::LockClient;
use lock_testkit::{Log, RedisServer, eventually};

use crate::Told;

#[tokio::test]
async fn a_missing_store_is_told_once_and_once_more_when_it_is_there() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone());
    // For the whole process, because the client's own thread logs.
    tracing::subscriber::set_global_default(subscriber.finish()).unwrap();
    let times = |text: &str| log.text().matches(text).count();
    let lazy = |server: &RedisServer, told: &Told| {
        let builder = LockClient::builder().url(server.url());
        builder.observer(told.clone()).connect_lazy().unwrap()
    };

    let (server, told) = (RedisServer::start().await, Told::default());
    let well = lazy(&server, &told);
    well.lock("k").run(async {}).await.unwrap();
    server.kill();
    told.eventually("client disconnected").await;
    assert_eq!(
        (times("can't be reached yet"), told.times("unreachable")),
        (0, 0)
    );
    well.shutdown(Duration::ZERO).await;

    let told = Told::default();
    let client = lazy(&server, &told);
    told.eventually("client unreachable Disconnected").await;
    assert!(!client.stats().connected);
    let warning =
        "WARN lock_runtime::client::first_connection: the lock store can't be reached yet";
    assert_eq!(times(warning), 1, "{}", log.text());
    // Several tries more.
    tokio::time::sleep(Duration::from_secs(5)).await;
    server.restart().await;
    eventually("it says that the store is there", async || {
        times("INFO lock_runtime::client::first_connection: the lock store can be reached now") == 1
    })
    .await;
    assert!(client.stats().connected);
    assert_eq!(times("can't be reached yet"), 1, "{}", log.text());
    assert_eq!(told.times("unreachable"), 1, "{told:?}");
    let told = told.about("client");
    let first: Vec<_> = told.iter().take(2).map(String::as_str).collect();
    assert_eq!(first, ["started", "unreachable Disconnected"]);
}
