//! One side expects TLS and the other does not. Neither side says so, and the client reports it
//! each time.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lock_runtime::{LockClient, LockError};
use lock_testkit::{Port, RedisServer, server_speaks_tls};

use crate::tls::Certificate;

const AT_ONCE: usize = 9;
const ROUNDS: usize = 5;
/// Other tests run meanwhile.
const ROUNDS_UNDER_LOAD: usize = 1;

/// A server, with its plain address and its TLS address.
async fn server() -> (Certificate, RedisServer, [String; 2]) {
    let (certificate, port) = (Certificate::new(), Port::free());
    let server = certificate.server(&port).start().await;
    let addresses = [server.addr().to_string(), format!("127.0.0.1:{port}")];
    (certificate, server, addresses)
}

fn text(error: &LockError) -> String {
    let source = error.source().map(ToString::to_string);
    format!("{error}: {}", source.unwrap_or_default())
}

/// Keeps all processors busy until it is dropped.
struct Load(Arc<AtomicBool>);

impl Load {
    fn on_all_processors() -> Self {
        let goes_on = Arc::new(AtomicBool::new(true));
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            let goes_on = Arc::clone(&goes_on);
            std::thread::spawn(move || {
                while goes_on.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Self(goes_on)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Makes this many tries, several at once: by `connect`, and by the single command of a client that
/// is still connecting.
async fn each_try_says(url: &str, address: &str, write: &str, rounds: usize) {
    for round in 0..rounds {
        let mut tries = tokio::task::JoinSet::new();
        for at in 0..AT_ONCE {
            let builder = LockClient::builder().url(url);
            tries.spawn(async move {
                match at % 3 {
                    0 => {
                        let client = builder.connect_lazy().unwrap();
                        client.lock("k").try_acquire().await.map(drop)
                    }
                    _ => builder.connect().await.map(drop),
                }
            });
        }
        while let Some(tried) = tries.join_next().await {
            let said = text(&tried.unwrap().unwrap_err());
            let is_told = said.contains(address) && said.contains(write);
            assert!(is_told, "round {round} of {url}: {said}");
        }
    }
}

#[tokio::test]
async fn a_server_without_tls_is_told_each_time() {
    if !server_speaks_tls() {
        return;
    }
    let (_certificate, _server, [plain, _]) = server().await;
    let write = "write `redis://` instead of `rediss://`";
    let url = format!("rediss://{plain}");
    each_try_says(&url, &plain, write, ROUNDS).await;
    let _load = Load::on_all_processors();
    each_try_says(&url, &plain, write, ROUNDS_UNDER_LOAD).await;
}

#[tokio::test]
async fn a_server_with_tls_is_told_each_time() {
    if !server_speaks_tls() {
        return;
    }
    let (_certificate, _server, [_, tls]) = server().await;
    let write = "write `rediss://` instead of `redis://`";
    let url = format!("redis://{tls}");
    each_try_says(&url, &tls, write, ROUNDS).await;
    let _load = Load::on_all_processors();
    each_try_says(&url, &tls, write, ROUNDS_UNDER_LOAD).await;
}

/// What a client says of a URL with a server that it can't talk to.
async fn said_of(url: &str) -> String {
    let builder = LockClient::builder().url(url).wait(Duration::from_secs(2));
    let client = builder
        .connect_timeout(Duration::from_millis(500))
        .connect_lazy()
        .unwrap();
    // As soon as the first attempt has failed.
    text(&client.lock("k").acquire().await.unwrap_err())
}

#[tokio::test]
async fn tls_on_one_side_only_is_reported() {
    if !server_speaks_tls() {
        return;
    }
    let (_certificate, _server, [plain, tls]) = server().await;
    for (kind, rest) in [
        ("", ""),
        ("-sentinel", "/mymaster"),
        ("-cluster", ""),
        ("-quorum", ",127.0.0.1:1?rejoin_after=0s"),
    ] {
        let said = said_of(&format!("redis{kind}://{tls}{rest}")).await;
        let write = format!("write `rediss{kind}://` instead of `redis{kind}://`");
        assert!(said.contains(&write), "{kind}: {said}");
        let said = said_of(&format!("rediss{kind}://{plain}{rest}")).await;
        let write = format!("write `redis{kind}://` instead of `rediss{kind}://`");
        assert!(said.contains(&write), "{kind}: {said}");
    }
}

#[tokio::test]
async fn a_client_that_was_connected_is_not_told_of_tls() {
    if !server_speaks_tls() {
        return;
    }
    let (_certificate, server, [plain, _]) = server().await;
    let proxy = lock_testkit::Proxy::start(server.addr()).await;
    let client = LockClient::builder().url(format!("redis://{}", proxy.addr()));
    let client = client.connect().await.unwrap();
    proxy.refuse(true);
    proxy.cut();
    let lock = client.lock("k").wait(Duration::from_millis(600));
    let said = text(&lock.acquire().await.unwrap_err());
    assert!(!said.contains("TLS"), "{plain}: {said}");
}
