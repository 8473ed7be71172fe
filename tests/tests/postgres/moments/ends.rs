//! How holds end, or go on.

use super::Moments;

/// The row of a free lock that says that there may be more.
const FREE: &str = "k hold ||0||t|";
/// The row of one that is held in shares, of 3.
const SHARED: &str = "k hold ||0||t|3";
const READ: &str = "k hold ||0||t|2147483647";
/// Who waits for it alone, and for a share.
const WAITS: &str = "k place 9|b1|||10||0|0|";
const WAITS_FOR_TWO: &str = "k place 9|b1|2|3|10||0|0|";
/// What comes of them.
const SERVED: &str = "k hold b1|10|0||f|";
const SERVED_TWO: &str = "k share b1|2||10";
const TOLD: &str = "{b1}|{NULL}";

#[tokio::test]
async fn a_renewal_prolongs_what_is_held() {
    let moments = Moments::new().await;
    let alone = "renew('k', @a1, NULL, NULL, 50)";
    for (row, said, left) in [
        ("k hold a1|1|7|7|f|", "t", "k hold a1|50|7|7|f|"),
        ("k hold a1|60|0||f|", "t", "k hold a1|60|0||f|"),
        ("k hold a1|0|0||f|", "f", "k hold a1|0|0||f|"),
        ("k hold b1|9|0||f|", "f", "k hold b1|9|0||f|"),
    ] {
        moments.check(&[row], alone, said, &[left]).await;
    }
    moments.check(&[], alone, "f", &[]).await;
    let part = "renew('k', @a1, 2, 3, 50)";
    for (share, said, left) in [
        ("k share a1|2|7|1", "t", "k share a1|2|7|50"),
        ("k share a1|2||60", "t", "k share a1|2||60"),
        ("k share a1|2||0", "f", "k share a1|2||0"),
        ("k share a1|1||9", "f", "k share a1|1||9"),
        ("k share b1|2||9", "f", "k share b1|2||9"),
    ] {
        let other = "k share c1|1||9";
        moments
            .check(&[SHARED, share, other], part, said, &[SHARED, left, other])
            .await;
    }
    moments.check(&[], part, "f", &[]).await;
}

#[tokio::test]
async fn the_common_release_is_of_a_lock_without_more() {
    let moments = Moments::new().await;
    let call = "release_first('k', @a1)";
    moments.check(&["k hold a1|1|0||f|"], call, "t", &[]).await;
    for row in [
        "k hold a1|0|0||f|",
        "k hold b1|9|0||f|",
        "k hold a1|9|0||t|",
        "k hold a1|9|1||f|",
        "k hold a1|9|7|7|f|",
    ] {
        moments.check(&[row], call, "f", &[row]).await;
    }
    // The commit waits for the disk if a crash could bring back a long lease.
    for (ends, waits) in [(30_000_000, "off"), (30_000_001, "on")] {
        moments
            .set([format!("k hold a1|{ends}|0||f|").as_str()])
            .await;
        moments.run("SET synchronous_commit = on; BEGIN").await;
        assert_eq!(moments.say(call).await, "t");
        assert_eq!(moments.query("SHOW synchronous_commit").await, [waits]);
        moments.run("COMMIT").await;
        assert_eq!(moments.query("SHOW synchronous_commit").await, ["on"]);
    }
}

