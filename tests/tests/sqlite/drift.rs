//! SQLite gives the replies of the rules, and announces the same grants.

use std::sync::Arc;

use lock_store::{ClientId, Clock, Listener, Store};
use lock_testkit::drift::{Ages, compare_with_rules};
use lock_testkit::{Asks, SqliteFile, StoreUnderTest};

struct Aged(SqliteFile);

impl Ages for Aged {
    fn store(&self, id: ClientId, listener: &Arc<dyn Listener>, clock: Clock) -> Arc<dyn Store> {
        self.0.store(id, listener, clock)
    }

    fn tick(&self) -> u64 {
        1100
    }

    fn age(&self, millis: i64) -> Asks<'_, ()> {
        let by = millis * 1_000_000;
        let earlier = format!(
            "BEGIN IMMEDIATE;
             UPDATE hold SET ends = ends - {by};
             UPDATE place SET ends = ends - {by}, heard = heard - {by},
                 suspended = suspended - {by};
             COMMIT"
        );
        self.0.connection().execute_batch(&earlier).unwrap();
        Box::pin(async {})
    }

    fn has_running_clock(&self) -> bool {
        true
    }
}

#[test]
fn a_file_gives_the_replies_of_the_rules() {
    compare_with_rules(20_000, async || Aged(SqliteFile::new()));
}
