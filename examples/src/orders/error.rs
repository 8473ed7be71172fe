//! Errors as HTTP answers. A service copies this file and adds its own errors.

use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use lock_runtime::LockError;

/// Why a request has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// There was no lock, or it was lost.
    #[error(transparent)]
    Lock(#[from] LockError),
}

impl IntoResponse for OrderError {
    fn into_response(self) -> Response {
        let Self::Lock(error) = &self;
        let status =
            StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let retry_after = error.retry_after();
        // Our own faults go to the log in full, and to the caller as the status alone.
        let text = if status.is_server_error() {
            eprintln!("{status}: {self}");
            String::new()
        } else {
            format!("{self}\n")
        };
        let mut response = (status, text).into_response();
        if let Some(retry_after) = retry_after {
            // Whole seconds, rounded up, because a caller that comes too early is turned away
            // again.
            let seconds = retry_after.as_millis().div_ceil(1000).to_string();
            response
                .headers_mut()
                .extend(seconds.parse().ok().map(|value| (RETRY_AFTER, value)));
        }
        response
    }
}
