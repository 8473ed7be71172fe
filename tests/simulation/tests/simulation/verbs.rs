//! Each verb of the store contract, as a command over the network.

use std::time::{Duration, Instant};

use lock_runtime::LockKey;
use lock_store::{
    Acquire, Acquired, AcquiredAll, Claim, Fenced, Inspection, LatchRequest, Latched, Link,
    RateRequest, Rated, Release, Released, Renewal, Renewed, Store, StoreFuture,
};

use crate::network::Network;
use crate::world::now;

/// The engine counts an acquire that has not arrived when its lease is over as lost.
fn expires(lease: Duration) -> Option<Instant> {
    Some(now() + lease)
}

impl Store for Network {
    fn acquire(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Acquired> {
        let expires = expires(request.lease);
        self.command("acquire", expires, by, move |server| {
            server.acquire(&request)
        })
    }

    fn renew(&self, holds: Vec<Renewal>, by: Instant) -> StoreFuture<'_, Vec<Renewed>> {
        self.command("renew", None, by, move |server| server.renew(&holds))
    }

    fn acquire_all(&self, requests: Vec<Acquire>, by: Instant) -> StoreFuture<'_, AcquiredAll> {
        let lease = requests.iter().map(|request| request.lease).min();
        let expires = expires(lease.unwrap_or_default());
        self.command("acquire_all", expires, by, move |server| {
            server.acquire_all(&requests)
        })
    }

    fn fence(&self, claim: Claim, by: Instant) -> StoreFuture<'_, Fenced> {
        self.command("fence", None, by, move |server| server.fence(&claim))
    }

    fn release(&self, requests: Vec<Release>, by: Instant) -> StoreFuture<'_, Vec<Released>> {
        self.command("release", None, by, move |server| server.release(&requests))
    }

    fn shrink(&self, claim: Claim, permits: u32, by: Instant) -> StoreFuture<'_, Released> {
        self.command("shrink", None, by, move |server| {
            server.shrink(&claim, permits)
        })
    }

    fn resize(&self, key: LockKey, of: u32, by: Instant) -> StoreFuture<'_, bool> {
        self.command("resize", None, by, move |server| server.resize(&key, of))
    }

    fn abandon(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Released> {
        self.command("abandon", None, by, move |server| server.abandon(&request))
    }

    fn inspect(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<Inspection>> {
        self.command("inspect", None, by, move |server| server.inspect(&key))
    }

    fn force_release(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<bool>> {
        self.command("force_release", None, by, move |server| {
            server.force_release(&key)
        })
    }

    fn rate(&self, request: RateRequest, by: Instant) -> StoreFuture<'_, Rated> {
        self.command("rate", None, by, move |server| server.rate(&request))
    }

    fn latch(&self, request: LatchRequest, by: Instant) -> StoreFuture<'_, Latched> {
        // A place of a process that is gone is forgotten after a minute.
        let expires = expires(Duration::from_secs(1));
        self.command("latch", expires, by, move |server| server.latch(&request))
    }

    fn ping(&self, by: Instant) -> StoreFuture<'_, ()> {
        self.command("ping", None, by, |_| ())
    }

    fn link(&self) -> Link {
        self.wires.link()
    }

    fn close(&self) {
        self.wires.close();
        self.served.close();
    }

    fn is_closed(&self) -> bool {
        self.wires.is_closed()
    }
}
