//! The common cases send few commands.

use super::{A, B, HEARD, KEYS, NOW, Stage, owner};

#[tokio::test]
async fn a_place_in_the_queue_of_a_held_lock_costs_six_commands() {
    let mut stage = Stage::new().await;
    stage.command("SET k holder").await;
    let me = owner(A);
    let arguments = [&*me, "5000", "1000:0", "join", "g:", "60000"];
    let done = stage.run("ACQUIRE", &KEYS, arguments).await;
    assert_eq!(done.reply, "[0, -1, 1, holder]");
    let place = format!("ZADD q NX {NOW} {me}:1000:0");
    let heard = format!("ZSCORE q {A}");
    let sent = ["GET k", "TIME", &place, &heard, "PEXPIRE q 60000", "PTTL k"];
    assert_eq!(done.sent, sent);
    // Who asks again is looked for in the queue once.
    let done = stage.run("ACQUIRE", &KEYS, arguments).await;
    assert_eq!(done.reply, "[0, -1, 1, holder]");
    let looks = format!("ZSCORE q {me}:1000:0");
    assert_eq!(done.all(&looks), [&*looks]);
}

#[tokio::test]
async fn a_release_costs_three_commands_and_one_to_a_waiter_seven() {
    let mut stage = Stage::new().await;
    stage.command("SET k holder").await;
    let done = stage.run("RELEASE", &KEYS, ["g:", "holder"]).await;
    assert_eq!(done.sent, ["GET k", "PTTL q", "DEL k"]);
    let next = owner(A);
    let listener = redis::Client::open(stage.server.url()).unwrap();
    let mut listener = listener.get_async_pubsub().await.unwrap();
    listener.subscribe(format!("g:{A}")).await.unwrap();
    let set = format!("SET k {next} PX 1000");
    let told = format!("PUBLISH g:{A} 1 granted {next} ");
    let sent = [
        "GET k",
        "PTTL q",
        "ZRANGE q 0 1 WITHSCORES",
        "TIME",
        "DEL q",
        &set,
        &told,
    ];
    // Now, and at the last moments of silence and of a wait.
    for (since, wait) in [(NOW, 0), (NOW - 2_000_000, 0), (NOW - 500_000, 500)] {
        stage.command("SET k holder").await;
        let place = format!("{next}:1000:{wait}");
        stage.queue(&[(since, &place), (HEARD + NOW, A)]).await;
        let done = stage.run("RELEASE", &KEYS, ["g:", "holder"]).await;
        assert_eq!(done.sent, sent);
    }
}

#[tokio::test]
async fn a_free_lock_with_a_token_costs_four_commands() {
    let mut stage = Stage::new().await;
    let me = owner(A);
    for (tokens, last) in [("1", NOW), ("2", NOW + 1)] {
        let place = format!("1000:0:{tokens}");
        stage.command("DEL k f").await;
        let done = stage
            .run("ACQUIRE", &KEYS, [&*me, "5000", &place, tokens])
            .await;
        assert_eq!(done.reply, NOW.to_string());
        let take = format!("SET k {me} NX PX 5000");
        let count = format!("SET f {last} PX 86400000");
        assert_eq!(done.sent, [&*take, "GET f", "TIME", &count]);
        assert_eq!(stage.command("GET f").await, last.to_string());
    }
}

#[tokio::test]
async fn a_token_is_above_the_last_one_and_a_counter_that_is_none_stays() {
    let mut stage = Stage::new().await;
    let me = owner(A);
    let last = NOW - 1;
    let ways: [&[&str]; 2] = [
        &[&me, "5000", "1000:0:2", "2"],
        &[&me, "5000", "1000:0:2", "join", "g:", "60000"],
    ];
    for arguments in ways {
        // The short way, and two that end in the long one.
        for (counter, reply, kept) in [
            (last, NOW.to_string(), NOW + 1),
            (NOW, format!("[1, {}, nil]", NOW + 1), NOW + 2),
            (NOW + 5, format!("[1, {}, nil]", NOW + 6), NOW + 7),
        ] {
            stage.command("DEL k f").await;
            stage.command(&format!("SET f {counter}")).await;
            let done = stage.run("ACQUIRE", &KEYS, arguments.iter().copied()).await;
            assert_eq!(done.reply, reply);
            assert_eq!(stage.command("GET f").await, kept.to_string());
            assert_eq!(stage.command("GET k").await, me);
        }
        for spoilt in ["nan", "-1", "1e3", "0x1", "9007199254740990", "x"] {
            stage.command("DEL k f").await;
            stage.command(&format!("SET f {spoilt}")).await;
            let done = stage.run("ACQUIRE", &KEYS, arguments.iter().copied()).await;
            assert!(done.reply.contains("WRONGTYPE"), "{spoilt}: {done:?}");
            assert_eq!(stage.command("GET f").await, spoilt);
            assert_eq!(stage.command("EXISTS k").await, "0");
        }
    }
}

#[tokio::test]
async fn a_free_lock_that_nobody_waits_for_costs_three_commands_and_a_queue_is_never_passed() {
    let mut stage = Stage::new().await;
    let me = owner(A);
    for mode in ["join", "respect"] {
        let arguments = [&*me, "5000", "1000:0", mode, "g:", "60000"];
        stage.command("DEL k q").await;
        let done = stage.run("ACQUIRE", &KEYS, arguments).await;
        assert_eq!(done.reply, "1");
        let take = format!("SET k {me} PX 5000");
        assert_eq!(done.sent, ["GET k", "PTTL q", &take]);
        // Somebody waits whose client listens.
        let listener = redis::Client::open(stage.server.url()).unwrap();
        let mut listener = listener.get_async_pubsub().await.unwrap();
        listener.subscribe(format!("g:{B}")).await.unwrap();
        stage.command("DEL k").await;
        let first = format!("{}:1000:0", owner(B));
        stage.queue(&[(NOW - 1, &first)]).await;
        let done = stage.run("ACQUIRE", &KEYS, arguments).await;
        assert!(done.reply.starts_with("[0, "), "{done:?}");
        assert_eq!(stage.command("GET k").await, owner(B));
    }
}
