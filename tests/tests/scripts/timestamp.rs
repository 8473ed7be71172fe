//! A lock whose value is the time of its end, and the key that says whose it is.

use super::Stage;

/// A value in milliseconds, almost five seconds after the time on stage.
const END: &str = "1800000005000";

/// What the script replies, and what it sends after the time, if the lock and the key of its owner
/// hold these texts; "" stands for none.
async fn asked(stage: &mut Stage, held: &str, owned: &str, words: &str) -> (String, String) {
    stage.command("DEL k o").await;
    for (key, value) in [("k", held), ("o", owned)] {
        if !value.is_empty() {
            let mut set = redis::cmd("SET");
            set.arg(key).arg(value);
            let () = set.query_async(&mut stage.connection).await.unwrap();
        }
    }
    let done = stage.run("TIMESTAMP", &["k", "o"], words.split(' ')).await;
    assert_eq!(done.sent[0], "TIME");
    (done.reply, done.sent[1..].join(", "))
}

#[tokio::test]
async fn an_end_is_rounded_up_to_its_unit_after_the_skew_and_nothing_else_makes_a_key() {
    let mut stage = Stage::new().await;
    let taken = |end: &str, ttl: u32| {
        let sent = format!("GET k, SET k {end} PX {ttl}, SET o {end} me PX {ttl}");
        ("[1, , 0]".to_owned(), sent)
    };
    let nothing = |sent: &str| ("[0, , 0]".to_owned(), sent.to_owned());
    for (words, done) in [
        ("acquire 1 0 me 5000", taken("1800000005004", 5002)),
        ("acquire 1 10 me 5000", taken("1800000005014", 5022)),
        ("acquire 1000 10 me 5000", taken("1800000006", 7007)),
        ("renew 1 10 me 5000", nothing("GET k")),
        ("release 1 10 me 0", nothing("GET k")),
        ("release 1 10 me 7", nothing("GET k")),
        ("look 1 10", nothing("GET k")),
        ("free 1 10", nothing("GET k, DEL k o")),
    ] {
        assert_eq!(asked(&mut stage, "", "", words).await, done, "{words}");
    }
}

#[tokio::test]
async fn its_owner_renews_a_lock_without_an_earlier_end_and_ends_it_now_or_later() {
    let mut stage = Stage::new().await;
    let written = |end: &str, owner: &str, ttl: u32| {
        format!("PEXPIRE k {ttl}, SET k {end} PX {ttl}, SET o {end} {owner} PX {ttl}")
    };
    let same = written(END, "me", 5008);
    let later = written("1800000009014", "me", 9022);
    let kept = written("1800000001014", "me:kept", 1022);
    let in_s = "1800000005";
    let same_in_s = written(in_s, "me", 6007);
    let kept_in_s = written("1800000002", "me:kept", 3007);
    for (held, words, sent) in [
        (END, "acquire 1 10 me 1000", &*same),
        (END, "acquire 1 10 me 9000", &later),
        (END, "renew 1 10 me 1000", &same),
        (END, "renew 1 10 me 9000", &later),
        (END, "release 1 10 me 1000", &kept),
        (END, "release 1 10 me 0", "DEL k o"),
        (END, "free 1 10", "DEL k o"),
        (in_s, "acquire 1000 10 me 1000", &same_in_s),
        (in_s, "renew 1000 10 me 1000", &same_in_s),
        (in_s, "release 1000 10 me 1000", &kept_in_s),
    ] {
        let done = asked(&mut stage, held, &format!("{held} me"), words).await;
        let sent = format!("GET k, GET o, {sent}");
        assert_eq!(done, ("[1, , 0]".to_owned(), sent), "{words}");
    }
    let owned = format!("{END} me");
    let done = asked(&mut stage, END, &owned, "look 1 10").await;
    assert_eq!(done.0, format!("[1, {owned}, 5008]"));
}

#[tokio::test]
async fn an_owner_counts_only_with_the_value_of_the_lock() {
    let mut stage = Stage::new().await;
    let owner = |bytes: usize| format!("{END} {}", "y".repeat(bytes - 14));
    for (owned, counts) in [
        (format!("{END} you"), true),
        (format!("{END} me:kept"), true),
        (owner(128), true),
        (owner(129), false),
        (String::new(), false),
        (END.to_owned(), false),
        (format!("{END}0 me"), false),
        ("1800000004000 me".to_owned(), false),
    ] {
        let shown = if counts { &*owned } else { END };
        let (busy, seen) = (format!("[0, {shown}, 5008]"), format!("[1, {shown}, 5008]"));
        for (words, reply, sent) in [
            ("acquire 1 10 me 1000", &*busy, ""),
            ("renew 1 10 me 1000", "[0, , 0]", ""),
            ("release 1 10 me 0", "[0, , 0]", ""),
            ("release 1 10 me 7", "[0, , 0]", ""),
            ("look 1 10", &*seen, ""),
            ("free 1 10", "[1, , 0]", ", DEL k o"),
        ] {
            let done = asked(&mut stage, END, &owned, words).await;
            let sent = format!("GET k, GET o{sent}");
            assert_eq!(done, (reply.to_owned(), sent), "{owned}: {words}");
        }
    }
    stage.command(&format!("SET k {END}")).await;
    stage.command("DEL o").await;
    stage.command("RPUSH o v").await;
    let look = ["look", "1", "10"];
    let done = stage.run("TIMESTAMP", &["k", "o"], look).await;
    assert_eq!(done.reply, format!("[1, {END}, 5008]"));
}

