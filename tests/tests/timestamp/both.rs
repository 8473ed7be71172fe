//! Both sides on one key, with clocks that agree.

use std::time::Duration;

use lock_runtime::{HeldBy, Layout, LockClient, LockError};
use lock_testkit::{ChildProcess, RedisServer, eventually, monotonic_nanos, patient_connection};

use crate::{Form, KEY, MILLIS, ask, client, number, recipe, turns, url};

/// What the skew of these tests, a unit and a busy machine add to the end of a lock.
const LATE: Duration = Duration::from_secs(3);

#[tokio::test]
async fn each_finds_busy_what_the_other_has_in_both_units_with_and_without_a_ttl() {
    let server = RedisServer::start().await;
    for unit in ["ms", "s"] {
        for ttl in ["ttl", "no-ttl"] {
            let form = Form {
                unit,
                ttl,
                ..MILLIS
            };
            let Some(mut theirs) = recipe(&server, form).await else {
                return;
            };
            let client = client(&server, unit, "50ms").await;
            let said = ask(&mut theirs, &format!("lock {KEY} 60000")).await;
            assert!(said.starts_with("locked"), "{said}");
            assert!(client.lock(KEY).try_acquire().await.unwrap().is_none());
            let busy = client.lock(KEY).wait(Duration::from_millis(50));
            let error = busy.acquire().await.unwrap_err();
            let LockError::Busy { held_by, .. } = &error else {
                unreachable!("{error}")
            };
            assert!(matches!(held_by, HeldBy::ForeignClient { .. }), "{error}");
            assert!(
                error.to_string().contains("does not name, until 20"),
                "{error}"
            );
            let found = client.inspect(KEY).await.unwrap();
            let left = found.remaining.unwrap().as_secs();
            assert!((50..=63).contains(&left), "{left}");
            let waiting = tokio::spawn(client.lock(KEY).acquire());
            let said = ask(&mut theirs, &format!("unlock {KEY}")).await;
            assert!(said.starts_with("unlocked"), "{said}");

            let ours = waiting.await.unwrap().unwrap();
            assert_eq!(ask(&mut theirs, &format!("lock {KEY} 60000")).await, "busy");
            ours.release().await.unwrap();
            let said = ask(&mut theirs, &format!("lock {KEY} 60000")).await;
            assert!(said.starts_with("locked"), "{said}");
            assert!(
                ask(&mut theirs, &format!("unlock {KEY}"))
                    .await
                    .starts_with("unlocked")
            );
        }
    }
}

/// The view has the layout's defaults: `ms`, and a skew of a second.
#[tokio::test]
async fn a_view_in_this_layout_and_the_recipe_exclude_each_other() {
    let server = RedisServer::start().await;
    let Some(mut theirs) = recipe(&server, MILLIS).await else {
        return;
    };
    let native = LockClient::builder().url(server.url());
    let native = native.wait(Duration::from_secs(30)).connect().await;
    let native = native.unwrap();
    let view = native.with_layout(Layout::Timestamp);
    let said = ask(&mut theirs, &format!("lock {KEY} 60000")).await;
    assert!(said.starts_with("locked"), "{said}");
    // The same key of the client itself is another lock.
    let own = native.lock(KEY).try_acquire().await.unwrap();
    assert!(own.is_some());
    assert!(view.lock(KEY).try_acquire().await.unwrap().is_none());
    let waiting = tokio::spawn(view.lock(KEY).acquire());
    let said = ask(&mut theirs, &format!("unlock {KEY}")).await;
    assert!(said.starts_with("unlocked"), "{said}");
    let shared = waiting.await.unwrap().unwrap();
    assert_eq!(ask(&mut theirs, &format!("lock {KEY} 60000")).await, "busy");
    shared.release().await.unwrap();
    let said = ask(&mut theirs, &format!("lock {KEY} 60000")).await;
    assert!(said.starts_with("locked"), "{said}");
}

#[tokio::test]
async fn the_death_of_either_frees_its_lock_at_the_end_of_its_time() {
    let server = RedisServer::start().await;
    let lasts = Duration::from_secs(2);
    for ttl in ["ttl", "no-ttl"] {
        let form = Form { ttl, ..MILLIS };
        let Some(mut dying) = recipe(&server, form).await else {
            return;
        };
        let client = client(&server, "ms", "50ms").await;
        let asked = monotonic_nanos();
        assert!(
            ask(&mut dying, &format!("lock {KEY} 2000"))
                .await
                .starts_with("locked")
        );
        dying.kill();
        let ours = client.lock(KEY).acquire().await.unwrap();
        let passed = Duration::from_nanos(monotonic_nanos() - asked);
        assert!(passed > lasts && passed < lasts + LATE, "{passed:?}");
        ours.release().await.unwrap();

        let Some(mut theirs) = recipe(&server, form).await else {
            return;
        };
        let mut dying = ChildProcess::start(env!("CARGO_BIN_EXE_lock-worker"), &[]);
        dying.send(&format!("connect {} patient", url(&server, "ms", "50ms")));
        dying.wait_for("connected").await;
        let asked = monotonic_nanos();
        dying.send(&format!("hold 1 {KEY} lease=2000"));
        dying.wait_for("held").await;
        dying.kill();
        let mut got = 0;
        eventually("theirs takes it", async || {
            let said = ask(&mut theirs, &format!("lock {KEY} 60000")).await;
            if said.starts_with("locked") {
                got = number(&said, 2);
            }
            got > 0
        })
        .await;
        let passed = Duration::from_nanos(got - asked);
        assert!(passed > lasts && passed < lasts + LATE, "{passed:?}");
        assert!(
            ask(&mut theirs, &format!("unlock {KEY}"))
                .await
                .starts_with("unlocked")
        );
    }
}