#[tokio::test]
async fn a_release_ends_a_hold_and_hands_over() {
    let moments = Moments::new().await;
    let call = "release('k', @a1, NULL, NULL, 0)";
    for (row, said, left) in [
        ("k hold a1|1|0||f|", "t||", &[][..]),
        ("k hold a1|1|1||f|", "t||", &["k hold ||1||f|"]),
        ("k hold a1|1|7|7|f|", "t||", &["k hold ||7||f|"]),
        ("k hold a1|0|0||f|", "f||", &["k hold a1|0|0||f|"]),
        ("k hold b1|9|0||f|", "f||", &["k hold b1|9|0||f|"]),
        ("k hold a1|9|7|7|t|", "t||", &["k hold ||7||f|"]),
    ] {
        moments.check(&[row], call, said, left).await;
    }
    moments.check(&[], call, "f||", &[]).await;
    let left = ["k hold b1|10|7||f|"];
    moments
        .check(
            &["k hold a1|9|7|7|t|", WAITS],
            call,
            &format!("t|{TOLD}"),
            &left,
        )
        .await;
    moments
        .check(
            &["k hold a1|0|7|7|t|", WAITS],
            call,
            &format!("f|{TOLD}"),
            &left,
        )
        .await;
    // Where the row says that there is no more, nothing else is looked at.
    moments
        .check(&["k hold a1|9|0||f|", WAITS], call, "t||", &[WAITS])
        .await;
    let shared = "release('k', @a1, 1, 3, 0)";
    let alone = "k hold a1|9|0||f|";
    moments.check(&[alone], shared, "f||", &[alone]).await;
    // Parts.
    let shared = "release('k', @a1, 2, 3, 0)";
    let (other, rest) = ("k share c1|1||9", "k share a16b00000002|2||9");
    for (share, said, left) in [
        (
            "k share a1|2|7|1",
            format!("t|{TOLD}"),
            &[SHARED, other, SERVED_TWO][..],
        ),
        (
            "k share a1|2|7|0",
            format!("f|{TOLD}"),
            &[SHARED, other, SERVED_TWO],
        ),
        (
            "k share a1|1||9",
            "f||".into(),
            &[SHARED, other, WAITS_FOR_TWO, "k share a1|1||9"],
        ),
    ] {
        moments
            .check(&[SHARED, other, share, WAITS_FOR_TWO], shared, &said, left)
            .await;
    }
    moments
        .check(&[SHARED, "k share a1|2|7|9"], shared, "t||", &[])
        .await;
    let before = [SHARED, "k share a1|2||9", rest, other];
    moments
        .check(&before, shared, "t||", &[SHARED, rest, other])
        .await;
}

#[tokio::test]
async fn a_key_may_stay_taken_after_a_release() {
    let moments = Moments::new().await;
    for (keep, ends) in [(1, 1), (2, 2)] {
        let call = format!("release('k', @a1, NULL, NULL, {keep})");
        for row in ["k hold a1|9|7|7|f|", "k hold a1|9|7|7|t|"] {
            let left = format!("k hold a16b|{ends}|7||f|");
            moments.check(&[row], &call, "t||", &[&left]).await;
        }
        let (over, others) = ("k hold a1|0|0||f|", "k hold b1|9|0||f|");
        moments.check(&[over], &call, "f||", &[over]).await;
        moments.check(&[others], &call, "f||", &[others]).await;
        let call = format!("release('k', @a1, 2, 3, {keep})");
        let left = format!("k share a16b00000002|2||{ends}");
        let other = "k share c1|1||9";
        let before = [SHARED, other, "k share a1|2|7|9", WAITS_FOR_TWO];
        let all = [SHARED, other, &left, WAITS_FOR_TWO];
        moments.check(&before, &call, "t||", &all).await;
        // It replaces what is left of the same number, and nothing else.
        let before = [
            SHARED,
            other,
            "k share a1|2|7|9",
            "k share a16b00000002|2||9",
        ];
        moments
            .check(&before, &call, "t||", &[SHARED, other, &left])
            .await;
    }
}

#[tokio::test]
async fn a_holder_may_give_back_a_part() {
    let moments = Moments::new().await;
    let (call, more) = ("shrink('k', @a1, 3, 3, 1)", "shrink('k', @a1, 1, 3, 2)");
    let other = "k share c1|1||9";
    let told = format!("t|{TOLD}");
    let left = [SHARED, "k share a1|1|7|9", SERVED_TWO];
    moments
        .check(
            &[SHARED, "k share a1|3|7|9", WAITS_FOR_TWO],
            call,
            &told,
            &left,
        )
        .await;
    let left = [SHARED, "k share a1|1|7|9", other, WAITS_FOR_TWO];
    moments
        .check(
            &[SHARED, "k share a1|3|7|9", other, WAITS_FOR_TWO],
            call,
            "t||",
            &left,
        )
        .await;
    for (lines, call, said) in [
        // It was done before.
        (&[SHARED, "k share a1|1|7|1"][..], call, "t||"),
        (&[SHARED, "k share a1|2|7|1"], call, "f||"),
        (&[SHARED, "k share b1|3||9"], call, "f||"),
        // There is no more of it.
        (&[SHARED, "k share a1|1|7|9", other], more, "t||"),
    ] {
        moments.check(lines, call, said, lines).await;
    }
    moments
        .check(&[SHARED, "k share a1|3|7|0"], call, "f||", &[])
        .await;
    moments.check(&[], call, "f||", &[]).await;
    let readers = "shrink('k', @a1, 2147483647, 2147483647, 1)";
    let left = [READ, "k share a1|1||9", "k share b1|1||10"];
    let reads = "k place 9|b1|1|2147483647|10||0|0|";
    moments
        .check(
            &[READ, "k share a1|2147483647||9", reads],
            readers,
            &told,
            &left,
        )
        .await;
}

