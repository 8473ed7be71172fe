//! The rights for each layout on the documentation's Redis page suffice, and none of them is
//! superfluous.

use std::time::Duration;

use lock_runtime::{Lock, LockClient, LockError};
use lock_testkit::{RedisCluster, RedisServer, documented_rights, eventually, server_is_at_least};

use crate::rights::{assert_denied, denied};

const SHEDLOCK: &str = "layout shedlock";
const TIMESTAMP: &str = "layout timestamp";
const REDISSON: &str = "layout redisson, locks: fenced and fair ones, too";
const REDISSON_CLUSTER: &str = "layout redisson in Redis Cluster, besides";
const REDISSON_SHARES: &str = "layout redisson, read-write locks and semaphores, besides";

/// Makes a user with these rights on the names of one key, and no others. The URL.
async fn allow(server: &RedisServer, user: &str, row: &str, rights: &[&str]) -> String {
    let layout = row.split([' ', ',']).nth(1).unwrap();
    let names: &[&str] = match layout {
        "shedlock" => &["~job-lock:*", "&job-lock:*"],
        "timestamp" => &["~k", "~%*", "&%*"],
        _ => &[
            "~k",
            "~%unused:*",
            "~redisson_lock*",
            "~{k*",
            "&%*",
            "&redisson_*",
        ],
    };
    let rule = ["ACL", "SETUSER", user, "on", ">word", "resetchannels"];
    let rule: Vec<_> = rule.iter().chain(names).chain(rights).copied().collect();
    server.command(&rule).await;
    let address = server.addr();
    format!("redis://{user}:word@{address}/1?layout={layout}")
}

/// Everything that clients do with locks: free and held, waited for, left, extended, forced, kept;
/// and what is none.
async fn use_lock(
    server: &RedisServer,
    client: &LockClient,
    kind: impl Fn() -> Lock,
) -> Result<(), LockError> {
    let (short, long) = (Duration::from_millis(60), Duration::from_secs(20));
    let held = kind().lease(long).acquire().await?;
    held.extend(long + short).await?;
    kind().try_acquire().await?;
    _ = kind().wait(short).acquire().await;
    let waiting = tokio::spawn(kind().wait(long).acquire());
    eventually("it waits", async || client.stats().waiting == 1).await;
    client.inspect("k").await?;
    held.release().await?;
    let next = waiting.await.unwrap()?;
    client.force_release("k").await?;
    _ = next.release().await;
    kind().hold_at_least(short).run(async {}).await?;
    kind().wait(long).acquire().await?.release().await?;
    let list = "redis.call('SELECT', 1)
        redis.call('DEL', KEYS[1])
        redis.call('RPUSH', KEYS[1], 'x')";
    for name in ["k", "job-lock:default:k"] {
        server.command(&["EVAL", list, "1", name]).await;
    }
    let conflict = kind().acquire().await;
    server.command(&["FLUSHALL"]).await;
    match conflict {
        Err(LockError::KeyConflict { .. }) => Ok(()),
        other => other.map(drop),
    }
}

async fn tour(server: &RedisServer, client: &LockClient, row: &str) -> Result<(), LockError> {
    match row {
        REDISSON => {
            use_lock(server, client, || client.lock("k")).await?;
            use_lock(server, client, || client.lock("k").fenced()).await?;
            use_lock(server, client, || client.lock("k").fair()).await?;
            let nested = client.lock("k").acquire().await?;
            let fenced = client.lock("k").fenced();
            nested.scope(fenced.run(async {})).await?;
            // A lock of another version is no less to be told from what may be deleted.
            let other = "redis.call('SELECT', 1)
                redis.call('HSET', KEYS[1], '0b5e0de8-4f3c-4a5e-9f57-a2b1c3d4e5f6:1', 'x')";
            server.command(&["EVAL", other, "1", "k"]).await;
            let told = client.lock("k").acquire().await.unwrap_err().to_string();
            assert!(told.contains("in a form that this version"), "{told}");
            server.command(&["FLUSHALL"]).await;
            Ok(())
        }
        REDISSON_SHARES => {
            let limit = [
                "EVAL",
                "redis.call('SELECT', 1) redis.call('SET', KEYS[1], 2)",
                "1",
                "k",
            ];
            use_lock(server, client, || client.rw_lock("k").write()).await?;
            let (one, two) = (client.rw_lock("k").read(), client.rw_lock("k").read());
            let (one, two) = (one.acquire().await?, two.acquire().await?);
            client.inspect("k").await?;
            one.release().await?;
            two.release().await?;
            let writes = client.rw_lock("k").write().acquire().await?;
            writes.downgrade().await?;
            writes.release().await?;
            server.command(&limit).await;
            let semaphore = client.semaphore("k", 2);
            use_lock(server, client, || semaphore.permits(2)).await
        }
        _ => use_lock(server, client, || client.lock("k")).await,
    }
}

