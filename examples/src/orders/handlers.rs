//! The handlers. Each has one line for what it needs from all replicas together.

use std::fmt::Write;

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use lock_runtime::{distributed_lock, rate_limited};

use super::error::OrderError;
use super::shop::Shop;

/// The service.
pub fn service(shop: Shop) -> Router {
    Router::new()
        .route("/{tenant}/orders/{id}/pay", post(pay))
        .route("/{tenant}/quote", get(quote))
        .route("/health", get(health))
        .with_state(shop)
}

/// Pays an order, once: look whether it is paid, pay, write it down, with no other payment in
/// between. A request that waits in vain is told which one is at it.
#[distributed_lock(key = "order:<id>", client = &shop.locks_of(&tenant))]
async fn pay(
    State(shop): State<Shop>,
    Path((tenant, id)): Path<(String, u64)>,
) -> Result<String, OrderError> {
    if shop.is_paid(&tenant, id) {
        return Ok(format!("the order {id} is paid already\n"));
    }
    shop.ask_provider().await;
    shop.write_down(tenant, id);
    Ok(format!("the order {id} is paid now\n"))
}

/// Tells a tenant a price: 100 times a second, and 20 times at once. Calls over the limit are told
/// when to come back.
#[rate_limited(key = "quotes", rate = "100/s", burst = 20, client = &shop.locks_of(&tenant))]
async fn quote(
    State(shop): State<Shop>,
    Path(tenant): Path<String>,
) -> Result<&'static str, OrderError> {
    Ok("42\n")
}

/// The health of the locks, and what endangers them on their servers.
async fn health(State(shop): State<Shop>) -> Result<String, OrderError> {
    let health = shop.locks().health().await?;
    let (held, waiting, lost) = (health.held, health.waiting, health.lost);
    let mut text = format!("{held} held, {waiting} waiting, {lost} lost so far\n");
    for server in &health.servers {
        for finding in &server.findings {
            // A `String` takes all that is written.
            let _ = writeln!(text, "{}: {finding}", server.address);
        }
    }
    Ok(text)
}
