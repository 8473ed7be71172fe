//! What a sweep removes, and what it leaves.

use super::{Moments, owner};

/// The names that are left in each table, and of `hold` whether it is special.
const LEFT: &str = "
    SELECT 'rate', convert_from(name, 'UTF8') FROM lock_store.rate UNION ALL
    SELECT 'pass_log', convert_from(name, 'UTF8') FROM lock_store.pass_log UNION ALL
    SELECT 'latch_call', convert_from(name, 'UTF8') FROM lock_store.latch_call UNION ALL
    SELECT 'latch_place', convert_from(name, 'UTF8') FROM lock_store.latch_place UNION ALL
    SELECT 'latch', convert_from(name, 'UTF8') FROM lock_store.latch UNION ALL
    SELECT 'place', convert_from(name, 'UTF8') FROM lock_store.place UNION ALL
    SELECT 'share', convert_from(name, 'UTF8') || ' ' || after(ends) FROM lock_store.share
    UNION ALL
    SELECT 'hold', convert_from(name, 'UTF8') || ' ' || left(special::text, 1) FROM lock_store.hold
    ORDER BY 1, 2";

/// What was over then is removed, in microseconds after [`NOW`](super::NOW): a minute ago.
const OLD: i64 = -60_000_000;

const TABLES: [&str; 7] = [
    "rate",
    "pass_log",
    "latch_call",
    "latch_place",
    "latch",
    "place",
    "hold",
];

/// Columns of a row that, at [`NOW`](super::NOW), is old enough by `over` microseconds.
fn values(table: &str, over: i64) -> String {
    let old = 1_800_000_000_000_000 + OLD - over;
    let a1 = owner("a1");
    match table {
        "rate" => format!("{old} * 1000 + 999 * {over} - 5, 0, 5"),
        "pass_log" => format!("{old}, '{{}}', '{{}}', {old}"),
        "latch_call" => format!("{a1}, 1, {}", time(-over)),
        "latch_place" => format!("{a1}, {}", time(-over)),
        "latch" => format!("1, 1, 0, {}", time(-over)),
        "place" => {
            let seen = time(OLD - over);
            format!("1, {a1}, '', NULL, NULL, '1 s', 'infinity', 0, {seen}")
        }
        // Its last token.
        "hold" => format!("NULL, '-infinity', {old}, NULL, false"),
        _ => panic!("{table}"),
    }
}

fn time(micros: i64) -> String {
    format!("to_timestamp(1800000000) + {micros} * interval '1 us'")
}

impl Moments {
    async fn sweep_row(&self, table: &str, name: &str, over: i64) {
        let row = format!("INSERT INTO lock_store.{table} SELECT '{name}', ");
        self.run(&(row + &values(table, over))).await;
    }

    async fn sweep_rows(&self, count: u16, table: &str, values: &str) {
        self.run(&format!(
            "INSERT INTO lock_store.{table} SELECT int4send(g), {values}
             FROM generate_series(1, {count}) g"
        ))
        .await;
    }

    async fn sweep(&self) -> String {
        self.call("sweep()").await
    }

    async fn unswept(&self) -> Vec<String> {
        self.query(LEFT).await
    }
}

#[tokio::test]
async fn a_sweep_removes_what_is_old_and_is_due_once_in_so_long() {
    let moments = Moments::new().await;
    for table in TABLES {
        moments.sweep_row(table, "old", 1).await;
        moments.sweep_row(table, "young", 0).await;
    }
    let swept = async |at, floor: i64, left: &[&str]| {
        moments.at(at).await;
        assert_eq!(moments.sweep().await, "f");
        assert_eq!(moments.unswept().await, left, "{at}");
        let meta = "SELECT floor - 1800000000000000 FROM lock_store.meta";
        assert_eq!(moments.query(meta).await, [floor.to_string()], "{at}");
    };
    let young = [
        "hold|young f",
        "latch|young",
        "latch_call|young",
        "latch_place|young",
        "pass_log|young",
        "place|young",
        "rate|young",
    ];
    // Tokens of locks without a row are above that of the one that is gone.
    swept(0, OLD - 1, &young).await;
    swept(-OLD, OLD - 1, &young).await;
    moments.sweep_row("hold", "older", 9).await;
    swept(-OLD + 1, OLD, &[]).await;
    moments.sweep_row("hold", "older", 9).await;
    swept(-2 * OLD + 1, OLD, &["hold|older f"]).await;
    moments
        .run("UPDATE lock_store.meta SET keeps = '10 seconds'")
        .await;
    swept(-OLD + 10_000_001, OLD, &["hold|older f"]).await;
    // The floor never falls.
    swept(-OLD + 10_000_002, OLD, &[]).await;
}

