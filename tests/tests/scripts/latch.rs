//! When calls of latches are timely, and whom a latch tells that it has opened.

use super::{A, B, NOW, Stage, owner};

/// A latch, its waiters, what the call did.
const LATCH: [&str; 3] = ["l", "w", "c"];

#[tokio::test]
async fn a_call_is_timely_from_the_first_to_the_last_microsecond_of_its_time() {
    let mut stage = Stage::new().await;
    let (first, last) = (NOW - 1000, NOW);
    for (now, timely) in [
        (first - 1, false),
        (first, true),
        (last, true),
        (last + 1, false),
    ] {
        stage.command("DEL l c").await;
        stage.command("HSET l count 2 generation 1 opened 0").await;
        stage.now = now;
        let (from, to) = (first.to_string(), last.to_string());
        let counted = [&*from, &to, "120000", "o:"];
        let done = stage.run("LATCH_COUNT_DOWN", &LATCH, counted).await;
        let untimely = format!("-{now}");
        assert_eq!(done.reply, if timely { "1" } else { &untimely });
        stage.command("DEL l c").await;
        let set = [&*from, &to, "120000", "3", "60000"];
        let done = stage.run("LATCH_SET", &LATCH, set).await;
        assert_eq!(done.reply, if timely { "1" } else { &untimely });
    }
}

#[tokio::test]
async fn a_place_is_over_at_its_millisecond() {
    let mut stage = Stage::new().await;
    stage.command("HSET l count 1 generation 7 opened 0").await;
    let now = NOW / 1000;
    let places = format!("ZADD w {now} {} {} {}", owner(A), now + 1, owner(B));
    stage.command(&places).await;
    let (from, to) = ("0", (NOW + 1).to_string());
    let done = stage
        .run("LATCH_COUNT_DOWN", &LATCH, [from, &to, "120000", "o:"])
        .await;
    assert_eq!(done.reply, "0");
    let told = |client| done.has_sent(&format!("PUBLISH o:{client} 1 opened {} 7", owner(client)));
    assert_eq!((told(A), told(B)), (false, true), "{done:?}");
}

#[tokio::test]
async fn what_is_no_latch_of_this_version_is_told() {
    let mut stage = Stage::new().await;
    let number = "1".repeat(31);
    let none = "WRONGTYPE the key holds something that is not a latch";
    for (fields, reply) in [
        (
            format!("generation {number} opened 0"),
            &*format!("[3, {number}, 0, -1]"),
        ),
        (format!("generation {number}1 opened 0"), none),
        (format!("generation 1 opened {number}1"), none),
        ("generation 1x opened 0".to_owned(), none),
        (
            "generation 1 opened 0 version 2".to_owned(),
            "LOCKVERSION the key is stored in version 2, and this lock-runtime knows version 1",
        ),
    ] {
        stage.command("DEL l").await;
        stage.command(&format!("HSET l count 3 {fields}")).await;
        let done = stage.run("LATCH_LOOK", &LATCH, ["", "0"]).await;
        assert_eq!(done.reply, reply, "{fields}");
    }
}
