//! What is so already is not written again.

use super::{A, KEYS, NOW, Stage, owner};

#[tokio::test]
async fn a_lease_is_written_only_if_it_gets_longer() {
    let mut stage = Stage::new().await;
    let me = owner(A);
    stage.pttl = Some(5000);
    stage.command(&format!("SET k {me} PX 5000")).await;
    for (lease, writes) in [("5000", false), ("5001", true)] {
        let arguments = [&*me, lease, "1000:0", "barge", "g:", "60000"];
        let done = stage.run("ACQUIRE", &KEYS, arguments).await;
        assert_eq!(done.has_sent("PEXPIRE k"), writes, "{done:?}");
        let arguments = [lease, "0", "barge", "g:", &me];
        let done = stage.run("ACQUIRE_ALL", &KEYS, arguments).await;
        assert_eq!(done.has_sent("PEXPIRE k"), writes, "{done:?}");
    }
}

#[tokio::test]
async fn the_lease_of_a_share_is_written_only_if_it_gets_longer() {
    let mut stage = Stage::new().await;
    let me = owner(A);
    stage
        .command(&format!("ZADD k -1 used -5 of {} {me}:1", NOW + 5_000_000))
        .await;
    for (lease, writes) in [("5000", false), ("5001", true)] {
        let arguments = [&*me, lease, "1000:0:0:1:5", "barge", "g:", "60000"];
        let done = stage.run("ACQUIRE", &KEYS, arguments).await;
        assert_eq!(done.has_sent("ZADD k"), writes, "{done:?}");
    }
}

#[tokio::test]
async fn a_set_s_end_is_written_only_if_it_comes_later() {
    let mut stage = Stage::new().await;
    for (pttl, writes) in [(6000, false), (5999, true)] {
        stage.command("DEL k").await;
        stage.pttl = Some(pttl);
        let arguments = [&*owner(A), "5000", "1000:0:0:1:5", "barge", "g:", "60000"];
        let done = stage.run("ACQUIRE", &KEYS, arguments).await;
        assert_eq!(done.has_sent("PEXPIRE k 6000"), writes, "{done:?}");
    }
}
