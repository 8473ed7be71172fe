//! What tests of each engine with TLS expect when the server's certificate is over.

use std::time::{Duration, Instant};

use lock_runtime::{LockClientBuilder, LockError};

/// Makes sure that a client says within its time limit that the server's certificate has expired,
/// and what to do.
///
/// # Panics
/// If it does not.
pub async fn expect_an_expired_certificate(builder: LockClientBuilder) {
    let limit = Duration::from_secs(6);
    // The first handshake of a JVM takes its time.
    let builder = builder.connect_timeout(limit);
    let client = builder.unavailable_after(limit).connect_lazy();
    let client = client.expect("good settings");
    let asked = Instant::now();
    let error = client.lock("k").acquire().await;
    let error = error.expect_err("nobody is to be trusted");
    let took = asked.elapsed();
    assert!(took < limit * 2, "{took:?}");
    assert!(matches!(error, LockError::Unavailable { .. }), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains("expired") && text.contains("renew the certificate"),
        "{text}"
    );
}
