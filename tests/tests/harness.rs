//! The harness itself: every fault does what its name says, and the counts are exact. A test of
//! the lock is worth no more than these.
#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

use std::time::{Duration, Instant};

use lock_tests::{ChildProcess, Proxy, RedisServer, eventually, eventually_within};
use redis::aio::{MultiplexedConnection, PubSub};
use redis::{AsyncConnectionConfig, Client, IntoConnectionInfo};
use tokio::time::timeout;

/// Long enough for an answer over the loopback interface, on a busy machine too.
const SOON: Duration = Duration::from_secs(10);
/// How long to look whether something does not come.
const A_WHILE: Duration = Duration::from_millis(150);

/// A connection whose every request is one that the test made: no timeouts, no greeting.
async fn connect(url: &str) -> MultiplexedConnection {
    let config = AsyncConnectionConfig::new()
        .set_response_timeout(None)
        .set_connection_timeout(None);
    let info = url.into_connection_info().unwrap();
    let session = info.redis_settings().clone().set_skip_set_lib_name();
    Client::open(info.set_redis_settings(session))
        .unwrap()
        .get_multiplexed_async_connection_with_config(&config)
        .await
        .unwrap()
}

async fn send(connection: &MultiplexedConnection, words: &[&str]) -> redis::RedisResult<String> {
    let mut command = redis::Cmd::new();
    for word in words {
        command.arg(*word);
    }
    command.query_async(&mut connection.clone()).await
}

async fn ping(connection: &MultiplexedConnection) -> redis::RedisResult<String> {
    send(connection, &["PING"]).await
}

async fn clients_are(server: &RedisServer, count: usize) {
    eventually(&format!("the server has {count} clients"), async || {
        server.client_count().await == count
    })
    .await;
}

fn exists(process_id: u32) -> bool {
    let pid = nix::unistd::Pid::from_raw(process_id.try_into().unwrap());
    nix::sys::signal::kill(pid, None).is_ok()
}

mod redis_server {
    use super::*;

    #[tokio::test]
    async fn servers_share_nothing() {
        let (a, b) = tokio::join!(RedisServer::start(), RedisServer::start());
        assert_ne!(a.port(), b.port());
        assert_ne!(a.folder(), b.folder());
        a.command(&["SET", "only-in-a", "1"]).await;
        assert_eq!(a.keys("*").await, ["only-in-a"]);
        assert!(b.keys("*").await.is_empty());
    }

    #[tokio::test]
    async fn a_dropped_server_leaves_no_process_and_no_folder_even_if_it_was_paused() {
        for paused in [false, true] {
            let server = RedisServer::start().await;
            let (process_id, folder) = (server.process_id(), server.folder().to_owned());
            assert!(exists(process_id) && folder.exists());
            if paused {
                server.pause();
            }
            drop(server);
            assert!(!exists(process_id), "paused: {paused}");
            assert!(!folder.exists(), "paused: {paused}");
        }
    }

    #[tokio::test]
    async fn a_killed_server_is_gone_at_once_and_its_data_too() {
        let server = RedisServer::start().await;
        let process_id = server.process_id();
        server.command(&["SET", "a", "1"]).await;
        server.kill();
        assert!(!exists(process_id));
        assert!(server.try_command(&["PING"]).await.is_err());
        let port = server.port();
        server.restart().await;
        assert_eq!(server.port(), port);
        assert_ne!(server.process_id(), process_id);
        assert!(server.keys("*").await.is_empty());
    }

    #[tokio::test]
    async fn appendonly_data_survives_a_kill_a_stop_and_a_plain_restart() {
        let server = RedisServer::builder().appendonly(true).start().await;
        server.command(&["SET", "a", "1"]).await;
        server.kill();
        server.restart().await;
        server.command(&["SET", "b", "1"]).await;
        server.stop().await;
        assert!(server.try_command(&["PING"]).await.is_err());
        server.restart().await;
        server.command(&["SET", "c", "1"]).await;
        server.restart().await;
        assert_eq!(server.keys("*").await, ["a", "b", "c"]);
    }

    #[tokio::test]
    async fn restart_empty_wipes_appendonly_data() {
        let server = RedisServer::builder().appendonly(true).start().await;
        server.command(&["SET", "a", "1"]).await;
        server.restart_empty().await;
        assert!(server.keys("*").await.is_empty());
        server.command(&["SET", "b", "1"]).await;
        server.restart().await;
        assert_eq!(server.keys("*").await, ["b"], "appendonly is still on");
    }

