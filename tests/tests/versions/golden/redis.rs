//! Redis: keys with their types and times to live, and messages on channels.

use std::time::Duration;

use lock_store::{Acquired, Queue};
use lock_testkit::{
    Backend, RedisBackend, RedisQuorum, RedisServer, RedissonBackend, TextBackend, eventually,
};

use super::{by_numbers, by_words, expect_fixture, lines, messages, stored, time_to_live};
use crate::clients::{A, B, Clients, LEASE, claim, owner};

async fn server() -> Backend {
    RedisBackend::redis().await
}

fn redis(backend: &Backend) -> &RedisServer {
    backend.one_redis().unwrap()
}

/// A line for each key, and one for each of its parts.
async fn dump(server: &RedisServer) -> Vec<String> {
    let mut keys = server.keys("*").await;
    keys.sort();
    let mut lines = Vec::new();
    for key in keys {
        let kind: String = server.query(&["TYPE", &key]).await;
        let ttl: i64 = server.query(&["PTTL", &key]).await;
        lines.push(format!("{kind} {key} {}", time_to_live(ttl)));
        let parts: Vec<String> = match kind.as_str() {
            "string" => vec![server.query(&["GET", &key]).await],
            "hash" => server.query(&["HGETALL", &key]).await,
            "zset" => {
                server
                    .query(&["ZRANGE", &key, "0", "-1", "WITHSCORES"])
                    .await
            }
            other => panic!("{key} is a {other}"),
        };
        let mut parts: Vec<_> = parts
            .chunks(2)
            .map(|part| format!("    {}", by_words(&part.join(" "))))
            .collect();
        if kind == "hash" {
            parts.sort();
        }
        lines.extend(parts);
    }
    lines
}

async fn load(server: &RedisServer, lines: &[String]) {
    let mut key = [""; 3];
    for line in lines {
        let Some(part) = line.strip_prefix("    ") else {
            key = line.splitn(3, ' ').collect::<Vec<_>>().try_into().unwrap();
            continue;
        };
        let [kind, name, lives] = key;
        let part = by_numbers(part);
        match (kind, part.split_once(' ')) {
            ("string", _) => drop(server.command(&["SET", name, &part]).await),
            ("hash", Some((field, value))) => {
                server.command(&["HSET", name, field, value]).await;
            }
            ("zset", Some((member, score))) => {
                server.command(&["ZADD", name, score, member]).await;
            }
            other => panic!("{other:?}"),
        }
        let seconds = lives.trim_end_matches('s');
        server.command(&["EXPIRE", name, seconds]).await;
    }
}

/// Places of a client that stands still: all stamps of the queue become older by hand.
async fn leave_suspended(clients: &Clients, server: &RedisServer) {
    let still = |client, request| claim("still", owner(client, request), None);
    clients.take(still(A, 9), 0).await;
    clients.wait(still(B, 9), 0).await;
    clients.wait(still(B, 9), 0).await;
    let script = "local all = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
        for i = 1, #all, 2 do redis.call('ZADD', KEYS[1], all[i + 1] - 2100000, all[i]) end";
    let queue = "lock:%queue:{lock:still}";
    server.command(&["EVAL", script, "1", queue]).await;
    clients.release(still(A, 9), Duration::ZERO).await;
    clients.take(still(A, 10), 0).await;
}

async fn find_suspended(clients: &Clients) {
    let still = |client, request| claim("still", owner(client, request), None);
    clients.wait(still(B, 9), 0).await;
    assert_eq!(clients.inspect("still").await.waiting, 1);
    clients.release(still(A, 10), Duration::ZERO).await;
    eventually("it has its place back", async || {
        let granted = clients.heard_by_b.granted.lock().unwrap();
        granted.iter().any(|(heard, _)| *heard == owner(B, 9))
    })
    .await;
}

#[tokio::test]
async fn what_is_stored_in_redis_is_as_it_was() {
    let backend = server().await;
    let clients = Clients::of(&*backend).await;
    stored::leave(&clients).await;
    leave_suspended(&clients, redis(&backend)).await;
    expect_fixture("redis/stored.txt", &dump(redis(&backend)).await);
}

#[tokio::test]
async fn what_was_stored_in_redis_is_understood() {
    let backend = server().await;
    let clients = Clients::of(&*backend).await;
    load(redis(&backend), &lines("redis/stored.txt")).await;
    stored::find(&clients).await;
    find_suspended(&clients).await;
}

