//! The handlers. Each has one line for what it needs from all replicas together.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use lock_runtime::{LockClient, distributed_lock, rate_limited};

use crate::error::GatewayError;

/// How long the payment provider takes.
const PAYMENT: Duration = Duration::from_millis(1500);

/// What the handlers share.
#[derive(Clone, Debug)]
struct Gateway {
    locks: LockClient,
    /// Stands for the database.
    paid: Arc<Mutex<HashSet<String>>>,
}

pub(crate) fn gateway(locks: LockClient) -> Router {
    Router::new()
        .route("/orders/{id}/pay", post(pay))
        .route("/apps/{app_id}/quote", get(quote))
        .with_state(Gateway {
            locks,
            paid: Arc::default(),
        })
}

/// Pays an order, once: look whether it is paid, pay, write it down, and nobody else in between. Who waits longer than
/// 200 ms is told that somebody is at it.
#[distributed_lock(key = "order:<id>", wait = "200ms", client = &gateway.locks)]
async fn pay(
    State(gateway): State<Gateway>,
    Path(id): Path<String>,
) -> Result<String, GatewayError> {
    if gateway.is_paid(&id) {
        return Err(GatewayError::AlreadyPaid(id));
    }
    tokio::time::sleep(PAYMENT).await;
    gateway.write_down(&id);
    Ok(format!("the order {id} is paid now\n"))
}

/// Tells an app a price: 100 times a second, and 20 times at once. Who asks more often is told when to come back.
#[rate_limited(key = "api:<app_id>", rate = "100/s", burst = 20, client = &gateway.locks)]
async fn quote(
    State(gateway): State<Gateway>,
    Path(app_id): Path<String>,
) -> Result<&'static str, GatewayError> {
    Ok("42\n")
}

impl Gateway {
    fn is_paid(&self, id: &str) -> bool {
        let paid = self.paid.lock().unwrap_or_else(PoisonError::into_inner);
        paid.contains(id)
    }

    fn write_down(&self, id: &str) {
        let mut paid = self.paid.lock().unwrap_or_else(PoisonError::into_inner);
        paid.insert(id.to_owned());
    }
}
