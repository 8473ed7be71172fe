//! How the service ends: in good order, and in time.
#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use lock_examples::orders::{OrderError, Shop, serve, service};
use lock_runtime::{LockClient, LockError, distributed_lock};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const PATIENCE: Duration = Duration::from_millis(500);

/// A request that has taken its lock says so.
type Began = tokio::sync::mpsc::UnboundedSender<()>;

#[distributed_lock(key = "hangs", client = &shop.0)]
async fn hang(State(shop): State<(LockClient, Began)>) -> Result<String, OrderError> {
    let _ = shop.1.send(());
    std::future::pending().await
}

#[distributed_lock(key = "import", client = &shop.0, guard = lock)]
async fn import(State(shop): State<(LockClient, Began)>) -> Result<String, OrderError> {
    let _ = shop.1.send(());
    // Beside the work, which takes for ever.
    lock.closing().await;
    Ok("the rest is imported later".to_owned())
}

struct Service {
    locks: LockClient,
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    began: tokio::sync::mpsc::UnboundedReceiver<()>,
    ends: JoinHandle<std::io::Result<()>>,
}

async fn start() -> Service {
    let locks = LockClient::in_memory();
    let (begins, began) = tokio::sync::mpsc::unbounded_channel();
    let more = Router::new()
        .route("/hang", get(hang))
        .route("/import", get(import))
        .with_state((locks.clone(), begins));
    let service = service(Shop::new(locks.clone())).merge(more);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let client = locks.clone();
    let ends = tokio::spawn(async move {
        let stop = async { _ = stopped.await };
        serve(listener, service, &client, stop, PATIENCE).await
    });
    Service {
        locks,
        address,
        stop,
        began,
        ends,
    }
}

fn ask(address: SocketAddr, path: &str) -> JoinHandle<String> {
    let request = format!("GET {path} HTTP/1.0\r\n\r\n");
    tokio::spawn(async move {
        let mut connection = TcpStream::connect(address).await.unwrap();
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();
        answer
    })
}

/// Whether the client was shut down when the service had ended.
async fn stop(service: Service) -> bool {
    service.stop.send(()).unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(20), service.ends).await;
    ended.unwrap().unwrap().unwrap();
    let refused = service.locks.lock("later").try_acquire().await;
    matches!(refused, Err(LockError::Shutdown))
}

#[tokio::test]
async fn a_request_that_hangs_does_not_keep_the_shutdown_from_being_reached() {
    let mut service = start().await;
    let hangs = ask(service.address, "/hang");
    service.began.recv().await.unwrap();
    assert!(stop(service).await);
    // Its body was stopped, and the caller is told so.
    assert!(hangs.await.unwrap().starts_with("HTTP/1.0 5"));
}

#[tokio::test]
async fn a_request_that_awaits_closing_ends_in_good_order() {
    let mut service = start().await;
    let imports = ask(service.address, "/import");
    service.began.recv().await.unwrap();
    assert!(stop(service).await);
    let answer = imports.await.unwrap();
    assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
    assert!(answer.contains("the rest is imported later"), "{answer}");
}

#[tokio::test]
async fn a_service_without_requests_ends_at_once() {
    let service = start().await;
    let quote = ask(service.address, "/acme/quote").await.unwrap();
    assert!(quote.starts_with("HTTP/1.0 200"), "{quote}");
    assert!(stop(service).await);
}
