//! The errors for a wrong URL, name or password.

use lock_runtime::{LockClient, StoreErrorKind};
use lock_testkit::{RedisServer, SentinelGroup};

use crate::{client, config, unavailable};

#[tokio::test]
async fn an_unknown_master_name_is_reported() {
    let group = SentinelGroup::start().await;
    let url = group.url_of("nobody");
    let said = config(LockClient::builder().url(&url).connect().await);
    assert!(said.contains("\"nobody\""), "{said}");
    // Refused at once, without using the wait.
    let lazy = LockClient::builder().url(&url).connect_lazy().unwrap();
    let refused = unavailable(lazy.lock("k").acquire().await);
    assert_eq!(refused, StoreErrorKind::Misconfigured);
}

#[tokio::test]
async fn sentinels_that_cannot_be_reached_are_all_named() {
    let (one, two) = tokio::join!(RedisServer::start(), RedisServer::start());
    let url = format!(
        "redis-sentinel://:canary@{},{}/mymaster",
        one.addr(),
        two.addr()
    );
    one.kill();
    two.kill();
    let error = LockClient::builder().url(&url).connect().await.unwrap_err();
    let said = error.to_string();
    assert_eq!(
        unavailable(Err::<(), _>(error)),
        StoreErrorKind::Disconnected
    );
    for word in [
        &one.addr().to_string(),
        &two.addr().to_string(),
        "\"mymaster\"",
    ] {
        assert!(said.contains(word), "{said}");
    }
    assert!(!said.contains("canary"), "{said}");
}

#[tokio::test]
async fn passwords_of_master_and_sentinels_are_separate() {
    let group = SentinelGroup::builder()
        .password("of-master")
        .sentinel_password("of-sentinels")
        .start()
        .await;
    let url = group.url();
    let client = client(&url).await;
    assert!(client.lock("k").acquire().await.unwrap().is_held());
    for (right, wrong) in [
        ("sentinel_password=of-sentinels", "sentinel_password=wrong"),
        ("?sentinel_password=of-sentinels", ""),
        (":of-master@", ":wrong@"),
        (":of-master@", ""),
    ] {
        let url = url.replace(right, wrong);
        let refused = LockClient::builder().url(&url).connect().await.unwrap_err();
        let said = format!("{refused} {refused:?}");
        assert_eq!(unavailable(Err::<(), _>(refused)), StoreErrorKind::Denied);
        assert!(
            !said.contains("of-master") && !said.contains("of-sentinels"),
            "{said}"
        );
    }
}

#[tokio::test]
async fn a_url_for_one_server_that_leads_to_a_sentinel_is_told_and_the_reverse() {
    let group = SentinelGroup::start().await;
    let sentinel = format!("redis://{}", group.sentinels[0].addr());
    let said = config(LockClient::builder().url(sentinel).connect().await);
    assert!(said.contains("redis-sentinel://"), "{said}");
    let server = format!("redis-sentinel://{}/mymaster", group.servers[0].addr());
    let said = config(LockClient::builder().url(server).connect().await);
    assert!(said.contains("no sentinel"), "{said}");
}
