//! Several locks at once: all or none, and never a deadlock.
//!
//! Tests whose keys share one hash tag are about a single command, also in a cluster. In a cluster,
//! keys of several slots are gathered one by one (`topology/cluster.rs`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::{Backend, eventually};
use lock_runtime::{FencingToken, Guard, LockClient, LockError};
use tokio::task::JoinSet;

use crate::polled;

super::on_every_store!(
    all_are_taken_or_none,
    a_key_listed_twice_is_locked_once,
    keys_and_tokens_are_as_listed,
    tokens_rise_for_each_key_also_against_single_locks,
    no_order_of_arguments_can_deadlock,
    a_multi_lock_and_a_plain_lock_exclude_each_other,
    a_wait_that_ends_gives_back_the_keys_that_it_got,
    one_key_is_a_lock_like_any_other,
    no_key_is_a_mistake_and_a_bad_one_is_named,
    another_kind_of_lock_among_them_is_named,
    fair_requests_are_served_in_arrival_order,
    an_acquire_dropped_after_any_number_of_polls_leaves_nothing,
    a_waiting_acquire_dropped_after_any_number_of_polls_leaves_nothing,
);

super::without_a_queue!(
    a_wait_that_ends_gives_back_the_keys_that_it_got,
    an_acquire_dropped_after_any_number_of_polls_leaves_nothing,
    keys_and_tokens_are_as_listed,
    no_key_is_a_mistake_and_a_bad_one_is_named,
);

const SHORT: Duration = Duration::from_millis(50);

/// Whether these keys are taken, each shown by a try of its own.
async fn taken(client: &LockClient, keys: &[&str]) -> Vec<bool> {
    let mut taken = Vec::new();
    for key in keys {
        taken.push(client.lock(*key).try_acquire().await.unwrap().is_none());
    }
    taken
}

fn busy<T: std::fmt::Debug>(result: Result<T, LockError>) -> String {
    match result {
        Err(LockError::Busy { key, .. }) => key.to_string(),
        other => panic!("{other:?}"),
    }
}

fn tokens(guard: &Guard) -> Vec<FencingToken> {
    guard.fencing_tokens().expect("it is fenced")
}

async fn all_are_taken_or_none(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    for busy_key in ["{s}x", "{s}y", "{s}z"] {
        let held = a.lock(busy_key).acquire().await.unwrap();
        for request in [
            b.multi_lock(["{s}z", "{s}x", "{s}y"]),
            b.multi_lock(["{s}z", "{s}x", "{s}y"]).fenced(),
            b.multi_lock(["{s}z", "{s}x", "{s}y"]).fair(),
            a.multi_lock(["{s}z", "{s}x", "{s}y"]),
        ] {
            assert!(request.clone().try_acquire().await.unwrap().is_none());
            assert_eq!(store.leftovers().await, 1, "nothing but the holder's");
            let one_try = request.wait(Duration::ZERO).acquire().await;
            assert_eq!(busy(one_try), busy_key);
        }
        held.release().await.unwrap();
    }
    let all = b
        .multi_lock(["{s}z", "{s}x", "{s}y"])
        .try_acquire()
        .await
        .unwrap();
    assert_eq!(
        taken(&a, &["{s}x", "{s}y", "{s}z", "{s}w"]).await,
        [true, true, true, false]
    );
    all.unwrap().release().await.unwrap();
    store.until_empty().await;
}

async fn a_key_listed_twice_is_locked_once(store: Backend) {
    let client = store.client().await;
    for contended in [false, true] {
        let before = contended.then(|| client.lock("b").acquire());
        let before = match before {
            Some(before) => Some(before.await.unwrap()),
            None => None,
        };
        let request = client.multi_lock(["b", "a", "b", "b"]).fenced();
        let waiting = tokio::spawn(request.acquire());
        if let Some(before) = before {
            eventually("it waits", async || {
                client.inspect("b").await.unwrap().waiting == 1
            })
            .await;
            before.release().await.unwrap();
        }
        let guard = waiting.await.unwrap().unwrap();
        assert_eq!(guard.keys().count(), 4);
        let tokens = tokens(&guard);
        assert!(tokens[0] == tokens[2] && tokens[0] == tokens[3]);
        assert_eq!(store.leftovers().await, 2);
        guard.release().await.unwrap();
        assert_eq!(store.leftovers().await, 0);
    }
}

