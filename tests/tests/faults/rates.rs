//! A rate limiter whose store fails. The failure is reported as such, never as a limit, and no call
//! passes.

use std::time::Duration;

use lock_runtime::{LockClient, LockError, Rate, RateLimiter, StoreErrorKind};
use lock_testkit::{Proxy, RedisServer, eventually, server_is_at_least};

use crate::{COMMAND_TIMEOUT, SLACK, client, timed, unavailable};

const RATE: Rate = Rate::per_hour(1).burst(5);
const WAIT: Duration = Duration::from_millis(1500);

fn limiter(client: &LockClient) -> RateLimiter {
    client.rate_limiter("k", RATE)
}

#[tokio::test]
async fn a_stopped_server_is_unavailable_within_the_longer_of_wait_and_command_timeout() {
    let server = RedisServer::start().await;
    let client = client(&server.url()).await;
    limiter(&client).acquire().await.unwrap();
    server.kill();
    for (wait, limit) in [(Duration::ZERO, COMMAND_TIMEOUT), (WAIT, WAIT)] {
        let (result, elapsed) = timed(limiter(&client).wait(wait).acquire()).await;
        unavailable(result);
        assert!(elapsed <= limit + SLACK, "{elapsed:?}");
    }
    unavailable(limiter(&client).try_acquire().await);
}

#[tokio::test]
async fn a_frozen_server_is_unavailable_within_the_command_timeout_and_is_not_asked_again() {
    let server = RedisServer::start().await;
    let client = client(&server.url()).await;
    limiter(&client).acquire().await.unwrap();
    let calls = server.command_calls("evalsha").await;
    server.pause();
    let (result, elapsed) = timed(limiter(&client).wait(20 * WAIT).acquire()).await;
    assert_eq!(unavailable(result), StoreErrorKind::Timeout);
    assert!(elapsed <= COMMAND_TIMEOUT + SLACK, "{elapsed:?}");
    server.resume();
    // The command was carried out late, once: its token is gone, and no other.
    eventually("it is carried out", async || {
        server.command_calls("evalsha").await == calls + 1
    })
    .await;
    for _ in 0..3 {
        limiter(&client).acquire().await.unwrap();
    }
    limited(limiter(&client).acquire().await);
}

fn limited(result: Result<(), LockError>) {
    assert!(
        matches!(result, Err(LockError::RateLimited { .. })),
        "{result:?}"
    );
}

#[tokio::test]
async fn a_reply_that_is_lost_is_unavailable_and_the_command_is_not_repeated() {
    // Before, the new connection tries its rights, which counts as a call.
    if !server_is_at_least(7) {
        return;
    }
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let client = client(&server.url_at(proxy.addr())).await;
    limiter(&client).acquire().await.unwrap();
    let calls = server.command_calls("evalsha").await;
    proxy.cut_after_next("EVALSHA");
    unavailable(limiter(&client).wait(20 * WAIT).acquire().await);
    eventually("connected again", async || client.health().await.is_ok()).await;
    assert_eq!(server.command_calls("evalsha").await, calls + 1);
    // It had been carried out: three of five tokens are left.
    limiter(&client).permits(3).await.unwrap();
    limited(limiter(&client).acquire().await);
}

#[tokio::test]
async fn a_passing_fault_is_tried_again_within_the_wait_and_takes_nothing_twice() {
    let server = RedisServer::start().await;
    let client = client(&server.url()).await;
    limiter(&client).acquire().await.unwrap();
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    for wait in [Duration::ZERO, WAIT] {
        let (result, elapsed) = timed(limiter(&client).wait(wait).acquire()).await;
        assert_eq!(unavailable(result), StoreErrorKind::OutOfMemory);
        assert!(elapsed <= wait + COMMAND_TIMEOUT + SLACK, "{elapsed:?}");
    }
    let calls = server.command_calls("evalsha").await;
    let waiting = tokio::spawn({
        let limiter = limiter(&client).wait(20 * WAIT);
        async move { limiter.acquire().await }
    });
    eventually("it was refused", async || {
        server.command_calls("evalsha").await > calls
    })
    .await;
    server.command(&["CONFIG", "SET", "maxmemory", "0"]).await;
    waiting.await.unwrap().unwrap();
    for _ in 0..3 {
        limiter(&client).acquire().await.unwrap();
    }
    limited(limiter(&client).acquire().await);
}

