//! A majority of independent servers: what holds while all are well, and while some are not.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lock_runtime::{Guard, LockClient, LockError, LostReason};
use lock_store::timing::Timeouts;
use lock_store::{Acquire, Acquired, Claim, ClientId, Clock, Listener, Owner};
use lock_testkit::{Heard, RedisQuorum, eventually, redis_store};
use tokio::task::JoinSet;

use crate::load::Load;
use crate::{SLACK, client, patient_client, unavailable};

/// Longer than any test: a request that waits for a silent server never ends.
const FOR_EVER: Duration = Duration::from_secs(600);

async fn until_gone(quorum: &RedisQuorum, key: &str) {
    eventually("no server has the lock", async || {
        quorum.holders(key).await.iter().all(Option::is_none)
    })
    .await;
}

/// Waits until the hold has notably more time left than a moment before.
async fn until_renewed(guard: &Guard) {
    let mut least = guard.remaining();
    eventually("the hold is renewed", async || {
        let now = guard.remaining();
        least = least.min(now);
        now > least + Duration::from_millis(500)
    })
    .await;
}

/// Each turn of a process takes over from the one before, and a lease may be a day long.
#[tokio::test]
async fn a_hold_that_ends_with_the_next_request_is_forgotten() {
    let quorum = RedisQuorum::start(3).await;
    let listener: Arc<dyn Listener> = Arc::<Heard>::default();
    let (client, clock) = (ClientId(1), Clock::new(tokio::runtime::Handle::current()));
    let store = redis_store(
        &quorum.url(),
        "lock",
        client,
        &listener,
        clock,
        Timeouts::default(),
    );
    let by = || lock_store::Instant::now() + 10 * SLACK;
    store.await_connection(by()).await.unwrap();
    let owner = |request| Owner { client, request };
    let mut instead_of = None;
    for request in 0..20 {
        let claim = Claim::new("k".into(), owner(request), None);
        let mut request = Acquire::new(claim, Duration::from_secs(3600));
        request.first_lease = Duration::from_secs(2);
        request.instead_of = instead_of;
        if instead_of.is_some() {
            let ended = store.acquire(request.clone(), by()).await.unwrap().value;
            assert!(matches!(ended, Acquired::Busy(_)), "{ended:?}");
        }
        request.instead_of = None;
        let granted = store.acquire(request.clone(), by()).await.unwrap().value;
        assert_eq!(granted, Acquired::granted(None));
        instead_of = Some(request.claim.owner);
    }
    let known = format!("{store:?}").matches(" Round {").count();
    assert_eq!(known, 1, "the last is held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holders_exclude_each_other_while_two_of_five_servers_die() {
    let quorum = RedisQuorum::start(5).await;
    let clients = [client(&quorum.url()).await, client(&quorum.url()).await];
    let load = Load::start(&clients, (0..2).map(|key| format!("load:{key}")), 2);
    load.more_turns(30).await;
    let held = clients[0].lock("held").fenced().acquire().await.unwrap();
    quorum.servers[1].kill();
    load.more_turns(30).await;
    quorum.servers[4].kill();
    load.more_turns(30).await;
    // The load was never allowed two holders.
    load.finish().await;
    assert!(held.is_held());
    assert!(
        clients[1]
            .lock("held")
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
    held.release().await.unwrap();
    let after = clients[1].lock("held").fenced().acquire().await.unwrap();
    assert!(after.is_held());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quorum_without_a_majority_is_unavailable_and_not_busy() {
    let quorum = RedisQuorum::start(5).await;
    let url = quorum.url();
    let (holder, other) = (client(&url).await, client(&url).await);
    let held = holder.lock("held").acquire().await.unwrap();
    for server in &quorum.servers[..3] {
        server.kill();
    }
    for key in ["held", "free"] {
        let refused = other.lock(key).try_acquire().await;
        unavailable(refused);
        let waits = other.lock(key).wait(Duration::from_secs(1));
        let error = waits.acquire().await.unwrap_err();
        let said = error.to_string();
        assert!(said.contains("of 5 servers 3 must answer"), "{said}");
        assert!(
            said.contains(&quorum.servers[0].addr().to_string()),
            "{said}"
        );
        unavailable(Err::<(), _>(error));
    }
    assert!(other.health().await.is_err());
    drop(held);
    // They come back without their data.
    quorum.servers[0].restart_empty().await;
    eventually("it goes on with three of five", async || {
        matches!(other.lock("free").try_acquire().await, Ok(Some(_)))
    })
    .await;
    eventually("it is well", async || other.health().await.is_ok()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stands_still_costs_no_time() {
    let quorum = RedisQuorum::start(3).await;
    let builder = || {
        let builder = LockClient::builder().url(quorum.url());
        builder
            .command_timeout(FOR_EVER)
            .lease(Duration::from_secs(6))
    };
    let (one, two) = (builder().connect().await, builder().connect().await);
    let (one, two) = (one.unwrap(), two.unwrap());
    let renewed = one.lock("renewed").acquire().await.unwrap();
    quorum.servers[1].pause();
    let work = async {
        for _ in 0..20 {
            let guard = one.lock("k").fenced().acquire().await.unwrap();
            assert!(two.lock("k").try_acquire().await.unwrap().is_none());
            assert!(two.inspect("k").await.unwrap().holder.is_some());
            guard.extend(Duration::from_secs(6)).await.unwrap();
            guard.release().await.unwrap();
            two.health().await.unwrap();
        }
        until_renewed(&renewed).await;
        // Given up half-way, and acquired again at once.
        let held = one.lock("k").acquire().await.unwrap();
        let given_up = two.lock("k").wait(FOR_EVER).acquire();
        assert!(
            tokio::time::timeout(Duration::from_millis(200), given_up)
                .await
                .is_err()
        );
        held.release().await.unwrap();
        let again = two.lock("k").acquire().await.unwrap();
        assert!(two.force_release("k").await.unwrap());
        drop(again);
    };
    // The timeout only ends a failing test: no request waits for the server that stands still.
    tokio::time::timeout(Duration::from_secs(60), work)
        .await
        .unwrap();
    assert!(renewed.is_held());
    quorum.servers[1].resume();
    drop(renewed);
    until_gone(&quorum, "k").await;
    until_gone(&quorum, "renewed").await;
    // With the servers gone, a client would wait for its last ends as long as for a command.
    for client in [one, two] {
        let end = client.shutdown(FOR_EVER);
        tokio::time::timeout(Duration::from_secs(60), end)
            .await
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_rise_while_one_server_after_the_other_comes_back_empty() {
    let quorum = RedisQuorum::start(3).await;
    let url = quorum.url_with("2s");
    let build = async || {
        let builder = LockClient::builder()
            .url(&url)
            .lease(Duration::from_secs(1));
        builder
            .wait(Duration::from_secs(30))
            .connect()
            .await
            .unwrap()
    };
    let clients = [build().await, build().await];
    let mut last = None;
    for server in &quorum.servers {
        for _ in 0..4 {
            for client in &clients {
                let guard = client.lock("k").fenced().acquire().await.unwrap();
                assert!(guard.fencing_token() > last, "{guard:?} after {last:?}");
                last = guard.fencing_token();
                guard.release().await.unwrap();
            }
        }
        server.restart_empty().await;
    }
    let guard = clients[0].lock("k").fenced().acquire().await.unwrap();
    assert!(guard.fencing_token() > last);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_of_a_hold_that_exists_is_confirmed_as_well() {
    let quorum = RedisQuorum::start(3).await;
    let client = client(&quorum.url()).await;
    let first = client.lock("k").fenced().acquire().await.unwrap();
    let token = first.fencing_token();
    first.release().await.unwrap();
    let outer = client.lock("k").acquire().await.unwrap();
    let inner = outer.scope(client.lock("k").fenced().acquire()).await;
    let token_of_the_hold = inner.unwrap().fencing_token();
    assert!(token_of_the_hold > token);
    let mut confirmed = 0;
    for server in &quorum.servers {
        let last: Option<u64> = server.query(&["GET", "lock:%fence:{lock:k}"]).await;
        confirmed += u64::from(last == token_of_the_hold.map(u64::from));
    }
    assert!(confirmed >= 2, "{confirmed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_that_were_reserved_pass_from_task_to_task_without_the_servers() {
    let quorum = RedisQuorum::start(3).await;
    let builder = LockClient::builder().url(quorum.url());
    let builder = builder.local_tenure(64, Duration::from_secs(60));
    let client = builder.connect().await.unwrap();
    let first = client.lock("k").fenced().acquire().await.unwrap();
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let lock = client.lock("k").fenced().wait(Duration::from_secs(60));
        tasks.spawn(async move {
            let guard = lock.acquire().await.unwrap();
            let token = guard.fencing_token().map(u64::from).unwrap();
            guard.release().await.unwrap();
            token
        });
    }
    eventually("all wait", async || {
        client.health().await.unwrap().waiting == 8
    })
    .await;
    first.release().await.unwrap();
    let mut tokens = tasks.join_all().await;
    tokens.sort_unstable();
    // Servers that are asked give their clocks' microseconds. They were asked once, for all.
    let one_more = tokens.windows(2).all(|pair| pair[1] == pair[0] + 1);
    assert!(one_more, "{tokens:?}");
}

/// A server's running time counts for the connection over which it was told, so no other connection
/// is made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_server_has_one_connection_of_a_client_whatever_runtime_asks() {
    let quorum = RedisQuorum::start(3).await;
    let client = client(&quorum.url()).await;
    for round in 0..50 {
        let guard = client.lock("k").fenced().acquire().await.unwrap();
        guard.release().await.unwrap();
        client.inspect("k").await.unwrap();
        client.force_release("k").await.unwrap();
        client.health().await.unwrap();
        if round % 10 == 0 {
            // A connection that a runtime drives would be made meanwhile.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    for server in &quorum.servers {
        eventually("the client's one connection is there", async || {
            server.client_count().await == 1
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_that_a_majority_has_lost_is_lost() {
    let quorum = RedisQuorum::start(5).await;
    let client = LockClient::builder().url(quorum.url());
    let client = client
        .lease(Duration::from_secs(3))
        .connect()
        .await
        .unwrap();
    let guard = client.lock("k").acquire().await.unwrap();
    // A majority grants it; the command may reach the others later.
    eventually("all have it", async || {
        quorum.holders("k").await.iter().flatten().count() == 5
    })
    .await;
    for server in &quorum.servers[..2] {
        server.command(&["DEL", "lock:k"]).await;
    }
    // By the other three.
    until_renewed(&guard).await;
    quorum.servers[2].command(&["DEL", "lock:k"]).await;
    guard.lost().await;
    // The rest keeps others out until whoever holds the guard has learned of it.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let holders = quorum.holders("k").await;
    assert_eq!(holders.iter().flatten().count(), 2, "{holders:?}");
    match guard.release().await {
        Err(LockError::Lost { reason, .. }) => assert_eq!(reason, LostReason::Gone),
        other => panic!("{other:?}"),
    }
    until_gone(&quorum, "k").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_are_told_when_the_lock_is_free() {
    let quorum = RedisQuorum::start(3).await;
    let (one, two) = (client(&quorum.url()).await, client(&quorum.url()).await);
    let (mut soon, rounds) = (0, 10);
    for _ in 0..rounds {
        let guard = one.lock("k").acquire().await.unwrap();
        let asked = async || quorum.servers[0].command_calls("evalsha").await;
        let before = asked().await;
        let waits = two.lock("k").wait(Duration::from_secs(30)).acquire();
        let waits = tokio::spawn(waits);
        // The plain try, and the try after which it listens. The next would come a second later.
        eventually("it waits", async || asked().await >= before + 2).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        let released = Instant::now();
        guard.release().await.unwrap();
        let guard = waits.await.unwrap().unwrap();
        soon += u32::from(released.elapsed() < Duration::from_millis(600));
        guard.release().await.unwrap();
    }
    assert!(soon >= rounds - 3, "{soon} of {rounds}");
}

/// In how many of this many rounds none of six clients that try at once gets the lock.
async fn rounds_without_a_holder(quorum: &RedisQuorum, clients: &[LockClient], rounds: u32) -> u32 {
    let mut without = 0;
    for round in 0..rounds {
        let mut tries = JoinSet::new();
        for client in clients {
            let request = client.lock(format!("k:{round}"));
            tries.spawn(request.try_acquire());
        }
        let mut guards = Vec::new();
        while let Some(tried) = tries.join_next().await {
            guards.extend(tried.unwrap().unwrap());
        }
        assert!(guards.len() <= 1, "{} holders", guards.len());
        without += u32::from(guards.is_empty());
        drop(guards);
        until_gone(quorum, &format!("k:{round}")).await;
    }
    without
}

async fn six_clients(quorum: &RedisQuorum) -> Vec<LockClient> {
    let mut clients = Vec::new();
    for _ in 0..6 {
        clients.push(client(&quorum.url()).await);
    }
    clients
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_tries_at_once_gets_the_lock() {
    let quorum = RedisQuorum::start(3).await;
    let clients = six_clients(&quorum).await;
    // This depends on chance.
    let (rounds, without) = (30, rounds_without_a_holder(&quorum, &clients, 30).await);
    assert!(
        without <= rounds / 3,
        "no client got it in {without} of {rounds}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_tries_at_once_gets_the_lock_while_a_server_is_dead() {
    let quorum = RedisQuorum::start(3).await;
    let clients = six_clients(&quorum).await;
    quorum.servers[2].kill();
    rounds_without_a_holder(&quorum, &clients, 2).await;
    let started = Instant::now();
    let (rounds, without) = (20, rounds_without_a_holder(&quorum, &clients, 20).await);
    assert!(
        without <= rounds / 2,
        "no client got it in {without} of {rounds}"
    );
    // No client waits for the dead server until the command's time is over.
    let took = started.elapsed();
    assert!(took < rounds * Duration::from_millis(400), "{took:?}");
    // A lock that another client seems to have, at one server and perhaps at the dead one, is not
    // tried again and again.
    let held = clients[0].lock("held").acquire().await.unwrap();
    let patient = patient_client(&quorum.url()).await;
    quorum.servers[1].command(&["DEL", "lock:held"]).await;
    let asked = async || quorum.servers[0].command_calls("evalsha").await;
    let before = asked().await;
    let waits = patient.lock("held").wait(Duration::from_secs(3));
    let error = waits.acquire().await.unwrap_err();
    assert!(error.is_busy(), "{error}");
    let asked = asked().await - before;
    assert!(asked <= 60, "{asked}");
    assert!(held.is_held());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_split_vote_is_tried_again_at_once() {
    let quorum = RedisQuorum::start(3).await;
    let client = client(&quorum.url()).await;
    client.lock("k").run(async {}).await.unwrap();
    let (rounds, mut had) = (10, 0);
    for _ in 0..rounds {
        for (server, somebody) in quorum.servers[..2].iter().zip(["x", "y"]) {
            let set = ["SET", "lock:k", somebody, "PX", "20"];
            server.command(&set).await;
        }
        // Two others have a part each, and give up soon.
        if let Some(guard) = client.lock("k").try_acquire().await.unwrap() {
            had += 1;
            guard.release().await.unwrap();
        }
        until_gone(&quorum, "k").await;
    }
    assert!(had >= rounds - 3, "{had} of {rounds}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_split_vote_beside_a_dead_server_is_tried_again_at_once() {
    let quorum = RedisQuorum::start(3).await;
    let client = LockClient::builder().url(quorum.url());
    let client = client.command_timeout(FOR_EVER).connect().await.unwrap();
    quorum.servers[2].kill();
    drop(client.lock("k").acquire().await.unwrap());
    until_gone(&quorum, "k").await;
    let (rounds, mut had) = (10, 0);
    let tries = async {
        for _ in 0..rounds {
            // Another has a part, and gives up soon.
            let set = ["SET", "lock:k", "somebody", "PX", "3"];
            quorum.servers[0].command(&set).await;
            if let Some(guard) = client.lock("k").try_acquire().await.unwrap() {
                had += 1;
                guard.release().await.unwrap();
            }
            until_gone(&quorum, "k").await;
        }
    };
    // The timeout only ends a failing test: no request waits for the dead server.
    tokio::time::timeout(Duration::from_secs(60), tries)
        .await
        .unwrap();
    assert!(had >= rounds / 2, "{had} of {rounds}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_is_kept_after_its_release_stays_taken_at_a_majority() {
    let quorum = RedisQuorum::start(3).await;
    let (one, two) = (client(&quorum.url()).await, client(&quorum.url()).await);
    let keep = Duration::from_secs(3);
    let asked = Instant::now();
    let guard = one.lock("k").hold_at_least(keep).acquire().await.unwrap();
    guard.release().await.unwrap();
    let guard = two.lock("k").wait(Duration::from_secs(30)).acquire().await;
    assert!(guard.unwrap().is_held());
    assert!(
        asked.elapsed() >= keep - Duration::from_millis(100),
        "{:?}",
        asked.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_is_held_is_not_shown_as_free_while_a_server_is_silent() {
    let quorum = RedisQuorum::start(3).await;
    let one = client(&quorum.url()).await;
    let two = LockClient::builder().url(quorum.url());
    let two = two.command_timeout(Duration::from_secs(3));
    let two = two.connect().await.unwrap();
    let held = one.lock("k").acquire().await.unwrap();
    // A majority grants. What is said of the third server below is of one that has its part.
    eventually("each has its part", async || {
        quorum.holders("k").await.iter().all(Option::is_some)
    })
    .await;
    // One of the two that would be enough has lost it, and the other stands still.
    quorum.servers[0].command(&["DEL", "lock:k"]).await;
    quorum.servers[1].pause();
    assert!(two.inspect("k").await.unwrap().holder.is_some());
    assert!(two.inspect("another").await.unwrap().holder.is_none());
    quorum.servers[1].resume();
    held.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_keys_are_taken_all_or_none() {
    let quorum = RedisQuorum::start(3).await;
    let (one, two) = (client(&quorum.url()).await, client(&quorum.url()).await);
    let held = one.lock("b").acquire().await.unwrap();
    assert!(
        two.multi_lock(["a", "b"])
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
    until_gone(&quorum, "a").await;
    held.release().await.unwrap();
    let both = two.multi_lock(["a", "b"]).fenced().acquire().await.unwrap();
    assert!(one.lock("a").try_acquire().await.unwrap().is_none());
    both.release().await.unwrap();
    until_gone(&quorum, "a").await;
    until_gone(&quorum, "b").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_has_one_connection_to_each_server() {
    let quorum = RedisQuorum::start(3).await;
    let client = client(&quorum.url()).await;
    for _ in 0..20 {
        let guard = client.lock("k").acquire().await.unwrap();
        guard.extend(Duration::from_secs(20)).await.unwrap();
        assert!(client.inspect("k").await.unwrap().holder.is_some());
        guard.release().await.unwrap();
    }
    for server in &quorum.servers {
        // On a busy machine, another one may have been made because an answer was late.
        eventually("the client has one connection", async || {
            let list: String = server.query(&["CLIENT", "LIST"]).await;
            let ours = list.lines().filter(|one| !one.contains("cmd=client"));
            ours.count() == 1
        })
        .await;
    }
}