#[tokio::test]
async fn a_lock_is_over_a_unit_and_the_skew_after_its_end() {
    let mut stage = Stage::new().await;
    for (unit, held, over) in [
        (1, "1800000000000", 1_800_000_000_011_000),
        (1000, "1800000000", 1_800_000_001_010_000),
    ] {
        let (busy, seen) = (format!("[0, {held}, 1]"), format!("[1, {held}, 1]"));
        for (now, acquired, looked, freed) in [
            (over - 1000, &*busy, &*seen, "[1, , 0]"),
            (over - 1, &*busy, &*seen, "[1, , 0]"),
            (over, "[1, , 0]", "[0, , 0]", "[0, , 0]"),
            (over + 1000, "[1, , 0]", "[0, , 0]", "[0, , 0]"),
        ] {
            stage.now = now;
            for (act, reply) in [
                (format!("acquire {unit} 10 me 1000"), acquired),
                (format!("look {unit} 10"), looked),
                (format!("free {unit} 10"), freed),
            ] {
                let done = asked(&mut stage, held, "", &act).await;
                assert_eq!(done.0, reply, "{act} at {now}");
            }
        }
    }
}

#[tokio::test]
async fn a_lock_is_renewed_before_its_end_only_and_taken_again_by_its_owner_after_it() {
    let mut stage = Stage::new().await;
    let owned = format!("{END} me");
    let end = 1_800_000_005_000_000;
    for (now, renewed) in [
        (end - 1, "[1, , 0]"),
        (end, "[0, , 0]"),
        (end + 1, "[0, , 0]"),
    ] {
        stage.now = now;
        for (act, reply) in [("renew", renewed), ("acquire", "[1, , 0]")] {
            let done = asked(&mut stage, END, &owned, &format!("{act} 1 10 me 1000")).await;
            assert_eq!(done.0, reply, "{act} at {now}");
        }
    }
}

#[tokio::test]
async fn a_number_is_a_time_of_these_years_or_perhaps_one_in_the_other_unit() {
    let mut stage = Stage::new().await;
    let (over, in_s, in_ms) = ("[0, , 0]", "[2, unit s, -1]", "[2, unit ms, -1]");
    let last = "[1, 100000000000000, 98199999999998]";
    for (unit, held, reply) in [
        (1, "100000000", "[2, text 100000000, -1]"),
        (1, "100000001", in_s),
        (1, "99999999999", in_s),
        (1, "100000000000", over),
        (1, "100000000000000", last),
        (1, "100000000000001", "[2, text 100000000000001, -1]"),
        (1000, "99999999", "[2, text 99999999, -1]"),
        (1000, "100000000", over),
        (1000, "100000000000", "[1, 100000000000, 98200000000997]"),
        (1000, "100000000001", in_ms),
        (1000, "99999999999999", in_ms),
        (1000, "100000000000000", "[2, text 100000000000000, -1]"),
    ] {
        let done = asked(&mut stage, held, "", &format!("look {unit} 0")).await;
        assert_eq!(done.0, reply, "{unit}: {held}");
    }
}

#[tokio::test]
async fn what_is_no_such_lock_is_told_and_left_alone() {
    let mut stage = Stage::new().await;
    let (longest, long) = (format!("{END}.{:018}", 0), "y".repeat(129));
    let done = asked(&mut stage, &longest, "", "look 1 0").await;
    assert_eq!(done.0, format!("[1, {longest}, 4998]"));
    let longer = format!("{longest}0");
    for act in ["acquire", "renew", "release", "look", "free"] {
        let words = format!("{act} 1 0 me 0");
        for (held, shown) in [
            (&*longer, &*longer),
            (&long[..128], &long[..128]),
            (&long, &long[..128]),
            ("1800000005000.5x", "1800000005000.5x"),
            ("x1800000005000", "x1800000005000"),
            ("18e11", "18e11"),
        ] {
            let done = asked(&mut stage, held, "", &words).await;
            let told = format!("[2, text {shown}, -1]");
            assert_eq!(done, (told, "GET k".to_owned()), "{words}");
        }
        stage.command("DEL k").await;
        stage.command("RPUSH k v").await;
        let done = stage.run("TIMESTAMP", &["k", "o"], words.split(' ')).await;
        assert_eq!(done.reply, "[2, list, -1]");
        assert_eq!(done.sent, ["TIME", "GET k", "TYPE k"]);
    }
}

#[tokio::test]
async fn who_may_not_read_both_keys_learns_that_only() {
    let mut stage = Stage::new().await;
    let owned = format!("{END} me");
    for (refused, sent) in [("GET k", "GET k"), ("GET o", "GET k, GET o")] {
        stage.refused = refused;
        for act in ["acquire", "renew", "release", "look", "free"] {
            let words = format!("{act} 1 10 me 0");
            let (reply, asked) = asked(&mut stage, END, &owned, &words).await;
            assert!(reply.ends_with("NOPERM"), "{words}: {reply}");
            assert_eq!(asked, sent, "{words}");
        }
    }
}
