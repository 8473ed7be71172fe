//! The test program `nemesis`, for a minute.

use std::time::Duration;

use lock_testkit::nemesis::{Settings, run};

#[tokio::test]
async fn whatever_fails_for_a_minute_no_lock_is_held_twice_and_all_workers_go_on() {
    let program = env!("CARGO_BIN_EXE_soak");
    let settings = Settings::new(program, 1, Duration::from_secs(60));
    let report = run(&settings).await;
    println!("{report}");
    report.must_be_clean_and_hard_enough(&settings);
}
