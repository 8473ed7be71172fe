//! The common cases send few commands.

use super::{A, HEARD, KEYS, NOW, Stage, owner};

#[tokio::test]
async fn a_place_in_the_queue_of_a_held_lock_costs_five_commands() {
    let mut stage = Stage::new().await;
    stage.command("SET k holder").await;
    let me = owner(A);
    let arguments = [&*me, "5000", "1000:0", "join", "g:", "60000"];
    let done = stage.run("ACQUIRE", &KEYS, arguments).await;
    assert_eq!(done.reply, "[0, -1, 1, holder]");
    let place = format!("ZADD q NX {NOW} {me}:1000:0");
    let heard = format!("ZSCORE q {A}");
    let sent = ["GET k", &place, &heard, "PEXPIRE q 60000", "PTTL k"];
    assert_eq!(done.sent, sent);
}

#[tokio::test]
async fn a_release_costs_three_commands_and_one_to_a_waiter_six() {
    let mut stage = Stage::new().await;
    stage.command("SET k holder").await;
    let done = stage.run("RELEASE", &KEYS, ["g:", "holder"]).await;
    assert_eq!(done.sent, ["GET k", "PTTL q", "DEL k"]);
    let (next, place) = (owner(A), format!("{}:1000:0", owner(A)));
    stage.command("SET k holder").await;
    stage.queue(&[(NOW, &place), (HEARD + NOW, A)]).await;
    let listener = redis::Client::open(stage.server.url()).unwrap();
    let mut listener = listener.get_async_pubsub().await.unwrap();
    listener.subscribe(format!("g:{A}")).await.unwrap();
    let done = stage.run("RELEASE", &KEYS, ["g:", "holder"]).await;
    let set = format!("SET k {next} PX 1000");
    let told = format!("PUBLISH g:{A} 1 granted {next} ");
    let sent = [
        "GET k",
        "PTTL q",
        "ZRANGE q 0 1 WITHSCORES",
        "DEL q",
        &set,
        &told,
    ];
    assert_eq!(done.sent, sent);
}
