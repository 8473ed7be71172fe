//! The operations of the contract.

use std::sync::Arc;
use std::time::Duration;

use lock_store::{
    Ability, Acquire, Acquired, AcquiredAll, Asked, Capabilities, Claim, ClientId, ClientMessage,
    Fenced, Finished, FoundHolder, Instant, Lingers, Link, LockFound, LockKey, Release, Released,
    Renewal, Renewed, ServerHealth, Store, StoreFuture,
};

use crate::connection::Live;
use crate::store::EtcdStore;
use crate::together::MOST;

impl Store for EtcdStore {
    fn acquire(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Acquired> {
        let me = Arc::clone(&self.0);
        self.in_a_task(move |given_up| async move {
            let carried = async |live: Arc<_>| me.acquire(&live, &request, &given_up).await;
            me.carry_out(by, carried).await
        })
    }

    fn renew(&self, holds: Vec<Renewal>, by: Instant) -> StoreFuture<'_, Vec<Renewed>> {
        let me = Arc::clone(&self.0);
        self.in_a_task(move |given_up| async move {
            let carried = async |live: Arc<_>| me.renew(&live, &holds, &given_up).await;
            me.carry_out(by, carried).await
        })
    }

    fn acquire_all(&self, requests: Vec<Acquire>, by: Instant) -> StoreFuture<'_, AcquiredAll> {
        let me = Arc::clone(&self.0);
        self.in_a_task(move |given_up| async move {
            let carried = async |live: Arc<_>| me.acquire_all(&live, &requests, &given_up).await;
            me.carry_out(by, carried).await
        })
    }

    fn fence(&self, claim: Claim, by: Instant) -> StoreFuture<'_, Fenced> {
        let me = Arc::clone(&self.0);
        self.in_a_task(move |given_up| async move {
            let carried = async |live: Arc<_>| me.fence(&live, &claim, &given_up).await;
            me.carry_out(by, carried).await
        })
    }

    fn release(&self, requests: Vec<Release>, by: Instant) -> StoreFuture<'_, Vec<Released>> {
        let me = Arc::clone(&self.0);
        self.in_a_task(move |given_up| async move {
            let carried = async |live: Arc<_>| me.release(&live, &requests, &given_up).await;
            me.carry_out(by, carried).await
        })
    }

    fn shrink(&self, claim: Claim, permits: u32, by: Instant) -> StoreFuture<'_, Released> {
        let me = Arc::clone(&self.0);
        self.in_a_task(move |given_up| async move {
            let carried = async |live: Arc<_>| me.shrink(&live, &claim, permits, &given_up).await;
            me.carry_out(by, carried).await
        })
    }

    fn abandon(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Released> {
        let me = Arc::clone(&self.0);
        self.in_a_task(move |given_up| async move {
            let carried = async |live: Arc<_>| me.abandon(&live, &request, &given_up).await;
            let abandoned = me.carry_out(by, carried).await;
            if abandoned.is_err() {
                me.keep_undoing(request);
            }
            abandoned
        })
    }

    fn inspect(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<LockFound>> {
        Box::pin(async move {
            let key = &key;
            let inspect = async |live: Arc<_>| self.0.inspect(&live, key).await;
            self.carry_out(by, inspect).await
        })
    }

    fn holders(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<Vec<FoundHolder>>> {
        Box::pin(async move {
            let key = &key;
            let holders = async |live: Arc<_>| self.0.holders(&live, key).await;
            self.carry_out(by, holders).await
        })
    }

    fn force_release(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<bool>> {
        Box::pin(async move {
            let key = &key;
            let end = async |live: Arc<_>| self.0.force_release(&live, key).await;
            self.carry_out(by, end).await
        })
    }

    fn capabilities(&self) -> Capabilities {
        capabilities(self.settings.session)
    }

    fn tell(&self, to: ClientId, message: ClientMessage, by: Instant) -> Asked<'_, bool> {
        Box::pin(async move {
            let message = &message;
            let tell = async |live: Arc<_>| self.0.tell(&live, to, message).await;
            let told = self.carry_out(by, tell).await;
            told.map(|told| told.value).map_err(|failure| failure.error)
        })
    }

    fn ping(&self, by: Instant) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            // A reading that a majority of the members stands behind.
            let ping = async |live: Arc<Live>| {
                let read = live.txn(Vec::new(), Vec::new(), Vec::new(), None);
                read.await.map(drop)
            };
            self.carry_out(by, ping).await
        })
    }

    fn connected(&self, by: Instant) -> Asked<'_, ()> {
        Box::pin(async move { self.session.connecting.live(by).await.map(drop) })
    }

    fn is_connected(&self) -> bool {
        self.session.connecting.live_now().is_some()
    }

    fn servers(&self, by: Instant) -> Asked<'_, Vec<ServerHealth>> {
        Box::pin(async move { self.0.servers(&self.transport, by).await })
    }

    fn link(&self) -> Link {
        self.session.connecting.link()
    }

    fn finish(&self, by: Instant) -> Finished<'_> {
        Box::pin(async move { self.0.finish(by).await })
    }

    fn close(&self) {
        self.0.close();
    }

    fn is_closed(&self) -> bool {
        self.session.connecting.is_closed()
    }
}

/// Sessions of servers with the default timing are no longer, whatever the URL asks for.
const LATE: Duration = Duration::from_secs(10);

/// What etcd can do, if sessions last so long.
pub(crate) fn capabilities(session: Duration) -> Capabilities {
    let mut can = Capabilities::all();
    let no_clock = "rate limiters are not available on etcd, whose servers show no clock; use \
                    another engine for them";
    can.rate = Ability::no(no_clock);
    can.exact_rate = Ability::no(no_clock);
    can.latch = Ability::no(
        "latches are not available on etcd, whose servers show no clock to end them by; use \
         another engine for them",
    );
    can.most_keys = Some(MOST);
    can.lingers = Lingers::Lease;
    // What is under way in a session ends with it. Servers may grant a longer one than asked for.
    can.late = Some(session.max(LATE));
    can.fails_over = true;
    can
}
