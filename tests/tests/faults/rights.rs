//! The rights on the documentation's Redis page suffice for each kind, and none of them is
//! superfluous.

use std::sync::Arc;
use std::time::Duration;

use lock_runtime::{LockClient, LockError, Rate, StoreErrorKind};
use lock_testkit::{
    RedisCluster, RedisQuorum, RedisServer, SentinelGroup, documented_rights, eventually,
    server_is_at_least, server_reloads_slowly,
};

use tokio::task::JoinHandle;

use crate::unavailable;

const BASE: &str = "every client, rate limiters";
const LOCKS: &str = "locks of one or several keys";
const SHARES: &str = "read-write locks, semaphores";
const LATCHES: &str = "latches";
const SECOND: Duration = Duration::from_secs(1);

/// Makes a user with these rights and no others.
async fn allow(server: &RedisServer, user: &str, rights: &[&str]) -> String {
    let user_rule = [
        "ACL",
        "SETUSER",
        user,
        "on",
        ">word",
        "~lock:*",
        "resetchannels",
        "&lock:*",
    ];
    let rule: Vec<_> = user_rule.iter().chain(rights).copied().collect();
    server.command(&rule).await;
    format!("redis://{user}:word@{}/1", server.addr())
}

/// Whether this user was denied something. Earlier users may still be about to release.
pub(crate) async fn denied(server: &RedisServer, user: &str) -> bool {
    let log: Vec<Vec<redis::Value>> = server.query(&["ACL", "LOG", "128"]).await;
    let name = redis::Value::BulkString(user.as_bytes().to_vec());
    log.iter().any(|entry| entry.contains(&name))
}

/// The waiters were long not heard, so they are suspended until they look again.
async fn make_stand_still(server: &RedisServer) {
    let script = "redis.call('SELECT', 1)
        for _, place in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
            redis.call('ZINCRBY', KEYS[1], -2100000, place)
        end";
    let queue = "lock:%queue:{lock:k}";
    server.command(&["EVAL", script, "1", queue]).await;
}

