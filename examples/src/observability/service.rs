//! The handlers: one does the work, two are for who looks at it.

use std::fmt::Write;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use lock_runtime::{LockClient, LockError, distributed_lock};
use metrics_exporter_prometheus::PrometheusHandle;

/// How long `/health` waits for the store. Who asks waits for a second, as most probes do.
const PATIENCE: Duration = Duration::from_millis(500);

/// Stands for the work on one product.
const WORK: Duration = Duration::from_millis(50);

/// The service.
pub fn service(locks: LockClient, metrics: PrometheusHandle) -> Router {
    let page = move || {
        let text = metrics.render();
        async move { ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text) }
    };
    Router::new()
        .route("/buy/{product_id}", post(buy))
        .route("/health", get(health))
        .with_state(locks)
        .route("/metrics", get(page))
}

async fn buy(State(locks): State<LockClient>, Path(product_id): Path<u64>) -> impl IntoResponse {
    match take_one(&locks, product_id).await {
        Ok(()) => (StatusCode::OK, format!("bought {product_id}\n")),
        Err(error) => {
            let status = StatusCode::from_u16(error.http_status());
            let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            (status, format!("{error}\n"))
        }
    }
}

/// Its metrics have the template `stock:<product_id>`, and its span the key as well.
#[distributed_lock(key = "stock:<product_id>", client = locks)]
async fn take_one(locks: &LockClient, product_id: u64) -> Result<(), LockError> {
    tokio::time::sleep(WORK).await;
    Ok(())
}

/// What the client knows without asking anybody, and then what the servers say, if they answer.
async fn health(State(locks): State<LockClient>) -> impl IntoResponse {
    let asked = tokio::time::timeout(PATIENCE, locks.health()).await;
    let stats = locks.stats();
    let (held, waiting, lost) = (stats.held, stats.waiting, stats.lost);
    let longest = stats.longest_waiting.unwrap_or_default().as_secs_f64();
    let connected = stats.connected;
    let mut text = format!("connected {connected}\nheld {held}\nwaiting {waiting}\nlost {lost}\n");
    // A `String` takes all that is written.
    let _ = writeln!(text, "longest_waiting_seconds {longest:.3}");
    if let Some(since) = stats.since_last_answer {
        let _ = writeln!(text, "since_last_answer_seconds {:.3}", since.as_secs_f64());
    }
    let status = match asked {
        Ok(Ok(health)) => {
            for server in &health.servers {
                for finding in &server.findings {
                    let _ = writeln!(text, "{}: {finding}", server.address);
                }
            }
            StatusCode::OK
        }
        Ok(Err(error)) => {
            let _ = writeln!(text, "{error}");
            StatusCode::SERVICE_UNAVAILABLE
        }
        Err(_) => {
            text += "the store does not answer\n";
            StatusCode::SERVICE_UNAVAILABLE
        }
    };
    (status, text)
}
