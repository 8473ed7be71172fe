//! Tests of the service `orders`, as its authors would write them: no Redis, no network, no real
//! time.
#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::http::Request;
use axum::http::header::RETRY_AFTER;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Router, debug_handler};
use lock_examples::orders::{OrderError, Shop, report, service};
use lock_runtime::{
    Faults, KeyFault, LockClient, LockError, LostReason, StoreErrorKind, distributed_lock,
};
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

const SECOND: Duration = Duration::from_secs(1);
const PAY: &str = "POST /acme/orders/7/pay";

struct Test {
    shop: Shop,
    service: Router,
    faults: Faults,
    began: Instant,
}

struct Answer {
    status: u16,
    text: String,
}

impl Test {
    fn start() -> Self {
        let (locks, faults) = LockClient::in_memory_with_faults();
        let shop = Shop::new(locks);
        Self {
            service: service(shop.clone()),
            shop,
            faults,
            began: Instant::now(),
        }
    }

    async fn send(&self, request: &str) -> Answer {
        let (method, uri) = request.split_once(' ').unwrap();
        let request = Request::builder().method(method).uri(uri);
        let request = request.body(Body::empty()).unwrap();
        let answer = self.service.clone().oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        let body = to_bytes(answer.into_body(), 10_000).await.unwrap();
        let text = String::from_utf8(body.to_vec()).unwrap();
        Answer { status, text }
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_is_paid_once_however_often_it_is_asked_for() {
    let test = Test::start();
    let (one, two) = tokio::join!(test.send(PAY), test.send(PAY));
    assert_eq!((one.status, two.status), (200, 200));
    assert_eq!(one.text, "the order 7 is paid now\n");
    assert_eq!(two.text, "the order 7 is paid already\n");
    assert_eq!((test.shop.asked(), test.shop.paid()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn this_tenant_is_told_which_request_is_at_it_and_no_other_waits() {
    let test = Test::start();
    let _other = test.faults.namespaced("acme").held_by_another("order:7");
    let of_other = test.send("POST /other/orders/7/pay").await;
    assert_eq!(of_other.status, 200);
    let refused = test.send(PAY).await;
    assert_eq!(refused.status, 409);
    let text = refused.text;
    assert!(text.contains("held by somebody-else for"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_payment_whose_lock_is_lost_is_stopped_and_looked_into() {
    let test = Test::start();
    let acme = test.faults.namespaced("acme");
    let (stopped, ()) = tokio::join!(test.send(PAY), async {
        sleep(SECOND).await;
        assert!(acme.lose("order:7"));
    });
    assert_eq!((stopped.status, stopped.text.as_str()), (500, ""));
    // The provider was asked, and nothing is recorded.
    assert_eq!((test.shop.asked(), test.shop.paid()), (1, 0));
    assert_eq!(
        test.began.elapsed(),
        SECOND,
        "at once, not at its next renewal"
    );
    let health = test.send("GET /health").await;
    assert_eq!(health.text, "0 held, 0 waiting, 1 lost so far\n");
}

#[tokio::test(start_paused = true)]
async fn a_silent_store_is_reported_after_two_seconds_of_ten_and_in_health() {
    let test = Test::start();
    test.faults.fall_silent();
    assert_eq!(test.send(PAY).await.status, 503);
    assert_eq!(test.began.elapsed().as_secs(), 2);
    assert_eq!(test.send("GET /health").await.status, 503);
    assert_eq!(test.shop.asked(), 0);

    test.faults.answer();
    assert_eq!(test.send(PAY).await.status, 200);
    assert_eq!(test.send("GET /health").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_payment_goes_on_while_the_store_has_no_memory_and_a_new_one_does_not() {
    let test = Test::start();
    let (paying, refused) = tokio::join!(test.send(PAY), async {
        sleep(SECOND).await;
        test.faults.refuse(StoreErrorKind::OutOfMemory);
        test.send("POST /acme/orders/8/pay").await
    });
    assert_eq!((paying.status, refused.status), (200, 503));
}

#[tokio::test(start_paused = true)]
async fn the_report_is_left_to_the_replica_that_is_at_it() {
    let test = Test::start();
    let other = test.faults.held_by_another("job:report");
    assert_eq!(report(&test.shop).await.unwrap(), None);
    assert_eq!(test.began.elapsed(), Duration::ZERO);
    drop(other);
    assert_eq!(report(&test.shop).await.unwrap(), Some(0));
    // A replica that is a little late does not do it again.
    assert_eq!(report(&test.shop).await.unwrap(), None);
    sleep(60 * SECOND).await;
    assert_eq!(report(&test.shop).await.unwrap(), Some(0));
}

#[test]
fn every_error_has_its_status_and_says_when_to_come_again_where_that_is_safe() {
    let expired = LostReason::Expired;
    for (error, status, retry_after) in [
        (LockError::busy("order:7"), 409, Some("1")),
        (
            LockError::rate_limited("quotes", SECOND * 3),
            429,
            Some("3"),
        ),
        (
            LockError::unavailable(StoreErrorKind::Timeout, "500ms"),
            503,
            Some("1"),
        ),
        (LockError::Shutdown, 503, Some("1")),
        (LockError::lost("order:7", expired), 500, None),
        (LockError::lost_after_body("order:7", expired), 409, None),
        (LockError::invalid_key("", KeyFault::Empty), 400, None),
        (LockError::would_deadlock("order:7"), 500, None),
        (LockError::config("bad"), 500, None),
    ] {
        let text = error.to_string();
        let answer = OrderError::from(error).into_response();
        assert_eq!(answer.status().as_u16(), status, "{text}");
        let header = answer.headers().get(RETRY_AFTER);
        let header = header.map(|value| value.to_str().unwrap());
        assert_eq!(header, retry_after, "{text}");
    }
}

#[debug_handler]
#[distributed_lock(key = "order:<id>", client = &locks)]
async fn debugged_above(
    State(locks): State<LockClient>,
    Path(id): Path<u64>,
) -> Result<String, OrderError> {
    Ok(format!("above {id}"))
}

#[distributed_lock(key = "order:<id>", client = &locks)]
#[debug_handler]
async fn debugged_below(
    State(locks): State<LockClient>,
    Path(id): Path<u64>,
) -> Result<String, OrderError> {
    Ok(format!("below {id}"))
}

#[tokio::test]
async fn a_handler_takes_its_lock_with_debug_handler_above_and_below() {
    let locks = LockClient::in_memory();
    let service = Router::new()
        .route("/above/{id}", get(debugged_above))
        .route("/below/{id}", get(debugged_below))
        .with_state(locks.clone());
    for (granted, expected) in [(1, "above 7"), (2, "below 7")] {
        let request = Request::builder().uri(format!("/{}", expected.replace(' ', "/")));
        let request = request.body(Body::empty()).unwrap();
        let answer = service.clone().oneshot(request).await.unwrap();
        let body = to_bytes(answer.into_body(), 100).await.unwrap();
        assert_eq!(body, expected.as_bytes());
        assert_eq!(locks.stats().granted(), granted);
    }
}