    #[tokio::test]
    async fn a_paused_server_answers_when_resumed_and_not_before() {
        let server = RedisServer::start().await;
        let connection = connect(&server.url()).await;
        server.pause();
        let mut answer = Box::pin(ping(&connection));
        assert!(timeout(A_WHILE, &mut answer).await.is_err());
        assert!(!server.responds_within(A_WHILE).await);
        server.resume();
        let answer = timeout(SOON, answer).await.unwrap();
        assert_eq!(answer.unwrap(), "PONG", "the same connection");
    }

    #[tokio::test]
    async fn a_paused_server_can_be_stopped_and_restarted() {
        let server = RedisServer::start().await;
        server.pause();
        server.restart().await;
        assert!(server.responds_within(SOON).await);
    }

    #[tokio::test]
    async fn settings_reach_the_server() {
        let server = RedisServer::builder()
            .password("secret")
            .unix_socket(true)
            .arg("--maxmemory")
            .arg("7654321")
            .start()
            .await;
        let maxmemory: (String, u64) = server.query(&["CONFIG", "GET", "maxmemory"]).await;
        assert_eq!(maxmemory.1, 7_654_321);
        server.command(&["DEBUG", "SLEEP", "0"]).await;

        let without = connect(&format!("redis://{}/", server.addr())).await;
        let refused = ping(&without).await.unwrap_err();
        assert_eq!(refused.code(), Some("NOAUTH"));
        assert_eq!(ping(&connect(&server.url()).await).await.unwrap(), "PONG");

        let socket = format!(
            "redis+unix://{}?pass=secret",
            server.socket_path().display()
        );
        let client = Client::open(socket).unwrap();
        let connection = client.get_multiplexed_async_connection().await.unwrap();
        assert_eq!(ping(&connection).await.unwrap(), "PONG");
    }

    #[tokio::test]
    async fn a_server_that_cannot_start_says_why() {
        let started = tokio::spawn(RedisServer::builder().arg("--no-such-setting").start()).await;
        let panic = started.unwrap_err().into_panic();
        let message = panic.downcast_ref::<String>().unwrap();
        assert!(message.contains("no-such-setting"), "{message}");
    }

    #[tokio::test]
    async fn calls_are_counted_inside_scripts_too_and_requests_are_not() {
        let server = RedisServer::builder().password("secret").start().await;
        let connection = connect(&server.url()).await;
        let mut log = server.requests().await;
        let script = "for i = 1, 3 do redis.call('set', KEYS[1], i) end return 'done'";
        assert_eq!(send(&connection, &["SET", "k", "x"]).await.unwrap(), "OK");
        assert_eq!(
            send(&connection, &["EVAL", script, "1", "k"])
                .await
                .unwrap(),
            "done"
        );

        assert_eq!(server.command_calls("set").await, 4);
        assert_eq!(server.command_calls("EVAL").await, 1);
        let requests = log.take().await;
        let commands: Vec<_> = requests.iter().map(|r| r.command.as_str()).collect();
        assert_eq!(commands, ["set", "eval", "auth", "info", "auth", "info"]);
        assert_eq!(requests[0].text, r#""SET" "k" "x""#);
        assert_eq!(requests[0].client, requests[1].client);
        assert_ne!(requests[0].client, requests[2].client);
        assert!(
            log.take().await.is_empty(),
            "each request is given out once"
        );

        server.reset_stats().await;
        assert_eq!(server.command_calls("set").await, 0);
    }

    #[tokio::test]
    async fn clients_and_channels_are_those_of_others() {
        let server = RedisServer::start().await;
        clients_are(&server, 0).await;
        assert!(server.channels().await.is_empty());
        let client = Client::open(server.url()).unwrap();
        let mut subscription: PubSub = client.get_async_pubsub().await.unwrap();
        subscription.subscribe("news").await.unwrap();
        clients_are(&server, 1).await;
        assert_eq!(server.channels().await, ["news"]);
        drop(subscription);
        clients_are(&server, 0).await;
        assert!(server.channels().await.is_empty());
    }
}

mod proxy {
    use super::*;

    async fn server_and_proxy() -> (RedisServer, Proxy) {
        let server = RedisServer::start().await;
        let proxy = Proxy::start(server.addr()).await;
        (server, proxy)
    }

