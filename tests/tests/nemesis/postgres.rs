//! The same on PostgreSQL, which has its turn alone.

use std::time::Duration;

use lock_testkit::nemesis::Engine;

use crate::{assert_survives, settings};

#[tokio::test]
async fn whatever_fails_no_lock_is_held_twice_and_all_workers_go_on() {
    let settings = settings(1, Duration::from_secs(10));
    assert_survives(settings.on(Engine::Postgres)).await;
}
