//! The first and the last moment of leases and calls.

use super::{A, HEARD, KEYS, NOW, PASSED_OVER, Stage, owner};

#[tokio::test]
async fn a_share_is_over_at_the_end_of_its_lease_for_every_script() {
    let mut stage = Stage::new().await;
    let share = format!("{}:1", owner(A));
    for (now, renewed, seen) in [
        (NOW - 1, "[1]", format!("[{share}, 1, 0, 1]")),
        (NOW, "[0]", "[nil, -2, 0, 0]".to_owned()),
    ] {
        stage.command("DEL k").await;
        stage
            .command(&format!("ZADD k -1 used -5 of {NOW} {share}"))
            .await;
        stage.now = now;
        assert_eq!(stage.run("INSPECT", &KEYS, []).await.reply, seen);
        assert_eq!(
            stage.run("RENEW", &["k"], [&*share, "1000"]).await.reply,
            renewed
        );
    }
}

#[tokio::test]
async fn a_waiter_is_served_until_the_last_moment_of_its_wait() {
    let mut stage = Stage::new().await;
    let (holder, a) = (format!("{A}-9"), owner(A));
    // With and without a token: a script has a short way for the one.
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
async fn what_was_passed_over_at_the_first_moment_is_passed_over() {
    let mut stage = Stage::new().await;
    let (holder, a) = (format!("{A}-9"), owner(A));
    // In 2033, a place that is passed over can be as far ahead as one that the server's clock, set
    // back, left there.
    for (now, place) in [
        (2_000_000_000_000_000, format!("{a}:1000:0")),
        (NOW, format!("{a}:1000:0:1")),
    ] {
        stage.command(&format!("SET k {holder}")).await;
        stage.queue(&[(PASSED_OVER, &place), (HEARD, A)]).await;
        stage.now = now;
        let done = stage.run("RELEASE", &KEYS, ["g:", &holder]).await;
        assert!(!done.has_sent("PUBLISH"), "{done:?}");
    }
}

#[tokio::test]
async fn the_first_moment_counts_as_heard_and_as_waiting() {
    let mut stage = Stage::new().await;
    let place = format!("{}:1000:0", owner(A));
    stage.queue(&[(0, &place), (HEARD, A)]).await;
    let seen = stage.run("INSPECT", &KEYS, []).await;
    assert_eq!(seen.reply, "[nil, -2, 1, 0]");
    // With its last place, a queue ends, and the records of clients with it, also if they are too
    // young to be forgotten.
    stage.now = 1;
    stage
        .run("ABANDON", &KEYS, [&*owner(A), "1000:0", "g:", "0"])
        .await;
    assert_eq!(stage.command("EXISTS q").await, "0");
}
