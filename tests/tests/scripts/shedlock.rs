//! A lock as ShedLock writes it.

use super::Stage;

const OURS: &str = "ADDED:t@h:me";
/// What the replies of PTTL say.
const REST: i64 = 3000;
const ACQUIRE: &str = "acquire :me ADDED:u@h:me 5000";

/// What the script replies and sends, if the lock holds this text; with "", if there is none.
async fn asked(stage: &mut Stage, held: &str, words: &str) -> (String, String) {
    stage.pttl = Some(REST);
    stage.command("DEL k").await;
    if !held.is_empty() {
        stage.command(&format!("SET k {held}")).await;
    }
    let done = stage.run("SHEDLOCK", &["k"], words.split(' ')).await;
    (done.reply, done.sent.join(", "))
}

#[tokio::test]
async fn a_free_lock_is_taken_and_nothing_else_makes_a_key() {
    let mut stage = Stage::new().await;
    for (words, reply, sent) in [
        (ACQUIRE, "[1, , 0]", "GET k, SET k ADDED:u@h:me PX 5000"),
        ("renew :me 5000", "[0, , 0]", "GET k"),
        ("release :me 0", "[0, , 0]", "GET k"),
        ("release :me 7", "[0, , 0]", "GET k"),
        ("look", "[0, , 0]", "GET k"),
        ("free", "[0, , 0]", "GET k, DEL k"),
    ] {
        let done = asked(&mut stage, "", words).await;
        assert_eq!(done, (reply.to_owned(), sent.to_owned()), "{words}");
    }
}

#[tokio::test]
async fn its_owner_renews_a_lock_without_a_shorter_lease_and_ends_it_now_or_later() {
    let mut stage = Stage::new().await;
    let kept = format!("GET k, PEXPIRE k 7, SET k {OURS}:kept PX 7");
    for (words, sent) in [
        (ACQUIRE, "GET k, PTTL k, PEXPIRE k 5000"),
        (
            "acquire :me ADDED:u@h:me 2000",
            "GET k, PTTL k, PEXPIRE k 3000",
        ),
        ("renew :me 3001", "GET k, PTTL k, PEXPIRE k 3001"),
        ("renew :me 2999", "GET k, PTTL k, PEXPIRE k 3000"),
        ("release :me 0", "GET k, DEL k"),
        ("release :me 7", &*kept),
        ("free", "GET k, DEL k"),
    ] {
        let done = asked(&mut stage, OURS, words).await;
        assert_eq!(done, ("[1, , 0]".to_owned(), sent.to_owned()), "{words}");
    }
    let seen = format!("[1, {OURS}, {REST}]");
    let done = asked(&mut stage, OURS, "look").await;
    assert_eq!(done, (seen, "GET k, PTTL k".to_owned()));
}

#[tokio::test]
async fn the_lock_of_another_is_shown_and_only_freed_by_force() {
    let mut stage = Stage::new().await;
    // The third names somebody whose name ends as ours.
    for held in ["ADDED:t@h:you", "ADDED:t@h:me:kept", "ADDED:t@h:some"] {
        let (busy, seen) = (
            format!("[0, {held}, {REST}]"),
            format!("[1, {held}, {REST}]"),
        );
        for (words, reply, sent) in [
            (ACQUIRE, &*busy, "GET k, PTTL k"),
            ("renew :me 5000", "[0, , 0]", "GET k"),
            ("release :me 0", "[0, , 0]", "GET k"),
            ("release :me 7", "[0, , 0]", "GET k"),
            ("look", &*seen, "GET k, PTTL k"),
            ("free", "[1, , 0]", "GET k, DEL k"),
        ] {
            let done = asked(&mut stage, held, words).await;
            assert_eq!(done, (reply.to_owned(), sent.to_owned()), "{held}: {words}");
        }
    }
}

#[tokio::test]
async fn of_more_than_1024_bytes_only_the_begin_and_the_end_are_shown() {
    let mut stage = Stage::new().await;
    let held: String = "ADDED:"
        .chars()
        .chain(('a'..='z').cycle())
        .take(1025)
        .collect();
    let shown = format!("{}...{}", &held[..256], &held[1025 - 128..]);
    for (held, shown) in [(&held[..1024], &held[..1024]), (&*held, &*shown)] {
        for (words, code) in [("look", 1), (ACQUIRE, 0)] {
            let (reply, _) = asked(&mut stage, held, words).await;
            assert_eq!(reply, format!("[{code}, {shown}, {REST}]"));
        }
    }
}

#[tokio::test]
async fn what_is_no_such_lock_is_told_and_left_alone() {
    let mut stage = Stage::new().await;
    let text: String = ('a'..='z').cycle().take(129).collect();
    for (held, shown) in [
        ("ADDED", "ADDED"),
        ("ADDED;t@h:me", "ADDED;t@h:me"),
        (":ADDED:t@h:me", ":ADDED:t@h:me"),
        (&text[..128], &text[..128]),
        (&text, &text[..128]),
    ] {
        for words in [ACQUIRE, "renew :me 5000", "release :me 0", "look", "free"] {
            let done = asked(&mut stage, held, words).await;
            let told = format!("[2, text {shown}, -1]");
            assert_eq!(done, (told, "GET k".to_owned()), "{held}: {words}");
        }
    }
    for (made, kind) in [("RPUSH k v", "list"), ("HSET k f v", "hash")] {
        stage.command("DEL k").await;
        stage.command(made).await;
        for words in [ACQUIRE, "renew :me 5000", "release :me 0", "look", "free"] {
            let done = stage.run("SHEDLOCK", &["k"], words.split(' ')).await;
            assert_eq!(done.reply, format!("[2, {kind}, -1]"));
            assert_eq!(done.sent, ["GET k", "TYPE k"], "{words}");
        }
    }
}

#[tokio::test]
async fn who_may_not_read_the_lock_learns_that_only() {
    let mut stage = Stage::new().await;
    stage.refused = "GET";
    for held in ["", OURS] {
        for words in [ACQUIRE, "renew :me 5000", "release :me 0", "look", "free"] {
            let (reply, sent) = asked(&mut stage, held, words).await;
            assert!(reply.ends_with("NOPERM"), "{words}: {reply}");
            assert_eq!(sent, "GET k");
        }
    }
}