#[tokio::test]
async fn who_abandons_a_request_has_neither_place_nor_hold() {
    let moments = Moments::new().await;
    let call = "abandon('k', @a1, NULL, NULL)";
    let place = "k place 4|a1|||10||0|0|";
    let told = format!("t|{TOLD}");
    let held = ["k hold b1|9|0||t|", "k place 5|a2|||10||0|0|"];
    moments
        .check(&[held[0], place, held[1]], call, "f||", &held)
        .await;
    moments
        .check(&[FREE, place, WAITS], call, &format!("f|{TOLD}"), &[SERVED])
        .await;
    moments
        .check(&["k hold b1|9|0||f|"], call, "f||", &["k hold b1|9|0||f|"])
        .await;
    moments
        .check(&["k hold a1|9|0||f|"], call, "t||", &[])
        .await;
    moments
        .check(&["k hold a1|9|7|7|f|"], call, "t||", &["k hold ||7||f|"])
        .await;
    moments.check(&[], call, "f||", &[]).await;
    // It looks for others also where the row says that there are none.
    moments
        .check(&["k hold a1|9|0||f|", WAITS], call, &told, &[SERVED])
        .await;
    moments
        .check(&["k hold a1|9|0||t|", WAITS], call, &told, &[SERVED])
        .await;
    let part = "abandon('k', @a1, 2, 3)";
    let before = [SHARED, "k share a1|2||9", "k share c1|1||9", WAITS_FOR_TWO];
    moments
        .check(
            &before,
            part,
            &told,
            &[SHARED, "k share c1|1||9", SERVED_TWO],
        )
        .await;
}