#[tokio::test]
async fn a_limiter_waits_for_a_server_that_starts_within_the_wait() {
    let server = RedisServer::start().await;
    server.kill();
    // An unanswered decision is not requested again, and a server that has just started may be
    // slow.
    let client = LockClient::builder()
        .url(server.url())
        .command_timeout(Duration::from_secs(3))
        .connect_lazy()
        .unwrap();
    let waiting = tokio::spawn({
        let limiter = limiter(&client).wait(20 * WAIT);
        async move { limiter.acquire().await }
    });
    tokio::time::sleep(COMMAND_TIMEOUT + SLACK).await;
    server.restart().await;
    waiting.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_missing_permission_fails_at_once() {
    let server = RedisServer::start().await;
    for (user, rules) in [
        ("no-script", ["+@all", "-@scripting"]),
        ("no-set", ["+@all", "-set"]),
        ("no-time", ["+@all", "-time"]),
    ] {
        let words = [
            "ACL",
            "SETUSER",
            user,
            "on",
            ">word",
            "~lock:*",
            "resetchannels",
            "&lock:*",
            rules[0],
            rules[1],
        ];
        server.command(&words).await;
        let url = format!("redis://{user}:word@127.0.0.1:{}", server.port());
        let client = LockClient::builder().url(url).connect_lazy().unwrap();
        let (result, elapsed) = timed(limiter(&client).wait(20 * WAIT).acquire()).await;
        assert_eq!(unavailable(result), StoreErrorKind::Denied, "{user}");
        assert!(elapsed < Duration::from_secs(10), "{elapsed:?}");
    }
    assert!(server.keys("*").await.is_empty());
}

#[tokio::test]
async fn a_bucket_that_is_something_else_is_a_conflict_and_stays_as_it_is() {
    let server = RedisServer::start().await;
    let client = client(&server.url()).await;
    let bucket = "lock:%rate:{lock:k}";
    for value in [
        "",
        "x",
        "17",
        "1:2",
        "1:2:3:4",
        "1:-2:3",
        "1:2:1e9",
        "1:2:99999999999999999",
        "1:99999999999999999:3",
    ] {
        server.command(&["SET", bucket, value]).await;
        for result in [
            limiter(&client).acquire().await,
            limiter(&client).wait(WAIT).acquire().await,
        ] {
            assert!(
                matches!(result, Err(LockError::KeyConflict { .. })),
                "{value}: {result:?}"
            );
        }
        assert_eq!(server.query::<String>(&["GET", bucket]).await, value);
    }
    // The largest numbers that a script can have written.
    server
        .command(&["SET", bucket, "1:9007199254740991:9007199254740991"])
        .await;
    limiter(&client).acquire().await.unwrap();
    server.command(&["DEL", bucket]).await;
    server.command(&["HSET", bucket, "field", "1"]).await;
    let result = limiter(&client).acquire().await;
    assert!(
        matches!(result, Err(LockError::KeyConflict { .. })),
        "{result:?}"
    );
    server.command(&["DEL", bucket]).await;
    // A lock of the same key is no bucket, and must not matter.
    server.command(&["HSET", "lock:k", "field", "1"]).await;
    limiter(&client).acquire().await.unwrap();
}

#[tokio::test]
async fn a_clock_set_back_costs_no_more_than_the_bucket() {
    let server = RedisServer::start().await;
    let client = client(&server.url()).await;
    let limiter = client.rate_limiter("k", Rate::per_second(20).burst(1));
    // Written an hour from now: the clock has gone back since.
    let time: Vec<u64> = server.query(&["TIME"]).await;
    let future = (time[0] + 3600) * 1_000_000;
    server
        .command(&[
            "SET",
            "lock:%rate:{lock:k}",
            &format!("{future}:0:50000000"),
        ])
        .await;
    limited(limiter.acquire().await);
    eventually("it passes soon", async || {
        limiter.try_acquire().await.unwrap().passed()
    })
    .await;
}

#[tokio::test]
async fn a_server_that_lost_its_data_begins_with_a_full_bucket() {
    let server = RedisServer::start().await;
    let client = client(&server.url()).await;
    limiter(&client).permits(5).await.unwrap();
    limited(limiter(&client).acquire().await);
    server.restart_empty().await;
    eventually("connected again", async || client.health().await.is_ok()).await;
    // The script's text is sent again, too.
    limiter(&client).permits(5).await.unwrap();
    limited(limiter(&client).acquire().await);
}
