//! Exact limits: the script says what the rule says, and no window has more than the limit.

use std::collections::VecDeque;
use std::time::Duration;

use lock_store::rules::PassLog;
use lock_store::{RateRequest, Rated};
use lock_testkit::seeded::Seeded;

use super::{NOW, Stage};

const HISTORIES: u64 = 30;
const STEPS: usize = 40;

/// A log as an engine keeps it, with the time of the last change.
#[derive(Default)]
struct Ruled {
    log: PassLog,
    at: u64,
}

impl Ruled {
    fn take(&mut self, now: u64, request: &RateRequest) -> Rated {
        let elapsed = now.checked_sub(self.at).map(Duration::from_micros);
        let (rated, changed) = self.log.take(elapsed, request.window.unwrap(), request);
        if let Some(log) = changed {
            (self.log, self.at) = (log, now);
        }
        rated
    }
}

fn shown(rated: Rated) -> String {
    match rated {
        Rated::Passed { delay, left } => format!("[1, {}, {left}]", delay.as_micros()),
        Rated::Limited { retry_after } => format!("[0, {}, 0]", retry_after.as_micros()),
        Rated::Conflict => panic!("it is a log"),
    }
}

/// What passed within each window that ends with a pass.
struct Windows(VecDeque<(u64, u32)>);

impl Windows {
    fn expect(&mut self, passes_at: u64, request: &RateRequest) {
        let last = self.0.back().map_or(0, |last| last.0);
        assert!(passes_at >= last, "turns come in order");
        self.0.push_back((passes_at, request.tokens));
        let window = u64::try_from(request.window.unwrap().as_micros()).unwrap();
        let inside = self.0.iter().filter(|(at, _)| at + window > passes_at);
        let tokens: u32 = inside.map(|(_, tokens)| tokens).sum();
        assert!(tokens <= request.burst, "{tokens} of {}", request.burst);
    }
}

#[tokio::test]
async fn the_script_says_what_the_rule_says_and_no_window_has_more_than_the_limit() {
    let mut stage = Stage::new().await;
    let mut refused = 0;
    for seed in 0..HISTORIES {
        let mut random = Seeded::new(seed);
        let goes_back = random.chance(30);
        let limits = [1, 3, 20, 150, 1_000, 10_000];
        let one = *random.pick(&limits);
        let window = random.millis(1, 5_000);
        let other = *random.pick(&limits);
        let (mut ruled, mut windows) = (Ruled::default(), Windows(VecDeque::new()));
        stage.command("DEL log").await;
        stage.now = NOW;
        let mut longest = 0;
        for step in 0..STEPS {
            let micros = u64::try_from(window.as_micros()).unwrap();
            stage.now += match random.below(4) {
                0 => 0,
                1 => random.any() % 3,
                2 => random.any() % (micros / 20 + 1),
                _ => random.any() % (micros + micros / 2),
            };
            if goes_back && random.chance(5) {
                stage.now -= random.any() % (10 * micros);
            }
            let limit = if goes_back && random.chance(20) {
                other
            } else {
                one
            };
            let mut request = RateRequest::at_most("k".into(), limit, window);
            let most = if random.chance(80) {
                limit / 4 + 1
            } else {
                limit
            };
            request.tokens = u32::try_from(random.below(most as usize + 1)).unwrap();
            request.wait = *random.pick(&[Duration::ZERO, window / 3, 5 * window]);
            let rated = ruled.take(stage.now, &request);
            let arguments = [
                micros.to_string(),
                limit.to_string(),
                request.tokens.to_string(),
                request.wait.as_micros().to_string(),
                PassLog::share(limit, window).as_micros().to_string(),
            ];
            let arguments = arguments.iter().map(String::as_str);
            let done = stage.run("LIMIT", &["log"], arguments).await;
            assert_eq!(done.reply, shown(rated), "{seed}, step {step}: {request:?}");
            match rated {
                Rated::Passed { delay, .. } if !goes_back && request.tokens > 0 => {
                    assert!(delay <= request.wait);
                    let delay = u64::try_from(delay.as_micros()).unwrap();
                    windows.expect(stage.now + delay, &request);
                }
                Rated::Limited { .. } => refused += 1,
                _ => {}
            }
            let stored = done.all("SET log ");
            let size = stored.iter().map(|set| set.len()).max().unwrap_or(0);
            longest = longest.max(size);
            let most = 100 + 16 * one.max(other) as usize;
            assert!(size <= most, "{size} bytes");
        }
        assert!(longest < 100 + 16 * 300, "few lines: {longest} bytes");
    }
    assert!(refused > 50, "{refused}");
}

