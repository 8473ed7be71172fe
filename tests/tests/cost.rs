//! What locks cost the server, in counted commands and never in time.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that can't go on has failed"
)]

use std::time::Duration;

use lock_runtime::{LockClient, LockError, Rate};
use lock_testkit::{RedisServer, Request, RequestLog, eventually};

/// A client that has heard the server's own settings, and does not ask again. A busy machine's late
/// answers bring no other connection, and what that costs. If it leaves something to be done, it is
/// shut down while its server is there: else it would wait for that in vain.
async fn settled(server: &RedisServer) -> LockClient {
    let builder = LockClient::builder().url(server.url());
    let builder = builder.command_timeout(Duration::from_secs(10));
    let client = builder.connect().await.unwrap();
    client.health().await.unwrap();
    client
}

/// Whether `health` sends it.
fn of_health(request: &Request) -> bool {
    ["ping", "hello", "eval", "time", "info"].contains(&&*request.command)
}

async fn connected() -> (RedisServer, LockClient) {
    let server = RedisServer::start().await;
    let client = settled(&server).await;
    // From now on the server knows the scripts.
    client
        .lock("warm")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    client
        .lock("warm")
        .fenced()
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    // Nor is there an attempt to connect that another one has overtaken.
    eventually("the client has one connection", async || {
        server.client_count().await == 1
    })
    .await;
    (server, client)
}

/// All of them, which are ready together: the server stands still until each was polled. Else what
/// is ready at a time depends on how busy the machine is.
async fn at_once<F: Future>(
    server: &RedisServer,
    requests: impl IntoIterator<Item = F>,
) -> Vec<F::Output> {
    server.pause();
    let resume = async {
        // More than the turns in which all of them are polled.
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
        server.resume();
    };
    tokio::join!(futures_util::future::join_all(requests), resume).0
}

#[tokio::test]
async fn two_hundred_tenants_have_the_connections_of_one_client() {
    let (server, client) = connected().await;
    let before = server.client_count().await;
    let mut held = Vec::new();
    for number in 0..200 {
        let tenant = client.namespaced(&format!("tenant-{number}"));
        held.push(tenant.lock("k").acquire().await.unwrap());
    }
    assert_eq!(client.health().await.unwrap().held, 200);
    assert_eq!(server.keys("tenant-*").await.len(), 200);
    assert_eq!(server.client_count().await, before);
    client.shutdown(Duration::ZERO).await;
}

/// Each has its own outcome: one of them waits for its turn, and one has lost its lock.
#[tokio::test]
async fn releases_that_are_ready_together_are_few_commands_and_each_has_its_own_outcome() {
    let (server, client) = connected().await;
    let other = settled(&server).await;
    let key = |number: usize| format!("k{number}");
    let mut held = Vec::new();
    for number in 0..100 {
        held.push(client.lock(key(number)).acquire().await.unwrap());
    }
    let waiting = other.lock("k50").wait(Duration::from_secs(60));
    let waiting = tokio::spawn(waiting.acquire());
    eventually("it waits", async || {
        client.inspect("k50").await.unwrap().waiting == 1
    })
    .await;
    server.command(&["DEL", "lock:k70"]).await;
    let before = server.command_calls("evalsha").await;
    let releases = held.into_iter().map(lock_runtime::Guard::release);
    let outcomes = at_once(&server, releases).await;
    let calls = server.command_calls("evalsha").await - before;
    assert!(calls <= 12, "{calls}");
    for (number, outcome) in outcomes.into_iter().enumerate() {
        let is_lost = matches!(outcome, Err(LockError::Lost { .. }));
        assert_eq!(is_lost, number == 70, "{number}: {outcome:?}");
        assert!(is_lost || outcome.is_ok(), "{number}: {outcome:?}");
    }
    let next = waiting.await.unwrap().unwrap();
    assert_eq!(server.keys("lock:k*").await, ["lock:k50"]);
    next.release().await.unwrap();
}

