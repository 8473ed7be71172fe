//! The functions in SQL give the replies of the rules, and announce the same grants.

use std::sync::Arc;

use lock_store::{ClientId, Clock, Listener, Store};
use lock_testkit::drift::{Ages, compare_with_rules};
use lock_testkit::{Asks, PostgresServer, StoreUnderTest};
use tokio::sync::OnceCell;
use tokio_postgres::Client;

use crate::moments::SET_CLOCK;

/// In 2096.
const TOKENS_AFTER: u64 = 4_000_000_000_000_000;

/// Nothing is swept meanwhile, and time stands still: a machine may be slower than a client that is
/// silent for three seconds.
fn empty() -> String {
    format!(
        "DO $$ BEGIN
             EXECUTE format(
                 'ALTER DATABASE %I SET moment.now = %L',
                 current_database(), date_part('epoch', pg_catalog.clock_timestamp()));
         END $$;
         UPDATE lock_store.meta SET keeps = '1 year', floor = {TOKENS_AFTER};
         TRUNCATE lock_store.hold, lock_store.share, lock_store.place"
    )
}

struct Aged {
    server: Arc<PostgresServer>,
    session: Client,
}

impl Ages for Aged {
    fn store(&self, id: ClientId, listener: &Arc<dyn Listener>, clock: Clock) -> Arc<dyn Store> {
        self.server.store(id, listener, clock)
    }

    /// A client stands still there after three seconds.
    fn tick(&self) -> u64 {
        1600
    }

    fn age(&self, millis: i64) -> Asks<'_, ()> {
        let by = format!("interval '{millis} milliseconds'");
        let earlier = format!(
            "UPDATE lock_store.hold SET ends = ends - {by};
             UPDATE lock_store.share SET ends = ends - {by};
             UPDATE lock_store.place SET ends = ends - {by}, seen = seen - {by},
                 suspended = suspended - {by}"
        );
        Box::pin(async move { self.session.batch_execute(&earlier).await.unwrap() })
    }

    fn forgets_when_asked(&self) -> bool {
        false
    }

    /// A hand-over ends after some grants, and leaves it to them to go on.
    fn goes_on_after_shares(&self) -> bool {
        true
    }

    fn subscribes_later(&self) -> bool {
        true
    }

    fn tokens_after(&self) -> Option<u64> {
        Some(TOKENS_AFTER)
    }
}

#[test]
fn the_functions_give_the_replies_of_the_rules() {
    let server = OnceCell::new();
    compare_with_rules(6_000, async || {
        let start = async || {
            let server = PostgresServer::start().await;
            let session = server.session().await;
            session.batch_execute(SET_CLOCK).await.unwrap();
            Arc::new(server)
        };
        let server = Arc::clone(server.get_or_init(start).await);
        let session = server.session().await;
        session.batch_execute(&empty()).await.unwrap();
        Aged { server, session }
    });
}
