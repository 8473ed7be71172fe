//! Attributes of other crates above and below ours: the rows of the page on their order that no
//! other test shows.

#![allow(clippy::unwrap_used, reason = "a failing test panics")]

use async_recursion::async_recursion;
use cached::macros::cached;
use lock_runtime::{LockClient, LockError, distributed_lock, rate_limited};

/// How many locks were granted, nested ones included.
fn granted(client: &LockClient) -> u64 {
    client.stats().granted()
}

#[async_recursion]
#[distributed_lock(key = "sum")]
async fn sum_boxed_before(up_to: u32) -> Result<u32, LockError> {
    match up_to {
        0 => Ok(0),
        _ => Ok(up_to + sum_boxed_before(up_to - 1).await?),
    }
}

#[distributed_lock(key = "sum")]
#[async_recursion]
async fn sum_boxed_after(up_to: u32) -> Result<u32, LockError> {
    match up_to {
        0 => Ok(0),
        _ => Ok(up_to + sum_boxed_after(up_to - 1).await?),
    }
}

#[tokio::test]
async fn a_recursive_call_shares_the_hold_with_async_recursion_above_and_below() {
    let client = LockClient::in_memory();
    let sums = async { [sum_boxed_before(3).await, sum_boxed_after(3).await] };
    assert_eq!(client.scope(sums).await.map(Result::unwrap), [6, 6]);
    let stats = client.stats();
    assert_eq!((stats.granted_by_store, stats.nested), (2, 6));
}

#[distributed_lock(key = "price", wait = "0s")]
#[cached]
async fn price_cached_below(id: u32) -> Result<u32, LockError> {
    Ok(id * 10)
}

#[cached]
#[distributed_lock(key = "price", wait = "0s")]
async fn price_cached_above(id: u32) -> Result<u32, LockError> {
    Ok(id * 10)
}

#[tokio::test]
async fn a_cached_value_costs_no_lock_with_cached_below_and_one_each_time_with_it_above() {
    let client = LockClient::in_memory();
    let held = client.lock("price").acquire().await.unwrap();
    client
        .scope(async {
            for price in [price_cached_below(1).await, price_cached_above(1).await] {
                assert!(price.unwrap_err().is_busy());
            }
            // What was refused is not cached.
            drop(held);
            let before = granted(&client);
            for _ in 0..3 {
                assert_eq!(price_cached_below(1).await.unwrap(), 10);
            }
            assert_eq!(granted(&client) - before, 1);
            for _ in 0..3 {
                assert_eq!(price_cached_above(1).await.unwrap(), 10);
            }
            assert_eq!(granted(&client) - before, 1 + 3);
        })
        .await;
}

#[rate_limited(key = "limit above", rate = "1/h")]
#[distributed_lock(key = "order", wait = "0s")]
async fn limited_above() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "order", wait = "0s")]
#[rate_limited(key = "limit below", rate = "1/h")]
async fn limited_below() -> Result<(), LockError> {
    Ok(())
}

#[tokio::test]
async fn a_rate_limit_is_asked_before_the_lock_whichever_stands_above() {
    let client = LockClient::in_memory();
    let _held = client.lock("order").acquire().await.unwrap();
    client
        .scope(async {
            for refused in [limited_above().await, limited_below().await] {
                assert!(refused.unwrap_err().is_busy());
            }
            // They have used up the limit, and the lock is busy still.
            for refused in [limited_above().await, limited_below().await] {
                assert!(matches!(refused, Err(LockError::RateLimited { .. })));
            }
        })
        .await;
}

#[distributed_lock(key = "program")]
#[actix_rt::main]
async fn program() -> Result<&'static str, LockError> {
    Ok("done")
}

/// `#[actix_web::main]` is the same macro.
#[test]
fn a_program_of_actix_with_its_attribute_below_runs_under_the_lock() {
    let client = LockClient::in_memory();
    client.clone().install().unwrap();
    assert_eq!(program().unwrap(), "done");
    assert_eq!(granted(&client), 1);
}
