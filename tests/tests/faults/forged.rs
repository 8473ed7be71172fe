//! Messages from a client that may publish under the namespace and knows all channels.

use std::time::Duration;

use lock_runtime::{Lock, LockClient};
use lock_testkit::{RedisServer, eventually};

use crate::{client, until_waiting};

/// A client without a right to any key.
struct Forger(redis::aio::MultiplexedConnection);

impl Forger {
    async fn on(server: &RedisServer) -> Self {
        let rights = ["resetchannels", "&lock:*", "+publish", "+pubsub|channels"];
        let user = ["ACL", "SETUSER", "forger", "on", ">word", "resetkeys"];
        let rule: Vec<_> = user.iter().chain(&rights).copied().collect();
        server.command(&rule).await;
        let url = format!("redis://forger:word@{}/", server.addr());
        Self(lock_testkit::patient_connection(&url).await)
    }

    /// Sends this message to the client that listens on the only channel for grants. The client
    /// hears it before any answer to a later request.
    async fn send(&self, message: &str) {
        let mut connection = self.0.clone();
        let mut list = redis::cmd("PUBSUB");
        list.arg("CHANNELS").arg("lock:%granted:*");
        let channels: Vec<String> = list.query_async(&mut connection).await.unwrap();
        assert_eq!(channels.len(), 1, "{channels:?}");
        self.tells_on(&channels[0], message).await;
    }

    async fn tells_on(&self, channel: &str, message: &str) {
        let mut publish = redis::cmd("PUBLISH");
        publish.arg(channel).arg(message);
        let heard: usize = publish.query_async(&mut self.0.clone()).await.unwrap();
        assert!(heard > 0);
    }
}

/// The owner token in the only place of this queue.
async fn waiting_token(server: &RedisServer, queue: &str) -> String {
    let places: Vec<String> = server.query(&["ZRANGE", queue, "0", "-1"]).await;
    let place = places.iter().find_map(|place| place.split(':').next());
    place.unwrap().to_owned()
}

fn kinds(client: &LockClient) -> [Lock; 3] {
    let lock = client.lock("k");
    [lock.clone(), lock.clone().fair(), lock.fenced()]
}

const QUEUE: &str = "lock:%queue:{lock:k}";

#[tokio::test]
async fn knowing_an_earlier_request_does_not_grant_the_next_one() {
    let server = RedisServer::start().await;
    let (holder, victim) = (client(&server.url()).await, client(&server.url()).await);
    let forger = Forger::on(&server).await;
    for (number, request) in kinds(&victim).into_iter().enumerate() {
        let held = holder.lock("k").acquire().await.unwrap();
        let earlier = victim.lock("other").acquire().await.unwrap();
        let known: String = server.query(&["GET", "lock:other"]).await;
        earlier.release().await.unwrap();
        let waiting = tokio::spawn(request.acquire());
        until_waiting(&holder, "k", 1).await;
        let (client, number_of_request) = known.split_once('-').unwrap();
        let known = u64::from_str_radix(number_of_request, 16).unwrap();
        for next in (1..50).map(|more| known.wrapping_add(more)) {
            forger
                .send(&format!("1 granted {client}-{next:x} 9999"))
                .await;
        }
        victim.inspect("k").await.unwrap();
        assert!(!waiting.is_finished(), "two holders, kind {number}");
        held.release().await.unwrap();
        let granted = waiting.await.unwrap().unwrap();
        assert!(
            granted
                .fencing_token()
                .is_none_or(|token| u64::from(token) > 1 << 40)
        );
        granted.release().await.unwrap();
    }
}

#[tokio::test]
async fn the_number_of_a_request_grants_nothing_to_another_client() {
    let server = RedisServer::start().await;
    let (holder, victim) = (client(&server.url()).await, client(&server.url()).await);
    let forger = Forger::on(&server).await;
    let held = holder.lock("k").acquire().await.unwrap();
    let waiting = tokio::spawn(victim.lock("k").acquire());
    until_waiting(&holder, "k", 1).await;
    let token = waiting_token(&server, QUEUE).await;
    let (_, number) = token.split_once('-').unwrap();
    for client in [0, u128::MAX] {
        forger
            .send(&format!("1 granted {client:032x}-{number} "))
            .await;
    }
    for other_version in ["", "0 ", "2 ", "1 waited "] {
        forger.send(&format!("{other_version}{token} ")).await;
    }
    victim.inspect("k").await.unwrap();
    assert!(!waiting.is_finished(), "two holders");
    held.release().await.unwrap();
    assert!(waiting.await.unwrap().unwrap().is_held());
}

