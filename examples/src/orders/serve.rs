//! [`serve`]: a service that ends in good order, and in time.

use std::io;
use std::time::Duration;

use axum::Router;
use lock_runtime::LockClient;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// Serves until `stop`, and ends within two times `patience`, whatever a request does.
///
/// 1. The server takes no new connection, and requests that run have `patience` to end. A request
///    that hangs would keep it from ending: it is not waited for any longer.
/// 2. The client is shut down. No body begins any more, and those that await
///    [`closing`](LockClient::closing) end in good order. Others have `patience` once more. Then
///    they are stopped, and their locks are released.
///
/// # Errors
/// The listener failed.
pub async fn serve(
    listener: TcpListener,
    service: Router,
    locks: &LockClient,
    stop: impl Future<Output = ()>,
    patience: Duration,
) -> io::Result<()> {
    let (stopping, stopped) = oneshot::channel::<()>();
    let server = axum::serve(listener, service).with_graceful_shutdown(async {
        let _ = stopped.await; // Also when the other end is dropped.
    });
    let given_up = async {
        stop.await;
        drop(stopping);
        tokio::time::sleep(patience).await;
    };
    let served = tokio::select! {
        served = server.into_future() => served,
        () = given_up => Ok(()),
    };
    // The requests that are left go on in tasks of their own meanwhile.
    locks.shutdown(patience).await;
    served
}
