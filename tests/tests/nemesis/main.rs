//! Real processes, a real server, and faults at random: what must never happen, and that it would be seen.
#![expect(clippy::panic, reason = "a test that can't go on has failed")]

mod mistakes;

use std::collections::BTreeSet;
use std::time::Duration;

use lock_tests::nemesis::{Fault, Settings, run};

/// One run at a time: they load the machine, and the times that they promise are those of a machine that is not.
static ONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

fn settings(seed: u64, length: Duration) -> Settings {
    Settings::new(env!("CARGO_BIN_EXE_soak"), seed, length)
}

/// For longer: `cargo run -p lock-tests --bin soak -- --minutes N --seed S`.
#[tokio::test]
async fn whatever_fails_for_a_minute_nobody_breaks_in_and_everybody_goes_on() {
    let _one = ONE.lock().await;
    let settings = settings(1, Duration::from_secs(60));
    let all: BTreeSet<Fault> = settings.faults.iter().copied().collect();
    let report = run(&settings).await;
    println!("{report}");
    let found: Vec<_> = report.in_model().map(ToString::to_string).collect();
    assert!(found.is_empty(), "{found:#?}");
    // It was hard enough.
    assert!(report.granted >= 100, "{} grants", report.granted);
    assert!(report.refused > 0, "no stale access was even tried");
    let missing: Vec<_> = all
        .iter()
        .filter(|fault| !report.faults.contains_key(fault))
        .filter(|fault| fault.is_in_model() || Fault::DATA_LOST.contains(fault))
        .collect();
    assert!(missing.is_empty(), "never injected: {missing:?}");
}