#[tokio::test]
async fn a_client_that_trusts_no_message_asks_the_store() {
    let server = RedisServer::start().await;
    let holder = client(&server.url()).await;
    let careful = LockClient::builder()
        .url(server.url())
        .trust_messages(false);
    let careful = careful.connect().await.unwrap();
    let forger = Forger::on(&server).await;
    for request in kinds(&careful) {
        let held = holder.lock("k").acquire().await.unwrap();
        let waiting = tokio::spawn(request.acquire());
        until_waiting(&holder, "k", 1).await;
        // Even from a forger that knows everything.
        let token = waiting_token(&server, QUEUE).await;
        let before = server.command_calls("evalsha").await;
        forger.send(&format!("1 granted {token} 9999")).await;
        eventually("it asks", async || {
            server.command_calls("evalsha").await > before + 1
        })
        .await;
        careful.inspect("k").await.unwrap();
        assert!(!waiting.is_finished(), "two holders");
        held.release().await.unwrap();
        let granted = waiting.await.unwrap().unwrap();
        assert!(granted.is_held());
        granted.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_latch_opens_by_a_look_and_not_by_a_message() {
    let server = RedisServer::start().await;
    let client = client(&server.url()).await;
    let forger = Forger::on(&server).await;
    let latch = client.latch("l");
    latch.set(1).await.unwrap();
    let waits = client.latch("l");
    let waiting = tokio::spawn(async move { waits.wait(Duration::from_secs(20)).await });
    let places = "lock:%latch:{lock:l}";
    eventually("it waits", async || !server.keys(places).await.is_empty()).await;
    let token = waiting_token(&server, places).await;
    let generation: String = server.query(&["HGET", "lock:l", "generation"]).await;
    forger.send(&format!("1 opened {token} {generation}")).await;
    client.latch("l").count().await.unwrap();
    client.inspect("k").await.unwrap();
    assert!(!waiting.is_finished(), "it opened by the word of a message");
    latch.count_down().await.unwrap();
    waiting.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_grant_whose_token_does_not_rise_is_not_believed() {
    let server = RedisServer::start().await;
    let (holder, victim) = (client(&server.url()).await, client(&server.url()).await);
    let forger = Forger::on(&server).await;
    let before = victim.lock("k").fenced().acquire().await.unwrap();
    let last = u64::from(before.fencing_token().unwrap());
    before.release().await.unwrap();
    let held = holder.lock("k").acquire().await.unwrap();
    let waiting = tokio::spawn(victim.lock("k").fenced().acquire());
    until_waiting(&holder, "k", 1).await;
    let token = waiting_token(&server, QUEUE).await;
    let asked = server.command_calls("evalsha").await;
    forger.send(&format!("1 granted {token} {last}")).await;
    eventually("it asks", async || {
        server.command_calls("evalsha").await > asked
    })
    .await;
    victim.inspect("k").await.unwrap();
    assert!(!waiting.is_finished(), "two holders");
    held.release().await.unwrap();
    let granted = waiting.await.unwrap().unwrap();
    assert!(u64::from(granted.fencing_token().unwrap()) > last);
}

/// Only who can read the store knows the owner. The holder hears the messages in their order.
#[tokio::test]
async fn a_revocation_with_another_owner_ends_no_hold() {
    let server = RedisServer::start().await;
    let holder = client(&server.url()).await;
    let kept = holder.lock("k").acquire().await.unwrap();
    let other = holder.lock("l").acquire().await.unwrap();
    let forger = Forger::on(&server).await;
    let token: String = server.query(&["GET", "lock:l"]).await;
    let (id, _) = token.split_once('-').unwrap();
    let channel = format!("lock:%client:{id}");
    let asker = format!("{:032x}", 7);
    let unknown = format!("{id}-1");
    for owner in [&unknown, &token] {
        // Of the one key, and as the owner of another.
        let demand = format!("1 revoke {asker} {owner} - k");
        forger.tells_on(&channel, &demand).await;
    }
    forger
        .tells_on(&channel, &format!("1 revoke {asker} {token} - l"))
        .await;
    other.lost().await;
    assert!(kept.is_held());
    kept.release().await.unwrap();
}
