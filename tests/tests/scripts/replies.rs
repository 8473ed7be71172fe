//! Replies that say two things at once, and one that says nothing.

use super::{A, B, KEYS, NOW, SUSPENDED, Stage, owner};

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

/// What could not be read is not known: neither gone nor something else.
#[tokio::test]
async fn a_read_that_is_denied_is_what_each_script_replies() {
    let mut stage = Stage::new().await;
    let (me, share) = (owner(A), format!("{}:3", owner(A)));
    let exclusive: [(&str, &[&str]); 16] = [
        ("ACQUIRE", &["5000", "join", "g:", "60000", "1000:0", &me]),
        (
            "ACQUIRE",
            &["5000", "respect", "g:", "60000", "1000:0:1", &me],
        ),
        ("ACQUIRE", &["5000", "barge", "g:", "60000", "1000:0", &me]),
        ("ACQUIRE_ALL", &["5000", "0", "respect", "g:", &me]),
        ("RELEASE", &["g:", &me]),
        ("RELEASE", &["g:", &me, "0", "5000"]),
        ("LEAVE_FREE", &[&me]),
        ("ABANDON", &[&me, "1000:0", "g:", "0"]),
        ("FORCE_RELEASE", &["g:"]),
        ("FENCE", &[&me, "0"]),
        ("INSPECT", &[]),
        ("HOLDERS", &[]),
        ("QUORUM_TAKE", &[&me, "5000", "0"]),
        ("QUORUM_CONFIRM", &[&me, "1", "1"]),
        ("QUORUM_END", &[&me, "0", "", "k"]),
        ("SHRINK", &[&me, "3", "1", "g:"]),
    ];
    let shares: [(&str, &[&str]); 8] = [
        (
            "ACQUIRE",
            &["5000", "join", "g:", "60000", "1000:0:0:3:5", &me],
        ),
        ("ACQUIRE_ALL", &["5000", "0", "respect", "g:", &me]),
        ("RELEASE", &["g:", &me, "3", "0"]),
        ("ABANDON", &[&me, "1000:0", "g:", "3"]),
        ("SHRINK", &[&me, "3", "1", "g:"]),
        ("FORCE_RELEASE", &["g:"]),
        ("FENCE", &[&me, "3"]),
        ("INSPECT", &[]),
    ];
    let waits = format!("ZADD q {NOW} {B}-1:1000:0");
    let held = format!("SET k {me}");
    let elsewhere = "SET elsewhere x".to_owned();
    let shared = format!("ZADD k -3 used -5 of {} {share}", NOW + 1_000_000);
    let renewals: [(&str, &[&str]); 1] = [("RENEW", &[&me, "5000"])];
    let renewals_of_shares: [(&str, &[&str]); 1] = [("RENEW", &[&share, "5000"])];
    let holders: [(&str, &[&str]); 1] = [("HOLDERS", &[])];
    for (refused, keys, stored, scripts) in [
        ("GET", &KEYS[..], &held, &exclusive[..]),
        ("GET", &KEYS[..1], &held, &renewals),
        ("ZSCORE", &KEYS[..], &shared, &shares),
        ("ZSCORE", &KEYS[..], &shared, &holders),
        ("ZSCORE", &KEYS[..1], &shared, &renewals_of_shares),
        // Nobody takes the lock before those who wait.
        ("ZRANGE", &KEYS[..], &waits, &exclusive[..2]),
        ("ZRANGE", &KEYS[..], &waits, &exclusive[3..4]),
        // The fence counter.
        ("GET f", &KEYS[..], &elsewhere, &exclusive[1..2]),
    ] {
        for (script, arguments) in scripts {
            stage.refused = "";
            stage.command("DEL k q f").await;
            stage.command(stored).await;
            let before = stage.dump().await;
            stage.refused = refused;
            let of = arguments.iter().copied();
            let reply = stage.run(script, keys, of).await.reply;
            let after = stage.dump().await;
            assert_eq!(after, before, "{script} {arguments:?} without {refused}");
            assert!(
                reply.ends_with("NOPERM"),
                "{script} {arguments:?} without {refused}: {reply}"
            );
        }
    }
}

