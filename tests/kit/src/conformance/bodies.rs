//! Bodies that run under a lock.

use tokio::sync::oneshot;

/// A body without an end, and a signal that it runs.
///
/// The body starts a moment after the store has the hold, since a replica may have to confirm it
/// first. A request that loses the hold in that moment has lost nothing, and takes it again.
pub(in crate::conformance) fn endless_body()
-> (oneshot::Receiver<()>, impl Future<Output = ()> + Send) {
    let (runs, told) = oneshot::channel();
    let body = async move {
        // Fails only if the test has ended.
        let _ = runs.send(());
        std::future::pending().await
    };
    (told, body)
}