    #[tokio::test]
    async fn requests_bytes_and_connections_are_counted_exactly() {
        let (_server, proxy) = server_and_proxy().await;
        let connection = connect(&proxy.url()).await;
        let greeting = proxy.requests();
        // As long as many chunks, and with a request's beginning inside.
        let value = "*1\r\n$4\r\nPING\r\n".repeat(20_000);
        let (before_up, before_down) = (proxy.bytes_to_server(), proxy.bytes_to_client());
        send(&connection, &["set", "k", &value]).await.unwrap();
        assert_eq!(send(&connection, &["GET", "k"]).await.unwrap(), value);
        let all = futures_of(&connection, 50).await;
        assert!(all.iter().all(|answer| answer == "PONG"));

        assert_eq!(proxy.requests() - greeting, 52);
        assert_eq!(proxy.requests_named("SET"), 1);
        assert_eq!(proxy.requests_named("get"), 1);
        assert_eq!(proxy.requests_named("PING"), 50);
        assert_eq!(proxy.connections(), 1);
        assert_eq!(proxy.open_connections(), 1);
        let head = format!("*3\r\n$3\r\nset\r\n$1\r\nk\r\n${}\r\n", value.len());
        let up = head.len() + value.len() + 2 + "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n".len() + 50 * 14;
        assert_eq!(proxy.bytes_to_server() - before_up, up as u64);
        let down = 5 + format!("${}\r\n", value.len()).len() + value.len() + 2 + 50 * 7;
        assert_eq!(proxy.bytes_to_client() - before_down, down as u64);
        drop(connection);
        eventually("the connection has ended", async || {
            proxy.open_connections() == 0
        })
        .await;
    }

    /// `count` pings on their way at the same time, so that chunks hold several requests.
    async fn futures_of(connection: &MultiplexedConnection, count: usize) -> Vec<String> {
        let mut pings = tokio::task::JoinSet::new();
        for _ in 0..count {
            let connection = connection.clone();
            pings.spawn(async move { ping(&connection).await.unwrap() });
        }
        pings.join_all().await
    }

    #[tokio::test]
    async fn delay_costs_a_round_trip_twice_and_the_throughput_nothing() {
        let (_server, proxy) = server_and_proxy().await;
        let connection = connect(&proxy.url()).await;
        let delay = Duration::from_millis(100);
        proxy.delay(delay);
        let started = Instant::now();
        futures_of(&connection, 100).await;
        let took = started.elapsed();
        assert!(took >= 2 * delay, "{took:?}");
        assert!(took < 20 * delay, "{took:?}: not one after the other");

        proxy.delay_replies(delay);
        let started = Instant::now();
        ping(&connection).await.unwrap();
        let took = started.elapsed();
        assert!(took >= delay && took < 2 * delay, "{took:?}");

        proxy.delay(Duration::ZERO);
        let started = Instant::now();
        ping(&connection).await.unwrap();
        assert!(started.elapsed() < delay);
    }

    #[tokio::test]
    async fn delayed_replies_come_late_while_requests_are_served_at_once() {
        let (server, proxy) = server_and_proxy().await;
        let connection = connect(&proxy.url()).await;
        proxy.delay_replies(SOON);
        let mut set = Box::pin(send(&connection, &["SET", "k", "1"]));
        assert!(timeout(A_WHILE, &mut set).await.is_err());
        assert_eq!(server.keys("*").await, ["k"]);
    }

    #[tokio::test]
    async fn a_request_under_way_arrives_though_its_sender_is_gone() {
        let (server, proxy) = server_and_proxy().await;
        let connection = connect(&proxy.url()).await;
        proxy.delay(2 * A_WHILE);
        assert!(
            timeout(A_WHILE, send(&connection, &["SET", "late", "1"]))
                .await
                .is_err()
        );
        drop(connection);
        assert!(server.keys("*").await.is_empty());
        eventually("the late request arrives", async || {
            server.keys("*").await == ["late"]
        })
        .await;
    }

