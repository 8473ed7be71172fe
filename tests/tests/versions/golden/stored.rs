//! What two clients leave in a store, and what two others make of it.

use std::time::Duration;

use lock_store::{
    Acquired, Busy, Fenced, Holder, LatchCall, LatchCounted, LatchFound, LatchSet, Permits, Queue,
    RateRequest, Rated, Released, Renewed,
};
use lock_testkit::{eventually, wall_micros};

use crate::clients::{A, B, Clients, LEASE, READ, WRITE, by, claim, owner, permits};

fn call(client: lock_store::ClientId, request: u64) -> LatchCall {
    LatchCall::new("latch".into(), owner(client, request), Some(wall_micros()))
}

/// Five tokens, one a minute.
fn bucket(tokens: u32) -> RateRequest {
    let mut request = RateRequest::new("rate".into(), Duration::from_secs(60), 5);
    request.tokens = tokens;
    request
}

/// Five in ten minutes.
fn limit(tokens: u32) -> RateRequest {
    let mut request = RateRequest::at_most("limit".into(), 5, 10 * LEASE);
    request.tokens = tokens;
    request
}

/// Holds and places of each kind, latches and rates.
pub(super) async fn leave(clients: &Clients) {
    leave_locks(clients).await;
    let set = clients.a.latch_set(call(A, 8), 2, 10 * LEASE, by()).await;
    assert_eq!(set.unwrap().value, LatchSet::Set);
    let counted = clients.b.latch_count_down(call(B, 7), by()).await;
    assert_eq!(counted.unwrap().value, LatchCounted::Left(1));
    clients.b.latch_wait(call(B, 8), by()).await.unwrap();
    for two in [bucket(2), limit(2)] {
        let rated = clients.a.rate(two, by()).await.unwrap().value;
        assert!(matches!(rated, Rated::Passed { .. }), "{rated:?}");
    }
}

/// Holds and places of each kind of lock.
pub(super) async fn leave_locks(clients: &Clients) {
    let taken = async |key, client, request, permits, tokens| {
        clients
            .take(claim(key, owner(client, request), permits), tokens)
            .await;
    };
    let waits = async |key, client, request, permits, tokens| {
        clients
            .wait(claim(key, owner(client, request), permits), tokens)
            .await;
    };
    taken("exclusive", A, 1, None, 0).await;
    taken("fenced", A, 2, None, 1).await;
    taken("waited", A, 3, None, 0).await;
    waits("waited", B, 1, None, 0).await;
    waits("waited", B, 2, None, 16).await;
    // It is heard.
    waits("waited", B, 1, None, 0).await;
    taken("read", A, 4, READ, 0).await;
    taken("read", B, 3, READ, 0).await;
    waits("read", B, 4, WRITE, 1).await;
    taken("permits", A, 5, permits(2), 0).await;
    taken("permits", B, 5, permits(1), 0).await;
    waits("permits", B, 6, permits(3), 0).await;
    for (key, request, share) in [("kept", 6, None), ("kept-permits", 7, permits(2))] {
        taken(key, A, request, share, 0).await;
        clients
            .release(claim(key, owner(A, request), share), LEASE)
            .await;
    }
}

/// Understands all that.
pub(super) async fn find(clients: &Clients) {
    let found_at = wall_micros();
    clients.find_exclusive().await;
    clients.find_tokens(found_at).await;
    clients.find_places().await;
    clients.find_readers().await;
    clients.find_permits().await;
    clients.find_what_is_kept().await;
    clients.find_latch().await;
    clients.find_rate(bucket).await;
    clients.find_rate(limit).await;
}

impl Clients {
    pub(super) async fn is_busy(&self, key: &str, share: Option<Permits>) {
        let stranger = claim(key, owner(B, 99), share);
        let reply = self.acquire(stranger, Queue::Respect, 0).await.unwrap();
        let busy = matches!(reply, Acquired::Busy(Busy { queued: false, .. }));
        assert!(busy, "{key}: {reply:?}");
    }

    async fn holder(&self, key: &str) -> Holder {
        self.inspect(key).await.holder.unwrap().who()
    }

    async fn free(&self, key: &str, request: u64, share: Option<Permits>) {
        let claim = claim(key, owner(A, request), share);
        let released = self.release(claim, Duration::ZERO).await;
        assert_eq!(released, Released::Released, "{key}");
    }

    async fn await_grant(&self, request: u64) -> Option<u64> {
        let owner = owner(B, request);
        let granted = || {
            let granted = self.heard_by_b.granted.lock().unwrap();
            granted.iter().find(|(heard, _)| *heard == owner).copied()
        };
        eventually("it is told of its grant", async || granted().is_some()).await;
        granted().unwrap().1
    }

