//! What went wrong, as an HTTP answer. A service copies this file and adds its own errors.

use std::time::Duration;

use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use lock_runtime::LockError;

/// When to ask again while the store is away, or a replica is about to stop.
const SOON: Duration = Duration::from_secs(1);

/// Why a request has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GatewayError {
    #[error("the order {0} is paid already")]
    AlreadyPaid(String),
    #[error(transparent)]
    Lock(#[from] LockError),
}

impl GatewayError {
    /// The status, and when to repeat the request, where repeating it is all there is to do.
    fn answer(&self) -> (StatusCode, Option<Duration>) {
        match self {
            // The order is in another state than the request thinks. The same request will never succeed.
            Self::AlreadyPaid(_) => (StatusCode::CONFLICT, None),
            Self::Lock(error) => match error {
                // Not 409: nothing is wrong with the request or the order. Somebody is at it, and when they are done
                // the same request gets its answer, which may then be the 409.
                LockError::Busy { .. } => (StatusCode::LOCKED, None),
                LockError::RateLimited { retry_after, .. } => {
                    (StatusCode::TOO_MANY_REQUESTS, Some(*retry_after))
                }
                LockError::Unavailable { .. } | LockError::Shutdown => {
                    (StatusCode::SERVICE_UNAVAILABLE, Some(SOON))
                }
                // The body was stopped half way: the caller has to look what was done before a repeat.
                LockError::Lost { .. } => (StatusCode::SERVICE_UNAVAILABLE, None),
                // Part of the request became part of the key, and can't be: too long.
                LockError::InvalidKey { .. } => (StatusCode::BAD_REQUEST, None),
                // Mistakes of this service: WouldDeadlock, KeyConflict, Config, NotInitialized.
                _ => (StatusCode::INTERNAL_SERVER_ERROR, None),
            },
        }
    }
}

impl IntoResponse for GatewayError {
    fn into_response(self) -> Response {
        let (status, retry_after) = self.answer();
        // What is our fault goes to the log in full, and to the caller as the status alone.
        let text = if status.is_server_error() {
            eprintln!("{status}: {self}");
            String::new()
        } else {
            format!("{self}\n")
        };
        let mut response = (status, text).into_response();
        if let Some(retry_after) = retry_after {
            // Whole seconds, rounded up: who comes too early is turned away again.
            let seconds = retry_after.as_millis().div_ceil(1000).to_string();
            response
                .headers_mut()
                .extend(seconds.parse().ok().map(|value| (RETRY_AFTER, value)));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use lock_runtime::{Lock, LockClient};

    use super::*;

    const A_MOMENT: Duration = Duration::from_millis(20);

    async fn status(lock: Lock) -> u16 {
        let error = match lock.run(pending::<()>()).await {
            Ok(()) => return 200,
            Err(error) => GatewayError::Lock(error),
        };
        error.into_response().status().as_u16()
    }

    /// What the README says that a service would answer.
    #[tokio::test]
    async fn lock_errors_have_the_status_of_the_readme() -> Result<(), LockError> {
        let locks = LockClient::in_memory();
        let gone = LockClient::builder()
            .url("redis://127.0.0.1:1/")
            .connect_lazy()?;
        let stopped = LockClient::in_memory();
        stopped.shutdown(Duration::ZERO).await;
        let guard = locks.lock("held").acquire().await?;

        let busy = status(locks.lock("held").wait(A_MOMENT)).await;
        let lost = status(locks.lock("free").lease(A_MOMENT)).await;
        let unavailable = status(gone.lock("free").wait(A_MOMENT)).await;
        let deadlock = guard
            .scope(status(locks.lock("held").reentrant(false)))
            .await;
        let invalid = status(locks.lock("")).await;
        let config = status(locks.lock("free").lease(Duration::ZERO)).await;
        let shutdown = status(stopped.lock("free")).await;

        assert_eq!((busy, lost, unavailable), (423, 503, 503));
        assert_eq!((deadlock, invalid, config, shutdown), (500, 400, 500, 503));
        Ok(())
    }

    #[test]
    fn retry_after_is_given_where_a_repeat_is_safe() {
        let shutdown = GatewayError::Lock(LockError::Shutdown).into_response();
        assert_eq!(shutdown.headers()[RETRY_AFTER], "1");
        let paid = GatewayError::AlreadyPaid("7".to_owned()).into_response();
        assert!(!paid.headers().contains_key(RETRY_AFTER));
    }
}
