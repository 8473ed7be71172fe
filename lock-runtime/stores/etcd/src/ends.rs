//! The ends of leases, of waits, and of what stays taken after a release.
//!
//! What stays taken is a key under a lease of its own, so that it outlives its client. The client
//! ends it in time. If the client is gone, the servers end it, up to two seconds later.

use std::sync::Arc;
use std::time::Duration;

use lock_store::Instant;
use lock_store::timing::backoff;

use crate::errors::Fault;
use crate::holds::EndedKey;
use crate::store::{Carried, Inner};
use crate::wire;

/// The limit of a deletion.
const LIMIT: Duration = Duration::from_secs(5);

impl Inner {
    /// Ends what is over, until the client is closed.
    pub(crate) async fn end_in_time(self: Arc<Self>) {
        while !self.session.is_closed() {
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

    /// Deletes a key, in a task, as often as it takes, unless it is another by now.
    fn bury(self: &Arc<Self>, key: EndedKey) {
        let me = Arc::clone(self);
        self.burials.send_modify(|burials| *burials += 1);
        self.clock.spawn(async move {
            let mut failures = 0_u32;
            while !me.session.is_closed() {
                let by = me.clock.now() + LIMIT;
                let buried = me.clock.by(by, me.try_to_bury(&key, by)).await;
                if buried.is_some_and(|buried| buried.is_ok()) {
                    break;
                }
                // What is refused, as for want of rights, is refused for a while.
                failures = failures.saturating_add(1);
                me.clock
                    .sleep_until(me.clock.now() + backoff(failures))
                    .await;
            }
            me.burials.send_modify(|burials| *burials -= 1);
        });
    }

    async fn try_to_bury(&self, key: &EndedKey, by: Instant) -> Carried<()> {
        let live = self.session.live(by).await.map_err(Fault::Lost)?;
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
