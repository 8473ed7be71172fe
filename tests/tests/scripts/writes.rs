//! What is so already is not written again.

use super::{A, B, KEYS, NOW, Stage, owner};

#[tokio::test]
async fn a_lease_is_written_only_if_it_gets_longer() {
    let mut stage = Stage::new().await;
    let me = owner(A);
    stage.pttl = Some(5000);
    stage.command(&format!("SET k {me} PX 5000")).await;
    for (lease, written) in [("5000", vec![]), ("5001", vec!["PEXPIRE k 5001"])] {
        let arguments = [lease, "barge", "g:", "60000", "1000:0", &*me];
        let done = stage.run("ACQUIRE", &KEYS, arguments).await;
        assert_eq!(done.all("PEXPIRE k"), written);
        let arguments = [lease, "0", "barge", "g:", &me];
        let done = stage.run("ACQUIRE_ALL", &KEYS, arguments).await;
        assert_eq!(done.all("PEXPIRE k"), written);
    }
}

#[tokio::test]
async fn the_lease_of_a_share_is_written_only_if_it_gets_longer() {
    let mut stage = Stage::new().await;
    let me = owner(A);
    stage
        .command(&format!("ZADD k -1 used -5 of {} {me}:1", NOW + 5_000_000))
        .await;
    let written = format!("ZADD k {} {me}:1 -5 of -1 used", NOW + 5_001_000);
    for (lease, written) in [("5000", vec![]), ("5001", vec![&*written])] {
        let arguments = [lease, "barge", "g:", "60000", "1000:0:0:1:5", &*me];
        let done = stage.run("ACQUIRE", &KEYS, arguments).await;
        assert_eq!(done.all("ZADD k"), written);
    }
}

#[tokio::test]
async fn the_end_of_a_set_of_shares_is_written_only_if_it_comes_later() {
    let mut stage = Stage::new().await;
    for (pttl, written) in [(6000, vec![]), (5999, vec!["PEXPIRE k 6000"])] {
        stage.command("DEL k").await;
        stage.pttl = Some(pttl);
        let arguments = ["5000", "barge", "g:", "60000", "1000:0:0:1:5", &*owner(A)];
        let done = stage.run("ACQUIRE", &KEYS, arguments).await;
        assert_eq!(done.all("PEXPIRE k"), written);
    }
}

#[tokio::test]
async fn a_hold_that_keeps_all_its_permits_is_not_written() {
    let mut stage = Stage::new().await;
    let (me, ends) = (owner(A), NOW + 1_000_000);
    stage
        .command(&format!("ZADD k -3 used -5 of {ends} {me}:3"))
        .await;
    for (keeps, removed) in [("3", vec![]), ("2", vec![format!("ZREM k {me}:3")])] {
        let done = stage.run("SHRINK", &KEYS, [&*me, "3", keeps, "g:"]).await;
        assert_eq!(done.reply, "1");
        assert_eq!(done.all("ZREM"), removed);
    }
}

#[tokio::test]
async fn a_request_for_several_locks_serves_no_waiter_of_one_that_is_taken() {
    let mut stage = Stage::new().await;
    stage
        .command(&format!("ZADD k -1 used -5 of {} {}:1", NOW + 1, owner(B)))
        .await;
    stage.queue(&[(NOW, &format!("{B}-2:1000:0:0:1:5"))]).await;
    let arguments = ["5000", "0", "respect", "g:", &*owner(A)];
    let done = stage.run("ACQUIRE_ALL", &KEYS, arguments).await;
    assert_eq!(done.reply, "[2, 1]");
    assert!(!done.has_sent("ZREM"), "{done:?}");
}
