//! Which events there are, and in which order.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_runtime::observe::{Event, LockKind, What};
use lock_runtime::{Guard, LockClient, LockError, LockKey, distributed_lock, lock_key};
use lock_testkit::{Proxy, RedisServer, eventually};

use crate::{Told, observed, observed_at};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_request_and_its_hold_are_told_from_the_beginning_to_the_end() {
    let (client, told) = observed().await;
    let product = 42;
    let guard = client.lock(lock_key!("stock:<product>")).acquire().await;
    guard.unwrap().release().await.unwrap();
    let events = ["asked exclusive", "granted store", "released"];
    assert_eq!(told.about("stock:<product>"), events);
    assert_eq!(told.times("command acquire None"), 1);
    assert_eq!(told.times("command release None"), 1);
}

#[distributed_lock(key = "report:<day>", client = client)]
async fn report(client: &LockClient, day: u32) -> Result<u32, LockError> {
    Ok(day)
}

#[tokio::test]
async fn the_template_is_that_of_the_attribute_or_the_macro_or_a_label() {
    let (client, told) = observed().await;
    assert_eq!(report(&client, 7).await.unwrap(), 7);
    client
        .lock("a:1")
        .label("a:<id>")
        .run(async {})
        .await
        .unwrap();
    let key = LockKey::from("b:1").labelled("b:<id>");
    client.lock(key).run(async {}).await.unwrap();
    let both = client.multi_lock(["d:2", "d:1"]).label("d:<id>");
    both.run(async {}).await.unwrap();
    client.lock("c:1").run(async {}).await.unwrap();
    for template in [
        "report:<day>",
        "a:<id>",
        "b:<id>",
        "d:<id>",
        "without a template",
    ] {
        assert_eq!(told.about(template).len(), 3, "{template}: {told:?}");
    }
    // A view, and an error, keep it.
    let view = client.namespaced("acme");
    let guard = view.lock(lock_key!("e:1")).acquire().await.unwrap();
    assert_eq!(guard.key().template(), Some("e:1"));
    let busy = view
        .lock(lock_key!("e:1"))
        .wait(Duration::ZERO)
        .acquire()
        .await;
    assert_eq!(busy.unwrap_err().key().unwrap().template(), Some("e:1"));
}

#[tokio::test]
async fn each_kind_of_lock_has_its_name() {
    let (client, told) = observed().await;
    let prices = client.rw_lock("prices");
    prices.read().label("r").run(async {}).await.unwrap();
    prices.write().label("w").run(async {}).await.unwrap();
    let downloads = client.semaphore("downloads", 2);
    downloads.permit().label("s").run(async {}).await.unwrap();
    for (label, kind) in [("r", "read"), ("w", "write"), ("s", "semaphore")] {
        assert_eq!(told.about(label)[0], format!("asked {kind}"));
    }
}

#[tokio::test]
async fn what_is_told_of_several_keys_names_the_first_and_counts_the_others() {
    let all = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&all);
    let observer = move |event: &Event<'_>| {
        let what = match event.what {
            What::Asked => "asked",
            What::Queued => "queued",
            What::Granted { .. } => "granted",
            What::Renewed { .. } => "renewed",
            What::Released { .. } => "released",
            _ => return,
        };
        let lock = event.lock.unwrap();
        // Not of the one that is waited for.
        if lock.key.as_str() == "c" && lock.more_keys == 0 && what != "queued" {
            return;
        }
        let about = (what, lock.key.as_str().to_owned(), lock.more_keys);
        told.lock().unwrap().push(about);
    };
    let builder = LockClient::builder().url("memory:").observer(observer);
    let client = builder.connect().await.unwrap();
    let held = client.lock("c").acquire().await.unwrap();
    let several = client.multi_lock(["c", "a", "b", "a"]);
    let request = several.lease(3 * SECOND).renew(true);
    let request = tokio::spawn(request.acquire());
    let is_told = |what: &str| all.lock().unwrap().iter().any(|(told, ..)| *told == what);
    eventually("it waits", async || is_told("queued")).await;
    held.release().await.unwrap();
    let guard = request.await.unwrap().unwrap();
    eventually("it is renewed", async || is_told("renewed")).await;
    guard.release().await.unwrap();
    eventually("it is released", async || is_told("released")).await;
    let mut all = all.lock().unwrap().clone();
    all.dedup();
    let about = |what| (what, "a".to_owned(), 2);
    let expected = ["asked", "queued", "granted", "renewed", "released"].map(about);
    assert_eq!(*all, expected);
}

#[tokio::test]
async fn it_is_told_how_long_a_request_has_waited_in_vain() {
    let waits = Arc::new(Mutex::new(None));
    let told = Arc::clone(&waits);
    let observer = move |event: &Event<'_>| {
        if let What::Busy { waited, .. } = event.what {
            *told.lock().unwrap() = Some(waited);
        }
    };
    let builder = LockClient::builder().url("memory:").observer(observer);
    let client = builder.connect().await.unwrap();
    let _held = client.lock("k").acquire().await.unwrap();
    let wait = Duration::from_millis(50);
    let busy = client.lock("k").wait(wait).acquire().await;
    assert!(busy.unwrap_err().is_busy());
    assert!(*waits.lock().unwrap() >= Some(wait));
}

