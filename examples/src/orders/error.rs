//! Errors as HTTP answers. A service copies this file and adds its own errors.

use std::time::Duration;

use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use lock_runtime::LockError;

/// When to ask again while another caller is at it, the store is away, or a replica is about to
/// stop.
const SOON: Duration = Duration::from_secs(1);

/// Why a request has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// There was no lock, or it was lost.
    #[error(transparent)]
    Lock(#[from] LockError),
}

impl OrderError {
    /// The status, and when to repeat the request if a repeat is all that is needed.
    fn answer(&self) -> (StatusCode, Option<Duration>) {
        let Self::Lock(error) = self;
        match error {
            // Another caller is at it, and the text names it. When it is done, the same request
            // gets its answer.
            LockError::Busy { .. } => (StatusCode::CONFLICT, Some(SOON)),
            LockError::RateLimited { retry_after, .. } => {
                (StatusCode::TOO_MANY_REQUESTS, Some(*retry_after))
            }
            LockError::Unavailable { .. } | LockError::Shutdown => {
                (StatusCode::SERVICE_UNAVAILABLE, Some(SOON))
            }
            // All of it was done, perhaps beside another holder. A repeat would do it again.
            LockError::Lost { .. } if error.body_ended() => (StatusCode::CONFLICT, None),
            // It was stopped half way. Somebody has to check whether the provider has the money.
            LockError::Lost { .. } => (StatusCode::INTERNAL_SERVER_ERROR, None),
            // Part of the request is part of the key, and can't be: a tenant's name with a space.
            LockError::InvalidKey { .. } => (StatusCode::BAD_REQUEST, None),
            // Mistakes of this service: WouldDeadlock, KeyConflict, Config, NotInitialized.
            _ => (StatusCode::INTERNAL_SERVER_ERROR, None),
        }
    }
}

impl IntoResponse for OrderError {
    fn into_response(self) -> Response {
        let (status, retry_after) = self.answer();
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
