//! A server starts, ends, stands still and comes back as told, and its counts are exact.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};

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

/// The claim is the system's, so it holds in other processes as well.
#[tokio::test]
async fn the_port_of_a_server_that_is_down_is_given_to_no_other_one() {
    let server = RedisServer::start().await;
    let claim = (Ipv4Addr::LOCALHOST, server.port());
    server.kill();
    let taken = UdpSocket::bind(claim).map_err(|error| error.kind());
    assert_eq!(taken.err(), Some(ErrorKind::AddrInUse));
    drop(server);
    // A process that another test starts at this moment has it, too, until it runs its program.
    eventually("it is given back", async || UdpSocket::bind(claim).is_ok()).await;
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
    await_clients(&server, 0).await;
    assert!(server.channels().await.is_empty());
    let client = Client::open(server.url()).unwrap();
    let mut subscription: PubSub = client.get_async_pubsub().await.unwrap();
    subscription.subscribe("news").await.unwrap();
    await_clients(&server, 1).await;
    assert_eq!(server.channels().await, ["news"]);
    drop(subscription);
    await_clients(&server, 0).await;
    assert!(server.channels().await.is_empty());
}
