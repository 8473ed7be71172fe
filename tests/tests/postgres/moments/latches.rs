//! What calls on latches say and leave.

use lock_testkit::eventually;
use tokio_postgres::Client;

use super::{Moments, owner};

/// All that a latch has to do with, a row a line. Times are microseconds after
/// [`NOW`](super::NOW).
const STATE: &str = "
    SELECT concat_ws('|', 'hold', convert_from(name, 'UTF8'), owner, after(ends), last, special)
    FROM lock_store.hold UNION ALL
    SELECT concat_ws('|', 'share', convert_from(name, 'UTF8'), owner, after(ends))
    FROM lock_store.share UNION ALL
    SELECT concat_ws('|', 'latch', convert_from(name, 'UTF8'), count, generation, opened,
                     after(ends)) FROM lock_store.latch UNION ALL
    SELECT concat_ws('|', 'place', convert_from(name, 'UTF8'), owner, after(ends))
    FROM lock_store.latch_place UNION ALL
    SELECT concat_ws('|', 'call', convert_from(name, 'UTF8'), owner, remains, after(ends))
    FROM lock_store.latch_call ORDER BY 1";

/// Another key's, which stay.
const BESIDE: [&str; 6] = [
    "call|o|a1|6|1000",
    "hold|o|0|t",
    "latch|o|3|7|6|1000",
    "place|o|a1|59000000",
    "share|o|a1|-5",
    "share|o|a2|0",
];

const TABLES: [&str; 5] = ["hold", "share", "latch", "latch_place", "latch_call"];

/// Statements for rows as [`STATE`] shows them: of a `hold` with an owner, the fields are name,
/// owner, end, last and special.
fn rows(lines: &[&str]) -> String {
    let end = |micros: &str| format!("to_timestamp(1800000000) + {micros} * interval '1 us'");
    let insert = |line: &&str| {
        let fields: Vec<_> = line.split('|').collect();
        let text = match fields[..] {
            ["hold", name, last, special] => {
                format!("hold VALUES ('{name}', NULL, '-infinity', {last}, NULL, '{special}')")
            }
            ["hold", name, of, ends, last, special] => format!(
                "hold VALUES ('{name}', {}, {}, {last}, NULL, '{special}')",
                owner(of),
                end(ends)
            ),
            ["share", name, of, ends] => {
                format!(
                    "share VALUES ('{name}', {}, 1, NULL, {})",
                    owner(of),
                    end(ends)
                )
            }
            ["latch", name, count, generation, opened, ends] => format!(
                "latch VALUES ('{name}', {count}, {generation}, {opened}, {})",
                end(ends)
            ),
            ["place", name, of, ends] => {
                format!(
                    "latch_place VALUES ('{name}', {}, {})",
                    owner(of),
                    end(ends)
                )
            }
            ["call", name, of, remains, ends] => format!(
                "latch_call VALUES ('{name}', {}, {remains}, {})",
                owner(of),
                end(ends)
            ),
            _ => panic!("{line}"),
        };
        format!("INSERT INTO lock_store.{text};")
    };
    lines.iter().map(insert).collect()
}

/// Rows that are there, a query, its reply, and the rows afterwards.
type Case = (
    &'static [&'static str],
    String,
    &'static str,
    &'static [&'static str],
);

/// Sets `k`, if it is between two times, in microseconds after [`NOW`](super::NOW).
fn set(of: &str, from: i64, until: i64, counts: u8, ttl: u32) -> String {
    format!(
        "SELECT code, now_is - 1800000000000000 FROM lock_store.latch_set(
            'k', {}, 1800000000000000 + {from}, 1800000000000000 + {until}, {counts}, {ttl})",
        owner(of)
    )
}

fn count_down(of: &str, from: i64, until: i64) -> String {
    format!(
        "SELECT code, left_over, now_is - 1800000000000000, told, generation
         FROM lock_store.latch_count_down(
            'k', {}, 1800000000000000 + {from}, 1800000000000000 + {until})",
        owner(of)
    )
}

fn look() -> String {
    "SELECT * FROM lock_store.latch_look('k')".to_owned()
}

