//! Many seeds, or one of them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use crate::run::{Report, run};

/// How many lines before a violation are shown.
const SHOWN: usize = 150;

fn numbers() -> Range<u64> {
    let Ok(text) = std::env::var("LOCK_SIM_SEEDS") else {
        return 0..1000;
    };
    let number = |text: &str| text.trim().replace('_', "").parse();
    let range = match text.split_once("..") {
        Some((from, to)) => number(from).and_then(|from| Ok(from..number(to)?)),
        None => number(&text).map(|count| 0..count),
    };
    range.unwrap_or_else(|_| panic!("LOCK_SIM_SEEDS={text}: it takes `100000` or `5000..9000`"))
}

#[derive(Default)]
struct Sum {
    seeds: u64,
    simulated: Duration,
    counts: BTreeMap<&'static str, u64>,
    bad: Vec<u64>,
}

impl Sum {
    fn add(&mut self, seed: u64, report: &Report) {
        self.seeds += 1;
        self.simulated += report.simulated;
        for (what, count) in &report.counts {
            *self.counts.entry(what).or_default() += count;
        }
        if let Some((check, what)) = report.violations.first() {
            println!("seed {seed}: {check:?}: {what}");
            self.bad.push(seed);
        }
    }

    fn add_all(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.simulated += other.simulated;
        for (what, count) in other.counts {
            *self.counts.entry(what).or_default() += count;
        }
        self.bad.extend(other.bad);
    }

    fn print(&self) {
        let hours = self.simulated.as_secs_f64() / 3600.0;
        println!("{} seeds, {hours:.1} simulated hours", self.seeds);
        for (what, count) in &self.counts {
            println!("{count:>10} {what}");
        }
    }
}

/// Every `step`th seed.
fn every(step: usize, from: usize, seeds: Range<u64>) -> Sum {
    let mut sum = Sum::default();
    for seed in seeds.skip(from).step_by(step) {
        sum.add(seed, &run(seed, None, false));
    }
    sum
}

/// Shows what went wrong in a run.
fn show(seed: u64) {
    let report = run(seed, None, true);
    let first = report.lines.iter().position(|line| line.contains("!!"));
    let end = first.map_or(report.lines.len(), |at| at + 1);
    for line in &report.lines[end.saturating_sub(SHOWN)..end] {
        println!("{line}");
    }
    for (check, what) in &report.violations {
        println!("seed {seed}: {check:?}: {what}");
    }
}

#[test]
fn seeds_show_no_violation() {
    if let Ok(seed) = std::env::var("LOCK_SIM_SEED") {
        let report = run(seed.trim().parse().unwrap(), None, true);
        report.lines.iter().for_each(|line| println!("{line}"));
        assert_eq!(report.violations, []);
        return;
    }
    let seeds = numbers();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut sum = Sum::default();
    std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|from| {
                let seeds = seeds.clone();
                scope.spawn(move || every(threads, from, seeds))
            })
            .collect();
        for part in parts {
            sum.add_all(part.join().unwrap());
        }
    });
    sum.print();
    sum.bad.sort_unstable();
    if let Some(first) = sum.bad.first() {
        show(*first);
        panic!(
            "violations with the seeds {:?}; to see one of them:\n\
             LOCK_SIM_SEED={first} cargo test -p lock-simulation --test simulation \
             seeds_show_no_violation -- --nocapture",
            sum.bad
        );
    }
}

#[test]
fn a_seed_is_the_same_run_each_time() {
    for seed in 0..30 {
        let (one, other) = (run(seed, None, true), run(seed, None, true));
        if one.hash != other.hash {
            let pairs = one.lines.iter().zip(&other.lines);
            let at = pairs.take_while(|(one, other)| one == other).count();
            let from = at.saturating_sub(30);
            one.lines[from..at]
                .iter()
                .for_each(|line| println!("{line}"));
            panic!(
                "seed {seed}, line {at}:\n{:?}\n{:?}",
                one.lines.get(at),
                other.lines.get(at)
            );
        }
    }
}