/// A new server with locks of another library's layout, and the name of its fixture.
async fn layouts() -> [(Backend, &'static str); 2] {
    [
        (RedissonBackend::start().await, "redis/redisson.txt"),
        (TextBackend::timestamp().await, "redis/timestamp.txt"),
    ]
}

#[tokio::test]
async fn what_is_stored_in_other_libraries_layouts_is_as_it_was() {
    for (backend, fixture) in layouts().await {
        let clients = Clients::of(&*backend).await;
        clients.take(claim("exclusive", owner(A, 1), None), 0).await;
        expect_fixture(fixture, &dump(redis(&backend)).await);
    }
}

#[tokio::test]
async fn what_was_stored_in_other_libraries_layouts_is_understood() {
    for (backend, fixture) in layouts().await {
        let clients = Clients::of(&*backend).await;
        load(redis(&backend), &lines(fixture)).await;
        clients.is_busy("exclusive", None).await;
        let found = clients.inspect("exclusive").await;
        assert!(found.holder.is_some(), "{fixture}: {found:?}");
        let left = found.remaining.unwrap();
        assert!(left > LEASE / 2, "{fixture}: {left:?}");
    }
}

/// Subscribes to all channels of clients, and gives the messages that come.
fn hear(url: &str, messages: usize) -> tokio::task::JoinHandle<Vec<String>> {
    let mut connection = redis::Client::open(url).unwrap().get_connection().unwrap();
    let timeout = Some(Duration::from_secs(30));
    connection.set_read_timeout(timeout).unwrap();
    let (subscribed, is_subscribed) = std::sync::mpsc::channel();
    let heard = tokio::task::spawn_blocking(move || {
        let mut hears = connection.as_pubsub();
        hears.psubscribe("lock:*").unwrap();
        subscribed.send(()).unwrap();
        let mut next = || {
            let message = hears.get_message().unwrap();
            let said: String = message.get_payload().unwrap();
            by_words(&format!("{} '{said}'", message.get_channel_name()))
        };
        // A client tries whether it may publish, and whether it hears itself.
        let tries = |said: &String| said.contains("unused") || said.contains("'1 proof'");
        let said = std::iter::repeat_with(&mut next).filter(|said| !tries(said));
        said.take(messages).collect()
    });
    is_subscribed.recv().unwrap();
    heard
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_in_redis_is_as_it_was() {
    let backend = server().await;
    let heard = hear(&redis(&backend).url(), messages::MESSAGES);
    let clients = Clients::of(&*backend).await;
    for number in 0..messages::MESSAGES {
        messages::say(&clients, number).await;
    }
    expect_fixture("redis/messages.txt", &heard.await.unwrap());
}

async fn publish(server: &RedisServer, lines: &[String]) {
    for line in lines {
        let (channel, said) = line.split_once(' ').unwrap();
        let said = by_numbers(said.trim_matches('\''));
        server.command(&["PUBLISH", channel, &said]).await;
    }
}

#[tokio::test]
async fn what_was_said_in_redis_is_understood() {
    let backend = server().await;
    let clients = Clients::of(&*backend).await;
    // Who waits listens.
    clients.take(claim("l", owner(A, 1), None), 0).await;
    clients.wait(claim("l", owner(B, 7), None), 0).await;
    publish(redis(&backend), &lines("redis/messages.txt")).await;
    messages::expect_heard(&clients).await;
}

/// A message that a lock of a quorum is free. It goes to all who wait, and counts them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_on_a_quorum_is_as_it_was_and_is_understood() {
    let quorum = RedisQuorum::start(3).await;
    let first = quorum.servers[0].url();
    let backend = Backend::new(RedisBackend::Quorum(quorum));
    let clients = Clients::of(&*backend).await;
    clients.take(claim("k", owner(A, 1), None), 0).await;
    let waits = claim("k", owner(B, 1), None);
    let reply = clients.acquire(waits, Queue::Join, 0).await;
    assert!(matches!(reply, Ok(Acquired::Busy(_))), "{reply:?}");
    let heard = hear(&first, 1);
    clients
        .release(claim("k", owner(A, 1), None), Duration::ZERO)
        .await;
    expect_fixture("redis/quorum_messages.txt", &heard.await.unwrap());
    let freed = || clients.heard_by_b.freed.lock().unwrap().first().cloned();
    eventually("it hears of it", async || freed().is_some()).await;
    let freed = freed().unwrap();
    assert_eq!((freed.key.as_str(), freed.owner.client), ("k", A));
}