fn wait(of: &str) -> String {
    format!("SELECT * FROM lock_store.latch_wait('k', {})", owner(of))
}

impl Moments {
    /// Nothing is there but such rows.
    async fn has_rows(&self, lines: &[&str]) {
        for table in TABLES {
            self.run(&format!("DELETE FROM lock_store.{table}")).await;
        }
        self.run(&rows(lines)).await;
    }

    async fn latch_cases(&self, cases: &[Case]) {
        for (before, query, reply, after) in cases {
            self.has_rows(&[&BESIDE, *before].concat()).await;
            let what = format!("{before:?}: {query}");
            assert_eq!(self.query(query).await.concat(), *reply, "{what}");
            let mut left = [&BESIDE, *after].concat();
            left.sort_unstable();
            let mut state = self.query(STATE).await;
            state.sort_unstable();
            assert_eq!(state, left, "{what}");
        }
    }

    /// What the query says after it has waited for the other session's transaction.
    async fn after_commit(&self, other: &Client, query: &str) -> String {
        let commit = async {
            eventually("it waits", async || {
                let waits = "SELECT FROM pg_locks WHERE NOT granted";
                !other.query(waits, &[]).await.unwrap().is_empty()
            })
            .await;
            other.batch_execute("COMMIT").await.unwrap();
        };
        let (said, ()) = tokio::join!(self.query(query), commit);
        said.concat()
    }
}

#[tokio::test]
async fn a_look_at_a_latch_says_what_it_is_and_changes_nothing() {
    let moments = Moments::new().await;
    let cases: [(&'static [&'static str], &'static str); 6] = [
        (&[], "0||||"),
        (&["latch|k|4|9|8|1"], "1|4|9|8|1"),
        (&["latch|k|4|9|8|0"], "0||||"),
        (&["hold|k|b1|1|0|t", "latch|k|4|9|8|1"], "2||||"),
        (&["hold|k|b1|0|0|t", "latch|k|4|9|8|1"], "1|4|9|8|1"),
        (&["hold|k|0|t", "share|k|b1|1"], "2||||"),
    ];
    let cases = cases.map(|(there, reply)| (there, look(), reply, there));
    moments.latch_cases(&cases).await;
}

