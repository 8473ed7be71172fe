//! [`Store`] for [`RedisStore`]: the command for each method of the contract.

use std::slice;

use lock_store::{
    Asked, Capabilities, ClientId, ClientMessage, Instant, Link, LockKey, Logged, Namespace,
    ServerHealth, Store,
};

use crate::commands::tell::forget_unused_views;
use crate::layouts;
use crate::servers::Servers;
use crate::store::RedisStore;

impl Store for RedisStore {
    lock_store::boxed! {
        acquire: acquire_one, acquire_all: acquire_together, renew: renew_batch, fence: fence_now,
        release: release_batch, shrink: shrink_to, abandon: abandon_request, inspect: inspect_now,
        holders: holders_now, force_release: force_release_now, rate: take_tokens,
        latch_set: set_latch, latch_count_down: count_down_latch, latch_look: look_at_latch,
        latch_wait: wait_at_latch, latch_leave: leave_latch, ping: ping_servers,
    }

    fn foreign_lock(&self, key: LockKey, by: Instant) -> Asked<'_, Option<&'static str>> {
        Box::pin(layouts::lock_of_another_layout(self, key, by))
    }

    fn tell(&self, to: ClientId, message: ClientMessage, by: Instant) -> Asked<'_, bool> {
        Box::pin(async move { self.tell_client(to, &message, by).await })
    }

    fn forget_unused_views(&self, has_any: &dyn Fn(&Namespace) -> bool) -> bool {
        forget_unused_views(slice::from_ref(self), has_any)
    }

    fn await_connection(&self, by: Instant) -> Asked<'_, ()> {
        Box::pin(self.await_first_attempt(by))
    }

    fn is_connected(&self) -> bool {
        self.servers.is_up()
    }

    fn servers(&self, by: Instant) -> Asked<'_, Vec<ServerHealth>> {
        Box::pin(self.diagnose(by))
    }

    fn log_findings(&self, by: Instant) -> Logged<'_> {
        Box::pin(async move {
            if !self.is_diagnosed().await {
                // If this fails, the first request reports it.
                let _ = self.diagnose(by).await.map(drop);
            }
            self.is_diagnosed().await
        })
    }

    fn link(&self) -> Link {
        self.servers.link()
    }

    fn link_of(&self, key: &LockKey) -> Link {
        match &self.servers {
            Servers::One(connection) => connection.link(),
            Servers::Cluster(cluster) => cluster.link(self.namespace.slot(key)),
        }
    }

    fn capabilities(&self) -> Capabilities {
        let mut can = Capabilities::all();
        can.fails_over = self.fails_over;
        // A confirmation by replicas comes within the command's time, or not.
        can.tells_slow = self.replication.is_none();
        can
    }

    fn close(&self) {
        self.servers.close();
        if let Some(replication) = &self.replication {
            replication.close();
        }
    }

    fn is_closed(&self) -> bool {
        self.servers.is_closed()
    }
}
