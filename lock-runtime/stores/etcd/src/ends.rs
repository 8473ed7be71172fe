//! The ends of leases, of waits, and of what stays taken after a release.
//!
//! What stays taken is a key under a lease of its own, so that it outlives its client. The client
//! ends it in time. If the client is gone, the servers end it, up to two seconds later.

use std::sync::Arc;

use lock_store::Instant;
use lock_store::ordered::{EndedRequest, EngineEnds, OwnRequest};

use crate::errors::Fault;
use crate::names::Child;
use crate::rank::OwnDetails;
use crate::store::{Carried, EtcdEngine};
use crate::wire;

/// What is over, and is to be deleted.
pub(crate) type EndedKey = EndedRequest<Child, OwnDetails>;

impl EngineEnds for EtcdEngine {
    /// Deletes a key, in a task, as often as it takes, unless it is another by now.
    fn bury(self: &Arc<Self>, key: EndedKey) {
        let (me, key) = (Arc::clone(self), Arc::new(key));
        let attempt = move |by| {
            let (me, key) = (Arc::clone(&me), Arc::clone(&key));
            async move {
                let is_closed = me.session.connecting.is_closed();
                is_closed || me.try_to_bury(&key, by).await.is_ok()
            }
        };
        self.burials.repeat(attempt, || {});
    }
}

impl EtcdEngine {
    async fn try_to_bury(&self, key: &EndedKey, by: Instant) -> Carried<()> {
        let live = self.session.connecting.live(by).await;
        let live = live.map_err(Fault::Lost)?;
        match key {
            EndedKey::Own(node, OwnRequest { child, .. }) => {
                // After what its owner has asked for: that may have revived it.
                let flight = Arc::new(live.begin(vec![child.owner]).await);
                let is_back = self.own.lock().same(node, child).is_some();
                if !is_back {
                    self.delete(&live, node, child, Some(&flight)).await?;
                }
            }
            EndedKey::Kept(path, revision) => {
                let same = vec![wire::changed_by(path, *revision)];
                let delete = vec![wire::delete(path)];
                live.txn(same, delete, Vec::new(), None).await?;
            }
        }
        Ok(())
    }
}