#[tokio::test]
async fn the_documented_rights_suffice_for_each_layout_and_none_is_one_too_many() {
    // Before, what would write can't be asked about.
    if !server_is_at_least(7) {
        return;
    }
    let server = RedisServer::start().await;
    for row in [SHEDLOCK, TIMESTAMP, REDISSON, REDISSON_SHARES] {
        let own = documented_rights(row);
        let base = if row == REDISSON_SHARES {
            REDISSON
        } else {
            row
        };
        let mut rights = documented_rights(base);
        if base != row {
            rights.extend(&own);
        }
        let user = row.replace([' ', ',', ':'], "");
        let url = allow(&server, &user, row, &rights).await;
        let builder = LockClient::builder().url(&url);
        let client = builder.connect().await.unwrap();
        let toured = tour(&server, &client, row).await;
        toured.unwrap_or_else(|error| panic!("{row}: {error}"));
        drop(client);
        assert!(!denied(&server, &user).await, "{row}");
        for right in own {
            server.command(&["SCRIPT", "FLUSH"]).await;
            let others: Vec<_> = rights
                .iter()
                .filter(|one| **one != right)
                .copied()
                .collect();
            let user = format!("{user}-{right}").replace('|', "-");
            let url = allow(&server, &user, row, &others).await;
            let connected = LockClient::builder().url(&url).connect().await;
            if base == row {
                // Before any lock is held that could not be kept or released.
                let Err(error) = connected else {
                    panic!("{row}: connected without {right}");
                };
                assert_denied(error, right);
                continue;
            }
            let client = connected.unwrap();
            _ = tour(&server, &client, row).await;
            assert!(denied(&server, &user).await, "{row}: {right} is not needed");
            server.command(&["FLUSHALL"]).await;
        }
    }
}

#[tokio::test]
async fn the_rights_for_redissons_layout_in_a_cluster_are_asked_for_at_connect() {
    if !server_is_at_least(7) {
        return;
    }
    let cluster = RedisCluster::start_masters().await;
    let own = documented_rights(REDISSON_CLUSTER);
    let rights = [documented_rights(REDISSON), own.clone()].concat();
    for node in &cluster.nodes {
        allow(node, "app", REDISSON, &rights).await;
    }
    let url = cluster.url().replace("://", "://app:word@") + "?layout=redisson";
    let client = async || LockClient::builder().url(&url).connect().await;
    let (one, other) = (client().await.unwrap(), client().await.unwrap());
    let held = one.lock("k").acquire().await.unwrap();
    let waiting = tokio::spawn(other.lock("k").fair().acquire());
    eventually("it waits", async || other.stats().waiting == 1).await;
    held.release().await.unwrap();
    waiting.await.unwrap().unwrap().release().await.unwrap();
    let node = cluster.master_of(cluster.slot("k").await).await;
    eventually("its channel is given up", async || {
        let channels: Vec<String> = node.query(&["PUBSUB", "SHARDCHANNELS"]).await;
        channels.is_empty()
    })
    .await;
    for right in own {
        for node in &cluster.nodes {
            assert!(!denied(node, "app").await);
            let rule = right.replacen('+', "-", 1);
            node.command(&["ACL", "SETUSER", "app", &rule]).await;
        }
        assert_denied(client().await.unwrap_err(), right);
        for node in &cluster.nodes {
            node.command(&["ACL", "SETUSER", "app", right]).await;
            node.command(&["ACL", "LOG", "RESET"]).await;
        }
    }
}