#[tokio::test]
async fn force_ends_all_holds() {
    let moments = Moments::new().await;
    let call = "force_release('k')";
    let (held, over) = (format!("t|{TOLD}"), format!("f|{TOLD}"));
    for (before, said, left) in [
        (&["k hold a1|1|0||f|"][..], "t||", &[][..]),
        (&["k hold a1|1|7|7|f|"], "t||", &["k hold ||7||f|"]),
        (&["k hold a1|0|7|7|f|"], "f||", &["k hold ||7||f|"]),
        (&["k hold a1|1|0||t|", WAITS], &held, &[SERVED]),
        (&["k hold a1|0|0||t|", WAITS], &over, &[SERVED]),
        (&[FREE, WAITS], &over, &[SERVED]),
        (&[], "f||", &[]),
        (&[SHARED, "k share a1|1||1", "k share b1|1||0"], "t||", &[]),
        (&[SHARED, "k share a1|1||0"], "f||", &[]),
        (
            &[SHARED, "k share a1|1||9", "k share c1|1||9", WAITS_FOR_TWO],
            &held,
            &[SHARED, SERVED_TWO],
        ),
        // A latch stays.
        (&[FREE, "k latch 1|1"], "||", &[FREE, "k latch 1|1"]),
        (
            &["k hold a1|1|0||t|", "k latch 1|0"],
            "t||",
            &["k latch 1|0"],
        ),
    ] {
        moments.check(before, call, said, left).await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_gives_up_its_places() {
    let moments = Moments::new().await;
    let call = "leave(substr(@a1, 1, 16))";
    let rest = [
        "n hold c1|9|0||t|",
        "n place 1|b1|||10||0|0|",
        "n latch_place b1|900",
        "n share a1|1||9",
    ];
    let gone = [
        "k hold ||0||t|",
        "k place 1|a1|||10||0|0|",
        "k place 2|b1|||10||0|0|",
        "k place 3|a2|||10||0|0|",
        "l hold ||7||t|",
        "l place 1|a1|||10||0|0|",
        "l place 2|b2|||20||0|0|",
        "m hold ||0||t|",
        "m place 1|a3|||10||0|0|",
        "m latch_place a2|900",
        "n latch_place a1|900",
    ];
    moments.set(rest.into_iter().chain(gone)).await;
    assert_eq!(moments.say(call).await, "{b1,b2}|{NULL,NULL}");
    let mut left = vec!["k hold b1|10|0||f|", "l hold b2|20|7||f|"];
    left.extend(rest);
    left.sort_unstable();
    assert_eq!(moments.lines().await, left);
    assert_eq!(moments.say(call).await, "|");
    assert_eq!(moments.lines().await, left);
    // It waits for whoever has the row.
    let lines = [
        "k hold b1|9|0||t|",
        "k place 1|a1|||10||0|0|",
        "k place 2|c1|||10||0|0|",
    ];
    moments.set(lines).await;
    let other = moments.begin("SELECT head('k')").await;
    assert_eq!(moments.say(call).await, "55P03");
    other.batch_execute("COMMIT").await.unwrap();
    assert_eq!(moments.lines().await, lines);
}

/// Nobody waits for its end.
#[tokio::test]
async fn an_open_check_keeps_a_hold_from_its_end() {
    let moments = Moments::new().await;
    let alone = ["k hold a1|9|7|7|f|"];
    let shared = [SHARED, "k share a1|2|7|9"];
    for (lines, calls) in [
        (
            &alone[..],
            &[
                "release('k', @a1, NULL, NULL, 0)",
                "release('k', @a1, NULL, NULL, 5)",
                "abandon('k', @a1, NULL, NULL)",
                "force_release('k')",
                "fence('k', @a1, NULL, NULL)",
            ][..],
        ),
        (
            &shared,
            &[
                "release('k', @a1, 2, 3, 0)",
                "release('k', @a1, 2, 3, 5)",
                "abandon('k', @a1, 2, 3)",
                "shrink('k', @a1, 2, 3, 1)",
                "force_release('k')",
                "fence('k', @a1, 2, 3)",
            ],
        ),
    ] {
        moments.set(lines.iter().copied()).await;
        let checked = moments.begin("SELECT lock_check('k', 7)").await;
        for call in calls {
            assert_eq!(moments.say(call).await, "LK004", "{call}");
            assert_eq!(moments.lines().await, lines, "{call}");
        }
        checked.batch_execute("COMMIT").await.unwrap();
        // And no check of another lock.
        let other = "k hold c1|9|0||f|";
        moments
            .check(
                &[other],
                "release('k', @a1, NULL, NULL, 0)",
                "f||",
                &[other],
            )
            .await;
    }
}

#[tokio::test]
async fn they_wait_for_what_is_being_committed() {
    let moments = Moments::new().await;
    // A renewal, without which the hold is over.
    moments.set([SHARED, "k share a1|2||5"]).await;
    moments.at(6).await;
    let renews = "SELECT renew('k', @a1, 2, 3, 50)";
    assert_eq!(
        moments
            .say_after(renews, "release('k', @a1, 2, 3, 0)")
            .await,
        "t||"
    );
    assert_eq!(moments.lines().await, [""; 0]);
    // The place of one who abandons it.
    moments.set(["k hold b1|9|0||f|"]).await;
    let waits = "SELECT acquire('k', @a1, NULL, NULL, 9, 9, NULL, 0, 2, NULL, 2000000000000000)";
    assert_eq!(
        moments
            .say_after(waits, "abandon('k', @a1, NULL, NULL)")
            .await,
        "f||"
    );
    assert_eq!(moments.lines().await, ["k hold b1|9|0||f|"]);
    // Holds of others don't concern a release.
    let lines = [
        SHARED,
        "k share a1|2||50",
        "k share b1|1||50",
        "l share a1|2||50",
    ];
    moments.set(lines).await;
    let other = moments
        .begin("SELECT FROM share WHERE name = 'l' OR owner = @b1 FOR UPDATE")
        .await;
    assert_eq!(moments.say("release('k', @a1, 2, 3, 0)").await, "t||");
    other.batch_execute("COMMIT").await.unwrap();
}

/// Each look at the clock is a microsecond after the one before.
#[tokio::test]
async fn time_passes_within_a_call() {
    let moments = Moments::new().await;
    moments
        .run(
            "CREATE SEQUENCE set_clock.looks;
             CREATE OR REPLACE FUNCTION set_clock.clock_timestamp() RETURNS timestamptz
             LANGUAGE sql AS $$ SELECT pg_catalog.to_timestamp(1800000000)
                + pg_catalog.nextval('set_clock.looks') * interval '1 microsecond' $$",
        )
        .await;
    let alone = ["k hold a1|2|0||t|"];
    let held = [SHARED, "k share a1|2||2"];
    for (lines, call, said) in [
        // The lease ends while it waits for the row.
        (&alone[..], "release('k', @a1, NULL, NULL, 0)", "f||"),
        // Or for that of the share.
        (&held, "renew('k', @a1, 2, 3, 50)", "f"),
    ] {
        moments.set(lines.iter().copied()).await;
        moments.run("ALTER SEQUENCE set_clock.looks RESTART").await;
        assert_eq!(moments.say(call).await, said, "{call}");
    }
}