#[tokio::test]
async fn of_several_renewals_those_that_are_denied_are_not_gone() {
    let mut stage = Stage::new().await;
    let (me, share) = (owner(A), format!("{}:3", owner(A)));
    stage.command(&format!("SET k {me}")).await;
    let shared = format!("ZADD s -3 used -5 of {} {share}", NOW + 1_000_000);
    stage.command(&shared).await;
    stage.refused = "ZSCORE";
    let holds = [&*me, "5000", &share, "5000", &me, "5000"];
    let done = stage.run("RENEW", &["k", "s", "none"], holds).await;
    assert_eq!(done.reply, "[1, -1, 0]");
    // Nor does one whose write is refused hide that another is gone.
    for (refused, reply) in [
        ("PTTL", "[-1, -1, 0]"),
        ("PEXPIRE", "[-1, -1, 0]"),
        ("ZADD", "[1, -1, 0]"),
    ] {
        stage.refused = refused;
        let holds = [&*me, "5000", &share, "5000", &me, "5000"];
        let done = stage.run("RENEW", &["k", "s", "none"], holds).await;
        assert_eq!(done.reply, reply, "{refused}");
        let done = stage.run("RENEW", &["s"], [&*share, "5000"]).await;
        assert_eq!(done.reply, "NOPERM", "{refused}");
    }
    // But a replica may lack what its master has.
    stage.refused = "";
    stage.command("REPLICAOF 127.0.0.1 1").await;
    let done = stage.run("RENEW", &["none", "k"], [&*me, "5000", &me, "5000"]);
    let reply = done.await.reply;
    assert!(reply.contains("READONLY"), "{reply}");
    stage.command("REPLICAOF NO ONE").await;
    // Nor is a key of another kind denied.
    stage.command("RPUSH list x").await;
    let done = stage.run("RENEW", &["list"], [&*me, "5000"]).await;
    assert_eq!(done.reply, "[0]");
}

#[tokio::test]
async fn a_text_or_an_owner_that_may_not_be_read_is_not_gone() {
    let mut stage = Stage::new().await;
    let (me, ends) = (owner(A), NOW / 1000 + 10_000);
    let texts = [("k", format!("ADDED:now@host:{me}"))];
    let times = [("k", ends.to_string()), ("q", format!("{ends} {me}"))];
    let (own, new) = (format!("@host:{me}"), format!("ADDED:now@host:{me}"));
    let of_texts: [&[&str]; 3] = [
        &["acquire", &own, &new, "5000"],
        &["renew", &own, "5000"],
        &["release", &own, "0"],
    ];
    let of_times: [&[&str]; 3] = [
        &["acquire", "1", "0", &me, "5000"],
        &["renew", "1", "0", &me, "5000"],
        &["release", "1", "0", &me, "0"],
    ];
    for (script, refused, stored, calls) in [
        ("SHEDLOCK", "GET", &texts[..], of_texts),
        ("TIMESTAMP", "GET", &times, of_times),
        ("TIMESTAMP", "GET q", &times, of_times),
    ] {
        for arguments in calls {
            let words = || arguments.iter().copied();
            stage.refused = "";
            stage.command("DEL k q").await;
            for (key, text) in stored {
                let mut set = redis::cmd("SET");
                set.arg(key).arg(text);
                let () = set.query_async(&mut stage.connection).await.unwrap();
            }
            let before = stage.dump().await;
            stage.refused = refused;
            let denied = stage.run(script, &KEYS[..2], words()).await.reply;
            assert!(
                denied.ends_with("NOPERM"),
                "{script} {arguments:?}: {denied}"
            );
            assert_eq!(stage.dump().await, before, "{script} {arguments:?}");
            stage.refused = "";
            let done = stage.run(script, &KEYS[..2], words()).await.reply;
            assert_eq!(done, "[1, , 0]", "{script} {arguments:?}");
        }
    }
}

/// It would stand still for others, and get its places back from nobody.
#[tokio::test]
async fn who_may_not_be_written_down_as_heard_is_told() {
    let mut stage = Stage::new().await;
    let (me, other) = (owner(A), owner(B));
    let place = format!("{me}:1000:0");
    let ask = ["5000", "join", "g:", "60000", "1000:0", &*me];
    for suspended in [0, SUSPENDED] {
        stage.refused = "";
        stage.command("DEL k q").await;
        stage.command(&format!("SET k {other}")).await;
        stage.queue(&[(suspended + NOW, &place)]).await;
        stage.refused = "ZADD";
        let done = stage.run("ACQUIRE", &KEYS, ask).await;
        assert!(done.reply.ends_with("NOPERM"), "{}", done.reply);
    }
}

/// A script that passed by the same place again and again would ask to be sent once more, for ever.
#[tokio::test]
async fn a_place_that_may_not_be_suspended_is_looked_at_once() {
    let mut stage = Stage::new().await;
    let me = owner(A);
    let client = redis::Client::open(stage.server.url()).unwrap();
    let mut listener = client.get_async_pubsub().await.unwrap();
    listener.subscribe(format!("g:{B}")).await.unwrap();
    stage.command(&format!("SET k {me}")).await;
    let still = (NOW - 3_000_000, &*format!("{B}-1:1000:0"));
    stage.queue(&[still]).await;
    stage.refused = "ZADD";
    let done = stage.run("RELEASE", &KEYS, ["g:", &*me]).await;
    assert!(done.reply.ends_with("NOPERM"), "{}", done.reply);
    assert_eq!(done.all("ZADD").len(), 1, "{:?}", done.sent);
}
