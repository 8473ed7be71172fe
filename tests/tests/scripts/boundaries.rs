//! The first and the last moment of leases and calls.

use super::{A, B, HEARD, KEYS, NOW, SUSPENDED, Stage, owner};

#[tokio::test]
async fn a_share_is_over_at_the_end_of_its_lease() {
    let mut stage = Stage::new().await;
    let share = format!("{}:1", owner(A));
    let token = (NOW - 1).to_string();
    for (now, renewed, seen, fenced) in [
        (NOW - 1, "[1]", format!("[{share}, 1, 0, 1, 1, 5]"), &*token),
        (NOW, "[0]", "[nil, -2, 0, 0, 0, 0]".to_owned(), "nil"),
    ] {
        stage.command("DEL k f").await;
        stage
            .command(&format!("ZADD k -1 used -5 of {NOW} {share}"))
            .await;
        stage.now = now;
        assert_eq!(stage.run("INSPECT", &KEYS, []).await.reply, seen);
        assert_eq!(
            stage.run("RENEW", &["k"], [&*share, "1000"]).await.reply,
            renewed
        );
        let done = stage.run("FENCE", &KEYS, [&*owner(A), "1"]).await;
        assert_eq!(done.reply, fenced);
    }
}

#[tokio::test]
async fn a_waiter_is_served_until_the_last_moment_of_its_wait() {
    let mut stage = Stage::new().await;
    let (holder, a) = (format!("{A}-9"), owner(A));
    // release_first.lua grants the one, lib.lua the other.
    for place in [format!("{a}:1000:500"), format!("{a}:1000:500:1")] {
        for (now, granted) in [(NOW, true), (NOW + 1, false)] {
            stage.command(&format!("SET k {holder}")).await;
            stage.queue(&[(NOW - 500_000, &place)]).await;
            stage.now = now;
            let done = stage.run("RELEASE", &KEYS, ["g:", &holder]).await;
            let sent = done.has_sent(&format!("PUBLISH g:{A} 1 granted {a}"));
            assert_eq!(sent, granted, "{done:?}");
        }
    }
}

#[tokio::test]
async fn what_was_suspended_at_the_first_moment_is_suspended() {
    let mut stage = Stage::new().await;
    let (holder, a) = (format!("{A}-9"), owner(A));
    // release_first.lua takes what is 10^15 µs ahead as suspended. A place that waits since 1970
    // is exactly that far ahead in May 2033.
    for (now, place) in [
        (2_000_000_000_000_000, format!("{a}:1000:0")),
        (NOW, format!("{a}:1000:0:1")),
    ] {
        stage.command(&format!("SET k {holder}")).await;
        stage.queue(&[(SUSPENDED, &place), (HEARD, A)]).await;
        stage.now = now;
        let done = stage.run("RELEASE", &KEYS, ["g:", &holder]).await;
        assert_eq!(done.reply, "[1]");
        assert!(!done.has_sent("PUBLISH"), "{done:?}");
        // It was suspended for longer than such places are kept.
        assert_eq!(stage.command("EXISTS q").await, "0");
    }
}

#[tokio::test]
async fn the_first_moment_counts_as_heard_and_as_waiting() {
    let mut stage = Stage::new().await;
    let place = format!("{}:1000:0", owner(A));
    stage.queue(&[(0, &place), (HEARD, A)]).await;
    let seen = stage.run("INSPECT", &KEYS, []).await;
    assert_eq!(seen.reply, "[nil, -2, 1, 0, 0, 0]");
    // With its last place, a queue ends, and the records of clients with it, also if they are too
    // young to be forgotten.
    stage.now = 1;
    stage
        .run("ABANDON", &KEYS, [&*owner(A), "1000:0", "g:", "0"])
        .await;
    assert_eq!(stage.command("EXISTS q").await, "0");
}

/// Of two holders, one whose lease is over.
#[tokio::test]
async fn what_is_over_counts_for_nothing() {
    let mut stage = Stage::new().await;
    let (me, other) = (owner(A), format!("{}:1", owner(B)));
    let over = format!("{NOW} {A}-9:2");
    let both = format!("ZADD k -3 used -5 of {over} {} {other}", NOW + 1_000_000);
    stage.command(&both).await;
    let seen = stage.run("INSPECT", &KEYS, []).await;
    assert_eq!(seen.reply, format!("[{other}, 1000, 0, 1, 1, 5]"));
    // It is taken out even if the request is denied.
    stage.refused = "ZRANGE";
    let join = ["5000", "join", "g:", "60000", "1000:0:0:1:5", &*me];
    let done = stage.run("ACQUIRE", &KEYS, join).await;
    assert!(done.reply.ends_with("NOPERM"), "{done:?}");
    assert_eq!(stage.command("ZSCORE k used").await, "-1");
    stage.refused = "";
    // A limit that nobody uses any more is not told.
    for (ends, told) in [(NOW, "nil"), (NOW + 1, "5")] {
        stage.command("DEL k q").await;
        let held = format!("ZADD k -1 used -5 of {ends} {other}");
        stage.command(&held).await;
        let ask = ["5000", "barge", "g:", "60000", "1000:0:0:1:3", &*me];
        let done = stage.run("ACQUIRE", &KEYS, ask).await;
        assert_eq!(done.reply, format!("[1, , {told}]"));
    }
}