#[tokio::test]
async fn a_latch_is_set_once_and_again_when_it_is_open() {
    let moments = Moments::new().await;
    let timely = || set("a1", -9, 9, 4, 1000);
    let cases: &[Case] = &[
        (
            &[],
            timely(),
            "1|0",
            &[
                "hold|k|0|t",
                "latch|k|4|1800000000000000|0|1000",
                "call|k|a1|4|120000000",
            ],
        ),
        (
            &[],
            set("a1", 0, 0, 1, 1),
            "1|0",
            &[
                "hold|k|0|t",
                "latch|k|1|1800000000000000|0|1",
                "call|k|a1|1|120000000",
            ],
        ),
        (&[], set("a1", 1, 9, 4, 1000), "3|0", &[]),
        (&[], set("a1", -9, -1, 4, 1000), "3|0", &[]),
        // Set before.
        (
            &["latch|k|1|9|8|1"],
            timely(),
            "0|0",
            &["hold|k|0|t", "latch|k|1|9|8|1"],
        ),
        (
            &["latch|k|1|9|8|0"],
            timely(),
            "1|0",
            &[
                "hold|k|0|t",
                "latch|k|4|1800000000000000|0|1000",
                "call|k|a1|4|120000000",
            ],
        ),
        // Open.
        (
            &["latch|k|0|9|8|1"],
            timely(),
            "1|0",
            &[
                "hold|k|0|t",
                "latch|k|4|1800000000000000|9|1000",
                "call|k|a1|4|120000000",
            ],
        ),
        // Its generation rises, whatever the clock says.
        (
            &["latch|k|0|1800000000000005|8|1"],
            timely(),
            "1|0",
            &[
                "hold|k|0|t",
                "latch|k|4|1800000000000006|1800000000000005|1000",
                "call|k|a1|4|120000000",
            ],
        ),
        // A call that is repeated.
        (
            &["call|k|a1|4|1"],
            set("a1", 1, 9, 4, 1000),
            "1|0",
            &["call|k|a1|4|1"],
        ),
        (
            &["call|k|a1|4|1", "latch|k|2|9|8|1"],
            timely(),
            "1|0",
            &["call|k|a1|4|1", "hold|k|0|t", "latch|k|2|9|8|1"],
        ),
        (
            &["call|k|a1|3|0"],
            timely(),
            "1|0",
            &[
                "hold|k|0|t",
                "latch|k|4|1800000000000000|0|1000",
                "call|k|a1|4|120000000",
            ],
        ),
        (
            &["call|k|a1|3|0"],
            set("a1", 1, 9, 4, 1000),
            "3|0",
            &["call|k|a1|3|0"],
        ),
        (
            &["call|k|b1|3|1"],
            set("a1", 1, 9, 4, 1000),
            "3|0",
            &["call|k|b1|3|1"],
        ),
        // A lock, with what is left of others.
        (
            &["hold|k|b1|1|0|t", "call|k|a1|3|1"],
            timely(),
            "2|0",
            &["hold|k|b1|1|0|f", "call|k|a1|3|1"],
        ),
        (
            &["hold|k|b1|0|0|f"],
            timely(),
            "1|0",
            &[
                "hold|k|b1|0|0|t",
                "latch|k|4|1800000000000000|0|1000",
                "call|k|a1|4|120000000",
            ],
        ),
        (
            &["hold|k|0|t", "share|k|b1|1", "share|k|b2|0"],
            timely(),
            "2|0",
            &["hold|k|0|t", "share|k|b1|1"],
        ),
        (
            &["hold|k|5|t", "share|k|b2|0"],
            timely(),
            "1|0",
            &[
                "hold|k|5|t",
                "latch|k|4|1800000000000000|0|1000",
                "call|k|a1|4|120000000",
            ],
        ),
    ];
    moments.latch_cases(cases).await;
    // A generation is above zero, also by a clock that is at its beginning.
    moments.at(-1_800_000_000_000_000).await;
    let zero = owner("a1");
    moments
        .call(format!("latch_set('zero', {zero}, 0, 0, 1, 9)"))
        .await;
    let set = "generation, opened, count";
    let there = format!("SELECT {set} FROM lock_store.latch WHERE name = 'zero'");
    assert_eq!(moments.query(&there).await, ["1|0|1"]);
}

