//! The operations of the contract.

use std::sync::Arc;
use std::time::Duration;

use lock_store::{
    Acquire, Acquired, AcquiredAll, Asked, Capabilities, Claim, ClientId, ClientMessage, Fenced,
    Finished, FoundHolder, Hears, Instant, LatchCall, LatchCounted, LatchFound, LatchSet, Link,
    LockFound, LockKey, Logged, RateRequest, Rated, Release, Released, Renewal, Renewed,
    ServerHealth, Store, StoreErrorKind, StoreFuture,
};
use tokio::task::JoinSet;

use crate::migrate::migrate;
use crate::news::News;
use crate::statement::LINK;
use crate::statement::{Param, Statement, owner};
use crate::store::{PostgresStore, SLACK, notification};

/// How much later than an attempt to connect its caller gives up.
const MOMENT: Duration = Duration::from_millis(100);

impl Store for PostgresStore {
    fn acquire(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Acquired> {
        Box::pin(self.acquire_one(request, by))
    }

    fn renew(&self, holds: Vec<Renewal>, by: Instant) -> StoreFuture<'_, Vec<Renewed>> {
        Box::pin(self.renew_holds(holds, by))
    }

    fn acquire_all(&self, requests: Vec<Acquire>, by: Instant) -> StoreFuture<'_, AcquiredAll> {
        Box::pin(self.acquire_together(requests, by))
    }

    fn fence(&self, claim: Claim, by: Instant) -> StoreFuture<'_, Fenced> {
        Box::pin(self.fence_hold(claim, by))
    }

    fn release(&self, requests: Vec<Release>, by: Instant) -> StoreFuture<'_, Vec<Released>> {
        Box::pin(self.release_holds(requests, by))
    }

    fn shrink(&self, claim: Claim, permits: u32, by: Instant) -> StoreFuture<'_, Released> {
        Box::pin(self.shrink_hold(claim, permits, by))
    }

    fn abandon(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Released> {
        Box::pin(self.abandon_request(request, by))
    }

    fn inspect(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<LockFound>> {
        Box::pin(self.inspect_lock(key, by))
    }

    fn holders(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<Vec<FoundHolder>>> {
        Box::pin(self.list_holders(key, by))
    }

    fn force_release(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<bool>> {
        Box::pin(self.force_free(key, by))
    }

    fn rate(&self, request: RateRequest, by: Instant) -> StoreFuture<'_, Rated> {
        Box::pin(self.ask_rate(request, by))
    }

    fn latch_set(
        &self,
        call: LatchCall,
        count: u32,
        ttl: Duration,
        by: Instant,
    ) -> StoreFuture<'_, LatchSet> {
        Box::pin(self.latch_sets(call, count, ttl, by))
    }

    fn latch_count_down(&self, call: LatchCall, by: Instant) -> StoreFuture<'_, LatchCounted> {
        Box::pin(self.latch_counts(call, by))
    }

    fn latch_look(&self, key: LockKey, by: Instant) -> StoreFuture<'_, LatchFound> {
        let params = vec![Param::bytes(self.name(&key))];
        Box::pin(self.latch_looks("SELECT * FROM lock_store.latch_look($1)", params, by))
    }

    fn latch_wait(&self, place: LatchCall, by: Instant) -> StoreFuture<'_, LatchFound> {
        self.note_wait();
        let name = Param::bytes(self.name(&place.key));
        let params = vec![name, Param::bytes(owner(place.owner))];
        Box::pin(self.latch_looks("SELECT * FROM lock_store.latch_wait($1, $2)", params, by))
    }

    fn latch_leave(&self, place: LatchCall, by: Instant) -> StoreFuture<'_, ()> {
        Box::pin(self.latch_leaves(place, by))
    }

    fn capabilities(&self) -> Capabilities {
        let mut can = Capabilities::all();
        // `lock_check` must know the token of the one that holds the lock now, also if it passes
        // from task to task in one process.
        can.token_window = false;
        can.late = Some(self.late + self.connect_timeout + 2 * SLACK);
        can.fails_over = self.pool.settings.route.is_list();
        if self.pool.settings.listen.is_none() {
            can.hears = Hears::Nothing;
            can.tells = false;
        }
        can
    }

    fn tell(&self, to: ClientId, message: ClientMessage, by: Instant) -> Asked<'_, bool> {
        let of_key = message.key().namespace().unwrap_or(&self.namespace);
        let namespace = of_key.to_string();
        let news = News::Told { namespace, message };
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
        Box::pin(async move { self.connection(by + MOMENT).await.map(drop) })
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
