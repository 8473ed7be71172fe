//! The common cases have a short way, which does the same as the long one with fewer commands.

use std::time::Duration;

use crate::Backend;
use lock_store::{Acquired, Busy, Queue};

use super::{FENCE, LOCK, QUEUE, Stored, request};
use crate::conformance::verbs::owner;

crate::conformance::on_one_server!(
    a_fenced_grant_of_a_free_lock_takes_the_short_way,
    the_short_way_leaves_nothing_if_the_counter_is_spoilt,
    a_release_that_nobody_waits_for_looks_for_no_waiters,
    a_request_with_a_place_asks_again_without_free_memory,
);

impl Stored {
    /// The first try of a request for a lock with a fencing token.
    async fn barge(&self, request_number: u64) -> Acquired {
        let mut request = request(owner(0, request_number), None, Queue::Barge);
        request.tokens = 1;
        self.ask(request).await
    }
}

async fn a_fenced_grant_of_a_free_lock_takes_the_short_way(backend: Backend) {
    let stored = Stored::settled(backend).await;
    // From now on the server knows the script.
    assert!(matches!(stored.barge(1).await, Acquired::Granted(_)));
    stored.free(owner(0, 1), None).await;
    let calls = async || {
        let server = stored.server();
        (
            server.command_calls("get").await,
            server.command_calls("del").await,
        )
    };
    let before = calls().await;
    let Acquired::Granted(granted) = stored.barge(2).await else {
        panic!("it is free");
    };
    let after = calls().await;
    // The counter is read, and the lock is not.
    assert_eq!((after.0 - before.0, after.1 - before.1), (1, 0));
    let counter: u64 = stored.server().query(&["GET", FENCE]).await;
    assert_eq!(granted.token, Some(counter));
    stored.assert_lives(FENCE, Duration::from_secs(86400)).await;
}

async fn the_short_way_leaves_nothing_if_the_counter_is_spoilt(backend: Backend) {
    let stored = Stored::on(backend);
    stored.command(&format!("SET {FENCE} x")).await;
    assert_eq!(stored.barge(1).await, Acquired::Conflict);
    assert_eq!(stored.number(&format!("EXISTS {LOCK}")).await, 0);
}

async fn a_release_that_nobody_waits_for_looks_for_no_waiters(backend: Backend) {
    let stored = Stored::settled(backend).await;
    let me = owner(0, 1);
    for again in [false, true] {
        stored.take(me, None).await;
        let before = stored.server().command_calls("zrange").await;
        stored.free(me, None).await;
        let after = stored.server().command_calls("zrange").await;
        assert_eq!(after, before, "{again}");
    }
    assert!(stored.server().keys("*").await.is_empty());
}

async fn a_request_with_a_place_asks_again_without_free_memory(backend: Backend) {
    let stored = Stored::on(backend);
    stored.take(owner(0, 1), None).await;
    stored.queue(owner(0, 2), None, 0).await;
    stored.command("CONFIG SET maxmemory 1").await;
    let again = stored.ask(request(owner(0, 2), None, Queue::Join)).await;
    stored.command("CONFIG SET maxmemory 0").await;
    let queued = matches!(again, Acquired::Busy(Busy { queued: true, .. }));
    assert!(queued, "{again:?}");
    assert_eq!(stored.number(&format!("ZCARD {QUEUE}")).await, 2);
}
