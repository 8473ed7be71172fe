//! What a store keeps for the namespaces of views (a subscription for each) is given up when
//! nothing of the client is there any more.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use lock_store::{LockKey, Namespace};
use tokio::sync::Notify;

use crate::engine::{Engine, sleep_unowned};

/// How often it is looked, as long as the store keeps anything.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The task. Ends with the engine.
pub(super) async fn forget_unused_views(engine: Weak<Engine>, used: Arc<Notify>) {
    loop {
        used.notified().await;
        loop {
            let Some(engine) = sleep_unowned(&engine, LOOK_EVERY).await else {
                return;
            };
            let in_use = engine.namespaces_in_use();
            let has_any = |namespace: &Namespace| in_use.contains(namespace);
            if !engine.store.forget_unused_views(&has_any) {
                break;
            }
        }
    }
}

impl Engine {
    /// A request for these keys begins.
    pub(in crate::engine) fn note_views(&self, keys: &[LockKey]) {
        if keys.iter().any(|key| key.namespace().is_some()) {
            self.views_used.notify_one();
        }
    }

    /// The namespaces of views that have holds or requests.
    fn namespaces_in_use(&self) -> HashSet<Namespace> {
        let mut in_use = HashSet::new();
        let mut note = |key: &LockKey| {
            if let Some(namespace) = key.namespace()
                && !in_use.contains(namespace)
            {
                in_use.insert(namespace.clone());
            }
        };
        self.watchdog.each_key(&mut note);
        self.local_queues.each_key(&mut note);
        self.latches.each_key(&mut note);
        in_use
    }
}
