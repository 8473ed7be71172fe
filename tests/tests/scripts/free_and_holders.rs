//! A lock that is left free for whoever comes first, and the list of all who hold one.

use super::{A, B, KEYS, NOW, Stage, owner};

#[tokio::test]
async fn only_its_owner_frees_a_lock_and_learns_whether_somebody_waits() {
    let mut stage = Stage::new().await;
    let (me, other) = (owner(A), owner(B));
    let place = format!("{other}:1000:0");
    let (looks, frees) = (&["GET k"][..], &["GET k", "DEL k", "PTTL q"][..]);
    for (holder, waits, reply, sent, left) in [
        (None, false, "0", looks, "nil"),
        (Some(&other), false, "0", looks, &*other),
        (Some(&other), true, "0", looks, &*other),
        (Some(&me), false, "1", frees, "nil"),
        (Some(&me), true, "3", frees, "nil"),
    ] {
        stage.command("DEL k q").await;
        if let Some(holder) = holder {
            stage.command(&format!("SET k {holder}")).await;
        }
        if waits {
            stage.queue(&[(NOW, &place)]).await;
        }
        let done = stage.run("LEAVE_FREE", &KEYS, [&*me]).await;
        assert_eq!(done.reply, reply, "{holder:?}, {waits}");
        assert_eq!(done.sent, sent, "{holder:?}, {waits}");
        assert_eq!(stage.command("GET k").await, left);
        assert_eq!(stage.command("EXISTS q").await == "1", waits);
    }
}

#[tokio::test]
async fn those_are_told_whose_lease_is_not_over_the_last_to_end_first() {
    let mut stage = Stage::new().await;
    let (me, other) = (owner(A), owner(B));
    let exclusive = ["GET k"];
    let shares = ["GET k", "TIME", "ZSCORE k used"];
    let all = [&shares[..], &["ZREVRANGE k 0 999 WITHSCORES"]].concat();
    let [over, now, next, later] = [NOW - 1, NOW, NOW + 1, NOW + 2];
    let ended = format!("{over} {me}:1 {now} {other}:1");
    let held = format!("{next} {me}:2 {later} {other}:3");
    for (stored, reply, sent) in [
        (String::new(), "[]".to_owned(), &exclusive[..]),
        (format!("SET k {me}"), format!("[{me}]"), &exclusive),
        (
            format!("ZADD k -7 used -9 of {ended} {held}"),
            format!("[{other}:3, {me}:2]"),
            &all,
        ),
        (
            format!("ZADD k -2 used -9 of {ended}"),
            "[]".to_owned(),
            &all,
        ),
    ] {
        stage.command("DEL k").await;
        if !stored.is_empty() {
            stage.command(&stored).await;
        }
        let before = stage.dump().await;
        let done = stage.run("HOLDERS", &KEYS, []).await;
        assert_eq!(done.reply, reply, "{stored}");
        assert_eq!(done.sent, sent, "{stored}");
        assert_eq!(stage.dump().await, before, "{stored}");
    }
    stage.command("DEL k").await;
    stage.command("ZADD k 1 member").await;
    let done = stage.run("HOLDERS", &KEYS, []).await;
    assert_eq!(done.reply, "WRONGTYPE not a lock");
    assert_eq!(done.sent[..3], shares);
}