    async fn find_exclusive(&self) {
        let mine = || claim("exclusive", owner(A, 1), None);
        assert_eq!(self.holder("exclusive").await, Holder::Owner(owner(A, 1)));
        self.is_busy("exclusive", None).await;
        assert_ne!(self.renew(mine()).await, Renewed::Gone);
        let left = self.inspect("exclusive").await.remaining.unwrap();
        assert!(left > LEASE, "{left:?}");
        let other = claim("exclusive", owner(A, 2), None);
        assert_eq!(self.release(other, Duration::ZERO).await, Released::NotHeld);
        self.free("exclusive", 1, None).await;
        assert_eq!(self.inspect("exclusive").await.holder, None);
    }

    async fn find_tokens(&self, found_at: u64) {
        let mine = claim("fenced", owner(A, 2), None);
        let Fenced::Token(token) = self.a.fence(mine, by()).await.unwrap().value else {
            panic!("it is held");
        };
        assert!(token > found_at - 1_000_000, "{token}");
        self.free("fenced", 2, None).await;
        let next = self.take(claim("fenced", owner(B, 90), None), 1).await;
        assert!(next > Some(token), "{next:?} {token}");
    }

    async fn find_places(&self) {
        assert_eq!(self.inspect("waited").await.waiting, 2);
        for (request, tokens) in [(1, 0), (2, 16)] {
            self.wait(claim("waited", owner(B, request), None), tokens)
                .await;
        }
        assert_eq!(
            self.inspect("waited").await.waiting,
            2,
            "they have their places"
        );
        self.free("waited", 3, None).await;
        assert_eq!(self.await_grant(1).await, None);
        let first = claim("waited", owner(B, 1), None);
        assert_eq!(
            self.release(first, Duration::ZERO).await,
            Released::Released
        );
        assert!(self.await_grant(2).await.is_some());
    }

    async fn find_readers(&self) {
        assert_eq!(self.inspect("read").await.holders, 2);
        // A writer waits.
        self.is_busy("read", READ).await;
        self.wait(claim("read", owner(B, 4), WRITE), 1).await;
        assert_ne!(
            self.renew(claim("read", owner(A, 4), READ)).await,
            Renewed::Gone
        );
        self.free("read", 4, READ).await;
        let other = claim("read", owner(B, 3), READ);
        assert_eq!(
            self.release(other, Duration::ZERO).await,
            Released::Released
        );
        assert!(self.await_grant(4).await.is_some());
    }

    async fn find_permits(&self) {
        assert_eq!(self.inspect("permits").await.holders, 2);
        self.is_busy("permits", permits(3)).await;
        self.wait(claim("permits", owner(B, 6), permits(3)), 0)
            .await;
        self.free("permits", 5, permits(2)).await;
        assert_eq!(self.await_grant(6).await, None);
        // One of five is left.
        self.is_busy("permits", permits(2)).await;
    }

    async fn find_what_is_kept(&self) {
        for (key, request, share, whole) in [
            ("kept", 6, None, None),
            ("kept-permits", 7, permits(2), permits(4)),
        ] {
            self.is_busy(key, whole).await;
            let before = claim(key, owner(A, request), share);
            assert_eq!(self.renew(before.clone()).await, Renewed::Gone, "{key}");
            let released = self.release(before, Duration::ZERO).await;
            assert_eq!(released, Released::NotHeld, "{key}");
        }
        self.take(claim("kept-permits", owner(B, 91), permits(3)), 0)
            .await;
    }

    async fn find_latch(&self) {
        let found = self.a.latch_look("latch".into(), by()).await.unwrap().value;
        let LatchFound::Is(latch) = found else {
            panic!("{found:?}");
        };
        assert_eq!((latch.count, latch.opened), (1, 0));
        self.b.latch_wait(call(B, 8), by()).await.unwrap();
        for (call, left) in [(call(B, 7), 1), (call(B, 92), 0)] {
            let counted = self.b.latch_count_down(call, by()).await.unwrap().value;
            assert_eq!(counted, LatchCounted::Left(left));
        }
        assert_eq!(self.await_grant(8).await, Some(latch.generation));
    }

    async fn find_rate(&self, rate: fn(u32) -> RateRequest) {
        let limited = self.a.rate(rate(4), by()).await.unwrap().value;
        assert!(matches!(limited, Rated::Limited { .. }), "{limited:?}");
        let passed = self.a.rate(rate(3), by()).await.unwrap().value;
        let all = matches!(passed, Rated::Passed { left: 0, .. });
        assert!(all, "{passed:?}");
    }
}