/// Each has its own outcome: one lock is held, and the counter of another is none.
#[tokio::test]
async fn requests_by_a_script_that_are_ready_together_are_few_commands() {
    let (server, client) = connected().await;
    let other = settled(&server).await;
    let held = other.lock("k30").acquire().await.unwrap();
    server
        .command(&["SET", "lock:%fence:{lock:k40}", "no number"])
        .await;
    let key = |number: usize| format!("k{number}");
    let evalsha = async || server.command_calls("evalsha").await;

    let before = evalsha().await;
    let tries = (0..64).map(|number| {
        let lock = client.lock(key(number)).fenced();
        async move { lock.try_acquire().await }
    });
    let outcomes = at_once(&server, tries).await;
    // Otherwise the first alone, the others in two, the two that were not free once more, and what
    // is at the last one's key.
    let calls = evalsha().await - before;
    assert!(calls <= 12, "{calls}");
    for (number, outcome) in outcomes.into_iter().enumerate() {
        match (number, outcome) {
            (30, outcome) => assert!(matches!(outcome, Ok(None)), "{outcome:?}"),
            (40, outcome) => assert!(matches!(outcome, Err(LockError::KeyConflict { .. }))),
            (_, outcome) => {
                let guard = outcome.unwrap().unwrap();
                assert!(guard.fencing_token().is_some(), "{number}");
                guard.release().await.unwrap();
            }
        }
    }

    // From now on it hears of its turns.
    let first = client.lock("warm").fair().acquire().await.unwrap();
    first.release().await.unwrap();
    let before = evalsha().await;
    let waits = (0..64).map(|number| {
        let lock = client
            .lock(key(number))
            .fair()
            .wait(Duration::from_secs(60));
        async move { lock.acquire().await }
    });
    let release = async {
        eventually("one waits", async || {
            let stats = client.stats();
            (stats.held, stats.waiting) == (63, 1)
        })
        .await;
        let calls = evalsha().await - before;
        held.release().await.unwrap();
        calls
    };
    let (outcomes, calls) = tokio::join!(at_once(&server, waits), release);
    assert!(calls <= 12, "{calls}");
    for outcome in outcomes {
        outcome.unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn an_uncontended_acquire_and_release_are_exactly_two_commands() {
    let (server, client) = connected().await;
    let calls = async || {
        (
            server.command_calls("set").await,
            server.command_calls("evalsha").await,
        )
    };
    let before = calls().await;
    let mut log = server.requests().await;
    client
        .lock("k")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    let commands: Vec<_> = log
        .take()
        .await
        .into_iter()
        .map(|request| request.command)
        .collect();
    assert_eq!(commands, ["set", "evalsha"]);
    let after = calls().await;
    assert_eq!(
        (after.0 - before.0, after.1 - before.1),
        (1, 1),
        "INFO commandstats says the same"
    );

    client
        .lock("k")
        .fenced()
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    client
        .lock("k")
        .fair()
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    let commands: Vec<_> = log
        .take()
        .await
        .into_iter()
        .map(|request| request.command)
        .collect();
    assert_eq!(
        commands.iter().filter(|name| *name == "evalsha").count(),
        4,
        "{commands:?}"
    );
    assert_eq!(
        commands.iter().filter(|name| *name == "subscribe").count(),
        1,
        "fair queues: {commands:?}"
    );
}

/// How many keys a request names. `SET` names one, a script says how many.
fn keys_of(request: &Request) -> String {
    let second = request
        .text
        .split('"')
        .filter(|word| word.trim() != "")
        .nth(2);
    match request.command.as_str() {
        "set" => "1 key".to_owned(),
        "evalsha" if second == Some("1") => "1 key".to_owned(),
        "evalsha" => format!("{} keys", second.unwrap()),
        other => panic!("{other} is not in the table"),
    }
}

/// What clients sent since the last call, without the test's own questions.
async fn sent(log: &mut RequestLog) -> Vec<Request> {
    let mut requests = log.take().await;
    requests.retain(|request| matches!(request.command.as_str(), "set" | "eval" | "evalsha"));
    requests
}

fn only(requests: Vec<Request>) -> String {
    assert_eq!(requests.len(), 1, "{requests:?}");
    format!("1, {}", keys_of(&requests[0]))
}

#[tokio::test]
async fn each_kind_costs_what_its_page_says() {
    let page = include_str!("../../lock-runtime/docs/cost.md");
    let (server, client) = connected().await;
    let lock = client.lock("k");
    let kinds = [
        ("exclusive", lock.clone(), 1),
        ("exclusive, fenced", lock.clone().fenced(), 1),
        ("exclusive, fair", lock.fair(), 1),
        ("read", client.rw_lock("k").read(), 1),
        ("write", client.rw_lock("k").write(), 1),
        ("semaphore", client.semaphore("k", 5).permits(2), 1),
        ("several keys", client.multi_lock(["k", "l", "m"]), 3),
    ];
    for (kind, request, keys) in kinds {
        let row = page
            .lines()
            .find_map(|line| line.strip_prefix(&format!("| {kind} | ")));
        let told: Vec<_> = row.unwrap().split(" | ").collect();
        let told = |column: usize| {
            told[column]
                .replace("3n keys", "9 keys")
                .replace("n keys", "3 keys")
        };
        // Between two commands of the test there is time for one renewal, and not for two.
        let request = request.lease(Duration::from_secs(6)).renew(true);
        // The first time, the server learns the scripts, and the client subscribes for its place in
        // the queue.
        let first = request.clone().acquire().await.unwrap();
        first.extend(Duration::from_secs(10)).await.unwrap();
        first.release().await.unwrap();
        let mut log = server.requests().await;
        let guard = request.acquire().await.unwrap();
        assert_eq!(only(sent(&mut log).await), told(0), "{kind}");
        let mut locks = server.keys("lock:?").await;
        assert_eq!(locks.len(), keys, "{kind}: {locks:?}");
        let stays: String = server.query(&["TYPE", &locks.pop().unwrap()]).await;
        let stays = if stays == "zset" {
            "sorted set"
        } else {
            "string"
        };
        assert!(told(3).contains(stays), "{kind}: {stays}");
        let mut renewal = Vec::new();
        while renewal.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
            renewal = sent(&mut log).await;
        }
        assert_eq!(only(renewal), told(2), "{kind}");
        guard.release().await.unwrap();
        // Another renewal may have come before it.
        let release = sent(&mut log).await.pop().into_iter().collect();
        assert_eq!(only(release), told(1), "{kind}");
        server.command(&["FLUSHALL"]).await;
    }
}

#[tokio::test]
async fn a_try_is_exactly_one_command() {
    let (server, client) = connected().await;
    let guard = client.lock("k").acquire().await.unwrap();
    let mut log = server.requests().await;
    assert!(client.lock("k").try_acquire().await.unwrap().is_none());
    for request in [client.lock("k").fenced(), client.lock("k").fair()] {
        assert!(request.try_acquire().await.unwrap().is_none());
    }
    let free = client.lock("free").try_acquire().await.unwrap().unwrap();
    let commands: Vec<_> = log
        .take()
        .await
        .into_iter()
        .map(|request| request.command)
        .collect();
    assert_eq!(commands, ["set", "evalsha", "evalsha", "set"]);
    drop((guard, free));
    client.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn a_rate_limiter_costs_one_command_a_decision_and_one_small_key() {
    let (server, client) = connected().await;
    let limiter = client.rate_limiter("k", Rate::per_second(1).burst(3));
    let waiting = limiter.clone().wait(Duration::from_secs(20));
    limiter.acquire().await.unwrap();
    server.reset_stats().await;
    let mut log = server.requests().await;
    waiting.permits(3).await.unwrap(); // sleeps
    limiter.acquire().await.unwrap_err();
    limiter.permits(3).await.unwrap_err();
    assert!(!limiter.try_acquire().await.unwrap().passed());
    waiting.acquire().await.unwrap();
    let commands: Vec<_> = log
        .take()
        .await
        .into_iter()
        .map(|request| request.command)
        .collect();
    assert_eq!(commands, ["evalsha"; 5]);
    let calls = server.command_calls("evalsha").await;
    assert_eq!(calls, 5, "INFO commandstats says the same");
    // Two of these three did not touch the bucket.
    assert_eq!(server.command_calls("set").await, 2);

    // However many tokens were taken: one key, a few bytes, gone when the bucket is full again.
    let slow = Rate::per_hour(3600).burst(500);
    for _ in 0..500 {
        let limiter = client.rate_limiter("{tenant}:slow", slow);
        limiter.acquire().await.unwrap();
    }
    let bucket = "lock:%rate:{tenant}:lock:{tenant}:slow";
    assert_eq!(server.keys("*slow").await, [bucket]);
    let bytes: usize = server.query(&["STRLEN", bucket]).await;
    assert!(bytes <= 50, "{bytes}");
    let ttl: u64 = server.query(&["PTTL", bucket]).await;
    assert!((400_000..=500_003).contains(&ttl), "{ttl}");
    let fast = client.rate_limiter("fast", Rate::per_second(5));
    fast.acquire().await.unwrap();
    eventually("a full bucket is gone", async || {
        server.keys("*fast*").await.is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_nested_call_costs_no_command() {
    let (server, client) = connected().await;
    let guard = client.lock("k").fenced().acquire().await.unwrap();
    let mut log = server.requests().await;
    guard
        .scope(
            client
                .lock("k")
                .fenced()
                .run(client.lock("k").run(async {})),
        )
        .await
        .unwrap()
        .unwrap();
    assert_eq!(log.take().await.len(), 0);
    drop(guard);
    client.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn a_hundred_waiting_tasks_cost_the_server_a_few_commands_a_second() {
    for fair in [false, true] {
        let (server, client) = connected().await;
        let holder = settled(&server).await;
        let held = holder.lock("k").acquire().await.unwrap();
        let mut waiting = tokio::task::JoinSet::new();
        for _ in 0..100 {
            let request = client.lock("k").wait_forever();
            let request = if fair { request.fair() } else { request };
            waiting.spawn(async move { request.acquire().await.unwrap().release().await.unwrap() });
        }
        let places = if fair { 100 } else { 1 };
        eventually("all wait", async || {
            client.health().await.unwrap().waiting == 100
                && holder.inspect("k").await.unwrap().waiting == places
        })
        .await;
        let mut log = server.requests().await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        let requests = log.take().await;
        assert!(requests.len() <= 10, "{} in five seconds", requests.len());
        assert!(
            !requests.is_empty(),
            "the first in line looks again now and then"
        );
        assert_eq!(
            server.grant_channels().await.len(),
            1,
            "one subscription for a hundred waiters"
        );
        held.release().await.unwrap();
        while let Some(served) = waiting.join_next().await {
            served.unwrap();
        }
        // A waiter does not have to ask again, however long it has waited.
        let requests = sent(&mut log).await;
        assert!(requests.len() <= 110, "{} for a hundred", requests.len());
        assert!(!fair || requests.len() >= 100, "{}", requests.len());
    }
}

#[tokio::test]
async fn renewals_travel_together() {
    let (server, client) = connected().await;
    // Side by side: holds acquired at other moments are due at other moments.
    let mut acquiring = tokio::task::JoinSet::new();
    for number in 0..90 {
        let request = client
            .lock(format!("k:{number}"))
            .lease(Duration::from_secs(3))
            .renew(true);
        acquiring.spawn(request.acquire());
    }
    let guards: Result<Vec<_>, _> = acquiring.join_all().await.into_iter().collect();
    let guards = guards.unwrap();
    let mut log = server.requests().await;
    tokio::time::sleep(Duration::from_millis(3500)).await;
    let renewals = log.take().await.len();
    assert!(
        (3..=30).contains(&renewals),
        "{renewals} commands for 270 renewals"
    );
    assert!(guards.iter().all(lock_runtime::Guard::is_held));
    client.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn every_key_has_a_time_to_live() {
    let (server, client) = connected().await;
    let _guard = client.lock("k").fenced().acquire().await.unwrap();
    let _tagged = client.lock("{tenant}:k").fenced().acquire().await.unwrap();
    for key in ["k", "{tenant}:k"] {
        let limiter = client.rate_limiter(key, Rate::per_hour(1));
        limiter.acquire().await.unwrap();
    }
    let waiting = tokio::spawn(client.lock("k").acquire());
    eventually("it waits", async || {
        client.inspect("k").await.unwrap().waiting == 1
    })
    .await;
    let keys = server.keys("*").await;
    assert!(
        keys.len() >= 7 && keys.iter().all(|key| key.starts_with("lock:")),
        "{keys:?}"
    );
    for key in keys {
        let ttl: i64 = server.query(&["PTTL", &key]).await;
        assert!(ttl > 0, "{key}: {ttl}");
    }
    waiting.abort();
    client.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn a_clients_first_call_on_a_latch_is_two_commands_and_later_ones_are_one() {
    let server = RedisServer::start().await;
    let warm = settled(&server).await.latch("warm");
    warm.set(1).await.unwrap();
    warm.count_down().await.unwrap();
    for first_sets in [true, false] {
        let client = settled(&server).await;
        let mut log = server.requests().await;
        for first in [true, false] {
            // Another key each time: the server tells its time once for all latches.
            let latch = client.latch(if first { "a" } else { "b" });
            if first_sets {
                latch.set(2).await.unwrap();
            } else {
                latch.count_down().await.unwrap();
            }
            let commands = log.take().await.len();
            assert_eq!(commands, if first { 2 } else { 1 });
        }
    }
}

#[tokio::test]
async fn everything_about_a_latch_is_one_command() {
    let (server, client) = connected().await;
    let latch = client.latch("k");
    let other = settled(&server).await.latch("k");
    for latch in [&latch, &other] {
        latch.set(1).await.unwrap();
        latch.count_down().await.unwrap();
        latch.wait(Duration::from_secs(1)).await.unwrap();
    }
    let mut log = server.requests().await;
    assert!(latch.set(2).await.unwrap());
    assert_eq!(latch.count().await.unwrap(), Some(2));
    assert_eq!(latch.count_down().await.unwrap(), 1);
    assert_eq!(latch.count_down().await.unwrap(), 0);
    latch.wait(Duration::from_secs(1)).await.unwrap();
    latch.wait(Duration::ZERO).await.unwrap();
    let commands = log.take().await;
    let commands: Vec<_> = commands.iter().map(|one| one.command.as_str()).collect();
    assert_eq!(commands, ["evalsha"; 6]);
    // A request that waits until the latch opens costs only its place.
    other.set(1).await.unwrap();
    log.take().await;
    let waiting = tokio::spawn({
        let latch = latch.clone();
        async move { latch.wait(Duration::from_secs(60)).await }
    });
    eventually("it waits", async || {
        !server.keys("lock:%latch*").await.is_empty()
    })
    .await;
    other.count_down().await.unwrap();
    waiting.await.unwrap().unwrap();
    let commands = log.take().await;
    let scripts = commands.iter().filter(|one| one.command == "evalsha");
    assert!(scripts.count() <= 3, "{commands:?}");
    for key in server.keys("*").await {
        let ttl: i64 = server.query(&["PTTL", &key]).await;
        assert!(ttl > 0, "{key}: {ttl}");
    }
}

#[tokio::test]
async fn a_hundred_tasks_that_wait_for_a_latch_cost_the_server_a_few_commands_a_second() {
    let (server, client) = connected().await;
    let other = settled(&server).await.latch("k");
    other.set(1).await.unwrap();
    let mut waiting = tokio::task::JoinSet::new();
    let mut log = server.requests().await;
    // Who comes after an answer looks again, and how many do depends on the machine.
    server.pause();
    for _ in 0..100 {
        let latch = client.latch("k");
        waiting.spawn(async move { latch.wait_forever().await });
    }
    eventually("all wait", async || client.stats().waiting == 100).await;
    server.resume();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let requests = log.take().await;
    let looks = requests.iter().filter(|one| !of_health(one)).count();
    assert!(
        (5..=15).contains(&looks),
        "{looks} in five seconds, the first looks included"
    );
    let places: i64 = server.query(&["ZCARD", "lock:%latch:{lock:k}"]).await;
    assert_eq!(places, 1);
    assert_eq!(
        server.grant_channels().await.len(),
        1,
        "one subscription for a hundred"
    );
    log.take().await;
    other.count_down().await.unwrap();
    for waited in waiting.join_all().await {
        waited.unwrap();
    }
    // Only a count-down names the channels. One look may be that of the second.
    let requests = log.take().await;
    let looks = requests
        .iter()
        .filter(|one| !one.text.contains("%granted:"));
    let looks = looks.count();
    assert!(looks <= 2, "a hundred go on at one message: {requests:?}");
}

#[tokio::test]
async fn readers_writers_and_permits_cost_one_command_each_way() {
    let (server, client) = connected().await;
    let semaphore = client.semaphore("s", 3);
    let requests = [
        client.rw_lock("k").read(),
        client.rw_lock("k").write().fenced(),
        semaphore.permit(),
        semaphore.permits(3).fenced(),
    ];
    // They may be handed over, so the first of them subscribes.
    requests[0].clone().run(async {}).await.unwrap();
    let mut log = server.requests().await;
    for request in requests {
        let guard = request.clone().acquire().await.unwrap();
        guard
            .scope(request.clone().run(request.run(async {})))
            .await
            .unwrap()
            .unwrap();
        guard.release().await.unwrap();
        let commands = log.take().await;
        let commands: Vec<_> = commands.iter().map(|one| one.command.as_str()).collect();
        assert_eq!(commands, ["evalsha"; 2], "and none for what is nested");
    }
    let held = semaphore.permits(3).acquire().await.unwrap();
    log.take().await;
    assert!(semaphore.permit().try_acquire().await.unwrap().is_none());
    assert_eq!(log.take().await.len(), 1, "a try");
    held.release().await.unwrap();
}

/// The server's cost of giving out `of` permits in a few requests and of taking them back: the
/// commands that it ran (also inside scripts), the bytes of the key, and its fields.
async fn cost_of_permits(of: u32) -> [u64; 3] {
    let (server, client) = connected().await;
    let permits = |permits| client.semaphore("k", of).permits(permits);
    permits(1).run(async {}).await.unwrap();
    server.reset_stats().await;
    let most = permits(of - 1).acquire().await.unwrap();
    let last = permits(1).acquire().await.unwrap();
    let waiting = tokio::spawn(permits(of).acquire());
    eventually("it waits", async || {
        !server.keys("lock:%queue*").await.is_empty()
    })
    .await;
    let bytes: u64 = server.query(&["MEMORY", "USAGE", "lock:k"]).await;
    let fields: u64 = server.query(&["ZCARD", "lock:k"]).await;
    most.extend(Duration::from_secs(60)).await.unwrap();
    for guard in [most, last] {
        guard.release().await.unwrap();
    }
    let all = waiting.await.unwrap().unwrap();
    client.inspect("k").await.unwrap();
    all.release().await.unwrap();
    let statistics: String = server.query(&["INFO", "commandstats"]).await;
    let calls = statistics
        .lines()
        .filter(|line| line.starts_with("cmdstat_") && !line.starts_with("cmdstat_keys:"))
        .filter_map(|line| line.split_once("calls=")?.1.split(',').next())
        .map(|calls| calls.parse::<u64>().unwrap());
    [calls.sum(), bytes, fields]
}

#[tokio::test]
async fn a_million_permits_cost_no_more_than_five() {
    let [calls, bytes, fields] = cost_of_permits(1_000_000).await;
    let few = cost_of_permits(5).await;
    assert_eq!(
        fields, few[2],
        "one for each holder, and not for each permit"
    );
    // A longer number takes a few more bytes. On a slow machine a waiter looks again now and then.
    assert!(bytes <= few[1] + 40, "{bytes} bytes, {} for five", few[1]);
    assert!(calls <= few[0] + 60, "{calls} calls, {} for five", few[0]);
    println!("{calls} calls, {bytes} bytes; for five {few:?}");
}

#[tokio::test]
async fn keys_held_in_shares_have_a_time_to_live_also_after_a_downgrade() {
    let (server, client) = connected().await;
    let permit = client.semaphore("s", 2).permit().acquire().await.unwrap();
    let writer = client.rw_lock("k").write().acquire().await.unwrap();
    let waiting = tokio::spawn(client.rw_lock("k").write().acquire());
    eventually("it waits", async || {
        client.inspect("k").await.unwrap().waiting == 1
    })
    .await;
    let all_end = async || {
        let keys = server.keys("lock:*").await;
        assert!(keys.len() >= 3, "{keys:?}");
        for key in keys {
            let ttl: i64 = server.query(&["PTTL", &key]).await;
            let most = if key.contains("%fence") {
                24 * 60 * 60
            } else {
                70
            };
            assert!(ttl > 0 && ttl <= most * 1000, "{key}: {ttl}");
        }
    };
    all_end().await;
    writer.downgrade().await.unwrap();
    all_end().await;
    permit.extend(Duration::from_secs(60)).await.unwrap();
    all_end().await;
    waiting.abort();
    drop((permit, writer));
    client.shutdown(Duration::ZERO).await;
}
