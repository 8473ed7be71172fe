//! The connections that the callers' own runtimes drive, and what happens to waiters when one of
//! them is gone.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::panic;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lock_runtime::{Guard, LockClient};
use lock_testkit::{RedisServer, eventually};
use tokio::runtime::{Builder, Runtime};

use crate::{client, until_waiting};

const LONG: Duration = Duration::from_secs(30);

/// The connections that listen for grants. Clients' own connections also listen to other clients.
async fn listening(server: &RedisServer) -> BTreeSet<String> {
    let list: String = server.query(&["CLIENT", "LIST"]).await;
    let number = |line: &str, field: &str| {
        let mut fields = line.split(' ');
        let found = fields.find_map(|one| one.strip_prefix(field)?.strip_prefix('='));
        found.unwrap().to_owned()
    };
    // The client's own connection comes first.
    let mut owners = BTreeSet::new();
    let listens = list.lines().filter(|line| {
        let is_own = owners.insert(number(line, "name"));
        number(line, "sub") == if is_own { "2" } else { "1" }
    });
    listens.map(|line| number(line, "id")).collect()
}

/// A client with one connection, whose runtimes have none yet, and another client that holds "k".
async fn taken(server: &RedisServer) -> (LockClient, Guard) {
    // On a thread without a multi-threaded runtime.
    let named = async |name| {
        let builder = LockClient::builder().url(server.url()).name(name);
        builder.connect().await.unwrap()
    };
    let other = named("other").await;
    let held = other.lock("k").lease(LONG).acquire().await.unwrap();
    let client = named("client").await;
    // Both hear other clients by now.
    eventually("both listen", async || {
        let channels: Vec<String> = server.query(&["PUBSUB", "CHANNELS"]).await;
        channels.len() == 2
    })
    .await;
    (client, held)
}

fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().unwrap()
}

#[tokio::test]
async fn a_waiter_hears_of_its_turn_over_its_runtimes_connection_only() {
    let server = RedisServer::start().await;
    let (client, held) = taken(&server).await;
    let before: String = server.query(&["CLIENT", "LIST"]).await;
    let own = runtime();
    // The very first request of this runtime. Its connection is made during the request.
    let waiting = own.spawn(client.lock("k").wait(LONG).acquire());
    until_waiting(&client, "k", 1).await;
    let listening = listening(&server).await;
    assert_eq!(listening.len(), 1, "{listening:?}");
    let id = listening.first().unwrap();
    assert!(!before.contains(&format!("id={id} ")), "the client's own");
    server.reset_stats().await;
    held.release().await.unwrap();
    drop(waiting.await.unwrap().unwrap());
    // The hand-over took no further command: both of these are releases.
    eventually("both have given it back", async || {
        server.command_calls("evalsha").await == 2
    })
    .await;
    own.shutdown_background();
}

/// The shortest of a few times from the loss of the connection until there is a listener again. A
/// waiter that is not told looks again a second after it began to wait.
async fn soon_heard_again(lose: impl AsyncFn(&RedisServer, &str, Runtime)) {
    let mut shortest = LONG;
    for _ in 0..3 {
        let server = RedisServer::start().await;
        let (client, held) = taken(&server).await;
        let own = runtime();
        let mut waiting = pin!(client.lock("k").wait(LONG).acquire());
        // As long as that runtime polls it, commands go over its connection.
        let there = poll_fn(|cx| {
            let _entered = own.enter();
            waiting.as_mut().poll(cx)
        });
        let id = tokio::select! {
            biased;
            ended = there => panic!("{ended:?}"),
            id = async {
                until_waiting(&client, "k", 1).await;
                let listening = listening(&server).await;
                assert_eq!(listening.len(), 1, "{listening:?}");
                listening.first().unwrap().clone()
            } => id,
        };
        let lost = Instant::now();
        lose(&server, &id, own).await;
        tokio::select! {
            biased;
            ended = &mut waiting => panic!("{ended:?}"),
            () = eventually("it listens again", async || {
                listening(&server).await.iter().any(|other| *other != id)
            }) => {}
        }
        shortest = shortest.min(lost.elapsed());
        held.release().await.unwrap();
        assert!(waiting.await.unwrap().is_held());
    }
    assert!(shortest < Duration::from_millis(600), "{shortest:?}");
}

#[tokio::test]
async fn a_runtimes_connection_that_is_closed_is_waited_on_no_longer() {
    soon_heard_again(async |server, id, own| {
        server.command(&["CLIENT", "KILL", "ID", id]).await;
        own.shutdown_background();
    })
    .await;
}

#[tokio::test]
async fn the_connection_of_a_runtime_that_has_ended_is_waited_on_no_longer() {
    soon_heard_again(async |_, _, own| own.shutdown_background()).await;
}

/// The connections of clients.
async fn connected(server: &RedisServer) -> BTreeSet<String> {
    let list: String = server.query(&["CLIENT", "LIST"]).await;
    let others = list.lines().filter(|line| !line.contains("cmd=client"));
    let ids = others.filter_map(|line| line.split(' ').next()?.strip_prefix("id="));
    ids.map(str::to_owned).collect()
}

#[tokio::test]
async fn a_runtimes_connection_goes_with_the_clients_own_also_if_it_does_nothing_more() {
    let server = RedisServer::start().await;
    let client = client(&server.url()).await;
    let main = connected(&server).await;
    assert_eq!(main.len(), 1, "{main:?}");
    let own = runtime();
    let used = own.spawn(client.lock("k").run(async {}));
    used.await.unwrap().unwrap();
    eventually("the runtime has its own", async || {
        connected(&server).await.len() == 2
    })
    .await;
    let before = connected(&server).await;
    let id = main.first().unwrap();
    server.command(&["CLIENT", "KILL", "ID", id]).await;
    eventually("there is only the client's own, a new one", async || {
        let now = connected(&server).await;
        now.len() == 1 && now.is_disjoint(&before)
    })
    .await;
    own.shutdown_background();
}

#[test]
fn clients_that_come_and_go_cause_no_panic_in_their_callers_runtime() {
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let hook = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if panic.to_string().contains("A Tokio 1.x context") {
            PANICS.fetch_add(1, Ordering::Relaxed);
        }
        hook(panic);
    }));
    let mut builder = Builder::new_multi_thread();
    let own = builder.worker_threads(2).enable_all().build().unwrap();
    own.block_on(async {
        let server = RedisServer::start().await;
        for round in 0..300 {
            let url = server.url();
            let gone = tokio::spawn(async move {
                let client = client(&url).await;
                let guard = client.lock("k").acquire().await.unwrap();
                guard.release().await.unwrap();
                if round % 2 == 0 {
                    client.shutdown(LONG).await;
                }
            });
            gone.await.unwrap();
        }
    });
    own.shutdown_timeout(LONG);
    assert_eq!(PANICS.load(Ordering::Relaxed), 0);
}
