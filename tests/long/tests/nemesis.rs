//! The test program `nemesis`, for a minute.

use std::time::Duration;

use lock_testkit::nemesis::{Settings, run};

#[tokio::test]
async fn whatever_fails_for_a_minute_nobody_breaks_in_and_everybody_goes_on() {
    let program = env!("CARGO_BIN_EXE_soak");
    let settings = Settings::new(program, 1, Duration::from_secs(60));
    let report = run(&settings).await;
    println!("{report}");
    report.must_be_clean_and_hard_enough(&settings);
}
