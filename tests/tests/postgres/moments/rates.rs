//! What limits let pass, and when.

use std::time::Duration;

use lock_store::rules::{PassLog, TokenBucket};
use lock_store::{RateRequest, Rated};
use lock_testkit::seeded::Seeded;

use super::{Moments, NOW};

const HISTORIES: u64 = 16;
const STEPS: usize = 40;

/// Times are after [`NOW`], and nothing if they are zero.
const BUCKETS: &str = "convert_from(name, 'UTF8'),
    nullif(at, 0) - 1800000000000000000, turn, debt FROM lock_store.rate";
const LOGS: &str = "convert_from(name, 'UTF8'),
    nullif(at, 0) - 1800000000000000, times, counts,
    nullif(ends, 0) - 1800000000000000 FROM lock_store.pass_log";

/// Microseconds after [`NOW`], the arguments of a call, its reply, and the row of its key.
type Step = (i64, &'static str, &'static str, &'static str, &'static str);

impl Moments {
    /// All steps are taken with the row of another key beside.
    async fn limit_steps(&self, function: &str, columns: &str, beside: &str, steps: &[Step]) {
        for (at, key, asked, reply, row) in steps {
            let what = format!("{at}: {function}('{key}', {asked})");
            self.at(*at).await;
            let said = self.call(format!("{function}('{key}', {asked})")).await;
            assert_eq!(said, *reply, "{what}");
            let there = format!("SELECT {columns} WHERE name IN ('{key}', 'beside') ORDER BY 1");
            let row = format!("{key}|{row}");
            assert_eq!(self.query(&there).await, [beside, &row], "{what}");
        }
    }

    async fn limit_row(&self, columns: &str, key: &str) -> String {
        let row = format!("SELECT {columns} WHERE name = '{key}'");
        self.query(&row).await.concat()
    }
}

/// Times are nanoseconds, other than the first.
#[tokio::test]
async fn a_bucket_gives_what_has_come_back_and_what_is_waited_for() {
    let moments = Moments::new().await;
    moments
        .run("INSERT INTO lock_store.rate VALUES ('beside', 1800000000000000007, 5, 6)")
        .await;
    let steps = [
        (0, "k", "10000, 3, 0, 0", "0|3", "|0|0"),
        (0, "k", "10000, 3, 1, 0", "0|2", "0|0|10000"),
        (1, "k", "10000, 3, 1, 0", "0|1", "1000|0|19000"),
        // A look takes nothing.
        (1, "k", "10000, 3, 0, 0", "0|1", "1000|0|19000"),
        (1, "k", "10000, 3, 2, 8999", "9000|", "1000|0|19000"),
        (1, "k", "10000, 3, 2, 9000", "9000|0", "1000|9000|39000"),
        (3, "k", "10000, 3, 0, 6999", "7000|", "1000|9000|39000"),
        (3, "k", "10000, 3, 0, 7000", "7000|0", "1000|9000|39000"),
        (3, "k", "10000, 3, 1, 16999", "17000|", "1000|9000|39000"),
        (3, "k", "10000, 3, 1, 17000", "17000|0", "3000|17000|47000"),
        // Under another rate, the bucket was empty when the last one passed.
        (3, "k", "1000, 5, 1, 17999", "18000|", "3000|17000|47000"),
        (2, "k", "1000, 5, 1, 17999", "18000|", "2000|17000|22000"),
        // Its turn has not come yet.
        (12, "k", "10000, 3, 1, 0", "0|0", "12000|7000|22000"),
        (1000, "k", "10000, 3, 3, 0", "0|0", "1000000|0|30000"),
        // The clock was set back.
        (
            999,
            "k",
            "10000, 3, 1, 10000",
            "10000|0",
            "999000|10000|40000",
        ),
        (998, "k", "10000, 3, 0, 0", "10000|", "998000|10000|40000"),
        (998, "k", "100000, 10, 1, 0", "0|8", "998000|10000|140000"),
        (0, "one", "1, 2, 2, 0", "0|0", "0|0|2"),
    ];
    moments
        .limit_steps("rate", BUCKETS, "beside|7|5|6", &steps)
        .await;
}