    #[tokio::test]
    async fn while_frozen_nothing_passes_and_afterwards_everything_does() {
        let (server, proxy) = server_and_proxy().await;
        let connection = connect(&proxy.url()).await;
        let requests = proxy.requests();
        proxy.freeze();
        let mut set = Box::pin(send(&connection, &["SET", "k", "1"]));
        assert!(timeout(A_WHILE, &mut set).await.is_err());
        let connecting = Client::open(proxy.url()).unwrap();
        let mut connecting = Box::pin(connecting.get_multiplexed_async_connection());
        assert!(timeout(A_WHILE, &mut connecting).await.is_err());
        assert!(server.keys("*").await.is_empty());
        assert_eq!(proxy.requests(), requests);
        assert_eq!(proxy.open_connections(), 2);
        proxy.thaw();
        assert_eq!(timeout(SOON, set).await.unwrap().unwrap(), "OK");
        assert_eq!(server.keys("*").await, ["k"]);
        assert!(
            ping(&timeout(SOON, connecting).await.unwrap().unwrap())
                .await
                .is_ok()
        );
    }

    #[tokio::test]
    async fn dropped_replies_are_lost_though_the_server_did_the_work() {
        let (server, proxy) = server_and_proxy().await;
        let connection = connect(&proxy.url()).await;
        let bytes = proxy.bytes_to_client();
        proxy.drop_replies(true);
        let mut set = Box::pin(send(&connection, &["SET", "k", "1"]));
        assert!(timeout(A_WHILE, &mut set).await.is_err());
        assert_eq!(server.keys("*").await, ["k"]);
        assert_eq!(proxy.bytes_to_client(), bytes);
        proxy.drop_replies(false);
        assert!(timeout(A_WHILE, &mut set).await.is_err(), "lost for good");
        let fresh = connect(&proxy.url()).await;
        assert_eq!(timeout(SOON, ping(&fresh)).await.unwrap().unwrap(), "PONG");
    }

    #[tokio::test]
    async fn cut_closes_every_connection_on_both_sides_and_new_ones_work() {
        let (server, proxy) = server_and_proxy().await;
        let one = connect(&proxy.url()).await;
        let two = connect(&proxy.url()).await;
        assert!(ping(&one).await.is_ok() && ping(&two).await.is_ok());
        clients_are(&server, 2).await;
        proxy.cut();
        assert_eq!(proxy.open_connections(), 0);
        assert!(timeout(SOON, ping(&one)).await.unwrap().is_err());
        assert!(timeout(SOON, ping(&two)).await.unwrap().is_err());
        clients_are(&server, 0).await;
        assert_eq!(ping(&connect(&proxy.url()).await).await.unwrap(), "PONG");
    }

    #[tokio::test]
    async fn a_frozen_connection_can_be_cut() {
        let (server, proxy) = server_and_proxy().await;
        let connection = connect(&proxy.url()).await;
        proxy.freeze();
        let mut set = Box::pin(send(&connection, &["SET", "k", "1"]));
        assert!(timeout(A_WHILE, &mut set).await.is_err());
        proxy.cut();
        assert!(timeout(SOON, set).await.unwrap().is_err());
        proxy.thaw();
        clients_are(&server, 0).await;
        assert!(
            server.keys("*").await.is_empty(),
            "what was held back is lost"
        );
    }

    #[tokio::test]
    async fn refused_connections_are_closed_and_existing_ones_stay() {
        let (_server, proxy) = server_and_proxy().await;
        let connection = connect(&proxy.url()).await;
        proxy.refuse(true);
        let client = Client::open(proxy.url()).unwrap();
        let refused = timeout(SOON, client.get_multiplexed_async_connection()).await;
        assert!(refused.unwrap().is_err());
        assert_eq!(proxy.connections(), 1);
        assert_eq!(ping(&connection).await.unwrap(), "PONG");
        proxy.refuse(false);
        assert_eq!(ping(&connect(&proxy.url()).await).await.unwrap(), "PONG");
    }

    #[tokio::test]
    async fn cut_after_a_request_lets_it_arrive_and_nobody_learns() {
        let (server, proxy) = server_and_proxy().await;
        let connection = connect(&proxy.url()).await;
        proxy.cut_after_next("set");
        assert_eq!(ping(&connection).await.unwrap(), "PONG", "not this one");
        let bytes = proxy.bytes_to_client();
        let (set, after) = tokio::join!(
            send(&connection, &["SET", "k", "1"]),
            send(&connection, &["SET", "after", "1"]),
        );
        assert!(set.is_err() && after.is_err());
        assert_eq!(proxy.bytes_to_client(), bytes);
        eventually("the request is served", async || {
            server.keys("*").await == ["k"]
        })
        .await;
        assert_eq!(proxy.requests_named("SET"), 1, "what came after it is lost");

        let connection = connect(&proxy.url()).await;
        assert_eq!(
            send(&connection, &["SET", "k", "2"]).await.unwrap(),
            "OK",
            "once"
        );
        proxy.cut_after_next_request();
        assert!(send(&connection, &["INCR", "k"]).await.is_err());
        eventually("the request is served", async || {
            server.query::<u64>(&["GET", "k"]).await == 3
        })
        .await;
    }

