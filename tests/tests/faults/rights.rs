//! The rights on the documentation's Redis page suffice for each kind, and none of them is
//! superfluous.

use std::time::Duration;

use lock_runtime::{LockClient, LockError, Rate};
use lock_testkit::{RedisServer, documented_rights, eventually};

const BASE: &str = "every client, rate limiters";
const LOCKS: &str = "locks of one or several keys";
const SHARES: &str = "read-write locks, semaphores";
const LATCHES: &str = "latches";

/// Makes a user with these rights and no others.
async fn allow(server: &RedisServer, user: &str, rights: &[&str]) -> String {
    let user_rule = ["ACL", "SETUSER", user, "on", ">word", "~lock:*", "&lock:*"];
    let rule: Vec<_> = user_rule.iter().chain(rights).copied().collect();
    server.command(&rule).await;
    format!("redis://{user}:word@{}/1", server.addr())
}

/// Whether this user was denied something. Earlier users may still be about to release.
async fn denied(server: &RedisServer, user: &str) -> bool {
    let log: Vec<Vec<redis::Value>> = server.query(&["ACL", "LOG", "128"]).await;
    let name = redis::Value::BulkString(user.as_bytes().to_vec());
    log.iter().any(|entry| entry.contains(&name))
}

/// The waiters were long not heard, so they are passed over until they look again.
async fn stands_still(server: &RedisServer) {
    let script = "redis.call('SELECT', 1)
        for _, place in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
            redis.call('ZINCRBY', KEYS[1], -2100000, place)
        end";
    let queue = "lock:%queue:{lock:k}";
    server.command(&["EVAL", script, "1", queue]).await;
}

async fn until_waiting(client: &LockClient, places: usize) {
    eventually("so many wait", async || {
        let found = client.inspect("k").await;
        found.map_or(true, |found| found.waiting == places)
    })
    .await;
}

/// Everything that clients do with locks: free and held, handed over, left, extended, lost,
/// repeated, forced.
async fn use_lock(
    stands_still_on: Option<&RedisServer>,
    client: &LockClient,
    kind: impl Fn() -> lock_runtime::Lock,
) -> Result<(), LockError> {
    let short = Duration::from_millis(60);
    let held = kind()
        .fenced()
        .lease(Duration::from_secs(5))
        .acquire()
        .await?;
    held.extend(Duration::from_secs(20)).await?;
    held.scope(kind().fenced().run(async {})).await?;
    kind().try_acquire().await?;
    _ = kind().wait(short).acquire().await;
    // Its place is given up in the background.
    until_waiting(client, 0).await;
    let waiting = kind().fenced().wait(Duration::from_secs(10));
    let waiting = tokio::spawn(waiting.acquire());
    until_waiting(client, 1).await;
    if let Some(server) = stands_still_on {
        stands_still(server).await;
    }
    held.release().await?;
    let Ok(next) = waiting.await else {
        return Ok(());
    };
    let next = next?;
    // The second of these two is free, or has to wait for the first.
    let brief = kind().lease(short).wait(Duration::ZERO);
    _ = brief.acquire().await;
    client.force_release("k").await?;
    _ = next.release().await;
    kind().hold_at_least(short).run(async {}).await?;
    client.health().await?;
    Ok(())
}

async fn tour(server: &RedisServer, client: &LockClient, kind: &str) -> Result<(), LockError> {
    match kind {
        BASE => {
            let limiter = client.rate_limiter("k", Rate::per_second(1));
            limiter.acquire().await?;
            limiter.try_acquire().await?;
            client.health().await.map(drop)
        }
        LOCKS => {
            use_lock(None, client, || client.lock("k")).await?;
            for stands_still_on in [None, Some(server)] {
                use_lock(stands_still_on, client, || client.lock("k").fair()).await?;
            }
            let several = || client.multi_lock(["k", "l"]).wait(Duration::from_secs(5));
            use_lock(None, client, several).await
        }
        SHARES => {
            let lock = client.rw_lock("k");
            use_lock(None, client, || lock.write()).await?;
            let (reader, dying) = (lock.read(), lock.read().lease(Duration::from_millis(60)));
            let (reader, dying) = (reader.acquire().await?, dying.acquire().await?);
            dying.lost().await;
            client.inspect("k").await?;
            reader.release().await?;
            lock.write().acquire().await?.downgrade().await?;
            let semaphore = client.semaphore("s", 2);
            let both = semaphore.permits(2).acquire().await?;
            let one = tokio::spawn(semaphore.permits(2).acquire());
            crate::until_waiting(client, "s", 1).await;
            // It stands behind the first in the store's queue, not in the local queue of this
            // process.
            let late = semaphore.permits(2).fair();
            let late = late.wait(Duration::from_millis(60));
            _ = late.acquire().await;
            both.release().await?;
            one.await.map_or(Ok(()), |one| one.map(drop))
        }
        _ => {
            let latch = client.latch("k");
            latch.set(1).await?;
            let waiting = {
                let latch = latch.clone();
                tokio::spawn(async move { latch.wait(Duration::from_secs(2)).await })
            };
            tokio::time::sleep(Duration::from_millis(100)).await;
            latch.count_down().await?;
            latch.count().await?;
            waiting.await.map_or(Ok(()), |open| open.map(drop))
        }
    }
}

#[tokio::test]
async fn the_documented_rights_suffice_for_each_kind_and_none_is_one_too_many() {
    let server = RedisServer::start().await;
    for kind in [BASE, LOCKS, SHARES, LATCHES] {
        let mut rights = documented_rights(BASE);
        if kind != BASE {
            rights.extend(documented_rights(kind));
        }
        let user = kind.replace([' ', ','], "");
        let url = allow(&server, &user, &rights).await;
        let client = LockClient::builder().url(&url).connect().await.unwrap();
        tour(&server, &client, kind).await.unwrap();
        drop(client);
        assert!(!denied(&server, &user).await, "{kind}");
        for right in documented_rights(kind) {
            server.command(&["FLUSHALL"]).await;
            // The server has to learn the scripts by their text again.
            server.command(&["SCRIPT", "FLUSH"]).await;
            let mut others = rights.clone();
            others.retain(|other| *other != right);
            let user = format!("{user}-{right}").replace('|', "-");
            let url = allow(&server, &user, &others).await;
            let builder = LockClient::builder().url(&url).wait(Duration::from_secs(1));
            if let Ok(client) = builder.connect().await {
                // On a busy machine a tour may come too late for what it wants to meet.
                for _ in 0..5 {
                    let until = eventually("it is denied", async || denied(&server, &user).await);
                    tokio::select! {
                        () = until => break,
                        _ = tour(&server, &client, kind) => {}
                    }
                    server.command(&["FLUSHALL"]).await;
                }
            }
            assert!(
                denied(&server, &user).await,
                "{kind}: {right} is not needed"
            );
        }
        server.command(&["FLUSHALL"]).await;
    }
}
