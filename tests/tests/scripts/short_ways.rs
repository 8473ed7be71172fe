//! The common cases send few commands.

use super::{A, HEARD, KEYS, NOW, Stage, owner};

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
    let arguments = [&*me, "5000", "1000:0:2", "barge", "g:", "60000"];
    let done = stage.run("ACQUIRE", &KEYS, arguments).await;
    assert_eq!(done.reply, format!("[1, {NOW}]"));
    let take = format!("SET k {me} NX PX 5000");
    let count = format!("SET f {} PX 86400000", NOW + 1);
    assert_eq!(done.sent, [&*take, "GET f", "TIME", &count]);
}
