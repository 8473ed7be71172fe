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

/// Whoever may write the keys must not end the connection that all renewals share.
#[tokio::test]
async fn of_what_is_stored_and_is_no_value_of_ours_a_reply_has_the_beginning_only() {
    let mut stage = Stage::new().await;
    let (me, long) = (owner(A), "9".repeat(1 << 20));
    let join = ["5000", "join", "g:", "60000", "1000:0", &*me];
    let barge = ["5000", "barge", "g:", "60000", "1000:0:0:1:5", &*me];
    let live = NOW + 1_000_000;
    for stored in [
        format!("SET k {long}"),
        format!("SET k v{long}:"),
        format!("ZADD k -1 used -5 of {live} {long}:1"),
        format!("HSET k count 1 generation {long} opened 0"),
        format!("HSET k count 1 generation 1 opened {long}"),
        format!("HSET k count 1 generation 1 opened 0 version {long}"),
    ] {
        let of_locks: [(&str, &[&str]); 5] = [
            ("ACQUIRE", &join),
            ("ACQUIRE", &barge),
            ("INSPECT", &[]),
            ("HOLDERS", &[]),
            ("QUORUM_TAKE", &[&me, "5000", "0"]),
        ];
        let of_latches: [(&str, &[&str]); 1] = [("LATCH_LOOK", &["", "0"])];
        let scripts = match stored.starts_with("HSET") {
            true => &of_latches[..],
            false => &of_locks,
        };
        for (script, arguments) in scripts {
            stage.command("DEL k q").await;
            stage.command(&stored).await;
            let of = arguments.iter().copied();
            let reply = stage.run(script, &KEYS, of).await.reply;
            let bytes = reply.len();
            assert!(bytes < 400, "{script} of {}…: {bytes} bytes", &stored[..40]);
        }
    }
}
