//! What each side says about the locks of the other.

use std::time::Duration;

use lock_runtime::HeldBy;
use lock_testkit::{RedisServer, eventually};

use crate::{Java, LONG, client};

const LEASE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn redisson_tells_the_truth_about_our_lock_and_can_end_it() {
    let server = RedisServer::start().await;
    let Some(mut java) = Java::start(&server, LEASE).await else {
        return;
    };
    let ours = client(&server, Duration::from_secs(3)).await;
    for kind in ["lock", "fair", "fenced", "read", "write"] {
        let request = match kind {
            "fair" => ours.lock("k").fair(),
            "fenced" => ours.lock("k").fenced(),
            "read" => ours.rw_lock("k").read(),
            "write" => ours.rw_lock("k").write(),
            _ => ours.lock("k"),
        };
        let guard = request.acquire().await.unwrap();
        let says = java.ask("t", &format!("ask {kind} k")).await;
        let words: Vec<&str> = says.split(' ').collect();
        let ["says", locked, held, count, rest] = words[..] else {
            panic!("{says}");
        };
        assert_eq!((locked, held, count), ("true", "false", "0"), "{says}");
        let rest: i64 = rest.parse().unwrap();
        assert!(rest > 500 && rest <= 3000, "{rest}");
        assert_eq!(
            java.ask("t", &format!("force {kind} k")).await,
            "forced true"
        );
        // The next renewal hears of it.
        tokio::time::timeout(LONG, guard.lost()).await.unwrap();
        let lost = guard.release().await.unwrap_err();
        assert!(lost.is_lost(), "{lost}");
        let says = java.ask("t", &format!("ask {kind} k")).await;
        assert_eq!(says, "says false false 0 -2");
    }
}

#[tokio::test]
async fn we_tell_who_of_redisson_has_a_lock_and_can_end_it() {
    let server = RedisServer::start().await;
    let Some(mut java) = Java::start(&server, LEASE).await else {
        return;
    };
    let ours = client(&server, LEASE).await;
    for kind in ["lock", "fair", "fenced", "read", "write"] {
        let taken = java.ask("t", &format!("take {kind} {kind} 0 20000")).await;
        assert!(taken.starts_with("took"), "{kind}: {taken}");
        let found = ours.inspect(kind).await.unwrap();
        let Some(HeldBy::ForeignClient { name, .. }) = found.held_by else {
            panic!("{found:?}");
        };
        assert!(
            name.starts_with(&format!("Redisson client {}, thread ", java.id)),
            "{name}"
        );
        let rest = found.remaining.unwrap();
        assert!(
            rest > Duration::from_secs(10) && rest <= Duration::from_secs(20),
            "{rest:?}"
        );
        let request = match kind {
            "read" => ours.rw_lock(kind).write(),
            "write" => ours.rw_lock(kind).read(),
            "fair" => ours.lock(kind).fair(),
            "fenced" => ours.lock(kind).fenced(),
            _ => ours.lock(kind),
        };
        let busy = request
            .wait(Duration::from_millis(200))
            .acquire()
            .await
            .unwrap_err();
        assert!(busy.is_busy(), "{busy}");
        let who = format!("held by Redisson client {}, thread ", java.id);
        assert!(busy.to_string().contains(&who), "{busy}");
        assert!(ours.force_release(kind).await.unwrap());
        assert!(!ours.force_release(kind).await.unwrap());
        let gone = java.ask("t", &format!("give {kind} {kind}")).await;
        // A fair lock of Redisson forgives that it was gone.
        assert!(
            kind == "fair" || gone.contains("IllegalMonitorState"),
            "{kind}: {gone}"
        );
    }
}

#[tokio::test]
async fn we_tell_of_redissons_permits_and_can_end_them() {
    let server = RedisServer::start().await;
    let Some(mut java) = Java::start(&server, LEASE).await else {
        return;
    };
    let ours = client(&server, LEASE).await;
    java.ask("t", "permits permit permit 1").await;
    let taken = java.ask("t", "take permit permit 0 20000").await;
    let id = taken.strip_prefix("took ").unwrap();
    let found = ours.inspect("permit").await.unwrap();
    assert_eq!(
        (found.permits_taken, found.permits_left),
        (Some(1), Some(0))
    );
    assert!(format!("{:?}", found.held_by).contains(id), "{found:?}");
    assert!(ours.force_release("permit").await.unwrap());
    let guard = ours
        .semaphore("permit", 1)
        .permit()
        .acquire()
        .await
        .unwrap();
    guard.release().await.unwrap();
}

#[tokio::test]
async fn tokens_of_both_sides_rise() {
    let server = RedisServer::start().await;
    let Some(mut java) = Java::start(&server, LEASE).await else {
        return;
    };
    let ours = client(&server, LEASE).await;
    let mut last = 0;
    for _ in 0..3 {
        let guard = ours.lock("k").fenced().acquire().await.unwrap();
        let token = u64::from(guard.fencing_token().unwrap());
        assert_eq!(token, last + 1);
        guard.release().await.unwrap();
        let taken = java.ask("t", "take fenced k 0 -1").await;
        assert_eq!(taken, format!("took {}", token + 1));
        java.ask("t", "give fenced k").await;
        last = token + 1;
    }
}

#[tokio::test]
async fn the_limit_of_a_semaphore_is_redissons() {
    let server = RedisServer::start().await;
    let Some(mut java) = Java::start(&server, LEASE).await else {
        return;
    };
    let ours = client(&server, LEASE).await;
    let not_set = ours.semaphore("k", 5).permit().acquire().await.unwrap_err();
    assert!(not_set.to_string().contains("trySetPermits"), "{not_set}");
    assert_eq!(java.ask("t", "permits permit k 2").await, "set true");
    let both = ours.semaphore("k", 5).permits(2).acquire().await.unwrap();
    assert!(
        ours.semaphore("k", 5)
            .permit()
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
    assert_eq!(java.ask("t", "take permit k 0 1000").await, "busy");
    drop(both);
    eventually("they are given back", async || {
        let free: i64 = server.query(&["GET", "k"]).await;
        free == 2
    })
    .await;
}