/// For `TIMESTAMP_SECONDS`, or some. Some locks of the recipe's clients are left to their end, so
/// that both sides take over what is over.
#[tokio::test]
async fn both_take_turns_and_never_at_once() {
    let seconds = std::env::var("TIMESTAMP_SECONDS").ok();
    let seconds: u64 = seconds.map_or(5, |seconds| seconds.parse().unwrap());
    let millis = seconds * 1000;
    let server = RedisServer::start().await;
    let (Some(mut one), Some(mut two)) = (
        recipe(&server, MILLIS).await,
        recipe(
            &server,
            Form {
                ttl: "ttl",
                ..MILLIS
            },
        )
        .await,
    ) else {
        return;
    };
    let mut ours = ChildProcess::start(env!("CARGO_BIN_EXE_lock-worker"), &[]);
    ours.send(&format!("connect {} patient", url(&server, "ms", "5ms")));
    ours.wait_for("connected").await;
    for theirs in [&mut one, &mut two] {
        theirs.send(&format!("contend {KEY} 200 {millis} 20"));
    }
    ours.send(&format!("contend {KEY} 2 {millis} stays=2"));
    let mut all = Vec::new();
    for (worker, is_ours) in [(&mut one, false), (&mut two, false), (&mut ours, true)] {
        let turns = turns(worker).await;
        all.extend(turns.into_iter().map(|(from, to)| (from, to, is_ours)));
    }
    all.sort_unstable();
    for pair in all.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "two holders: {pair:?}");
    }
    let ours = all.iter().filter(|(.., is_ours)| *is_ours).count();
    let theirs = all.len() - ours;
    println!("{theirs} turns of the recipe, {ours} of ours in {seconds} s");
    assert!(theirs > 5 && ours > 5, "{theirs} and {ours}");
}

#[tokio::test]
async fn a_live_value_is_never_written_by_who_waits_and_a_value_that_is_over_is_taken_over() {
    let server = RedisServer::start().await;
    let mut redis = patient_connection(&server.url()).await;
    let client = client(&server, "ms", "0ms").await;
    let wall = lock_testkit::wall_micros() / 1000;
    let mut set = async |value: &str| {
        let set = redis::cmd("SET").arg(KEY).arg(value).to_owned();
        set.exec_async(&mut redis).await.unwrap();
    };
    let live = (wall + 600_000).to_string();
    set(&live).await;
    let waits = client.lock(KEY).wait(Duration::from_millis(300));
    waits.acquire().await.unwrap_err();
    assert_eq!(get(&server).await.as_deref(), Some(&*live));

    set(&(wall - 10_000).to_string()).await;
    let ours = client
        .lock(KEY)
        .lease(Duration::from_secs(9))
        .acquire()
        .await
        .unwrap();
    let value: u64 = get(&server).await.unwrap().parse().unwrap();
    let lasts = value - wall;
    assert!((8_000..=30_000).contains(&lasts), "{lasts}");
    // What died with us is not left for ever.
    let mut redis = patient_connection(&server.url()).await;
    let ttl = redis::cmd("PTTL").arg(KEY).to_owned();
    let ttl: i64 = ttl.query_async(&mut redis).await.unwrap();
    assert!((1..=9_100).contains(&ttl), "{ttl}");
    ours.release().await.unwrap();
    assert_eq!(get(&server).await, None);
}

#[tokio::test]
async fn a_lock_is_renewed_and_kept_after_its_release() {
    let server = RedisServer::start().await;
    let builder = lock_runtime::LockClient::builder().url(url(&server, "ms", "0ms"));
    let client = builder
        .lease(Duration::from_secs(3))
        .connect()
        .await
        .unwrap();
    let ours = client.lock(KEY).acquire().await.unwrap();
    let first = get(&server).await.unwrap();
    eventually("it is renewed", async || {
        get(&server).await.unwrap() != first
    })
    .await;
    assert!(ours.is_held());
    ours.release().await.unwrap();
    let kept = client.lock(KEY).hold_at_least(Duration::from_secs(60));
    kept.acquire().await.unwrap().release().await.unwrap();
    assert!(client.lock(KEY).try_acquire().await.unwrap().is_none());
    assert!(client.force_release(KEY).await.unwrap());
    assert!(client.lock(KEY).try_acquire().await.unwrap().is_some());
}

async fn get(server: &RedisServer) -> Option<String> {
    let mut redis = patient_connection(&server.url()).await;
    let get = redis::cmd("GET").arg(KEY).to_owned();
    get.query_async(&mut redis).await.unwrap()
}