/// After an hour back, all of the limit has just passed: nobody is refused for longer than a
/// window.
#[tokio::test]
async fn a_clock_that_is_set_back_costs_a_window_at_most() {
    let mut stage = Stage::new().await;
    let ask = ["2000000", "3", "1", "0", "0"];
    for _ in 0..3 {
        stage.now += 1_000;
        stage.run("LIMIT", &["log"], ask).await;
    }
    stage.now -= 3_600_000_000;
    let refused = stage.run("LIMIT", &["log"], ask).await;
    assert_eq!(refused.reply, "[0, 1998000, 0]");
    stage.now += 1_998_000;
    // A line is over at the end of its window.
    let look = ["2000000", "3", "0", "0", "0"];
    let seen = stage.run("LIMIT", &["log"], look).await;
    assert_eq!(seen.reply, "[1, 0, 1]");
    let passed = stage.run("LIMIT", &["log"], ask).await;
    assert_eq!(passed.reply, "[1, 0, 0]");
}

impl Stage {
    /// What a request with a window of a second is told, and what it stores: the log, and how long
    /// it is kept.
    async fn limit(&mut self, now: u64, arguments: [u32; 4]) -> String {
        self.now = now;
        let arguments = arguments.map(|argument| argument.to_string());
        let arguments = arguments.iter().map(String::as_str);
        let window = std::iter::once("1000000");
        let done = self.run("LIMIT", &["log"], window.chain(arguments)).await;
        // On a slow machine, a second of its own may pass until the next call.
        self.command("PERSIST log").await;
        assert_eq!(done.sent[..2], ["TIME", "GET log"]);
        [&[done.reply], &done.sent[2..]].concat().join(" ")
    }
}

/// Other versions read it, and services with other limits.
#[tokio::test]
async fn a_log_has_this_text_and_is_kept_until_its_last_line_is_over() {
    let mut stage = Stage::new().await;
    let mut done = Vec::new();
    for (now, limit, tokens, wait) in [
        (5_000_000, 3, 1, 0),
        (5_000_005, 3, 2, 0),
        (5_000_005, 3, 1, 999_995),
        (5_000_005, 3, 1, 999_999),
        (5_000_004, 3, 1, 0),
        (5_999_998, 10, 1, 1),
        (7_000_000, 3, 0, 0),
        (7_000_000, 3, 2, 0),
    ] {
        done.push(stage.limit(now, [limit, tokens, wait, 0]).await);
    }
    let expected = [
        "[1, 0, 2] SET log 5000000:5000000:5000000:1:,0 PX 1002",
        "[1, 0, 0] SET log 5000005:5000000:5000005:3:,0,5*2 PX 1002",
        // It waits until the first line is over.
        "[1, 999995, 0] SET log 5000005:5000000:6000000:4:,0,5*2,999995 PX 2002",
        "[0, 1000000, 0]",
        // Nothing is taken, but the clock was set back.
        "[0, 1000000, 0] SET log 5000004:4999999:5999999:4:,0,5*2,999995 PX 2002",
        // While there is a turn to wait for, nothing is left, whatever the limit.
        "[1, 1, 0] SET log 5999998:4999999:5999999:5:,0,5*2,999995*2 PX 1003",
        "[1, 0, 3]",
        "[1, 0, 1] SET log 7000000:7000000:7000000:2:,0*2 PX 1002",
    ];
    assert_eq!(done, expected);
}

#[tokio::test]
async fn passes_share_a_line_within_a_part_of_the_window_after_the_line_before() {
    let mut stage = Stage::new().await;
    for (now, lines) in [
        (5_000_000, ",0"),
        (5_004_000, ",0,4000"),
        (5_010_000, ",0,10000*2"),
        (5_010_001, ",0,10000*2,1"),
        (5_020_000, ",0,10000*2,10000*2"),
    ] {
        let done = stage.limit(now, [150, 1, 0, 10_000]).await;
        assert!(done.ends_with(&format!(":{lines} PX 1002")), "{done}");
    }
}

#[tokio::test]
async fn what_is_no_log_is_left_as_it_is() {
    let mut stage = Stage::new().await;
    for other in ["log", "1:2:3:,0", "1:2:3:4:,0;"] {
        stage.command(&format!("SET log {other}")).await;
        let done = stage.limit(NOW, [3, 1, 0, 0]).await;
        let told = "WRONGTYPE the log of the rate limiter is something else";
        assert_eq!(done, told);
        assert_eq!(stage.command("GET log").await, other);
    }
}
