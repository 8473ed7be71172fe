//! The ends of leases, of waits, and of what stays taken after a release.
//!
//! What stays taken is a key under a lease of its own, so that it outlives its client. The client
//! ends it in time. If the client is gone, the servers end it, up to two seconds later.

use std::sync::Arc;

use lock_store::{Acquire, Instant};

use crate::errors::Fault;
use crate::given_up::GivenUp;
use crate::holds::EndedKey;
use crate::store::{Carried, Inner};
use crate::wire;

impl Inner {
    /// Ends what is over, until the client is closed.
    pub(crate) async fn end_in_time(self: Arc<Self>) {
        while !self.session.connecting.is_closed() {
            let changed = self.ends.notified();
            let next = self.holds.lock().next_end();
            match next {
                None => changed.await,
                Some(at) => {
                    let _ = self.clock.by(at, changed).await;
                }
            }
            let ended = self.holds.lock().take_ended(self.clock.now());
            for key in ended {
                self.bury(key);
            }
        }
    }

    /// Undoes an acquire, in a task, as often as it takes. The engine tries that until a lease
    /// would have ended, but what it leaves here lasts for as long as the client does.
    pub(crate) fn keep_undoing(self: &Arc<Self>, request: Acquire) {
        let (me, owner) = (Arc::clone(self), request.claim.owner);
        let request = Arc::new(request);
        self.burials.undo(owner, move |by| {
            let (me, request) = (Arc::clone(&me), Arc::clone(&request));
            async move {
                let abandon =
                    async |live: Arc<_>| me.abandon(&live, &request, &GivenUp::default()).await;
                let is_closed = me.session.connecting.is_closed();
                is_closed || me.carry_out(by, abandon).await.is_ok()
            }
        });
    }

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

    async fn try_to_bury(&self, key: &EndedKey, by: Instant) -> Carried<()> {
        let live = self
            .session
            .connecting
            .live(by)
            .await
            .map_err(Fault::Lost)?;
        match key {
            EndedKey::Request(node, child) => {
                // After what its owner has asked for: that may have revived it.
                let flight = Arc::new(live.begin(vec![child.owner]).await);
                let own = self.holds.lock().get(node, child.owner).cloned();
                if own.is_none_or(|own| own.child.made != child.made) {
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