#[tokio::test]
async fn a_writer_that_became_a_reader_ends_as_what_it_was_granted() {
    let kinds = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&kinds);
    let observer = move |event: &Event<'_>| {
        if let (Some(lock), What::Granted { .. } | What::Released { .. }) = (event.lock, event.what)
        {
            told.lock().unwrap().push(lock.kind);
        }
    };
    let builder = LockClient::builder().url("memory:").observer(observer);
    let client = builder.connect().await.unwrap();
    let guard = client.rw_lock("k").write().acquire().await.unwrap();
    guard.downgrade().await.unwrap();
    guard.release().await.unwrap();
    assert_eq!(*kinds.lock().unwrap(), [LockKind::Write, LockKind::Write]);
}

#[tokio::test]
async fn it_is_told_whom_a_lock_came_from() {
    let server = RedisServer::start().await;
    let (client, told) = observed_at(&server).await;
    let (another, _) = observed_at(&server).await;
    let request = |client: &LockClient| client.lock("k").label("k").wait(60 * SECOND);
    // If it asks again just then, as it does each second, the reply says that it has the lock.
    let held = loop {
        let held = request(&another).acquire().await.unwrap();
        let before = told.about("k").len();
        let waits = tokio::spawn(request(&client).acquire());
        eventually("it stands in the queue", async || {
            another.inspect("k").await.unwrap().waiting == 1
        })
        .await;
        held.release().await.unwrap();
        let held = waits.await.unwrap().unwrap();
        let events = told.about("k").split_off(before);
        assert_eq!(events[..2], ["asked exclusive", "queued"]);
        match events[2..].join(" ").as_str() {
            "granted handed_over" => break held,
            "granted store" => held.release().await.unwrap(),
            other => panic!("{other}"),
        }
    };
    let released = told.times("k released");

    let waits = tokio::spawn(request(&client).acquire());
    eventually("it waits", async || client.stats().waiting == 1).await;
    told.eventually("k queued").await;
    held.release().await.unwrap();
    let held = waits.await.unwrap().unwrap();
    assert_eq!(told.about("k").last().unwrap(), "granted handed_off");
    assert_eq!(told.times("k released"), released + 1);

    held.scope(async { request(&client).run(async {}).await.unwrap() })
        .await;
    assert_eq!(told.about("k").last().unwrap(), "granted nested");
    assert_eq!(
        told.times("k released"),
        released + 1,
        "the outer guard is still there"
    );
}

#[tokio::test]
async fn each_end_of_a_request_without_a_lock_is_told_once() {
    let server = RedisServer::start().await;
    let (client, told) = observed_at(&server).await;
    let guard = client.lock("k").label("held").acquire().await.unwrap();

    let busy = client.lock("k").label("busy").try_acquire().await.unwrap();
    assert!(busy.is_none());
    let bad = client.lock("").label("bad").acquire().await;
    assert!(matches!(bad, Err(LockError::InvalidKey { .. })));
    let cancelled = client.lock("k").label("cancelled").acquire();
    assert!(tokio::time::timeout(SECOND / 10, cancelled).await.is_err());
    server.kill();
    let down = client.lock("other").label("down").wait(Duration::ZERO);
    assert!(down.acquire().await.unwrap_err().is_unavailable());

    for (label, last) in [
        ("busy", "busy"),
        ("cancelled", "cancelled"),
        ("down", "unavailable Disconnected"),
    ] {
        let events = told.about(label);
        assert_eq!(events.last().unwrap(), last);
        let ends = events.iter().filter(|one| *one != "queued").count();
        assert_eq!(ends, 2, "{events:?}");
    }
    let bad = told.about("bad");
    assert!(
        bad.len() == 2 && bad[1].starts_with("refused the lock key"),
        "{bad:?}"
    );
    assert!(guard.is_held());
}

#[tokio::test]
async fn a_loss_is_told_when_it_happens_and_no_release_after_it() {
    let (client, told) = observed().await;
    let lease = Duration::from_millis(50);
    let guard = client
        .lock("k")
        .label("short")
        .lease(lease)
        .acquire()
        .await
        .unwrap();
    // Nobody asks the guard.
    told.eventually("short lost Expired").await;
    guard.release().await.unwrap_err();
    assert_eq!(told.times("short lost"), 1);
    assert_eq!(told.times("short released"), 0);

    let guard = client.lock("k").label("taken").acquire().await.unwrap();
    assert!(client.force_release("k").await.unwrap());
    guard.release().await.unwrap_err();
    told.eventually("taken lost Gone").await;
    assert_eq!(told.times("taken released"), 0);
    assert_eq!(client.stats().lost, 2);
}