async fn keys_and_tokens_are_as_listed(store: Backend) {
    let client = store.client().await;
    // So that the keys' tokens differ.
    let mut last = Vec::new();
    for key in ["c", "a", "b"] {
        let guard = client.lock(key).fenced().acquire().await.unwrap();
        last.push(guard.fencing_token().unwrap());
        guard.release().await.unwrap();
    }
    let guard = client.multi_lock(["c", "a", "b"]).fenced().acquire();
    let guard = guard.await.unwrap();
    let keys: Vec<_> = guard.keys().map(|key| key.as_str()).collect();
    assert_eq!(keys, ["c", "a", "b"]);
    assert_eq!(guard.key().as_str(), "c");
    let granted = tokens(&guard);
    assert_eq!(guard.fencing_token(), granted.first().copied());
    assert!(granted.iter().zip(&last).all(|(token, last)| token > last));
    guard
        .scope(async {
            for (key, token) in ["c", "a", "b"].into_iter().zip(granted) {
                let nested = client.lock(key).fenced().acquire().await.unwrap();
                assert_eq!(nested.fencing_token(), Some(token), "{key}");
            }
        })
        .await;
    let unfenced = client.multi_lock(["x", "y"]).acquire().await.unwrap();
    assert_eq!(unfenced.fencing_tokens(), None);
}

async fn tokens_rise_for_each_key_also_against_single_locks(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let mut last: [Option<FencingToken>; 2] = [None; 2];
    let mut higher = |guard: &Guard, places: &[usize]| {
        for (token, place) in tokens(guard).into_iter().zip(places) {
            assert!(Some(token) > last[*place], "{token} after {last:?}");
            last[*place] = Some(token);
        }
    };
    for round in 0..20 {
        let both = a.multi_lock(["y", "x"]).fenced().acquire().await.unwrap();
        higher(&both, &[1, 0]);
        // A request that waits: handed over, and then gathered.
        let next = tokio::spawn(b.multi_lock(["x", "y"]).fenced().acquire());
        let key = if round % 2 == 0 { "x" } else { "y" };
        eventually("it waits", async || {
            a.inspect("x").await.unwrap().waiting == 1
        })
        .await;
        both.release().await.unwrap();
        let both = next.await.unwrap().unwrap();
        higher(&both, &[0, 1]);
        both.release().await.unwrap();
        let single = b.lock(key).fenced().acquire().await.unwrap();
        higher(&single, &[round % 2]);
        single.release().await.unwrap();
    }
}

