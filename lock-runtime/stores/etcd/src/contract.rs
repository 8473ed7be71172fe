//! What is etcd's own, of an engine whose servers keep the requests in their order.

use std::sync::Arc;
use std::time::Duration;

use lock_store::ordered::{self, Attempt, Connecting, KeyNode, OrderedEngine, gone};
use lock_store::{
    Acquire, Acquired, AcquiredAll, Capabilities, Finished, Instant, Lingers, LockKey, StoreError,
};

use crate::base::TokenSource;
use crate::connection::Live;
use crate::errors::{of_status, strange};
use crate::grpc::Status;
use crate::names::{self, Child};
use crate::progress::AttemptsProgress;
use crate::rank::{Listing, OwnDetails};
use crate::store::{Carried, EtcdEngine, reads_with_base, revoke};
use crate::together::MOST;

impl OrderedEngine for EtcdEngine {
    // A call in flight keeps the order of its owner.
    const ALL_GO_ON: bool = true;

    type Live = Live;
    type Refusal = Status;
    type Child = Child;
    type Details = OwnDetails;
    type Read = TokenSource;
    type Progress = AttemptsProgress;

    fn connecting(&self) -> &Connecting<Live> {
        &self.session.connecting
    }

    fn capabilities(&self) -> Capabilities {
        capabilities(self.settings.session)
    }

    fn node(&self, key: &LockKey) -> KeyNode {
        names::of_key(&self.settings.prefix, &self.namespace, key)
    }

    fn refusal(why: Option<Status>, server: &str) -> StoreError {
        why.map_or_else(|| strange(server), |why| of_status(&why, server))
    }

    fn trusted_until(&self, _: &Live, child: &Child) -> Option<Instant> {
        self.session.leases.trusted_until(child.lease)
    }

    async fn acquire(&self, on: &Attempt<'_, Self>, request: &Acquire) -> Carried<Acquired> {
        self.acquire(on, request).await
    }

    async fn acquire_all(
        &self,
        on: &Attempt<'_, Self>,
        requests: &[Acquire],
    ) -> Carried<AcquiredAll> {
        self.acquire_all(on, requests).await
    }

    /// A reading that a majority of the members stands behind.
    async fn ping(&self, live: &Arc<Live>) -> Carried<()> {
        let read = live.txn(Vec::new(), Vec::new(), Vec::new(), None);
        read.await.map(drop)
    }

    /// Waits until nothing is being deleted that nobody waits for. If nothing is held any more,
    /// ends the leases, and waits for the servers' word.
    fn finish(&self, by: Instant) -> Finished<'_> {
        Box::pin(async move {
            self.burials.finish(by).await;
            if self.own.lock().all().any(|own| !own.standing.is_place()) {
                return;
            }
            if let Some(live) = self.session.connecting.live_now() {
                let revoked = self.unheld().into_iter().map(|id| {
                    let live = Arc::clone(&live);
                    async move { revoke(&live, id).await }
                });
                let all = futures_util::future::join_all(revoked);
                self.session.close();
                let _ = self.clock.by(by, all).await;
                live.end(gone(&live.server, "the client is closed"));
            }
        })
    }

    fn close(&self) {
        if let Some(live) = self.session.connecting.live_now() {
            let unheld = self.unheld();
            self.clock.spawn(async move {
                for id in unheld {
                    revoke(&live, id).await;
                }
                live.end(gone(&live.server, "the client is closed"));
            });
        }
        self.session.close();
        self.ends.notify_one();
    }

    async fn list(&self, live: &Arc<Live>, node: &KeyNode) -> Carried<Listing> {
        let sent = self.clock.now();
        let read = live.txn(Vec::new(), reads_with_base(node), Vec::new(), None);
        self.listing(node, &mut read.await?, sent)
    }

    async fn delete_child(&self, live: &Arc<Live>, node: &KeyNode, child: &Child) -> Carried<bool> {
        self.delete(live, node, child, None).await
    }

    /// A lease is over, and all that was under it.
    fn forget_session(&self, lease: i64) {
        self.own.lock().retain(|own| own.child.lease != lease);
    }
}

/// Sessions of servers with the default timing are no longer, whatever the URL asks for.
const LATE: Duration = Duration::from_secs(10);

/// What etcd can do, if sessions last so long.
pub(crate) fn capabilities(session: Duration) -> Capabilities {
    let mut can = ordered::capabilities("etcd");
    can.most_keys = Some(MOST);
    can.lingers = Lingers::Lease;
    // What is under way in a session ends with it. Servers may grant a longer one than asked for.
    can.carried_out_within = Some(session.max(LATE));
    can
}
