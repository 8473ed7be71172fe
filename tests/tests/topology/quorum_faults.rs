//! Servers of a quorum that forget, and replies that do not come.

use std::time::Duration;

use lock_runtime::{LockClient, LockError, LostReason, Role, StoreErrorKind};
use lock_testkit::{Proxy, RedisQuorum, RedisServer, eventually};

use crate::{client, patient_client, unavailable};

/// The URL of three servers, the last through a proxy.
async fn behind_a_proxy(quorum: &RedisQuorum) -> (Proxy, String) {
    let last = quorum.servers[2].addr();
    let proxy = Proxy::start(last).await;
    let url = quorum
        .url()
        .replace(&last.to_string(), &proxy.addr().to_string());
    (proxy, url)
}

/// A lease longer than any test.
const LONG: Duration = Duration::from_secs(600);

/// From then on, commands are carried out although no reply comes.
async fn until_scripts_are_known(quorum: &RedisQuorum, client: &LockClient) {
    let guard = client.lock("first").acquire().await.unwrap();
    guard.release().await.unwrap();
    for server in &quorum.servers {
        eventually("it has both by their text", async || {
            server.command_calls("eval").await >= 2
        })
        .await;
    }
    // Their replies may still be on their way. A server answers in order.
    eventually("each has answered", async || {
        let health = client.health().await.unwrap();
        let mut servers = health.servers.iter();
        servers.all(|server| server.role != Role::Unknown)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_reaches_the_server_that_seemed_to_have_failed() {
    let quorum = RedisQuorum::start(3).await;
    let (proxy, url) = behind_a_proxy(&quorum).await;
    let client = client(&url).await;
    until_scripts_are_known(&quorum, &client).await;
    // The server carries out what it is asked, and its replies are lost.
    proxy.drop_replies(true);
    let guard = client.lock("k").lease(LONG).acquire().await.unwrap();
    eventually("the third has it as well", async || {
        quorum.holders("k").await[2].is_some()
    })
    .await;
    guard.release().await.unwrap();
    eventually("the others are free", async || {
        quorum.holders("k").await[..2].iter().all(Option::is_none)
    })
    .await;
    proxy.drop_replies(false);
    eventually("and so is the third", async || {
        quorum.holders("k").await[2].is_none()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_that_was_not_heard_of_counts_at_the_release() {
    let quorum = RedisQuorum::start(3).await;
    let (proxy, url) = behind_a_proxy(&quorum).await;
    let client = client(&url).await;
    until_scripts_are_known(&quorum, &client).await;
    let late = Duration::from_millis(900);
    proxy.delay_replies(late);
    let guard = client.lock("k").lease(LONG).acquire().await.unwrap();
    eventually("the third has it as well", async || {
        quorum.holders("k").await[2].is_some()
    })
    .await;
    tokio::time::sleep(late).await;
    proxy.delay_replies(Duration::ZERO);
    // With the third server there is still a majority.
    quorum.servers[0].command(&["DEL", "lock:k"]).await;
    guard.release().await.unwrap();
    eventually("the third is free", async || {
        quorum.holders("k").await[2].is_none()
    })
    .await;
}

/// A release waits for a majority only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_ends_first_ends_its_holds_on_the_slowest_server() {
    let quorum = RedisQuorum::start(3).await;
    let (proxy, url) = behind_a_proxy(&quorum).await;
    for is_dropped in [true, false] {
        let client = client(&url).await;
        until_scripts_are_known(&quorum, &client).await;
        proxy.delay(Duration::from_millis(100));
        let guard = client.lock("k").lease(LONG).acquire().await.unwrap();
        eventually("the third has it as well", async || {
            quorum.holders("k").await[2].is_some()
        })
        .await;
        guard.release().await.unwrap();
        if is_dropped {
            drop(client);
        } else {
            client.shutdown(Duration::ZERO).await;
        }
        eventually("the third is free", async || {
            quorum.holders("k").await[2].is_none()
        })
        .await;
        proxy.delay(Duration::ZERO);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_that_is_repeated_asks_each_server_once() {
    let quorum = RedisQuorum::start(3).await;
    let client = client(&quorum.url()).await;
    let guard = client.lock("k").lease(LONG).acquire().await.unwrap();
    let dead = &quorum.servers[1..];
    dead.iter().for_each(RedisServer::kill);
    let error = guard.release().await.unwrap_err();
    let said = error.to_string();
    assert!(said.contains("2 must answer; 2 did not: "), "{said}");
    for server in dead {
        assert!(said.contains(&server.addr().to_string()), "{said}");
    }
    // The release is repeated in the background, some six times.
    tokio::time::sleep(Duration::from_secs(4)).await;
    for server in dead {
        server.restart_empty().await;
    }
    for server in dead {
        eventually("it is told", async || {
            server.command_calls("evalsha").await > 0
        })
        .await;
    }
    // As long as any pause between the repeats.
    tokio::time::sleep(Duration::from_secs(3)).await;
    for server in dead {
        let asked = server.command_calls("evalsha").await;
        assert!(asked <= 3, "{asked}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_round_that_was_lost_leaves_nothing_on_the_server_that_seemed_to_have_failed() {
    let quorum = RedisQuorum::start(3).await;
    let (proxy, url) = behind_a_proxy(&quorum).await;
    let client = client(&url).await;
    until_scripts_are_known(&quorum, &client).await;
    let third = &quorum.servers[2];
    let taken = third.command_calls("set").await;
    for server in &quorum.servers[..2] {
        let set = ["SET", "lock:k", "somebody", "PX", "60000"];
        server.command(&set).await;
    }
    proxy.drop_replies(true);
    let tried = client.lock("k").lease(LONG).try_acquire().await;
    assert!(tried.unwrap().is_none());
    eventually("the third was taken", async || {
        third.command_calls("set").await > taken
    })
    .await;
    proxy.drop_replies(false);
    eventually("the third has it no more", async || {
        quorum.holders("k").await[2].is_none()
    })
    .await;
    // And the others' locks stay.
    let others = quorum.holders("k").await;
    assert_eq!(others[0].as_deref(), Some("somebody"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_given_up_half_way_leaves_nothing_anywhere() {
    let quorum = RedisQuorum::start(3).await;
    let (proxy, url) = behind_a_proxy(&quorum).await;
    let client = client(&url).await;
    quorum.servers[0]
        .command(&["SET", "lock:k", "somebody", "PX", "60000"])
        .await;
    proxy.freeze();
    // The request needs the third server, which does not answer.
    let request = client.lock("k").acquire();
    assert!(
        tokio::time::timeout(Duration::from_millis(100), request)
            .await
            .is_err()
    );
    proxy.thaw();
    eventually("the other two are free", async || {
        quorum.holders("k").await[1..].iter().all(Option::is_none)
    })
    .await;
    quorum.servers[0].command(&["DEL", "lock:k"]).await;
    assert!(client.lock("k").acquire().await.unwrap().is_held());
}

/// Three servers had a holder's lock, and two of them have come back empty. Returns whether another
/// client gets the lock, and whether it was told that the two do not count.
async fn second_holder(rejoin_after: &str) -> (bool, bool) {
    let quorum = RedisQuorum::start(3).await;
    let url = quorum.url_with(rejoin_after);
    let build = async || {
        let builder = LockClient::builder().url(&url);
        let builder = builder.lease(Duration::from_secs(8));
        builder
            .wait(Duration::from_secs(30))
            .connect()
            .await
            .unwrap()
    };
    let (one, two) = (build().await, build().await);
    // The servers were started just now.
    drop(two.lock("other").acquire().await.unwrap());
    let lock = one.lock("k").lease(Duration::from_secs(8)).renew(false);
    let held = lock.acquire().await.unwrap();
    quorum.servers[1].restart_empty().await;
    quorum.servers[2].restart_empty().await;
    let mut told = false;
    loop {
        let second = two.lock("k").try_acquire().await;
        if !held.is_held() {
            return (false, told);
        }
        match second {
            Ok(None) => {}
            Ok(Some(_)) => return (true, told),
            Err(LockError::Unavailable { source, .. }) => {
                told |= source.kind() == StoreErrorKind::Loading;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_came_back_empty_does_not_count_while_it_may_have_forgotten_a_lease() {
    let (two_holders, told) = second_holder("8s").await;
    assert!(!two_holders);
    assert!(told);
}

/// The danger of `0s`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_without_their_data_that_count_at_once_give_two_holders() {
    assert!(second_holder("0s").await.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_were_started_lately_are_named_and_waited_for() {
    let quorum = RedisQuorum::start(3).await;
    let build = LockClient::builder().url(quorum.url_with("5s"));
    let client = build.lease(Duration::from_secs(1)).connect().await.unwrap();
    let error = client.lock("k").try_acquire().await.unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains("of 3 servers were started less than 5s ago"),
        "{said}"
    );
    assert_eq!(unavailable(Err::<(), _>(error)), StoreErrorKind::Loading);
    let waits = client.lock("k").wait(Duration::from_secs(30));
    assert!(waits.acquire().await.unwrap().is_held());
}

/// As if the clocks of servers jumped ahead, or an operator took their parts away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_that_end_early_let_a_second_holder_in_only_if_a_majority_does() {
    let quorum = RedisQuorum::start(3).await;
    let (one, two) = (client(&quorum.url()).await, client(&quorum.url()).await);
    let first = one.lock("k").fenced().lease(LONG).acquire().await.unwrap();
    quorum.servers[0].command(&["DEL", "lock:k"]).await;
    assert!(two.lock("k").try_acquire().await.unwrap().is_none());
    quorum.servers[1].command(&["DEL", "lock:k"]).await;
    let second = two.lock("k").fenced().acquire().await.unwrap();
    assert!(first.is_held() && second.is_held(), "the known limit");
    assert!(second.fencing_token() > first.fencing_token());
}

/// Half of an even number is no majority, and there is none without it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_of_four_servers_can_tell_that_a_hold_is_gone_when_the_others_refuse() {
    let quorum = RedisQuorum::start(4).await;
    let client = patient_client(&quorum.url()).await;
    let guard = client.lock("k").lease(LONG).acquire().await.unwrap();
    eventually("all have it", async || {
        quorum.holders("k").await.iter().all(Option::is_some)
    })
    .await;
    let (refuse, tell) = quorum.servers.split_at(2);
    for server in refuse {
        let needs_replicas = ["CONFIG", "SET", "min-replicas-to-write", "1"];
        server.command(&needs_replicas).await;
    }
    let kind = unavailable(guard.extend(LONG).await);
    assert_eq!(kind, StoreErrorKind::ReadOnly);
    assert!(guard.is_held());
    for server in tell {
        server.command(&["DEL", "lock:k"]).await;
        // The refusals are heard first. Otherwise those who tell decide alone.
        server.command(&["CLIENT", "PAUSE", "1000"]).await;
    }
    let told = guard.extend(LONG).await.unwrap_err();
    let is_gone = matches!(&told, LockError::Lost { reason, .. } if *reason == LostReason::Gone);
    assert!(is_gone, "{told}");
}
