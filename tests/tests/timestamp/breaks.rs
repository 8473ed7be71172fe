//! What the recipe itself can't promise, step by step. Ours learns of each where it can.

use std::time::Duration;

use lock_runtime::{LockClient, LockError, LostReason};
use lock_testkit::{Proxy, RedisServer, eventually, patient_connection};

use crate::{Form, KEY, MILLIS, ask, client, recipe, url};

async fn set(server: &RedisServer, value: &str) {
    let mut redis = patient_connection(&server.url()).await;
    let set = redis::cmd("SET").arg(KEY).arg(value).to_owned();
    set.exec_async(&mut redis).await.unwrap();
}

async fn get(server: &RedisServer) -> Option<String> {
    let mut redis = patient_connection(&server.url()).await;
    let get = redis::cmd("GET").arg(KEY).to_owned();
    get.query_async(&mut redis).await.unwrap()
}

/// A lock of the recipe that is over, and a client of it that has seen that.
async fn seen_to_be_over(server: &RedisServer) -> Option<lock_testkit::ChildProcess> {
    let mut late = recipe(server, MILLIS).await?;
    let over = lock_testkit::wall_micros() / 1000 - 60_000;
    set(server, &over.to_string()).await;
    assert_eq!(ask(&mut late, &format!("look {KEY}")).await, "over");
    Some(late)
}

fn is_gone(error: &LockError) -> bool {
    matches!(
        error,
        LockError::Lost {
            reason: LostReason::Gone,
            ..
        }
    )
}

#[tokio::test]
async fn a_losers_getset_changes_our_time_and_we_learn_of_it_at_the_next_renewal() {
    let server = RedisServer::start().await;
    let Some(mut late) = seen_to_be_over(&server).await else {
        return;
    };
    let builder = LockClient::builder().url(url(&server, "ms", "0ms"));
    let client = builder.lease(Duration::from_millis(1500)).connect();
    let client = client.await.unwrap();
    let ours = client.lock(KEY).acquire().await.unwrap();
    // It sees that it has lost, and has overwritten our time.
    let said = ask(&mut late, &format!("take {KEY} 60000")).await;
    assert!(said.starts_with("late"), "{said}");
    ours.lost().await;
    let error = ours.release().await.unwrap_err();
    assert!(is_gone(&error), "{error}");
    // What it wrote is another's, and stays to its end.
    let (_, value) = said.split_once(' ').unwrap();
    assert_eq!(get(&server).await.as_deref(), Some(value));
    assert!(client.lock(KEY).try_acquire().await.unwrap().is_none());
}

#[tokio::test]
async fn a_losers_getset_lets_a_third_in_while_a_lock_that_is_not_renewed_is_held() {
    let server = RedisServer::start().await;
    let Some(mut late) = seen_to_be_over(&server).await else {
        return;
    };
    let Some(mut third) = recipe(&server, MILLIS).await else {
        return;
    };
    let client = client(&server, "ms", "0ms").await;
    let ours = client.lock(KEY).lease(Duration::from_secs(60));
    let ours = ours.acquire().await.unwrap();
    assert!(
        ask(&mut late, &format!("take {KEY} 100"))
            .await
            .starts_with("late")
    );
    eventually("a third takes it", async || {
        ask(&mut third, &format!("lock {KEY} 60000"))
            .await
            .starts_with("locked")
    })
    .await;
    assert!(
        ours.is_held(),
        "two holders: this is the recipe's, not ours"
    );
    // And it does not end the third's.
    assert!(is_gone(&ours.release().await.unwrap_err()));
    assert_eq!(ask(&mut late, &format!("look {KEY}")).await, "live");
}

#[tokio::test]
async fn a_clock_that_is_ahead_by_more_than_the_skew_breaks_in_and_one_within_it_does_not() {
    let server = RedisServer::start().await;
    let ahead = Form {
        ahead_ms: 60_000,
        ..MILLIS
    };
    let Some(mut ahead) = recipe(&server, ahead).await else {
        return;
    };
    let wide = client(&server, "ms", "2m").await;
    let ours = wide.lock(KEY).acquire().await.unwrap();
    assert_eq!(ask(&mut ahead, &format!("lock {KEY} 1000")).await, "busy");
    ours.release().await.unwrap();

    let narrow = client(&server, "ms", "1s").await;
    let ours = narrow.lock(KEY).lease(Duration::from_secs(30));
    let ours = ours.acquire().await.unwrap();
    let said = ask(&mut ahead, &format!("lock {KEY} 60000")).await;
    assert!(said.starts_with("locked"), "{said}");
    assert!(
        ours.is_held(),
        "two holders: this is the recipe's, not ours"
    );
    assert!(is_gone(&ours.release().await.unwrap_err()));
}

#[tokio::test]
async fn a_clock_that_is_behind_within_the_skew_keeps_its_lock_from_us() {
    let server = RedisServer::start().await;
    let behind = Form {
        ahead_ms: -60_000,
        ..MILLIS
    };
    let Some(mut behind) = recipe(&server, behind).await else {
        return;
    };
    assert!(
        ask(&mut behind, &format!("lock {KEY} 30000"))
            .await
            .starts_with("locked")
    );
    let wide = client(&server, "ms", "2m").await;
    assert!(wide.lock(KEY).try_acquire().await.unwrap().is_none());
    // By the server's clock it is over for half a minute.
    let narrow = client(&server, "ms", "1s").await;
    assert!(narrow.lock(KEY).try_acquire().await.unwrap().is_some());
}

#[tokio::test]
async fn a_release_that_comes_too_late_ends_our_lock_since_it_names_no_owner() {
    let server = RedisServer::start().await;
    let Some(mut slow) = recipe(&server, MILLIS).await else {
        return;
    };
    let builder = LockClient::builder().url(url(&server, "ms", "0ms"));
    let client = builder.lease(Duration::from_millis(1500)).connect();
    let client = client.await.unwrap();
    assert!(
        ask(&mut slow, &format!("lock {KEY} 50"))
            .await
            .starts_with("locked")
    );
    let ours = client.lock(KEY).acquire().await.unwrap();
    // It has looked at its clock in time, and its `DEL` comes late.
    assert!(
        ask(&mut slow, &format!("unlock! {KEY}"))
            .await
            .starts_with("unlocked")
    );
    assert_eq!(get(&server).await, None);
    ours.lost().await;
    assert!(is_gone(&ours.release().await.unwrap_err()));
}

/// Another's value may be equal to ours. So what may have been carried out is not repeated.
#[tokio::test]
async fn a_release_whose_answer_is_lost_ends_nobody_elses_equal_lock() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let address = proxy.addr();
    let url = format!("redis://{address}/?layout=timestamp&skew=0ms");
    let client = LockClient::builder().url(url).connect().await.unwrap();
    let ours = client.lock(KEY).acquire().await.unwrap();
    let value = get(&server).await.unwrap();
    proxy.cut_after_next("EVALSHA");
    // An error or none: the release goes on in the background, if it does.
    let released = ours.release().await;
    assert_eq!(get(&server).await, None, "{released:?}");
    set(&server, &value).await;
    // Everything that a repeat would come before.
    client.inspect(KEY).await.unwrap();
    client.shutdown(Duration::from_secs(5)).await;
    assert_eq!(get(&server).await, Some(value));
}
