//! Curator's `InterProcessMutex` from Maven, and `layout=curator`.

use std::net::SocketAddr;
use std::time::Duration;

use lock_runtime::{Layout, LockClient, LockError};
use lock_testkit::{ChildProcess, Proxy, ZooKeeperEnsemble, eventually, start_java};

use crate::{LONG, children, classpath, client, worker};

/// A process in which this number of threads take Curator's mutex, and keep it for a while.
async fn curator(
    servers: &ZooKeeperEnsemble,
    classpath: &str,
    [threads, runs, stays]: [u64; 3],
) -> ChildProcess {
    let path = format!("{}/lock/k", servers.chroot());
    let hosts = format!("127.0.0.1:{}", servers.ports()[0]);
    let [threads, runs, stays] = [threads, runs, stays].map(|number| number.to_string());
    let arguments = ["CuratorWorker", &hosts, &path, &threads, &runs, &stays];
    let mut curator = start_java(classpath, &arguments);
    curator.wait_within(LONG, "connected").await;
    curator
}

/// From, to, and whether it is Curator's.
type MutexTurn = (u64, u64, bool);

async fn turns_of(worker: &mut ChildProcess, is_curator: bool, turns: &mut Vec<MutexTurn>) {
    worker
        .wait_within(Duration::from_secs(200), "contended")
        .await;
    for event in worker.take_events() {
        if let Some(turn) = event.text.strip_prefix("turn ") {
            let numbers = turn.split(' ').map(|number| number.parse().unwrap());
            let numbers: Vec<u64> = numbers.collect();
            turns.push((numbers[1], numbers[2], is_curator));
        }
    }
}

/// Three threads of Curator and two of our processes want one key for this long.
async fn contended(servers: &ZooKeeperEnsemble, jars: &str, millis: u64) -> Vec<MutexTurn> {
    let url = servers.url("?tick=500ms&layout=curator");
    let mut curator = curator(servers, jars, [3, millis, 2]).await;
    let mut ours = [worker(&url).await, worker(&url).await];
    for worker in &mut ours {
        worker.send(&format!("contend k 2 {millis} stays=2"));
    }
    let mut turns = Vec::new();
    turns_of(&mut curator, true, &mut turns).await;
    for worker in &mut ours {
        turns_of(worker, false, &mut turns).await;
    }
    turns
}

/// For `CURATOR_SECONDS`, or some; again while the turns are too few for shares of them.
#[tokio::test]
async fn curators_mutex_and_ours_exclude_each_other_and_neither_starves() {
    let Some(jars) = classpath("curator") else {
        return;
    };
    let seconds = std::env::var("CURATOR_SECONDS").ok();
    let seconds: u64 = seconds.map_or(4, |seconds| seconds.parse().unwrap());
    let servers = ZooKeeperEnsemble::one().await;
    let (mut turns, mut runs) = (Vec::new(), 0);
    while turns.len() < 100 && runs < 10 {
        turns.extend(contended(&servers, &jars, seconds * 1000).await);
        runs += 1;
    }
    turns.sort_unstable();
    for pair in turns.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "two holders: {pair:?}");
    }
    let theirs = turns.iter().filter(|(.., is_curator)| *is_curator).count();
    let ours = turns.len() - theirs;
    let seconds = runs * seconds;
    println!("{theirs} turns of Curator, {ours} of ours in {seconds} s");
    let least = turns.len() / 20;
    assert!(theirs > least && ours > least, "{theirs} and {ours}");
    // One of them at least follows the other in both directions.
    let follows = |first, second| {
        let follows = |pair: &[MutexTurn]| pair[0].2 == first && pair[1].2 == second;
        turns.windows(2).filter(|pair| follows(pair)).count()
    };
    assert!(follows(true, false) > 5 && follows(false, true) > 5);
}

#[tokio::test]
async fn a_dead_holder_of_either_side_ends_with_its_session_for_the_other() {
    let Some(jars) = classpath("curator") else {
        return;
    };
    let servers = ZooKeeperEnsemble::one().await;
    let url = servers.url("?tick=500ms&session=3s&layout=curator");
    let client = client(&url).await;
    // It keeps the lock for as long as it lives.
    let mut theirs = curator(&servers, &jars, [1, 1, 3_600_000]).await;
    theirs.wait_for("holds").await;
    let waiter = tokio::spawn(client.lock("k").acquire());
    eventually("it waits", async || children(&servers, "k").await == 2).await;
    theirs.kill();
    let guard = tokio::time::timeout(LONG, waiter).await.unwrap().unwrap();
    guard.unwrap().release().await.unwrap();
    let mut ours = worker(&url).await;
    ours.send("hold 1 k renew");
    ours.wait_for("held").await;
    let mut theirs = curator(&servers, &jars, [1, 1, 1]).await;
    eventually("it waits", async || children(&servers, "k").await == 2).await;
    ours.kill();
    theirs.wait_within(LONG, "holds").await;
}