async fn no_order_of_arguments_can_deadlock(store: Backend) {
    const ROUNDS: u32 = 40;
    /// For one request: all of them may take longer on a busy machine.
    const LIMIT: Duration = Duration::from_secs(60);
    let inside: Arc<[AtomicU32; 3]> = Arc::default();
    let names = ["x", "y", "z"];
    let orders: [&[usize]; 8] = [
        &[0, 1],
        &[1, 0],
        &[1, 2],
        &[2, 0],
        &[2, 1, 0],
        &[1, 0, 2],
        &[0],
        &[2],
    ];
    let mut tasks = JoinSet::new();
    for number in 0..2 {
        let client = store.client().await;
        for (task, order) in orders.into_iter().enumerate() {
            let (client, inside) = (client.clone(), Arc::clone(&inside));
            let keys: Vec<&str> = order.iter().map(|key| names[*key]).collect();
            tasks.spawn(async move {
                for _ in 0..ROUNDS {
                    let request = client.multi_lock(keys.clone()).wait_forever();
                    let fair = (task + number) % 3 == 0;
                    let request = if fair { request.fair() } else { request };
                    let guard = tokio::time::timeout(LIMIT, request.acquire()).await;
                    let guard = guard.expect("no deadlock").unwrap();
                    for key in order {
                        let others = inside[*key].fetch_add(1, Ordering::SeqCst);
                        assert_eq!(others, 0, "two holders of {}", names[*key]);
                    }
                    tokio::task::yield_now().await;
                    for key in order {
                        inside[*key].fetch_sub(1, Ordering::SeqCst);
                    }
                    guard.release().await.unwrap();
                }
            });
        }
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    store.until_empty().await;
}

async fn a_multi_lock_and_a_plain_lock_exclude_each_other(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let both = a.multi_lock(["x", "y"]).acquire().await.unwrap();
    let mut singles = Vec::new();
    for (key, fair) in [("x", false), ("y", true)] {
        let request = b.lock(key);
        let request = if fair { request.fair() } else { request };
        singles.push(tokio::spawn(request.acquire()));
        eventually("it waits", async || {
            a.inspect(key).await.unwrap().waiting == 1
        })
        .await;
    }
    let again = tokio::spawn(a.multi_lock(["y", "x"]).acquire());
    eventually("it waits behind the single one", async || {
        b.inspect("x").await.unwrap().waiting == 2
    })
    .await;
    both.release().await.unwrap();
    let mut got = Vec::new();
    for single in singles {
        got.push(single.await.unwrap().unwrap());
    }
    assert!(!again.is_finished());
    for single in got {
        assert!(single.is_held());
        single.release().await.unwrap();
    }
    again.await.unwrap().unwrap().release().await.unwrap();
    store.until_empty().await;
}

async fn a_wait_that_ends_gives_back_the_keys_that_it_got(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let held = a.lock("y").acquire().await.unwrap();
    // Long enough to see the first of them taken.
    let wait = Duration::from_secs(3);
    let started = Instant::now();
    let gave_up = b.multi_lock(["z", "y", "x"]).wait(wait).acquire();
    let gave_up = tokio::spawn(gave_up);
    eventually("it has the first", async || {
        a.inspect("x").await.unwrap().holder.is_some()
    })
    .await;
    match gave_up.await.unwrap() {
        Err(LockError::Busy { key, waited, .. }) => {
            assert_eq!(key.as_str(), "y");
            assert!(waited >= wait && waited <= started.elapsed());
        }
        other => panic!("{other:?}"),
    }
    // This client sees them free at once, others as soon as the release is through.
    assert_eq!(taken(&b, &["x", "z"]).await, [false, false]);
    held.release().await.unwrap();
    store.until_empty().await;
    assert_eq!(b.health().await.unwrap().waiting, 0);
    assert_eq!(b.health().await.unwrap().lost, 0);
}

async fn one_key_is_a_lock_like_any_other(store: Backend) {
    let client = store.client().await;
    let guard = client.multi_lock(["k"]).fenced().acquire().await.unwrap();
    assert_eq!(tokens(&guard).len(), 1);
    assert_eq!(taken(&client, &["k"]).await, [true]);
    let nested = guard.scope(client.multi_lock(["k", "k"]).acquire()).await;
    assert_eq!(nested.unwrap().fencing_token(), guard.fencing_token());
    guard.release().await.unwrap();
    assert_eq!(store.leftovers().await, 0);
}

async fn no_key_is_a_mistake_and_a_bad_one_is_named(store: Backend) {
    let client = store.client().await;
    let none = client.multi_lock(Vec::<&str>::new());
    for result in [
        none.clone().acquire().await.map(|_| ()),
        none.clone().try_acquire().await.map(|_| ()),
        none.run(async {}).await,
    ] {
        assert!(
            matches!(result, Err(LockError::Config { .. })),
            "{result:?}"
        );
    }
    match client.multi_lock(["a", "%b", "c"]).acquire().await {
        Err(LockError::InvalidKey { key, .. }) => assert_eq!(key.as_str(), "%b"),
        other => panic!("{other:?}"),
    }
    assert_eq!(store.leftovers().await, 0);
}

async fn another_kind_of_lock_among_them_is_named(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let permit = a.semaphore("{s}y", 3).permits(1).acquire().await.unwrap();
    let reader = a.rw_lock("{s}z").read().acquire().await.unwrap();
    let conflict = async |keys: &[&'static str]| {
        let request = b.multi_lock(keys.to_vec());
        for result in [
            request.clone().acquire().await.map(Some),
            request.try_acquire().await,
        ] {
            match result {
                Err(LockError::KeyConflict { key, .. }) => {
                    assert_eq!(Some(&key.as_str()), keys.last());
                }
                other => panic!("{other:?}"),
            }
        }
    };
    conflict(&["{s}x", "{s}y"]).await;
    conflict(&["{s}x", "{s}z"]).await;
    conflict(&["{s}za", "{s}z"]).await;
    // A conflict that is found only after the wait for the first key.
    let held = a.lock("{s}x").acquire().await.unwrap();
    let waiting = tokio::spawn(b.multi_lock(["{s}x", "{s}y"]).acquire());
    eventually("it waits", async || {
        a.inspect("{s}x").await.unwrap().waiting == 1
    })
    .await;
    held.release().await.unwrap();
    match waiting.await.unwrap() {
        Err(LockError::KeyConflict { key, .. }) => assert_eq!(key.as_str(), "{s}y"),
        other => panic!("{other:?}"),
    }
    permit.release().await.unwrap();
    reader.release().await.unwrap();
    store.until_empty().await;
}

async fn fair_requests_are_served_in_arrival_order(store: Backend) {
    let clients = [
        store.client().await,
        store.client().await,
        store.client().await,
    ];
    let held = clients[0].lock("a").acquire().await.unwrap();
    let (served, mut order) = tokio::sync::mpsc::unbounded_channel();
    let mut waiting = JoinSet::new();
    for number in 0..12 {
        let client = &clients[number % 3];
        // Single requests for the first of the keys wait in the same order.
        let request = match number % 4 {
            0 => client.lock("a"),
            1 => client.multi_lock(["a", "b"]),
            _ => client.multi_lock(["b", "a"]),
        };
        let (request, served) = (request.fair().wait_forever(), served.clone());
        waiting.spawn(async move {
            let guard = request.acquire().await.unwrap();
            served.send(number).unwrap();
            guard.release().await.unwrap();
        });
        eventually("it stands in line", async || {
            clients[0].inspect("a").await.unwrap().waiting == number + 1
        })
        .await;
    }
    held.release().await.unwrap();
    for number in 0..12 {
        assert_eq!(order.recv().await, Some(number));
    }
    while let Some(done) = waiting.join_next().await {
        done.unwrap();
    }
    store.until_empty().await;
}

async fn an_acquire_dropped_after_any_number_of_polls_leaves_nothing(store: Backend) {
    let client = store.client().await;
    for round in 0..20 {
        let request = client.multi_lock(["y", "x"]);
        let request = match round % 4 {
            0 => request,
            1 => request.fenced(),
            2 => request.fair(),
            _ => request.wait(Duration::ZERO),
        };
        for polls in 0.. {
            let output = polled(polls, request.clone().run(tokio::task::yield_now())).await;
            let complete = output.is_some();
            drop(output);
            assert_eq!(taken(&client, &["x", "y"]).await, [false, false], "{polls}");
            store.until_empty().await;
            assert_eq!(client.health().await.unwrap().waiting, 0);
            if complete {
                break;
            }
        }
    }
    assert_eq!(client.health().await.unwrap().held, 0);
    assert_eq!(client.health().await.unwrap().release_failures, 0);
}

async fn a_waiting_acquire_dropped_after_any_number_of_polls_leaves_nothing(store: Backend) {
    let (client, holder) = (store.client().await, store.client().await);
    for (fair, busy) in [(false, "y"), (true, "y"), (false, "x")] {
        for polls in 0.. {
            let held = holder.lock(busy).acquire().await.unwrap();
            let request = client.multi_lock(["y", "x"]).wait(4 * SHORT);
            let request = if fair { request.fair() } else { request };
            // With more polls, the key is released while the future waits, so that the drop races
            // with the hand-over.
            let (output, ()) = tokio::join!(polled(polls, request.acquire()), async {
                if polls > 4 {
                    held.release().await.unwrap();
                }
            });
            let complete = output.is_some();
            if let Some(Err(error)) = &output {
                assert!(matches!(error, LockError::Busy { .. }), "{error}");
            }
            drop(output);
            let _ = holder.force_release(busy).await;
            store.until_empty().await;
            assert_eq!(client.health().await.unwrap().waiting, 0);
            assert_eq!(client.health().await.unwrap().held, 0);
            if complete && polls > 4 {
                break;
            }
        }
    }
}
