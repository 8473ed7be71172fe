//! A password in a URL appears nowhere.

use std::fmt::Write as _;
use std::time::Duration;

use lock_runtime::LockClient;
use lock_testkit::{Log, Proxy, RedisServer};

const CANARY: &str = "canary-in-the-mine";

#[tokio::test]
async fn a_password_appears_in_no_error_log_or_debug_output() {
    let log = Log::default();
    let writer = log.clone();
    // For the whole process: the client's own thread logs, too.
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .init();
    let mut said = String::new();

    let server = RedisServer::builder().password(CANARY).start().await;
    let proxy = Proxy::start(server.addr()).await;
    let url = format!("redis://:{CANARY}@{}/", proxy.addr());
    let builder = LockClient::builder().url(&url);
    write!(said, "{builder:?}").unwrap();
    let client = builder.connect().await.unwrap();
    let guard = client.lock("k").acquire().await.unwrap();
    write!(said, "{client:?} {guard:?} {:?}", client.lock("k")).unwrap();
    proxy.refuse(true);
    proxy.cut();
    let error = client
        .lock("other")
        .wait(Duration::from_millis(100))
        .acquire()
        .await
        .unwrap_err();
    write!(said, "{error} {error:?}").unwrap();
    for wrong in [
        format!("redis://:{CANARY}-wrong@{}/", server.addr()),
        format!("redis://:{CANARY}@{}/nonsense", server.addr()),
        format!("redis://:{CANARY}@127.0.0.1:1/"),
        format!("redis://user:{CANARY}@no such host/"),
        format!("rediss://:{CANARY}@127.0.0.1:1/"),
        CANARY.to_owned(),
    ] {
        let error = LockClient::builder()
            .url(&wrong)
            .connect()
            .await
            .unwrap_err();
        write!(
            said,
            "{error} {error:?} {:?}",
            std::error::Error::source(&error)
        )
        .unwrap();
    }
    drop(guard);
    let log = log.text();
    assert!(log.contains("lock store"), "the log was heard: {log}");
    assert!(!said.contains(CANARY), "{said}");
    assert!(!log.contains(CANARY), "{log}");
}
