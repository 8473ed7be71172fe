//! The operations of the contract.

use std::sync::Arc;
use std::time::Duration;

use lock_store::{
    Ability, Acquire, Acquired, AcquiredAll, Asked, Capabilities, Claim, ClientId, ClientMessage,
    Failure, Fenced, Finished, FoundHolder, Instant, Lingers, Link, LockFound, LockKey, Release,
    Released, Renewal, Renewed, ServerHealth, Store, StoreFuture,
};

use crate::errors::{Fault, code, of_code};
use crate::names::NodeLayout;
use crate::release::SentEnds;
use crate::store::ZooKeeperStore;
use crate::wire;

impl Store for ZooKeeperStore {
    fn acquire(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Acquired> {
        let me = Arc::clone(&self.0);
        self.in_a_task(move |given_up| async move {
            let acquire = async |live: Arc<_>| me.acquire(&live, &request, &given_up).await;
            me.carry_out(by, acquire).await
        })
    }

    fn renew(&self, holds: Vec<Renewal>, by: Instant) -> StoreFuture<'_, Vec<Renewed>> {
        Box::pin(async move {
            let holds = &holds;
            let renew = async |live: Arc<_>| self.0.renew(&live, holds).await;
            self.carry_out(by, renew).await
        })
    }

    fn acquire_all(&self, requests: Vec<Acquire>, by: Instant) -> StoreFuture<'_, AcquiredAll> {
        let me = Arc::clone(&self.0);
        self.in_a_task(move |given_up| async move {
            let acquire = async |live: Arc<_>| me.acquire_all(&live, &requests, &given_up).await;
            me.carry_out(by, acquire).await
        })
    }

    fn fence(&self, claim: Claim, by: Instant) -> StoreFuture<'_, Fenced> {
        Box::pin(async move {
            let claim = &claim;
            let fence = async |live: Arc<_>| self.0.fence(&live, claim).await;
            self.carry_out(by, fence).await
        })
    }

    fn release(&self, requests: Vec<Release>, by: Instant) -> StoreFuture<'_, Vec<Released>> {
        Box::pin(async move {
            let requests = &requests;
            let sent = &SentEnds::default();
            let release = async |live: Arc<_>| self.0.release(&live, requests, sent).await;
            self.carry_out(by, release).await
        })
    }

    fn shrink(&self, claim: Claim, permits: u32, by: Instant) -> StoreFuture<'_, Released> {
        Box::pin(async move {
            let claim = &claim;
            let shrink = async |live: Arc<_>| self.0.shrink(&live, claim, permits).await;
            self.carry_out(by, shrink).await
        })
    }

    fn abandon(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Released> {
        Box::pin(async move {
            let abandon = async |live: Arc<_>| self.0.abandon(&live, &request).await;
            let abandoned = self.carry_out(by, abandon).await;
            if abandoned.is_err() {
                self.0.keep_undoing(request);
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
        capabilities(self.settings.session, self.settings.layout)
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
            let ping = async |live: Arc<crate::connection::Live>| {
                live.send(wire::sync()).reply().await.map(drop)
            };
            self.carry_out(by, ping).await
        })
    }

    fn connected(&self, by: Instant) -> Asked<'_, ()> {
        Box::pin(async move {
            let live = self.session.connecting.live(by).await?;
            if self.settings.chroot.is_empty() {
                return Ok(());
            }
            let look = async |live: Arc<crate::connection::Live>| match live
                .send(wire::exists(&self.settings.chroot))
                .reply()
                .await
            {
                Ok(_) => Ok(true),
                Err(Fault::Refused(code::NO_NODE)) => Ok(false),
                Err(fault) => Err(fault),
            };
            let found = self.carry_out(by, look).await;
            match found.map_err(|failure: Failure| failure.error)?.value {
                true => Ok(()),
                false => Err(of_code(code::NO_NODE, &live.server)),
            }
        })
    }

    /// Makes the chroot of the URL, and the node of the namespace.
    fn migrate(&self, by: Instant) -> Asked<'_, ()> {
        Box::pin(async move {
            let make = async |live: Arc<_>| self.0.make_chroot(&live).await;
            let made = self.carry_out(by, make).await;
            made.map(drop).map_err(|failure| failure.error)
        })
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
        Box::pin(async move { self.burials.finish(by).await })
    }

    fn close(&self) {
        self.0.close();
    }

    fn is_closed(&self) -> bool {
        self.session.connecting.is_closed()
    }
}

/// What ZooKeeper can do, if sessions last so long.
pub(crate) fn capabilities(session: Duration, layout: NodeLayout) -> Capabilities {
    let mut can = Capabilities::all();
    let no_clock = "rate limiters are not available on ZooKeeper, whose servers show no clock; use \
                    another engine for them";
    can.rate = Ability::no(no_clock);
    can.exact_rate = Ability::no(no_clock);
    can.latch = Ability::no(
        "latches are not available on ZooKeeper, whose servers show no clock to end them by; use \
         another engine for them",
    );
    if layout == NodeLayout::Curator {
        can.shares = Ability::no(
            "read-write locks and semaphores are not available in the layout `curator`, which is \
             that of Curator's InterProcessMutex; use this library's own layout for them",
        );
    }
    can.lingers = Lingers::AtMost(session);
    // What is under way in a session ends with it.
    can.late = Some(session);
    can.fails_over = true;
    can
}