/// Holds, and what else there is of their keys.
#[tokio::test]
async fn a_sweep_leaves_locks_that_are_in_use() {
    let moments = Moments::new().await;
    let (forever, old, recent) = ("'-infinity'", 1_800_000_000_000_000 + OLD, time(5));
    let holds = [
        ("free", "", forever, 0, true),
        ("freed lately", "", &recent, 0, true),
        ("over", "a1", &time(OLD - 1), 0, true),
        ("over lately", "a1", &time(OLD), 0, true),
        ("held", "a1", &recent, 0, true),
        ("with place", "", forever, 0, true),
        ("with old place", "", forever, 0, true),
        ("shared", "", forever, 0, true),
        ("shared till now", "", forever, 0, true),
        ("latch", "", forever, 0, true),
        ("with new token", "", forever, old, true),
        ("plain", "a1", &time(OLD - 1), 0, false),
        ("plain lately", "a1", &time(OLD), 0, false),
        ("plain freed lately", "", &recent, 0, false),
        ("plain with token", "", forever, old - 1, false),
        ("plain with new token", "", forever, old, false),
    ];
    for (name, of, ends, last, special) in holds {
        let of = match of {
            "" => "NULL".to_owned(),
            of => owner(of),
        };
        let row = format!("'{name}', {of}, {ends}, {last}, NULL, {special}");
        moments
            .run(&format!("INSERT INTO lock_store.hold VALUES ({row})"))
            .await;
    }
    for (name, of, ends) in [
        ("with place", "b1", -1),
        ("shared", "b1", -1),
        ("shared", "c1", 1),
        ("shared till now", "b1", 0),
        ("latch", "b1", -1),
        ("without hold", "b1", -1),
        ("plain lately", "b1", -1),
    ] {
        let row = format!("'{name}', {}, 1, NULL, {}", owner(of), time(ends));
        moments
            .run(&format!("INSERT INTO lock_store.share VALUES ({row})"))
            .await;
    }
    moments.sweep_row("place", "with place", 0).await;
    moments.sweep_row("place", "with old place", 1).await;
    moments.sweep_row("latch", "latch", 0).await;
    assert_eq!(moments.sweep().await, "f");
    let left = [
        "hold|held t",
        "hold|latch t",
        "hold|over lately t",
        "hold|plain freed lately f",
        "hold|plain lately f",
        "hold|plain with new token f",
        "hold|shared t",
        "hold|with new token f",
        "hold|with place t",
        "latch|latch",
        "place|with place",
        "share|latch -1",
        "share|plain lately -1",
        "share|shared -1",
        "share|shared 1",
        "share|with place -1",
        "share|without hold -1",
    ];
    assert_eq!(moments.unswept().await, left);
}

#[tokio::test]
async fn a_sweep_waits_for_nobody() {
    let moments = Moments::new().await;
    let other = moments.server.session().await;
    for table in TABLES {
        moments.sweep_row(table, "free", 1).await;
        moments.sweep_row(table, "kept", 1).await;
    }
    let special = "INSERT INTO lock_store.hold (name, special) VALUES ('special', true)";
    moments.run(special).await;
    // Another one sweeps.
    let locks = "BEGIN; SELECT FROM lock_store.meta FOR UPDATE";
    other.batch_execute(locks).await.unwrap();
    assert_eq!(moments.sweep().await, "f");
    assert_eq!(moments.unswept().await.len(), 15);
    other.batch_execute("COMMIT; BEGIN").await.unwrap();
    for table in TABLES {
        let locks = format!(
            "SELECT FROM lock_store.{table} WHERE name IN ('kept', 'special') FOR KEY SHARE"
        );
        other.batch_execute(&locks).await.unwrap();
    }
    assert_eq!(moments.sweep().await, "f");
    let kept = [
        "hold|kept f",
        "hold|special t",
        "latch|kept",
        "latch_call|kept",
        "latch_place|kept",
        "pass_log|kept",
        "place|kept",
        "rate|kept",
    ];
    assert_eq!(moments.unswept().await, kept);
    other.batch_execute("COMMIT").await.unwrap();
    moments.at(-OLD + 1).await;
    assert_eq!(moments.sweep().await, "f");
    assert_eq!(moments.unswept().await, [""; 0]);
}

#[tokio::test]
async fn a_sweep_goes_on_while_there_is_more() {
    let moments = Moments::new().await;
    let special = "NULL, '-infinity', 0, NULL, true";
    for (most, table) in TABLES
        .map(|table| (5000, table))
        .into_iter()
        .chain([(1000, "")])
    {
        let (table, values) = match table {
            "" => ("hold", special.to_owned()),
            _ => (table, values(table, 1)),
        };
        moments.sweep_rows(most + 1, table, &values).await;
        let left = format!(
            "SELECT count(*), after(swept) FROM lock_store.{table}, lock_store.meta GROUP BY 2"
        );
        assert_eq!(moments.sweep().await, "t", "{most} {table}");
        assert_eq!(moments.query(&left).await, ["1|"], "{most} {table}");
        assert_eq!(moments.sweep().await, "f", "{most} {table}");
        let left = moments
            .query("SELECT after(swept) FROM lock_store.meta")
            .await;
        assert_eq!(left, ["0"], "{most} {table}");
        assert_eq!(moments.unswept().await, [""; 0], "{most} {table}");
        moments
            .run("UPDATE lock_store.meta SET swept = '-infinity'")
            .await;
    }
    // As many of another kind.
    moments.sweep_rows(1000, "place", &values("place", 1)).await;
    assert_eq!(moments.sweep().await, "f");
}

#[tokio::test]
async fn units_and_versions() {
    let moments = Moments::new().await;
    for (call, said) in [
        ("version()", "1"),
        ("serves(0)", "f"),
        ("serves(1)", "t"),
        ("serves(2)", "f"),
        (
            "micros(to_timestamp(1800000000.000001))",
            "1800000000000001",
        ),
        ("span(1000001)", "00:00:01.000001"),
        ("sweeps_each()", "60000000"),
    ] {
        assert_eq!(moments.call(call).await, said, "{call}");
    }
    moments
        .run("UPDATE lock_store.meta SET keeps = '1.5 seconds'")
        .await;
    assert_eq!(moments.call("sweeps_each()").await, "1500000");
}