async fn until_waiting(client: &LockClient, places: usize) {
    eventually("all of them wait", async || {
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
        make_stand_still(server).await;
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
    // The log of what was denied is empty of what a client only tries since then.
    if !server_is_at_least(7) {
        return;
    }
    let server = RedisServer::start().await;
    for kind in [BASE, LOCKS, SHARES, LATCHES] {
        let mut rights = [BASE, LOCKS].map(documented_rights).concat();
        if ![BASE, LOCKS].contains(&kind) {
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

/// Runs a body under a lock of a client that is made, or of one that connects in the background.
/// The errors, which both have before the body.
async fn refused(url: &str) -> [LockError; 2] {
    let connected = LockClient::builder().url(url).connect().await;
    let lazy = LockClient::builder().url(url).connect_lazy().unwrap();
    let Err(refused) = connected else {
        panic!("{url} is connected to");
    };
    [refused, refused_body(&lazy).await]
}

async fn refused_body(client: &LockClient) -> LockError {
    let mut began = false;
    let body = async { began = true };
    let wait = Duration::from_secs(20);
    let result = client.lock("k").wait(wait).run(body).await;
    assert!(!began, "it began, and then {result:?}");
    result.unwrap_err()
}

/// The error says which right is missing.
pub(crate) fn assert_denied(error: LockError, right: &str) {
    let said = error.to_string().to_lowercase();
    let command = right.trim_start_matches('+');
    assert!(said.contains(command), "{right}: {said}");
    let kind = unavailable(Err::<(), _>(error));
    assert_eq!(kind, StoreErrorKind::Denied, "{said}");
}

#[tokio::test]
async fn what_is_missing_is_told_before_any_body_runs() {
    let server = RedisServer::start().await;
    let rights = [BASE, LOCKS].map(documented_rights).concat();
    for right in &rights {
        let others: Vec<_> = rights.iter().filter(|one| *one != right).copied().collect();
        let user = format!("no-{}", right.trim_start_matches('+').replace('|', "-"));
        let url = allow(&server, &user, &others).await;
        for error in refused(&url).await {
            assert_denied(error, right);
        }
    }
    for (user, keys, missing) in [
        ("no-key", ["~other:*", "&lock:*"], "~lock:*"),
        ("no-channel", ["~lock:*", "&other:*"], "&lock:*"),
    ] {
        let rule = [
            "ACL",
            "SETUSER",
            user,
            "on",
            ">word",
            "+@all",
            "resetchannels",
        ];
        let rule: Vec<_> = rule.iter().chain(&keys).copied().collect();
        server.command(&rule).await;
        for error in refused(&format!("redis://{user}:word@{}", server.addr())).await {
            assert_denied(error, missing);
        }
    }
    assert!(server.keys("*").await.is_empty(), "nothing is left");
}

#[tokio::test]
async fn a_command_that_the_server_lacks_is_told_before_any_body_runs() {
    for command in [
        "TIME",
        "EVAL",
        "EVALSHA",
        "DEL",
        "PEXPIRE",
        "PUBLISH",
        "ZADD",
        "SUBSCRIBE",
    ] {
        let server = RedisServer::builder().arg("--rename-command");
        let server = server.arg(command).arg("").start().await;
        for error in refused(&server.url()).await {
            let said = error.to_string();
            assert!(said.contains(&format!("`{command}`")), "{command}: {said}");
        }
    }
}

/// As some hosts do it. Here another command, which scripts may not run, has its name.
#[tokio::test]
async fn a_command_that_scripts_may_not_run_is_told_before_any_body_runs() {
    let server = RedisServer::builder();
    let renamed = ["--rename-command", "TIME", "ITS-TIME"];
    let renamed = renamed
        .into_iter()
        .chain(["--rename-command", "MULTI", "TIME"]);
    let server = renamed
        .fold(server, |server, word| server.arg(word))
        .start()
        .await;
    for error in refused(&server.url()).await {
        let said = error.to_string();
        let says = said.contains("`TIME` in scripts") && said.contains("not allowed from script");
        assert!(says, "{said}");
    }
}

/// Begins to load its data, slowly. The task ends when that is done.
async fn loads(server: &Arc<RedisServer>) -> JoinHandle<()> {
    let fill = "for i = 1, 30000 do redis.call('SET', 'x' .. i, i) end";
    server.command(&["EVAL", fill, "0"]).await;
    for (name, value) in [
        // It answers in between.
        ("loading-process-events-interval-bytes", "1024"),
        ("key-load-delay", "300"),
    ] {
        server.command(&["CONFIG", "SET", name, value]).await;
    }
    let reloaded = Arc::clone(server);
    let loads = tokio::spawn(async move { drop(reloaded.command(&["DEBUG", "RELOAD"]).await) });
    eventually("it is loading", async || {
        let refused = server.try_command(&["GET", "x1"]).await;
        refused.is_err_and(|error| error.code() == Some("LOADING"))
    })
    .await;
    loads
}

#[tokio::test]
async fn a_server_that_is_loading_is_connected_to_and_tells_afterwards_what_is_missing() {
    if !server_reloads_slowly() {
        return;
    }
    let server = Arc::new(RedisServer::start().await);
    let rights = [BASE, LOCKS].map(documented_rights).concat();
    let url = allow(&server, "app", &rights).await;
    let denied = allow(&server, "no-time", &rights).await;
    server
        .command(&["ACL", "SETUSER", "no-time", "-time"])
        .await;
    let loads = loads(&server).await;
    let connect = async |url: &str| {
        // It takes its time for each answer.
        let builder = LockClient::builder().url(url).connect_timeout(10 * SECOND);
        builder.connect().await.unwrap()
    };
    let (client, other) = tokio::join!(connect(&url), connect(&denied));
    for client in [&client, &other] {
        let tried = client.lock("k").wait(Duration::ZERO).acquire().await;
        assert_eq!(unavailable(tried), StoreErrorKind::Loading);
    }
    let waits = tokio::spawn(client.lock("k").wait(60 * SECOND).acquire());
    server
        .command(&["CONFIG", "SET", "key-load-delay", "0"])
        .await;
    loads.await.unwrap();
    assert!(waits.await.unwrap().unwrap().is_held());
    eventually("it is told", async || {
        let tried = other.lock("l").wait(Duration::ZERO).acquire().await;
        tried.is_err_and(|error| error.to_string().contains("`TIME`"))
    })
    .await;
}

#[tokio::test]
async fn a_right_that_is_taken_away_is_told_by_the_next_connection() {
    let server = RedisServer::start().await;
    let rights = [BASE, LOCKS].map(documented_rights).concat();
    let url = allow(&server, "app", &rights).await;
    let client = LockClient::builder().url(&url).connect().await.unwrap();
    client.lock("k").run(async {}).await.unwrap();
    server.command(&["ACL", "SETUSER", "app", "-pexpire"]).await;
    server.command(&["CLIENT", "KILL", "USER", "app"]).await;
    eventually("it is told", async || {
        // Until the connection is known to be gone, a command may use it.
        let tried = client.lock("k").wait(Duration::ZERO).acquire().await;
        tried.is_err_and(|error| error.to_string().contains("`PEXPIRE`"))
    })
    .await;
    assert_denied(refused_body(&client).await, "+pexpire");
    server.command(&["ACL", "SETUSER", "app", "+pexpire"]).await;
    eventually("it is used again", async || {
        client.lock("k").run(async {}).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn a_right_that_is_taken_away_under_a_holder_is_told_before_the_next_body_runs() {
    let server = RedisServer::start().await;
    let rights = [BASE, LOCKS].map(documented_rights).concat();
    let url = allow(&server, "app", &rights).await;
    let client = LockClient::builder()
        .url(&url)
        .lease(Duration::from_secs(2));
    let client = client.connect().await.unwrap();
    for right in ["+pexpire", "+get"] {
        let guard = client.lock("held").acquire().await.unwrap();
        let taken = right.replace('+', "-");
        server.command(&["ACL", "SETUSER", "app", &taken]).await;
        guard.lost().await;
        assert_denied(refused_body(&client).await, right);
        server.command(&["ACL", "SETUSER", "app", right]).await;
        eventually("it is used again", async || {
            client.lock("k").run(async {}).await.is_ok()
        })
        .await;
    }
}

/// What the scripts may not read is not known. So a hold is neither lost nor released, a lock is
/// nothing else, and nobody takes it before those who wait.
#[tokio::test]
async fn a_read_that_is_taken_away_under_a_holder_is_denied_and_no_loss() {
    let server = RedisServer::start().await;
    let rights = [BASE, LOCKS, SHARES].map(documented_rights).concat();
    let url = allow(&server, "app", &rights).await;
    let connect = async || LockClient::builder().url(&url).connect().await.unwrap();
    let (client, other) = (connect().await, connect().await);
    let lock = |client: &LockClient| client.lock("k").fenced().wait(Duration::ZERO).acquire();
    let permit = |client: &LockClient| {
        let permit = client.semaphore("s", 2).permit();
        permit.wait(Duration::ZERO).acquire()
    };
    let held = [
        ("get", lock(&client).await),
        ("zscore", permit(&client).await),
    ];
    for (right, held) in held {
        let held = held.unwrap();
        let change = async |sign: &str| {
            let rule = format!("{sign}{right}");
            server.command(&["ACL", "SETUSER", "app", &rule]).await;
        };
        change("-").await;
        let key = held.key().clone();
        for denied in [
            held.extend(20 * SECOND).await,
            client.inspect(&key).await.map(drop),
            client.force_release(&key).await.map(drop),
            match right {
                "get" => lock(&other).await.map(drop),
                _ => permit(&other).await.map(drop),
            },
        ] {
            assert_eq!(unavailable(denied), StoreErrorKind::Denied, "{right}");
        }
        assert!(held.is_held(), "{right}");
        change("+").await;
        // 250 ms after a denial, the client asks what it may do. If the right was still missing,
        // it has left its connection, and makes another one.
        eventually("it may extend again", async || {
            held.extend(20 * SECOND).await.is_ok()
        })
        .await;
        change("-").await;
        assert_eq!(
            unavailable(held.release().await),
            StoreErrorKind::Denied,
            "{right}"
        );
        change("+").await;
        eventually("it is released afterwards", async || {
            let seen = client.inspect(&key).await;
            seen.is_ok_and(|seen| seen.holder.is_none())
        })
        .await;
    }
}

#[tokio::test]
async fn a_server_that_is_full_or_read_only_is_connected_to() {
    let (full, master, replica) = (
        RedisServer::start().await,
        RedisServer::start().await,
        RedisServer::start().await,
    );
    full.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let port = master.port().to_string();
    replica.command(&["REPLICAOF", "127.0.0.1", &port]).await;
    for (server, kind) in [
        (&full, StoreErrorKind::OutOfMemory),
        (&replica, StoreErrorKind::ReadOnly),
    ] {
        let client = LockClient::builder().url(server.url()).connect().await;
        let tried = client
            .unwrap()
            .lock("k")
            .wait(Duration::ZERO)
            .acquire()
            .await;
        assert_eq!(unavailable(tried), kind);
    }
}

/// As during a failover.
#[tokio::test]
async fn a_server_that_takes_no_writes_for_a_while_is_connected_to() {
    let server = RedisServer::start().await;
    server.command(&["CLIENT", "PAUSE", "60000", "WRITE"]).await;
    let builder = LockClient::builder().url(server.url());
    let client = builder.connect().await.unwrap();
    server.command(&["CLIENT", "UNPAUSE"]).await;
    drop(client.lock("k").acquire().await.unwrap());
    // What is missing is told afterwards.
    let rights = [BASE, LOCKS].map(documented_rights).concat();
    let url = allow(&server, "app", &rights).await;
    server.command(&["ACL", "SETUSER", "app", "-time"]).await;
    server.command(&["CLIENT", "PAUSE", "60000", "WRITE"]).await;
    let client = LockClient::builder().url(url).connect().await.unwrap();
    server.command(&["CLIENT", "UNPAUSE"]).await;
    eventually("it is told", async || {
        let tried = client.lock("k").wait(Duration::ZERO).acquire().await;
        tried.is_err_and(|error| error.to_string().contains("`TIME`"))
    })
    .await;
}

/// Takes one right away from `app` at each server, and gives it back afterwards.
async fn each_is_told(servers: &[&RedisServer], url: &str, rights: &[&str], taken: &[&str]) {
    for server in servers {
        allow(server, "app", rights).await;
    }
    let url = url.replace("://", "://app:word@");
    let client = LockClient::builder().url(&url).connect().await.unwrap();
    client.lock("k").run(async {}).await.unwrap();
    for right in taken {
        for server in servers {
            let rule = right.replacen('+', "-", 1);
            server.command(&["ACL", "SETUSER", "app", &rule]).await;
        }
        for error in refused(&url).await {
            assert_denied(error, &right.replace('|', " "));
        }
        for server in servers {
            server.command(&["ACL", "SETUSER", "app", right]).await;
        }
    }
}

#[tokio::test]
async fn every_kind_of_url_tells_what_is_missing() {
    let locks = [BASE, LOCKS].map(documented_rights).concat();
    let usual = ["+eval", "+del", "+publish", "+subscribe", "+zadd"];

    let group = SentinelGroup::builder().patient().start().await;
    let servers: Vec<_> = group.servers.iter().collect();
    let mut more = locks.clone();
    more.extend(documented_rights("confirmation by replicas, besides"));
    each_is_told(&servers, &group.url(), &locks, &usual).await;
    let confirmed = format!("{}?replicas=1", group.url());
    each_is_told(&servers, &confirmed, &more, &["+wait", "+pexpire"]).await;

    let quorum = RedisQuorum::start(3).await;
    let servers: Vec<_> = quorum.servers.iter().collect();
    let mut more = locks.clone();
    more.extend(documented_rights("a quorum, besides"));
    each_is_told(&servers, &quorum.url(), &more, &usual).await;
    // One server alone is told at the start. Later the majority does without it.
    let url = quorum.url().replace("://", "://app:word@");
    servers[0].command(&["ACL", "SETUSER", "app", "-del"]).await;
    let refused = LockClient::builder().url(&url).connect().await;
    assert_denied(refused.unwrap_err(), "+del");

    if !server_is_at_least(7) {
        return;
    }
    let cluster = RedisCluster::start_patient().await;
    let servers: Vec<_> = cluster.nodes.iter().collect();
    let mut more = locks.clone();
    more.extend(documented_rights("Redis Cluster, besides"));
    let taken = [
        "+eval",
        "+del",
        "+spublish",
        "+ssubscribe",
        "+asking",
        "+cluster|slots",
    ];
    each_is_told(&servers, &cluster.url(), &more, &taken).await;
}