/// Times are microseconds.
#[tokio::test]
async fn an_exact_limit_counts_what_has_passed_within_the_window() {
    let moments = Moments::new().await;
    moments
        .run(
            "INSERT INTO lock_store.pass_log
             VALUES ('beside', 1800000000000007, '{0}', '{2}', 1800000000000009)",
        )
        .await;
    let steps = [
        (0, "k", "100, 3, 0, 0, 0", "0|3", "|{}|{}|"),
        (0, "k", "100, 3, 1, 0, 0", "0|2", "0|{0}|{1}|100"),
        (0, "k", "100, 3, 1, 0, 0", "0|1", "0|{0}|{2}|100"),
        (10, "k", "100, 3, 1, 0, 0", "0|0", "10|{-10,0}|{2,1}|110"),
        // A look takes nothing.
        (10, "k", "100, 3, 0, 0, 0", "0|0", "10|{-10,0}|{2,1}|110"),
        (10, "k", "100, 3, 1, 89, 0", "90|", "10|{-10,0}|{2,1}|110"),
        (10, "k", "5, 1, 1, 0, 0", "5|", "10|{-10,0}|{2,1}|110"),
        // A line is over at the end of its window.
        (99, "k", "100, 3, 0, 0, 0", "0|0", "10|{-10,0}|{2,1}|110"),
        (100, "k", "100, 3, 0, 0, 0", "0|2", "10|{-10,0}|{2,1}|110"),
        // Turns are taken in advance.
        (99, "k", "100, 3, 1, 0, 0", "1|", "10|{-10,0}|{2,1}|110"),
        (
            99,
            "k",
            "100, 3, 1, 1, 0",
            "1|0",
            "99|{-99,-89,1}|{2,1,1}|200",
        ),
        (
            99,
            "k",
            "100, 3, 0, 0, 0",
            "1|",
            "99|{-99,-89,1}|{2,1,1}|200",
        ),
        (
            99,
            "k",
            "100, 3, 0, 1, 0",
            "1|0",
            "99|{-99,-89,1}|{2,1,1}|200",
        ),
        (
            99,
            "k",
            "100, 3, 1, 9, 0",
            "1|0",
            "99|{-99,-89,1}|{2,1,2}|200",
        ),
        (
            99,
            "k",
            "100, 3, 2, 101, 0",
            "101|0",
            "99|{-99,-89,1,101}|{2,1,2,2}|300",
        ),
        // The clock was set back: the log counts from now.
        (
            50,
            "k",
            "100, 3, 1, 0, 0",
            "101|",
            "50|{-99,-89,1,101}|{2,1,2,2}|251",
        ),
        (200, "set", "100, 3, 3, 0, 0", "0|0", "200|{0}|{3}|300"),
        (100, "set", "100, 3, 1, 0, 0", "100|", "100|{0}|{3}|200"),
        // Passes within so much time have one line.
        (0, "s", "1000, 200, 1, 0, 10", "0|199", "0|{0}|{1}|1000"),
        (
            5,
            "s",
            "1000, 200, 1, 0, 10",
            "0|198",
            "5|{-5,0}|{1,1}|1005",
        ),
        (
            10,
            "s",
            "1000, 200, 1, 0, 10",
            "0|197",
            "10|{-10,0}|{1,2}|1010",
        ),
        (
            11,
            "s",
            "1000, 200, 1, 0, 10",
            "0|196",
            "11|{-11,-1,0}|{1,2,1}|1011",
        ),
        (
            11,
            "s",
            "1000, 200, 2, 0, 10",
            "0|194",
            "11|{-11,-1,0}|{1,2,3}|1011",
        ),
    ];
    let beside = "beside|7|{0}|{2}|9";
    moments
        .limit_steps("rate_at_most", LOGS, beside, &steps)
        .await;
}

/// Else two could take the same tokens.
#[tokio::test]
async fn a_look_waits_for_one_who_takes() {
    let moments = Moments::new().await;
    let (bucket, log) = (
        "rate('k', 1000, 1, 0, 0)",
        "rate_at_most('k', 9, 1, 0, 0, 0)",
    );
    for look in [bucket, log] {
        moments.call(look).await;
    }
    let other = moments.server.session().await;
    let takes = "BEGIN; SELECT lock_store.rate('k', 1000, 1, 1, 0),
                 lock_store.rate_at_most('k', 9, 1, 1, 0, 0)";
    other.batch_execute(takes).await.unwrap();
    for look in [bucket, log] {
        assert_eq!(moments.call(look).await, "55P03", "{look}");
    }
}

fn shown(rated: Rated, unit: fn(&Duration) -> u128) -> String {
    match rated {
        Rated::Passed { delay, left } => format!("{}|{left}", unit(&delay)),
        Rated::Limited { retry_after } => format!("{}|", unit(&retry_after)),
        Rated::Conflict => panic!("there is one kind"),
    }
}

fn list<T: ToString>(of: impl Iterator<Item = T>) -> String {
    let texts: Vec<_> = of.map(|one| one.to_string()).collect();
    format!("{{{}}}", texts.join(","))
}