#[tokio::test]
async fn a_dropped_guard_is_told_as_released_and_undone() {
    let (client, told) = observed().await;
    drop(client.lock("k").label("k").acquire().await.unwrap());
    assert_eq!(told.about("k").last().unwrap(), "released");
    told.eventually("client undone 0").await;
    assert_eq!(told.times("undoing"), 1);
    assert_eq!(client.stats().undoing, 0);
}

#[tokio::test]
async fn locks_that_a_request_for_several_gave_back_are_not_told() {
    let server = RedisServer::start().await;
    let (client, told) = observed_at(&server).await;
    let (another, _) = observed_at(&server).await;
    let held = another.lock("b").acquire().await.unwrap();
    let both = client.multi_lock(["b", "a"]).label("both");
    assert!(
        both.clone()
            .wait(SECOND / 5)
            .acquire()
            .await
            .unwrap_err()
            .is_busy()
    );
    let events = told.about("both");
    let count = |what: &str| events.iter().filter(|one| **one == what).count();
    assert_eq!((count("busy"), count("released")), (1, 0), "{events:?}");
    held.release().await.unwrap();
    both.run(async {}).await.unwrap();
    assert_eq!(told.times("both released"), 1);
    assert_eq!(told.times("both granted"), 1);
}

#[tokio::test]
async fn renewals_are_told_and_those_that_were_late() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let told = Told::default();
    let builder = LockClient::builder()
        .url(proxy.url())
        .observer(told.clone());
    let builder = builder.command_timeout(SECOND);
    let client = builder.connect().await.unwrap();
    let lease = 9 * SECOND;
    let request = client.lock("k").label("k").lease(lease).renew(true);
    let guard = request.acquire().await.unwrap();
    told.eventually("k renewed").await;
    assert_eq!(told.times("renewed late"), 0);
    proxy.freeze();
    told.eventually("command renew Some(Timeout)").await;
    proxy.thaw();
    told.eventually("k renewed late").await;
    assert!(guard.is_held());
}

#[tokio::test]
async fn connections_come_and_go() {
    let server = RedisServer::start().await;
    let (client, told) = observed_at(&server).await;
    let address = server.addr();
    told.eventually(&format!("connected {address}")).await;
    server.kill();
    told.eventually(&format!("disconnected {address}")).await;
    eventually("it says so", async || !client.stats().connected).await;
    server.restart().await;
    let again = format!("client connected {address}");
    // On a busy machine a new connection may be silent and be replaced.
    eventually("it is connected again", async || {
        told.times(&again) >= 2 && client.stats().connected
    })
    .await;
}

#[tokio::test]
async fn a_lock_that_was_lost_while_others_were_gathered_is_not_told() {
    let (client, told) = observed().await;
    let held = client.lock("b").acquire().await.unwrap();
    let both = client
        .multi_lock(["a", "b"])
        .label("both")
        .wait(60 * SECOND);
    let both = tokio::spawn(both.lease(3 * SECOND).acquire());
    eventually("it has the first", async || client.stats().held == 2).await;
    assert!(client.force_release("a").await.unwrap());
    eventually("its renewal finds that", async || client.stats().held == 1).await;
    both.abort();
    assert!(both.await.is_err());
    told.eventually("both cancelled").await;
    client.shutdown(Duration::ZERO).await;
    assert_eq!(told.times("both lost"), 0, "{told:?}");
    assert_eq!(client.stats().lost, 1, "the one that the shutdown ended");
    drop(held);
}

#[tokio::test]
async fn the_terms_of_a_leader_are_told() {
    let (client, told) = observed().await;
    let lock = || client.lock("k").label("k").lease(SECOND);
    let mut terms = 0;
    let led = lock().lead(async |_: &Guard| {
        terms += 1;
        if terms == 1 {
            client.force_release("k").await.unwrap();
            std::future::pending::<()>().await;
        }
    });
    led.await.unwrap();
    let mut events = told.about("k");
    // On another thread.
    events.retain(|one| !one.starts_with("lost") && !one.starts_with("renewed"));
    let term = ["asked exclusive", "granted store", "term began"];
    // The end of the term is told by what runs the body, after the release.
    let expected = [
        &["candidate"],
        &term[..],
        &["term lost"],
        &term,
        &["released", "term returned"],
    ];
    let expected = expected.concat();
    assert_eq!(events, expected);

    let dropped = lock().lead(async |_: &Guard| std::future::pending::<()>().await);
    let led = tokio::time::timeout(Duration::from_millis(50), dropped).await;
    assert!(led.is_err());
    told.eventually("k term dropped").await;
    let stands_by = client.lock("k").acquire().await.unwrap();
    let waits = lock().lead(async |_: &Guard| ());
    assert!(
        tokio::time::timeout(Duration::from_millis(50), waits)
            .await
            .is_err()
    );
    assert_eq!(told.times("term began"), 3, "no term without the lock");
    drop(stands_by);
}
