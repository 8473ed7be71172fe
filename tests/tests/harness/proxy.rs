//! Each fault of the network does what its name says.

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
    // Many chunks long, with a request's beginning inside.
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

#[tokio::test]
async fn a_receiver_that_takes_chunks_in_parts_changes_no_count() {
    let (server, proxy) = server_and_proxy().await;
    let mut connection = connect(&proxy.url()).await;
    // More than all buffers on the way can hold, so that chunks are written in parts.
    let (count, value) = (12_000, "v".repeat(1_000));
    let mut pipeline = redis::pipe();
    for _ in 0..count {
        pipeline.cmd("SET").arg("k").arg(&value).ignore();
    }
    server.pause();
    let mut all = Box::pin(pipeline.query_async::<()>(&mut connection));
    assert!(timeout(A_WHILE, &mut all).await.is_err());
    assert!(proxy.requests() < count);
    server.resume();
    timeout(SOON, all).await.unwrap().unwrap();
    assert_eq!(proxy.requests(), count, "{proxy:?}");
    assert_eq!(server.command_calls("set").await, count);
}

/// `count` pings under way at the same time, so that chunks hold several requests.
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
    let delay = Duration::from_secs(1);
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
    proxy.delay(20 * A_WHILE);
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
    await_clients(&server, 2).await;
    proxy.cut();
    assert_eq!(proxy.open_connections(), 0);
    assert!(timeout(SOON, ping(&one)).await.unwrap().is_err());
    assert!(timeout(SOON, ping(&two)).await.unwrap().is_err());
    await_clients(&server, 0).await;
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
    await_clients(&server, 0).await;
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
async fn cut_after_a_request_lets_it_arrive_and_loses_its_reply() {
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
    await_clients(&server, 0).await;
}
