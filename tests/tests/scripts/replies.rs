//! Replies that say two things at once, and one that says nothing.

use super::{A, B, KEYS, NOW, Stage, owner};

#[tokio::test]
async fn a_hold_gets_less_and_more_waiters_are_left_than_one_script_serves() {
    let mut stage = Stage::new().await;
    let (me, share) = (owner(A), format!("{}:3", owner(A)));
    let places: Vec<String> = (1..=501)
        .map(|number| format!("{B}-{number:x}:1000:0:0:1:5"))
        .collect();
    let queue: Vec<(u64, &str)> = places.iter().map(|place| (NOW, &**place)).collect();
    let scripts: [(&str, &[&str], &str); 4] = [
        ("RELEASE", &["g:", &me, "3", "0"], "[3]"),
        ("ABANDON", &[&me, "1000:0", "g:", "3"], "3"),
        ("SHRINK", &[&me, "3", "1", "g:"], "3"),
        ("FORCE_RELEASE", &["g:"], "3"),
    ];
    for (script, arguments, both) in scripts {
        stage.command("DEL k q").await;
        stage
            .command(&format!("ZADD k -3 used -5 of {} {share}", NOW + 1_000_000))
            .await;
        stage.queue(&queue).await;
        let done = stage.run(script, &KEYS, arguments.iter().copied()).await;
        assert_eq!(done.reply, both, "{script}");
        assert_eq!(stage.command("ZCARD q").await, "1", "{script}");
    }
}

#[tokio::test]
async fn a_server_that_can_not_tell_rights_tells_none() {
    let mut stage = Stage::new().await;
    // The stage's scripts have no `acl_check_cmd`, as before Redis 7.
    let done = stage.run("RIGHTS", &[], ["get k", "set k v"]).await;
    assert_eq!(done.reply, "[]");
}
