//! Who gets what is free, and what is tidied up after a change.

use super::Moments;

const HAND_OVER: &str = "hand_over('k', NULL, clock_timestamp(), NULL, NULL)";
const TIDY: &str = "tidy('k', clock_timestamp())";
/// A free lock, whose row says that there may be more.
const FREE: &str = "k hold ||0||t|";
/// The row of one that is held in shares, of 3.
const SHARED: &str = "k hold ||0||t|3";
/// The row of one that is held by readers.
const READ: &str = "k hold ||0||t|2147483647";

#[tokio::test]
async fn the_first_places_get_what_is_free() {
    let moments = Moments::new().await;
    let alone = ["k place 4|b1|||10|99|0|0|", "k place 5|c1|||20|99|0|0|"];
    let [first, second] = alone;
    for (held, said, left) in [
        (FREE, "{b1}|{NULL}|", &["k hold b1|10|0||t|", second][..]),
        (
            "k hold a1|1|0||t|",
            "||",
            &["k hold a1|1|0||t|", first, second],
        ),
        (
            "k hold a1|0|0||t|",
            "{b1}|{NULL}|",
            &["k hold b1|10|0||t|", second],
        ),
    ] {
        moments
            .check(&[held, first, second], HAND_OVER, said, left)
            .await;
    }
    // With tokens, of which the first is told.
    moments
        .check(
            &[FREE, "k place 4|b1|||10|99|2|0|"],
            HAND_OVER,
            "{b1}|{1800000000000000}|",
            &["k hold b1|10|1800000000000001|1800000000000001|t|"],
        )
        .await;
    // It stops at the place of one that asks.
    let parts = [
        "k place 4|b1|1|3|10|99|0|0|",
        "k place 5|a1|1|3|20|99|0|0|",
        "k place 6|c1|1|3|30|99|0|0|",
    ];
    let [first, second, third] = parts;
    let of_a1 = HAND_OVER.replacen("NULL", "@a1", 1);
    let left = [SHARED, "k share b1|1||10", second, third];
    moments
        .check(
            &[FREE, first, second, third],
            &of_a1,
            "{b1}|{NULL}|1",
            &left,
        )
        .await;
    moments
        .check(
            &[FREE, second, third],
            &of_a1,
            "||1",
            &[FREE, second, third],
        )
        .await;
    // And at the end of the queue.
    moments.check(&[FREE], HAND_OVER, "||1", &[FREE]).await;
    let left = [
        "k share b1|1||10",
        "k share a1|1||20",
        "k share c1|1||30",
        SHARED,
    ];
    moments
        .check(
            &[FREE, first, second, third],
            HAND_OVER,
            "{b1,a1,c1}|{NULL,NULL,NULL}|1",
            &left,
        )
        .await;
    // No more than 64 of them.
    moments.set([FREE]).await;
    moments
        .run(
            "INSERT INTO lock_store.place (name, number, owner, client, permits, capacity,
                first_lease, ends, tokens, seen)
             SELECT 'k', i, int8send(i), 'c', 1, 100, '1 s', 'infinity', 0, clock_timestamp()
             FROM generate_series(1, 66) i",
        )
        .await;
    let counted = format!("SELECT cardinality(told), turn FROM lock_store.{HAND_OVER}");
    assert_eq!(moments.query(&counted).await, ["64|"]);
    assert_eq!(moments.rows("number", "place").await, ["65", "66"]);
}

/// Who is behind them has its turn.
#[tokio::test]
async fn places_that_are_over_or_not_heard_of_are_passed() {
    let moments = Moments::new().await;
    let behind = "k place 9|c1|||10|99|0|0|";
    let (served, next) = ("k hold b1|20|0||t|", "k hold c1|10|0||t|");
    let ends = ["k place 4|b1|||20|0|0|0|", "k place 4|b1|||20|-1|0|0|"];
    moments
        .check(
            &[FREE, ends[0], behind],
            HAND_OVER,
            "{b1}|{NULL}|",
            &[served, behind],
        )
        .await;
    moments
        .check(&[FREE, ends[1], behind], HAND_OVER, "{c1}|{NULL}|", &[next])
        .await;
    let heard = "k place 4|b1|||20||0|-3000000|";
    moments
        .check(
            &[FREE, heard, behind],
            HAND_OVER,
            "{b1}|{NULL}|",
            &[served, behind],
        )
        .await;
    // Those of its client that were suspended are as of now. Others are as they were.
    moments
        .check(
            &[
                FREE,
                "k place 4|b1|||20||0|-3000001|",
                "k place 5|b2|||20||0|-3000001|-9",
                "k place 6|d1|||20||0|-3000001|-9",
                behind,
                "k place 10|b3|||20||0|0|",
            ],
            HAND_OVER,
            "{c1}|{NULL}|",
            &[
                next,
                "k place 4|b1|||20||0|-3000001|0",
                "k place 5|b2|||20||0|-3000001|0",
                "k place 6|d1|||20||0|-3000001|-9",
                "k place 10|b3|||20||0|0|",
            ],
        )
        .await;
    // At the end of the queue the first one is forgotten, if it was suspended for long.
    let (old, older) = (
        "k place 3|b1|||1||0|0|-60000001",
        "k place 7|d1|||1||0|0|-70000000",
    );
    moments
        .check(&[FREE, old, older], HAND_OVER, "||1", &[FREE, older])
        .await;
    let young = "k place 3|b1|||1||0|0|-60000000";
    moments
        .check(
            &[FREE, young, older],
            HAND_OVER,
            "||1",
            &[FREE, young, older],
        )
        .await;
}

