//! A password in a URL appears nowhere.

use std::fmt::Write as _;
use std::time::Duration;

use lock_runtime::{LockClient, LockError, LockKey};
use lock_testkit::{Log, Proxy, RedisServer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const CANARY: &str = "canary-in-the-mine";
const MINER: &str = "miner-of-the-canary";

/// A server that knows no `HELLO` and repeats the arguments in its error. The real server cuts long
/// ones; another may repeat them word for word.
async fn repeat_arguments(word_for_word: bool) -> (Option<RedisServer>, String) {
    if !word_for_word {
        let server = RedisServer::builder().password(CANARY);
        let server = server.arg("--rename-command").arg("HELLO").arg("");
        let server = server.start().await;
        let addr = server.addr().to_string();
        return (Some(server), addr);
    }
    let answer = |asked: &[u8]| {
        let asked = String::from_utf8_lossy(asked).replace("\r\n", " ");
        format!("-ERR what is {asked}?\r\n").into_bytes()
    };
    (None, server_that_says(answer).await)
}

/// The address of a server with this answer to everything.
async fn server_that_says(answer: impl Fn(&[u8]) -> Vec<u8> + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut asked = [0; 4096];
            while let Ok(bytes @ 1..) = client.read(&mut asked).await {
                let _ = client.write_all(&answer(&asked[..bytes])).await;
            }
        }
    });
    addr.to_string()
}

#[tokio::test]
async fn a_password_appears_in_no_error_log_or_debug_output() {
    let log = Log::default();
    let writer = log.clone();
    // For the whole process, because the client's own thread logs, too.
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
    for word_for_word in [false, true] {
        let (_server, addr) = repeat_arguments(word_for_word).await;
        let port = addr.split(':').next_back().unwrap();
        let (user, long) = (format!("{MINER}:{CANARY}"), CANARY.repeat(12));
        for url in [
            format!("redis://{user}@{addr}/"),
            format!("redis://{MINER}:{long}@{addr}/"),
            format!("redis-cluster://{user}@{addr},localhost:{port}"),
            format!(
                "redis-sentinel://{user}@{addr}/m?sentinel_user={MINER}&sentinel_password={CANARY}"
            ),
            format!("redis-quorum://{user}@{addr},localhost:{port}?rejoin_after=0s"),
        ] {
            let builder = || LockClient::builder().url(&url);
            let error = builder().connect().await.unwrap_err();
            write!(said, "{error} {error:?}").unwrap();
            let lazy = builder().connect_lazy().unwrap();
            let error = lazy.lock("k").try_acquire().await.unwrap_err();
            write!(said, "{error} {error:?} {lazy:?}").unwrap();
            write!(said, "{:?}", lazy.health().await).unwrap();
        }
    }
    drop(guard);
    // A server may ask for the password before it looks at the command, as Valkey does. Then the
    // error names the user, as any of a refused one.
    let named = format!("(user `{MINER}`)");
    let said = said.replace(&named, "");
    let log = log.text().replace(&named, "");
    assert!(log.contains("lock store"), "the log was heard: {log}");
    assert!(!said.contains(CANARY), "{said}");
    assert!(!log.contains(CANARY), "{log}");
    assert!(!said.contains(MINER), "{said}");
    assert!(!log.contains(MINER), "{log}");
}

#[tokio::test]
async fn what_a_server_says_is_one_short_line_in_errors() {
    let text = format!(
        "ERR down\r\nERROR forged: \u{1b}[31m{}",
        "x".repeat(2_000_000)
    );
    let answer = format!("!{}\r\n{text}\r\n", text.len()).into_bytes();
    let addr = server_that_says(move |_| answer.clone()).await;
    let builder = LockClient::builder().url(format!("redis://{addr}/"));
    let builder = builder.connect_timeout(Duration::from_secs(10));
    let error = builder.connect().await.unwrap_err();
    for said in [error.to_string(), format!("{error:?}")] {
        assert!(said.contains("forged"), "{said}");
        assert!(said.len() < 500, "{} bytes: {said:.600}", said.len());
        assert!(!said.contains(char::is_control), "{said:?}");
    }
}

#[tokio::test]
async fn an_error_does_not_keep_a_key_of_megabytes() {
    let client = LockClient::in_memory();
    let key = LockKey::from("x".repeat(50_000_000));
    match client.lock(key).acquire().await {
        Err(LockError::InvalidKey { key, .. }) => assert!(key.as_str().len() < 100),
        other => panic!("{other:?}"),
    }
}