#[tokio::test]
async fn a_latch_is_counted_down_once_by_each_call() {
    let moments = Moments::new().await;
    let timely = || count_down("a1", -9, 9);
    let cases: &[Case] = &[
        (&[], timely(), "0||0||", &[]),
        (
            &["latch|k|2|9|8|0"],
            timely(),
            "0||0||",
            &["latch|k|2|9|8|0"],
        ),
        (
            &["latch|k|3|9|8|1", "place|k|b1|1"],
            timely(),
            "1|2|0||",
            &[
                "hold|k|0|t",
                "latch|k|2|9|8|1",
                "place|k|b1|1",
                "call|k|a1|2|120000000",
            ],
        ),
        (
            &["latch|k|2|9|8|1", "place|k|b1|1"],
            count_down("a1", 0, 0),
            "1|1|0||",
            &[
                "hold|k|0|t",
                "latch|k|1|9|8|1",
                "place|k|b1|1",
                "call|k|a1|1|120000000",
            ],
        ),
        // It opens: who waits is told.
        (
            &[
                "latch|k|1|9|8|1",
                "place|k|b1|1",
                "place|k|c1|0",
                "place|k|d1|5",
            ],
            timely(),
            "1|0|0|{b1,d1}|9",
            &["hold|k|0|t", "latch|k|0|9|8|1", "call|k|a1|0|120000000"],
        ),
        (
            &["latch|k|0|9|8|1", "place|k|b1|1"],
            timely(),
            "1|0|0||",
            &["hold|k|0|t", "latch|k|0|9|8|1", "place|k|b1|1"],
        ),
        // Untimely, with what is left of others.
        (
            &["latch|k|2|9|8|1"],
            count_down("a1", 1, 9),
            "3||0||",
            &["hold|k|0|t", "latch|k|2|9|8|1"],
        ),
        (
            &["share|k|b1|0", "hold|k|0|t"],
            count_down("a1", -9, -1),
            "3||0||",
            &[],
        ),
        // A call that is repeated.
        (
            &["call|k|a1|5|1"],
            count_down("a1", 1, 9),
            "1|5|0||",
            &["call|k|a1|5|1"],
        ),
        (
            &["call|k|a1|0|1", "latch|k|2|9|8|1"],
            timely(),
            "1|0|0||",
            &["call|k|a1|0|1", "hold|k|0|t", "latch|k|2|9|8|1"],
        ),
        (
            &["call|k|a1|5|0", "latch|k|2|9|8|1"],
            timely(),
            "1|1|0||",
            &["call|k|a1|1|120000000", "hold|k|0|t", "latch|k|1|9|8|1"],
        ),
        (
            &["call|k|b1|5|1", "latch|k|2|9|8|1"],
            timely(),
            "1|1|0||",
            &[
                "call|k|a1|1|120000000",
                "call|k|b1|5|1",
                "hold|k|0|t",
                "latch|k|1|9|8|1",
            ],
        ),
        // A lock, of which nothing is tidied.
        (
            &["hold|k|b1|1|0|t", "call|k|a1|5|1"],
            timely(),
            "2||0||",
            &["hold|k|b1|1|0|t", "call|k|a1|5|1"],
        ),
        (
            &["hold|k|0|t", "share|k|b1|1", "share|k|b2|0"],
            timely(),
            "2||0||",
            &["hold|k|0|t", "share|k|b1|1", "share|k|b2|0"],
        ),
        (
            &["hold|k|b1|0|0|f", "latch|k|2|9|8|1"],
            timely(),
            "1|1|0||",
            &[
                "hold|k|b1|0|0|t",
                "latch|k|1|9|8|1",
                "call|k|a1|1|120000000",
            ],
        ),
    ];
    moments.latch_cases(cases).await;
}

#[tokio::test]
async fn who_waits_at_a_latch_has_a_place_until_it_is_open() {
    let moments = Moments::new().await;
    let waits = || wait("a1");
    let leaves = format!("SELECT lock_store.latch_leave('k', {})", owner("a1"));
    let cases: &[Case] = &[
        (&[], waits(), "0||||", &["place|k|a1|60000000"]),
        (
            &["latch|k|1|9|8|1"],
            waits(),
            "1|1|9|8|1",
            &["hold|k|0|t", "latch|k|1|9|8|1", "place|k|a1|60000000"],
        ),
        (
            &["latch|k|2|9|8|1"],
            waits(),
            "1|2|9|8|1",
            &["hold|k|0|t", "latch|k|2|9|8|1", "place|k|a1|60000000"],
        ),
        (
            &["latch|k|0|9|8|1"],
            waits(),
            "1|0|9|8|1",
            &["latch|k|0|9|8|1"],
        ),
        (
            &["latch|k|1|9|8|0"],
            waits(),
            "0||||",
            &["latch|k|1|9|8|0", "place|k|a1|60000000"],
        ),
        // A lock, of which nothing is tidied.
        (&["hold|k|b1|1|0|t"], waits(), "2||||", &["hold|k|b1|1|0|t"]),
        // A place is taken anew when half of its time is over.
        (
            &["latch|k|1|9|8|1", "place|k|a1|30000001"],
            waits(),
            "1|1|9|8|1",
            &["latch|k|1|9|8|1", "place|k|a1|30000001"],
        ),
        (
            &["latch|k|1|9|8|1", "place|k|a1|30000000"],
            waits(),
            "1|1|9|8|1",
            &["hold|k|0|t", "latch|k|1|9|8|1", "place|k|a1|60000000"],
        ),
        // Another's place.
        (
            &["place|k|b1|59000000"],
            waits(),
            "0||||",
            &["place|k|a1|60000000", "place|k|b1|59000000"],
        ),
        (
            &["place|k|a1|59000000", "place|k|b1|59000000"],
            leaves,
            "",
            &["place|k|b1|59000000"],
        ),
    ];
    moments.latch_cases(cases).await;
    // A standby does not know.
    let standby = "CREATE OR REPLACE FUNCTION lock_store.expect_primary() RETURNS void
                   LANGUAGE plpgsql AS $$ BEGIN RAISE SQLSTATE '25006'; END $$";
    moments.run(standby).await;
    for query in [look(), waits()] {
        assert_eq!(moments.query(&query).await, ["25006"]);
    }
}