/// Curator needs no part in it: to it, our children are as its own.
#[tokio::test]
async fn in_curators_layout_tokens_rise_and_several_keys_are_taken_at_once() {
    let servers = ZooKeeperEnsemble::one().await;
    let url = servers.url("?tick=500ms&layout=curator");
    let (a, b) = (client(&url).await, client(&url).await);
    let mut last = 0;
    for (client, other) in [(&a, &b), (&b, &a), (&a, &b), (&b, &a)] {
        let all = client.multi_lock(["k", "l"]).fenced();
        let guard = all.acquire().await.unwrap();
        for key in ["k", "l"] {
            assert!(other.lock(key).try_acquire().await.unwrap().is_none());
        }
        let tokens = guard.fencing_tokens().unwrap();
        assert!(tokens.iter().all(|token| u64::from(*token) > last));
        guard.release().await.unwrap();
        let one = client.lock("k").fenced().acquire().await.unwrap();
        let token = u64::from(one.fencing_token().unwrap());
        assert!(tokens.iter().all(|before| u64::from(*before) < token));
        last = token;
        one.release().await.unwrap();
    }
    assert_eq!(children(&servers, "k").await, 0);
}

/// A token is made by a write to the key's node.
#[tokio::test]
async fn what_users_of_curator_write_to_a_keys_node_stays_when_a_token_is_made_beside() {
    let servers = ZooKeeperEnsemble::one().await;
    let address = SocketAddr::from(([127, 0, 0, 1], servers.ports()[0]));
    let proxy = Proxy::start_zookeeper(address).await;
    let url = servers.url_at(&[proxy.addr().port()], "?tick=500ms&layout=curator");
    let patient = LockClient::builder().command_timeout(LONG);
    let client = patient.url(url).connect_timeout(LONG);
    let client = client.connect().await.unwrap();
    // The base of the tokens is known then.
    let first = client.lock("other").fenced().acquire().await.unwrap();
    let least = first.fencing_token().unwrap();
    let guard = client.lock("k").acquire().await.unwrap();
    let (mut theirs, key) = (
        servers.session().await,
        format!("{}/lock/k", servers.chroot()),
    );
    theirs.set_data(&key, b"first").await;
    let read = proxy.requests_named("DATA");
    proxy.delay_replies(Duration::from_millis(700));
    let token = guard.scope(async {
        let nested = client.lock("k").fenced().acquire().await.unwrap();
        nested.fencing_token().unwrap()
    });
    let write = async {
        eventually("the node is read", async || {
            proxy.requests_named("DATA") > read
        })
        .await;
        assert_eq!(theirs.data(&key).await.as_deref(), Some(&b"first"[..]));
        theirs.set_data(&key, b"second").await;
        proxy.delay_replies(Duration::ZERO);
    };
    let (token, ()) = tokio::join!(token, write);
    assert!(token > least);
    assert_eq!(theirs.data(&key).await.as_deref(), Some(&b"second"[..]));
    guard.release().await.unwrap();
    first.release().await.unwrap();
}

#[tokio::test]
async fn the_layout_is_chosen_in_the_url_by_the_builder_or_for_a_view() {
    let servers = ZooKeeperEnsemble::one().await;
    let builder = || {
        let patient = LockClient::builder().command_timeout(Duration::from_secs(5));
        patient.connect_timeout(LONG).wait(Duration::ZERO)
    };
    let url = servers.url("?tick=500ms");
    let native = builder().url(&url).connect().await.unwrap();
    let by_url = builder().url(servers.url("?tick=500ms&layout=curator"));
    let by_builder = builder().url(&url).layout(Layout::Curator);
    let curator = [
        by_url.connect().await.unwrap(),
        by_builder.connect().await.unwrap(),
        native.with_layout(Layout::Curator),
    ];
    for one in &curator {
        let held = one.lock("k").acquire().await.unwrap();
        for other in &curator {
            let busy = other.lock("k").reentrant(false).acquire().await;
            assert!(busy.unwrap_err().is_busy());
        }
        // Of two layouts, one path.
        let conflict = native.lock("k").acquire().await;
        assert!(
            matches!(conflict, Err(LockError::KeyConflict { .. })),
            "{conflict:?}"
        );
        let own = one.with_layout(Layout::Native);
        assert!(own.lock("other").try_acquire().await.unwrap().is_some());
        held.release().await.unwrap();
        let kept = one.lock("other").hold_at_least(Duration::from_secs(1));
        for refused in [one.rw_lock("k").read(), kept] {
            let error = refused.acquire().await.unwrap_err();
            assert!(matches!(error, LockError::Config { .. }), "{error:?}");
            assert!(error.to_string().contains("`curator`"), "{error}");
        }
    }
}
