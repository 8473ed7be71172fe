//! What is said of a lock, and its fencing tokens.

use super::Moments;

/// The row of a free lock that says that there may be more.
const FREE: &str = "k hold ||0||t|";
/// The row of one that is held in shares, of 3.
const SHARED: &str = "k hold ||0||t|3";

#[tokio::test]
async fn what_is_found_of_a_lock() {
    let moments = Moments::new().await;
    let shares = [
        "k share a1|1|7|1",
        "k share c1|2||9",
        "k share b1|2||9",
        "k share d1|1||0",
    ];
    let shares = [&[SHARED][..], &shares].concat();
    for (lines, looks, holders) in [
        (&[][..], "0|||||0||", "0|{}|{}"),
        (&[FREE], "0|||||0||", "0|{}|{}"),
        (&["k hold a1|1|7|7|f|"], "0|a1||1|1|0||", "0|{a1}|{0}"),
        (&["k hold a1|0|7|7|f|"], "0|||||0||", "0|{}|{}"),
        (&["k hold a16b|9|7||f|"], "0|a16b||9|1|0||", "0|{a16b}|{0}"),
        (
            &[
                "k hold a1|9|0||t|",
                "k place 8|b1|||1||0|0|",
                "k place 9|c1|||1||0|0|-9",
            ],
            "0|a1||9|1|2||",
            "0|{a1}|{0}",
        ),
        // That which ends last, and of several the last.
        (&shares, "0|c1|2|9|3|0|5|3", "0|{a1,c1,b1}|{1,2,2}"),
        (&[FREE, "k latch 1|1"], "2|||||||", "2||"),
        (&["k hold a1|9|0||t|", "k latch 1|1"], "2|||||||", "2||"),
        (
            &["k hold a1|9|0||t|", "k latch 1|0"],
            "0|a1||9|1|0||",
            "0|{a1}|{0}",
        ),
    ] {
        moments.check(lines, "inspect('k')", looks, lines).await;
        moments.check(lines, "holders('k')", holders, lines).await;
    }
    // No more than a thousand of them.
    moments.set([SHARED]).await;
    moments
        .run(
            "INSERT INTO lock_store.share (name, owner, permits, ends)
             SELECT 'k', int8send(i), 1, 'infinity' FROM generate_series(1, 1001) i",
        )
        .await;
    let counted = "SELECT cardinality(owners), cardinality(shares) FROM lock_store.holders('k')";
    assert_eq!(moments.query(counted).await, ["1000|1000"]);
    // A standby says nothing of it.
    moments
        .run(
            "CREATE OR REPLACE FUNCTION lock_store.expect_primary() RETURNS void
             LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = '25006'; END $$",
        )
        .await;
    for call in ["inspect('k')", "holders('k')"] {
        assert_eq!(moments.say(call).await, "25006");
    }
}

#[tokio::test]
async fn a_new_token_is_of_a_hold() {
    let moments = Moments::new().await;
    let alone = "fence('k', @a1, NULL, NULL)";
    let part = "fence('k', @a1, 2, 3)";
    // The time, or the one after the last.
    let (time, next) = ("1800000000000000", "1800000000000008");
    let (held, first) = ("k hold a1|1|0||f|", format!("k hold a1|1|{time}|{time}|f|"));
    moments.check(&[held], alone, time, &[&first]).await;
    let last = "k hold a1|1|1800000000000007|7|f|";
    moments
        .check(
            &[last],
            alone,
            next,
            &[&format!("k hold a1|1|{next}|{next}|f|")],
        )
        .await;
    for lines in [&["k hold a1|0|0||f|"][..], &["k hold b1|9|0||f|"], &[]] {
        moments.check(lines, alone, "", lines).await;
    }
    moments.check(&[FREE], alone, "", &[]).await;
    let other = "k share b1|2|5|9";
    let row = format!("k hold ||{time}||t|3");
    let left = [row.as_str(), "k share a1|2|1800000000000000|1", other];
    moments
        .check(&[SHARED, "k share a1|2||1", other], part, time, &left)
        .await;
    moments
        .check(
            &[SHARED, "k share a1|2|5|0", other],
            part,
            "",
            &[SHARED, other],
        )
        .await;
    let less = [SHARED, "k share a1|1|5|9"];
    moments.check(&less, part, "", &less).await;
    // A latch is there.
    for lines in [[FREE, "k latch 1|1"], ["k hold a1|1|0||t|", "k latch 1|1"]] {
        moments.check(&lines, alone, "0", &lines).await;
    }
    let over = "k latch 1|0";
    moments
        .check(&[held, over], alone, time, &[&first, over])
        .await;
}

impl Moments {
    /// What a call fails with.
    async fn complaint(&self, call: &str) -> String {
        let said = self
            .session
            .simple_query(&format!("SELECT lock_store.{call}"))
            .await;
        said.err().map_or_else(String::new, |error| {
            let error = error.as_db_error().unwrap();
            format!("{}: {}", error.code().code(), error.message())
        })
    }
}

#[tokio::test]
async fn a_check_passes_with_the_token_of_a_hold() {
    let moments = Moments::new().await;
    let row = "k hold ||9||t|3";
    for lines in [
        &["k hold a1|1|7|7|f|"][..],
        &[row, "k share a1|1|7|1"],
        &[row, "k share a1|1|7|1", "k share b1|1|8|0"],
    ] {
        moments
            .check(lines, "lock_check('k'::bytea, 7)", "", lines)
            .await;
        moments
            .check(lines, "lock_check('k'::text, 7)", "", lines)
            .await;
    }
    let gone = "LK002: the lock is not held with this fencing token any more";
    let none = "LK002: there is no lock with a token whose full name is \"k\"";
    for (lines, complaint) in [
        (&["k hold a1|0|7|7|f|"][..], gone),
        (&["k hold a1|9|8|8|f|"], gone),
        (&["k hold a16b|9|7|7|f|"], gone),
        (&["k hold a1|9|8|8|f|", "l hold b1|9|7|7|f|"], gone),
        (&["k hold a1|9|8|8|f|", "l share b1|9|7|9"], gone),
        (&[row, "k share a1|1|7|0"], gone),
        (&[row, "k share a1|1|8|9"], gone),
        (&[row], gone),
        (&["l hold a1|9|7|7|f|"], none),
        (&[], none),
    ] {
        moments.set(lines.iter().copied()).await;
        assert_eq!(
            moments.complaint("lock_check('k'::bytea, 7)").await,
            complaint,
            "{lines:?}"
        );
    }
    // The snapshot of a transaction may be older than a share.
    for (lines, said) in [
        (&["k hold a1|1|7|7|f|"][..], ""),
        (&[row, "k share a1|1|7|1"], "LK003"),
    ] {
        moments.set(lines.iter().copied()).await;
        moments.run("BEGIN ISOLATION LEVEL REPEATABLE READ").await;
        assert_eq!(moments.say("lock_check('k'::bytea, 7)").await, said);
        moments.run("ROLLBACK").await;
    }
    // It waits for a change of the holder, and not for one of another lock.
    moments
        .set(["k hold a1|1|7|7|f|", "l hold a1|1|7|7|f|"])
        .await;
    moments.run("SET lock_timeout = '200ms'").await;
    for (name, said) in [("k", "55P03"), ("l", "")] {
        let other = moments
            .begin(&format!(
                "SELECT FROM hold WHERE name = '{name}' FOR UPDATE"
            ))
            .await;
        assert_eq!(
            moments.say("lock_check('k'::bytea, 7)").await,
            said,
            "{name}"
        );
        other.batch_execute("COMMIT").await.unwrap();
    }
}
