//! The operations of the contract.

use std::sync::Arc;
use std::time::Duration;

use lock_store::{
    Asked, Capabilities, ClientId, ClientMessage, Finished, Hears, Instant, Letter, Link, Logged,
    ServerHealth, Store, StoreErrorKind, StoreFuture,
};
use tokio::task::JoinSet;

use crate::migrate::migrate;
use crate::news::News;
use crate::statement::LINK;
use crate::statement::Statement;
use crate::store::{PostgresStore, SLACK, notification};

/// How much later than an attempt to connect its caller gives up.
const MOMENT: Duration = Duration::from_millis(100);

impl Store for PostgresStore {
    lock_store::boxed! {
        acquire: acquire_one, renew: renew_holds, acquire_all: acquire_together, fence: fence_hold,
        release: release_holds, shrink: shrink_hold, abandon: abandon_request,
        inspect: inspect_lock, holders: list_holders, force_release: force_free, rate: ask_rate,
        latch_set: set_latch, latch_count_down: count_down_latch, latch_look: look_at_latch,
        latch_wait: wait_at_latch, latch_leave: leave_latch,
    }

    fn capabilities(&self) -> Capabilities {
        let mut can = Capabilities::all();
        // `lock_check` must know the token of the one that holds the lock now, also if it is
        // handed off from task to task in one process.
        can.token_window = false;
        // A request may join others of its key at the end of its time, be sent again until the last
        // of them has none left, and begin in the server one command later.
        can.carried_out_within = Some(3 * self.late + self.connect_timeout + SLACK);
        can.fails_over = self.pool.settings.route.is_list();
        if self.pool.settings.listen.is_none() {
            can.hears = Hears::Nothing;
            can.tells = false;
        }
        can
    }

    fn tell(&self, to: ClientId, message: ClientMessage, by: Instant) -> Asked<'_, bool> {
        let news = News::Told(Letter::of(&message, &self.namespace));
        Box::pin(async move {
            if to == self.client {
                self.hearer.on_news(news);
                return Ok(true);
            }
            let Some(statement) = notification(&[(to, news)]) else {
                return Ok(false);
            };
            let sent = self.call(by, statement, |_| Ok(true)).await;
            sent.map(|answer| answer.value)
                .map_err(|failure| failure.error)
        })
    }

    fn migrate(&self, by: Instant) -> Asked<'_, ()> {
        Box::pin(async move {
            // On the client's runtime: the caller may have none. It ends with the caller's future.
            let (pool, clock) = (Arc::clone(&self.pool), &self.pool.clock);
            let migrates = async move { migrate(&pool.settings.route, &pool.clock).await };
            let mut task = JoinSet::new();
            task.spawn_on(migrates, clock.handle());
            let done = clock.by(by, task.join_next()).await;
            self.pool.try_again();
            match done {
                Some(Some(Ok(done))) => done,
                Some(_) => Err(self.error(StoreErrorKind::Refused, "the client is closed")),
                None => Err(self.error(StoreErrorKind::Timeout, "the migration takes too long")),
            }
        })
    }

    fn ping(&self, by: Instant) -> StoreFuture<'_, ()> {
        let statement = Statement::new("SELECT lock_store.expect_primary()", Vec::new());
        Box::pin(self.call(by, statement, |_| Ok(())))
    }

    fn await_connection(&self, by: Instant) -> Asked<'_, ()> {
        // The attempt's own limit ends at the same moment, and its error says what it waited for.
        Box::pin(async move { self.pool.get(by + MOMENT).await.map(drop) })
    }

    fn is_connected(&self) -> bool {
        self.pool.is_connected()
    }

    fn servers(&self, by: Instant) -> Asked<'_, Vec<ServerHealth>> {
        Box::pin(self.collect_findings(by))
    }

    fn log_findings(&self, by: Instant) -> Logged<'_> {
        Box::pin(self.log_all(by))
    }

    fn link(&self) -> Link {
        LINK
    }

    fn finish(&self, by: Instant) -> Finished<'_> {
        Box::pin(self.leave(by))
    }

    fn close(&self) {
        self.open.lock().take();
        self.end();
    }

    fn is_closed(&self) -> bool {
        self.pool.is_closed()
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.close();
    }
}