    #[tokio::test]
    async fn a_server_that_is_down_or_ends_closes_connections() {
        let (server, proxy) = server_and_proxy().await;
        let connection = connect(&proxy.url()).await;
        server.kill();
        assert!(timeout(SOON, ping(&connection)).await.unwrap().is_err());
        let client = Client::open(proxy.url()).unwrap();
        let connecting = timeout(SOON, client.get_multiplexed_async_connection()).await;
        assert!(connecting.unwrap().is_err());
        server.restart().await;
        assert_eq!(ping(&connect(&proxy.url()).await).await.unwrap(), "PONG");
    }

    #[tokio::test]
    async fn a_dropped_proxy_leaves_no_connection_and_no_listener() {
        let (server, proxy) = server_and_proxy().await;
        let connection = connect(&proxy.url()).await;
        let addr = proxy.addr();
        proxy.freeze();
        drop(proxy);
        assert!(tokio::net::TcpStream::connect(addr).await.is_err());
        assert!(timeout(SOON, ping(&connection)).await.unwrap().is_err());
        clients_are(&server, 0).await;
    }
}

mod process {
    use super::*;

    const WORKER: &str = env!("CARGO_BIN_EXE_lock-worker");

    #[tokio::test]
    async fn events_are_found_by_their_prefix_and_none_is_lost() {
        let mut worker = ChildProcess::start(WORKER, &[]);
        worker.send("ping one");
        worker.send("nonsense");
        worker.send("ping two");
        assert_eq!(
            worker.wait_for("error:").await.text,
            r#"unknown command "nonsense""#
        );
        assert_eq!(
            worker.wait_for("pong").await.text,
            "one",
            "passed over before"
        );
        let (status, rest) = worker.finish().await;
        assert!(status.success());
        let rest: Vec<_> = rest.into_iter().map(|event| event.text).collect();
        assert_eq!(rest, ["pong two"]);
    }

    #[tokio::test]
    async fn a_paused_process_answers_when_resumed_and_not_before() {
        let mut worker = ChildProcess::start(WORKER, &[]);
        worker.send("ping warm");
        worker.wait_for("pong").await;
        worker.pause();
        let sent = Instant::now();
        worker.send("ping now");
        assert!(timeout(A_WHILE, worker.wait_for("pong")).await.is_err());
        worker.resume();
        let event = worker.wait_for("pong").await;
        assert_eq!(event.text, "now");
        assert!(event.at - sent >= A_WHILE);
    }

    #[tokio::test]
    async fn a_killed_or_dropped_process_is_gone_even_if_it_was_paused() {
        for paused in [false, true] {
            let (mut killed, mut dropped) = (
                ChildProcess::start(WORKER, &[]),
                ChildProcess::start(WORKER, &[]),
            );
            let ids = [killed.id(), dropped.id()];
            assert!(ids.into_iter().all(exists));
            if paused {
                killed.pause();
                dropped.pause();
            }
            killed.kill();
            drop(dropped);
            assert!(!ids.into_iter().any(exists), "paused: {paused}");
        }
    }

    #[tokio::test]
    #[should_panic(expected = "the worker ended without")]
    async fn waiting_for_an_event_of_a_dead_process_does_not_hang() {
        let mut worker = ChildProcess::start(WORKER, &[]);
        worker.kill();
        worker.wait_for("pong").await;
    }
}

#[tokio::test]
#[should_panic(expected = "harness.rs")]
async fn eventually_gives_up_and_names_its_caller() {
    eventually_within(A_WHILE, "pigs fly", async || false).await;
}

#[tokio::test]
#[should_panic(expected = "it never happened that an answer comes")]
async fn eventually_gives_up_on_a_condition_that_hangs() {
    eventually_within(A_WHILE, "an answer comes", async || {
        std::future::pending().await
    })
    .await;
}
