//! What is ZooKeeper's own, of an engine whose servers keep the requests in their order.

use std::sync::Arc;
use std::time::Duration;

use lock_store::ordered::{self, Attempt, Connecting, KeyNode, OrderedEngine, carry_out};
use lock_store::{
    Ability, Acquire, Acquired, AcquiredAll, Asked, Capabilities, Instant, Lingers, LockKey,
    StoreError, StoreErrorKind,
};

use crate::connection::Live;
use crate::errors::{Fault, code, of_code};
use crate::names::{self, Child, NodeLayout};
use crate::own_children::OwnDetails;
use crate::progress::AttemptsProgress;
use crate::rank::Listing;
use crate::store::{Carried, ZooKeeperEngine};
use crate::wire::{self, Stat};

impl OrderedEngine for ZooKeeperEngine {
    // A server carries out what was sent, in its order, whether or not somebody waits for it.
    const ALL_GO_ON: bool = false;

    type Live = Live;
    type Refusal = i32;
    type Child = Child;
    type Details = OwnDetails;
    type Read = Option<Stat>;
    type Progress = AttemptsProgress;

    fn connecting(&self) -> &Connecting<Live> {
        &self.session.connecting
    }

    fn capabilities(&self) -> Capabilities {
        capabilities(self.settings.session, self.settings.layout)
    }

    fn node(&self, key: &LockKey) -> KeyNode {
        let settings = &self.settings;
        names::of_key(settings.layout, &settings.chroot, &self.namespace, key)
    }

    fn refusal(why: Option<i32>, server: &str) -> StoreError {
        let text = || format!("{server}: its answer can't be read");
        let strange = || StoreError::new(StoreErrorKind::Refused, text());
        why.map_or_else(strange, |why| of_code(why, server))
    }

    fn trusted_until(&self, live: &Live, _: &Child) -> Option<Instant> {
        Some(live.trusted_until())
    }

    async fn acquire(&self, on: &Attempt<'_, Self>, request: &Acquire) -> Carried<Acquired> {
        match self.acquire(on, request).await {
            // The key's node, or one above it, is another program's and ends with that.
            Err(Fault::Refused(code::EPHEMERAL_PARENT)) => Ok(Acquired::Conflict),
            acquired => acquired,
        }
    }

    async fn acquire_all(
        &self,
        on: &Attempt<'_, Self>,
        requests: &[Acquire],
    ) -> Carried<AcquiredAll> {
        self.acquire_all(on, requests).await
    }

    async fn ping(&self, live: &Arc<Live>) -> Carried<()> {
        live.send(wire::sync()).reply().await.map(drop)
    }

    /// The chroot of the URL is there.
    async fn check(&self, live: &Arc<Live>) -> Carried<()> {
        match self.settings.chroot.as_str() {
            "" => Ok(()),
            chroot => live.send(wire::exists(chroot)).reply().await.map(drop),
        }
    }

    /// Makes the chroot of the URL, and the node of the namespace.
    fn migrate(self: &Arc<Self>, by: Instant) -> Asked<'_, ()> {
        Box::pin(async move {
            let me = &**self;
            let made = carry_out(me, by, async |live| me.make_chroot(&live).await).await;
            made.map(drop).map_err(|failure| failure.error)
        })
    }

    fn close(&self) {
        self.session.close();
        self.ends.notify_one();
    }

    async fn list(&self, live: &Arc<Live>, node: &KeyNode) -> Carried<Listing> {
        let reply = live.send(wire::children(&node.path, false)).reply().await;
        self.listing(node, reply.map(Some))
    }

    /// A follower may be behind, and show what was released elsewhere. What this session has made
    /// needs no such question: the reply to it shows that the follower is that far.
    async fn list_all_done(&self, live: &Arc<Live>, node: &KeyNode) -> Carried<Listing> {
        let synced = live.send(wire::sync());
        let listing = self.list(live, node).await;
        synced.reply().await?;
        listing
    }

    async fn delete_child(&self, live: &Arc<Live>, node: &KeyNode, child: &Child) -> Carried<bool> {
        self.delete(live, &node.child(&child.name)).await
    }

    fn forget_session(&self, number: i64) {
        let mut requests = self.own.lock();
        requests.retain(|own| own.details.session != number);
    }
}

/// What ZooKeeper can do, if sessions last so long.
pub(crate) fn capabilities(session: Duration, layout: NodeLayout) -> Capabilities {
    let mut can = ordered::capabilities("ZooKeeper");
    if layout == NodeLayout::Curator {
        can.shares = Ability::no(
            "read-write locks and semaphores are not available in the layout `curator`, which is \
             that of Curator's InterProcessMutex; use this library's own layout for them",
        );
        can.kept = Ability::no(
            "`hold_at_least` is not available in the layout `curator`: what it keeps is a node \
             that outlives its client, and Curator, which never ends one, would wait for ever; \
             use this library's own layout for it",
        );
    }
    can.lingers = Lingers::AtMost(session);
    // What is under way in a session ends with it.
    can.carried_out_within = Some(session);
    can
}