#[tokio::test]
async fn a_place_waits_until_enough_is_free_for_it() {
    let moments = Moments::new().await;
    let held = "k share a1|2||50";
    for (row, before, said, left) in [
        // What has ended is not counted.
        (
            SHARED,
            "k share a1|2||0",
            "{b1}|{NULL}|1",
            &["k share b1|2||10"][..],
        ),
        (
            SHARED,
            "k share a1|2||1",
            "||",
            &["k share a1|2||1", "k place 4|b1|2|3|10||0|0|"],
        ),
        (
            SHARED,
            "k share a1|1||1",
            "{b1}|{NULL}|1",
            &["k share a1|1||1", "k share b1|2||10"],
        ),
        // Another kind than it asks for: it is removed.
        (READ, held, "||1", &[held]),
    ] {
        let left = [&[row], left].concat();
        let place = "k place 4|b1|2|3|10||0|0|";
        moments
            .check(&[row, before, place], HAND_OVER, said, &left)
            .await;
    }
    let reads = "k place 4|b1|1|2147483647|10||0|0|";
    let left = [READ, held, "k share b1|1||10"];
    moments
        .check(&[READ, held, reads], HAND_OVER, "{b1}|{NULL}|1", &left)
        .await;
    moments
        .check(&[SHARED, held, reads], HAND_OVER, "||1", &[SHARED, held])
        .await;
    let alone = "k place 4|b1|||10||0|0|";
    let behind = "k place 5|c1|1|3|10||0|0|";
    let left = [SHARED, held, "k share c1|1||10"];
    moments
        .check(
            &[SHARED, held, alone, behind],
            HAND_OVER,
            "{c1}|{NULL}|1",
            &left,
        )
        .await;
    moments
        .check(&[READ, held, alone], HAND_OVER, "||1", &[READ, held])
        .await;
    // A latch was set.
    let (set, over) = ("k latch 1|1", "k latch 1|0");
    moments
        .check(&[FREE, alone, set], HAND_OVER, "||", &[FREE, alone, set])
        .await;
    let left = ["k hold b1|10|0||t|", over];
    moments
        .check(&[FREE, alone, over], HAND_OVER, "{b1}|{NULL}|", &left)
        .await;
    // A transaction with an open check keeps the lock.
    let fenced = "k hold a1|9|5|5|t|";
    moments.set([fenced, alone]).await;
    let checked = moments.begin("SELECT lock_check('k', 5)").await;
    moments.at(9).await;
    assert_eq!(moments.say(HAND_OVER).await, "||2");
    assert_eq!(moments.lines().await, [fenced, alone]);
    checked.batch_execute("COMMIT").await.unwrap();
    assert_eq!(moments.say(HAND_OVER).await, "{b1}|{NULL}|");
}

#[tokio::test]
async fn tidying_drops_free_rows_and_says_whether_there_is_more() {
    let moments = Moments::new().await;
    for (before, left) in [
        (&[FREE][..], &[][..]),
        (&["k hold ||0||f|"], &[]),
        (&["k hold ||1||t|"], &["k hold ||1||f|"]),
        (&["k hold a1|9|0||t|"], &["k hold a1|9|0||f|"]),
        (&["k hold a1|9|0||f|"], &["k hold a1|9|0||f|"]),
        (&["k hold a1|-9|0||t|"], &["k hold a1|-9|0||f|"]),
        (&[SHARED, "k share a1|1||0"], &[]),
        (
            &["k hold ||0||f|3", "k share a1|1||0", "k share b1|1||1"],
            &[SHARED, "k share b1|1||1"],
        ),
        (&[SHARED, "k share b1|1||1"], &[SHARED, "k share b1|1||1"]),
        (
            &["k hold ||0||f|", "k place 9|b1|||1||0|0|"],
            &[FREE, "k place 9|b1|||1||0|0|"],
        ),
        (&["k hold ||0||f|", "k latch 0|1"], &[FREE, "k latch 0|1"]),
        (&[FREE, "k latch 0|0"], &["k latch 0|0"]),
    ] {
        moments.check(before, TIDY, "", left).await;
    }
}

#[tokio::test]
async fn a_lock_is_held_until_its_last_lease_ends() {
    let moments = Moments::new().await;
    for (lines, said) in [
        (&[][..], "f"),
        (&[FREE], "f"),
        (&["k hold a1|0|0||t|"], "f"),
        (&["k hold a1|1|0||t|"], "t"),
        (&[SHARED, "k share a1|1||0"], "f"),
        (&[SHARED, "k share a1|1||0", "k share b1|1||1"], "t"),
    ] {
        moments
            .check(lines, "is_lock('k', clock_timestamp())", said, lines)
            .await;
    }
}