/// A random history: when, and what is asked. The limit and its window change now and then, and so
/// does the direction of the clock.
fn history(seed: u64) -> Vec<(i64, RateRequest)> {
    let mut random = Seeded::new(seed);
    let goes_back = random.chance(40);
    let limits = [1, 3, 20, 150, 1_000];
    let (one, other) = (*random.pick(&limits), *random.pick(&limits));
    let window = random.millis(1, 5_000);
    let micros = i64::try_from(window.as_micros()).unwrap();
    let mut now = 0;
    let below = |random: &mut Seeded, end: i64| {
        i64::try_from(random.below(usize::try_from(end).unwrap())).unwrap()
    };
    let mut step = || {
        now += match random.below(4) {
            0 => 0,
            1 => below(&mut random, 3),
            2 => below(&mut random, micros / 20 + 1),
            _ => below(&mut random, micros + micros / 2),
        };
        if goes_back && random.chance(8) {
            now -= below(&mut random, 10 * micros);
        }
        let changes = goes_back && random.chance(20);
        let limit = if changes { other } else { one };
        let mut request = RateRequest::at_most("k".into(), limit, window);
        if changes && random.chance(50) {
            request.window = Some(window / 2);
        }
        request.interval = Duration::from_nanos(1 + random.any() % 2_000_000);
        request.tokens = u32::try_from(random.below(limit as usize / 2 + 2)).unwrap();
        request.tokens = request.tokens.min(limit);
        request.wait = *random.pick(&[Duration::ZERO, window / 3, 5 * window]);
        (now, request)
    };
    (0..STEPS).map(|_| step()).collect()
}

#[tokio::test]
async fn a_bucket_is_the_rules_bucket() {
    let moments = Moments::new().await;
    let mut refused = 0;
    for seed in 0..HISTORIES {
        let key = format!("k{seed}");
        let (mut bucket, mut set_at) = (TokenBucket::default(), None);
        for (at, request) in history(seed) {
            moments.at(at).await;
            let elapsed = set_at.map_or(Some(i64::MAX), |set_at| Some(at - set_at));
            let elapsed = elapsed.and_then(|micros| u64::try_from(micros).ok());
            let (rated, changed) = bucket.take(elapsed.map(Duration::from_micros), &request);
            if let Some(changed) = changed {
                (bucket, set_at) = (changed, Some(at));
            }
            let (every, wait) = (request.interval.as_nanos(), request.wait.as_nanos());
            let asked = format!("{every}, {}, {}, {wait}", request.burst, request.tokens);
            let said = moments.call(format!("rate('{key}', {asked})")).await;
            let at = set_at.map_or(String::new(), |at| (at * 1_000).to_string());
            let (turn, debt) = (bucket.turn.as_nanos(), bucket.debt.as_nanos());
            let row = moments.limit_row(BUCKETS, &key).await;
            assert_eq!(
                (said, row),
                (
                    shown(rated, Duration::as_nanos),
                    format!("{key}|{at}|{turn}|{debt}")
                ),
                "{seed}: {request:?}"
            );
            refused += usize::from(matches!(rated, Rated::Limited { .. }));
        }
    }
    assert!(refused > 50, "{refused}");
}

#[tokio::test]
async fn an_exact_limit_is_the_rules_log() {
    let moments = Moments::new().await;
    let mut refused = 0;
    for seed in 0..HISTORIES {
        let key = format!("k{seed}");
        let (mut log, mut set_at, mut ends) = (PassLog::default(), -NOW * 1_000_000, None);
        for (at, request) in history(seed) {
            moments.at(at).await;
            let window = request.window.unwrap();
            let elapsed = u64::try_from(at - set_at).ok();
            let elapsed = elapsed.map(Duration::from_micros);
            let (rated, changed) = log.take(elapsed, window, &request);
            if let Some(changed) = changed {
                let open = (changed.last() + window).as_micros();
                (log, set_at, ends) = (changed, at, Some(at + i64::try_from(open).unwrap()));
            }
            let asked = format!(
                "{}, {}, {}, {}, {}",
                window.as_micros(),
                request.burst,
                request.tokens,
                request.wait.as_micros(),
                PassLog::share(request.burst, window).as_micros()
            );
            let said = moments
                .call(format!("rate_at_most('{key}', {asked})"))
                .await;
            let times = list(log.lines().map(|line| line.0));
            let counts = list(log.lines().map(|line| line.1));
            let at = ends.map_or(String::new(), |_| set_at.to_string());
            let ends = ends.map_or(String::new(), |ends| ends.to_string());
            let row = moments.limit_row(LOGS, &key).await;
            assert_eq!(
                (said, row),
                (
                    shown(rated, Duration::as_micros),
                    format!("{key}|{at}|{times}|{counts}|{ends}")
                ),
                "{seed}: {request:?}"
            );
            refused += usize::from(matches!(rated, Rated::Limited { .. }));
        }
    }
    assert!(refused > 50, "{refused}");
}
