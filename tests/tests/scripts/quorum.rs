//! One server's part of a lock of a quorum.

use super::{A, B, KEYS, NOW, Stage, owner};

const SPOILT: &str = "WRONGTYPE the fence counter is not a number";

#[tokio::test]
async fn a_token_is_confirmed_for_the_owner_above_the_counter_only() {
    let mut stage = Stage::new().await;
    let (me, other) = (owner(A), owner(B));
    let after = async |stage: &mut Stage, holder: &str, counter: &str| {
        stage.command(&format!("SET k {holder}")).await;
        stage.command(&format!("SET f {counter}")).await;
        let done = stage.run("QUORUM_CONFIRM", &KEYS, [&*me, "10", "5"]).await;
        (done.reply, stage.command("GET f").await)
    };
    let is = |reply: &str, counter: &str| (reply.to_owned(), counter.to_owned());
    assert_eq!(after(&mut stage, &me, "9").await, is("1", "14"));
    assert_eq!(after(&mut stage, &me, "10").await, is("0", "10"));
    assert_eq!(after(&mut stage, &me, "11").await, is("0", "11"));
    assert_eq!(after(&mut stage, &other, "9").await, is("0", "9"));
    assert_eq!(after(&mut stage, &me, "nine").await, is(SPOILT, "nine"));
}

#[tokio::test]
async fn a_part_is_taken_by_one_owner_and_never_over_another_type() {
    let mut stage = Stage::new().await;
    let (me, other) = (owner(A), owner(B));
    let takes = async |stage: &mut Stage, lease: &str, fenced: &str| {
        let arguments = [&*me, lease, fenced];
        stage.run("QUORUM_TAKE", &KEYS, arguments).await.reply
    };
    assert_eq!(takes(&mut stage, "0", "0").await, "[0, -2, ]");
    assert_eq!(stage.command("EXISTS k").await, "0");
    assert_eq!(takes(&mut stage, "5000", "0").await, "[1, ]");
    // It has it, also without a lease.
    assert_eq!(takes(&mut stage, "0", "0").await, "[1, ]");
    stage.command(&format!("SET k {other}")).await;
    let held = format!("[0, -1, {other}]");
    for lease in ["0", "5000"] {
        assert_eq!(takes(&mut stage, lease, "0").await, held);
    }
    stage.command("DEL k").await;
    stage.command("RPUSH k v").await;
    let wrong = takes(&mut stage, "5000", "0").await;
    assert!(wrong.starts_with("WRONGTYPE"), "{wrong}");
}

#[tokio::test]
async fn a_part_is_not_taken_if_the_counter_gives_no_token() {
    let mut stage = Stage::new().await;
    let me = owner(A);
    let fenced = [&*me, "5000", "1"];
    // It is no number, or has given the last token that there can be.
    for counter in ["nine", "9007199254740991"] {
        stage.command(&format!("SET f {counter}")).await;
        let done = stage.run("QUORUM_TAKE", &KEYS, fenced).await;
        assert_eq!(done.reply, SPOILT);
        assert_eq!(stage.command("EXISTS k").await, "0");
    }
    // A request without a token ignores the counter.
    let done = stage.run("QUORUM_TAKE", &KEYS, [&*me, "5000", "0"]).await;
    assert_eq!(done.reply, "[1, ]");
    stage.command("SET f 9").await;
    let done = stage.run("QUORUM_TAKE", &KEYS, fenced).await;
    assert_eq!(done.reply, format!("[1, {NOW}]"));
    // It is proposed only.
    assert_eq!(stage.command("GET f").await, "9");
}

#[tokio::test]
async fn the_end_of_a_part_is_told_with_the_number_of_listeners() {
    let mut stage = Stage::new().await;
    let me = owner(A);
    let ends = async |stage: &mut Stage, keep: &str, channel: &str| {
        stage.command(&format!("SET k {me}")).await;
        let arguments = [&*me, keep, channel, "name"];
        let done = stage.run("QUORUM_END", &KEYS, arguments).await;
        assert_eq!(done.reply, "1");
        let told = done
            .sent
            .into_iter()
            .find(|sent| sent.starts_with("PUBLISH"));
        (told.unwrap_or_default(), stage.command("EXISTS k").await)
    };
    let freed = |listeners: u32| format!("PUBLISH c 1 freed {me} {listeners} name");
    let gone = "0".to_owned();
    assert_eq!(ends(&mut stage, "0", "c").await, (freed(0), gone.clone()));
    let client = redis::Client::open(stage.server.url()).unwrap();
    let mut listeners = Vec::new();
    for _ in 0..2 {
        let mut listener = client.get_async_pubsub().await.unwrap();
        listener.subscribe("c").await.unwrap();
        listeners.push(listener);
    }
    assert_eq!(ends(&mut stage, "0", "c").await, (freed(2), gone.clone()));
    assert_eq!(
        ends(&mut stage, "0", "").await,
        (String::new(), gone.clone())
    );
    let kept = (String::new(), "1".to_owned());
    assert_eq!(ends(&mut stage, "60000", "c").await, kept);
    // Who may not ask for the number tells one.
    stage.refused = "PUBSUB";
    assert_eq!(ends(&mut stage, "0", "c").await, (freed(1), gone));
}

#[tokio::test]
async fn a_part_is_ended_by_its_owner_only_and_kept_for_as_little_as_a_millisecond() {
    let mut stage = Stage::new().await;
    let (me, other) = (owner(A), owner(B));
    stage.command(&format!("SET k {other}")).await;
    let done = stage.run("QUORUM_END", &KEYS, [&*me, "0", "c", "n"]).await;
    assert_eq!(done.reply, "0");
    assert_eq!(stage.command("GET k").await, other);
    let done = stage
        .run("QUORUM_END", &KEYS, [&*other, "1", "c", "n"])
        .await;
    let kept = format!("SET k {other}:kept PX 1");
    assert_eq!(done.all("SET k"), [&*kept]);
    // The same on one server.
    stage.command(&format!("SET k {other}")).await;
    let arguments = ["g:", &*other, "0", "1"];
    let done = stage.run("RELEASE", &KEYS, arguments).await;
    assert_eq!(done.all("SET k"), [&*kept]);
}
