//! The ends of leases, of waits, and of what stays taken after a release.
//!
//! What stays taken is a key under a lease of its own, so that it outlives its client. The client
//! ends it in time. If the client is gone, the servers end it, up to two seconds later.

use std::sync::Arc;
use std::time::Duration;

use crate::store::Inner;
use crate::wire::{self, Compare};

/// The pause after a deletion that has failed, and the limit of one.
const PAUSE: Duration = Duration::from_millis(100);
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
            for (path, condition) in ended {
                self.bury(path, condition);
            }
        }
    }

    /// Deletes a key, in a task, as often as it takes, unless it is another by now.
    pub(crate) fn bury(self: &Arc<Self>, path: String, condition: Compare) {
        let me = Arc::clone(self);
        self.burials.send_modify(|burials| *burials += 1);
        self.clock.spawn(async move {
            me.delete_if(&path, &condition).await;
            me.burials.send_modify(|burials| *burials -= 1);
        });
    }

    async fn delete_if(&self, path: &str, condition: &Compare) {
        while !self.session.is_closed() {
            let by = self.clock.now() + LIMIT;
            if let Ok(live) = self.session.live(by).await {
                let delete = vec![wire::delete(path)];
                let deleted = live.txn(vec![condition.clone()], delete, Vec::new(), None);
                if matches!(self.clock.by(by, deleted).await, Some(Ok(_))) {
                    return;
                }
            }
            self.clock.sleep_until(self.clock.now() + PAUSE).await;
        }
    }
}