/// Each look at the clock is a second later here.
#[tokio::test]
async fn a_latch_may_end_while_one_takes_a_place() {
    let moments = Moments::new().await;
    moments.has_rows(&["latch|k|1|9|8|3000000"]).await;
    moments
        .run(
            "CREATE SEQUENCE set_clock.ticks;
             CREATE OR REPLACE FUNCTION set_clock.clock_timestamp() RETURNS timestamptz
             LANGUAGE sql AS $$ SELECT to_timestamp(1800000000 + nextval('set_clock.ticks')) $$",
        )
        .await;
    assert_eq!(moments.query(&wait("a1")).await, ["0||||"]);
    let left = ["latch|k|1|9|8|3000000", "place|k|a1|63000000"];
    assert_eq!(moments.query(STATE).await, left);
}

#[tokio::test]
async fn who_changes_a_latch_waits_for_others_and_who_looks_does_not() {
    let moments = Moments::new().await;
    let other = moments.server.session().await;
    let cases: [(&[&str], String, &str); 8] = [
        (&[], set("a1", -9, 9, 4, 1000), "55P03"),
        (&["latch|k|2|9|8|1"], count_down("a1", -9, 9), "55P03"),
        (&["latch|k|2|9|8|1"], wait("a1"), "55P03"),
        (&["latch|k|2|9|8|1"], look(), "1|2|9|8|1"),
        (
            &["latch|k|2|9|8|1", "place|k|a1|59000000"],
            wait("a1"),
            "1|2|9|8|1",
        ),
        (&["place|k|a1|59000000"], wait("a1"), "0||||"),
        (&["latch|k|0|9|8|1"], wait("a1"), "1|0|9|8|1"),
        (&["share|k|b1|1"], wait("a1"), "2||||"),
    ];
    for (there, query, reply) in cases {
        moments.has_rows(&[&["hold|k|0|t"], there].concat()).await;
        let locks = "BEGIN; SELECT FROM lock_store.hold FOR UPDATE";
        other.batch_execute(locks).await.unwrap();
        assert_eq!(moments.query(&query).await, [reply], "{there:?}: {query}");
        other.batch_execute("COMMIT").await.unwrap();
    }
}

#[tokio::test]
async fn what_was_done_meanwhile_counts() {
    let moments = Moments::new().await;
    let other = moments.server.session().await;
    // Nobody is late here.
    moments
        .run(
            "ALTER FUNCTION lock_store.latch_set SET lock_timeout = 0;
             ALTER FUNCTION lock_store.latch_wait SET lock_timeout = 0",
        )
        .await;
    // A renewal.
    moments.has_rows(&["hold|k|0|t", "share|k|b1|0"]).await;
    let renews = "BEGIN; UPDATE lock_store.share SET ends = ends + interval '1 second'";
    other.batch_execute(renews).await.unwrap();
    let said = moments
        .after_commit(&other, &set("a1", -9, 9, 4, 1000))
        .await;
    assert_eq!(said, "2|0");
    let left = ["hold|k|0|t", "share|k|b1|1000000"];
    assert_eq!(moments.query(STATE).await, left);
    // The last count.
    moments.has_rows(&["hold|k|0|t", "latch|k|1|9|8|1"]).await;
    let counts = "BEGIN; SELECT FROM lock_store.hold FOR NO KEY UPDATE;
                  UPDATE lock_store.latch SET count = 0";
    other.batch_execute(counts).await.unwrap();
    let said = moments.after_commit(&other, &wait("a1")).await;
    assert_eq!(said, "1|0|9|8|1");
    let left = ["hold|k|0|t", "latch|k|0|9|8|1"];
    assert_eq!(moments.query(STATE).await, left);
}
