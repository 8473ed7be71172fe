//! The store contract, verb by verb: commands are safe to repeat, and replies are true.

use std::sync::Arc;
use std::time::Duration;

use crate::{Backend, Heard, eventually};
use lock_store::Clock;
use lock_store::{
    Acquire, Acquired, Busy, Claim, ClientId, Fenced, FoundHolder, Granted, Holder, Instant,
    Listener, Owner, Queue, Release, Released, Renewal, Renewed, Store,
};

super::on_every_store!(
    an_acquire_repeated_by_its_owner_is_granted_again,
    a_place_in_the_queue_is_kept_by_repeats_and_left_by_abandon,
    only_the_owner_renews_releases_and_fences,
    a_release_repeated_is_not_held,
    a_kept_key_has_no_owner_any_more,
    an_abandon_undoes_a_grant,
    a_renewal_never_shortens_and_never_makes_a_key,
    a_free_lock_goes_to_the_head_of_its_queue_unless_a_request_barges,
    a_place_whose_client_is_gone_is_dropped,
);

super::without_a_queue!(a_release_repeated_is_not_held, an_abandon_undoes_a_grant,);

/// A store with two clients, and what they hear.
pub(super) struct Two {
    pub(super) stores: [Arc<dyn Store>; 2],
    pub(super) heard: [Arc<Heard>; 2],
    subscribes_later: bool,
}

pub(super) const LEASE: Duration = Duration::from_secs(10);

impl Two {
    pub(super) fn new(backend: &Backend) -> Self {
        let heard = [Arc::<Heard>::default(), Arc::default()];
        let store = |number: usize| -> Arc<dyn Store> {
            let clock = Clock::new(tokio::runtime::Handle::current());
            let listener: Arc<dyn Listener> = heard[number].clone();
            let id = ClientId(number as u128 + 1);
            backend.store(id, &listener, clock)
        };
        Self {
            stores: [store(0), store(1)],
            heard: heard.clone(),
            subscribes_later: backend.subscribes_later(),
        }
    }

    /// Waits until the client of this owner hears.
    pub(super) async fn hears(&self, owner: Owner) {
        if self.subscribes_later {
            self.heard[store_of(owner)].until_hearing().await;
        }
    }

    /// Waits until both clients hear and both stores have answered. Then a lease that begins is
    /// spent on what the test does, and not on their connections.
    pub(super) async fn await_both(&self) {
        for (client, store) in self.stores.iter().enumerate() {
            self.hears(owner(client, 0)).await;
            store.ping(by()).await.unwrap();
        }
    }

    pub(super) async fn acquire(&self, owner: Owner, fence: bool, queue: Queue) -> Acquired {
        if queue == Queue::Join {
            self.hears(owner).await;
        }
        self.stores[store_of(owner)]
            .acquire(request(owner, fence, queue), by())
            .await
            .unwrap()
            .value
    }

    pub(super) async fn release(&self, owner: Owner) -> Released {
        let request = Release::new(claim("k", owner), Duration::ZERO);
        self.stores[store_of(owner)]
            .release(vec![request], by())
            .await
            .unwrap()
            .value[0]
    }

    async fn renew(&self, owner: Owner, lease: Duration) -> Vec<Renewed> {
        let renewals = vec![
            Renewal::new(claim("other", owner), lease),
            Renewal::new(claim("k", owner), lease),
        ];
        self.stores[store_of(owner)]
            .renew(renewals, by())
            .await
            .unwrap()
            .value
    }

    async fn remaining(&self) -> Option<Duration> {
        let inspection = self.stores[0]
            .inspect("k".into(), by())
            .await
            .unwrap()
            .value
            .unwrap();
        inspection.remaining
    }

    /// Not judged by the time left: a key with less than a millisecond left is held and has zero.
    async fn has(&self, owner: Owner) -> bool {
        let holders = self.stores[0]
            .holders("k".into(), by())
            .await
            .unwrap()
            .value;
        let has = |holder: &FoundHolder| holder.who() == Holder::Owner(owner);
        holders.unwrap().iter().any(has)
    }

    async fn waiting(&self) -> usize {
        self.stores[0]
            .inspect("k".into(), by())
            .await
            .unwrap()
            .value
            .unwrap()
            .waiting
    }
}

pub(super) fn by() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

pub(super) fn owner(client: usize, request: u64) -> Owner {
    Owner {
        client: ClientId(client as u128 + 1),
        request,
    }
}

pub(super) fn store_of(owner: Owner) -> usize {
    usize::try_from(owner.client.0 - 1).unwrap()
}

pub(super) fn claim(key: &str, owner: Owner) -> Claim {
    Claim::new(key.into(), owner, None)
}

pub(super) fn request(owner: Owner, fence: bool, queue: Queue) -> Acquire {
    let mut request = Acquire::new(claim("k", owner), LEASE);
    request.first_lease = LEASE / 5;
    request.tokens = fence.into();
    request.queue = queue;
    request
}

pub(super) fn is_granted(reply: Acquired) -> bool {
    matches!(reply, Acquired::Granted(_))
}

async fn an_acquire_repeated_by_its_owner_is_granted_again(backend: Backend) {
    let two = Two::new(&backend);
    let (mine, other) = (owner(0, 1), owner(1, 1));
    assert_eq!(
        two.acquire(mine, false, Queue::Barge).await,
        Acquired::granted(None)
    );
    assert!(is_granted(two.acquire(mine, false, Queue::Respect).await));
    let Acquired::Granted(Granted {
        token: Some(first), ..
    }) = two.acquire(mine, true, Queue::Join).await
    else {
        panic!()
    };
    let Acquired::Granted(Granted {
        token: Some(second),
        ..
    }) = two.acquire(mine, true, Queue::Join).await
    else {
        panic!()
    };
    assert!(second > first, "a repeat brings a fresh token");
    assert!(matches!(
        two.acquire(other, false, Queue::Barge).await,
        Acquired::Busy(Busy { queued: false, .. })
    ));
    let Acquired::Busy(Busy {
        remaining,
        queued: false,
        ..
    }) = two.acquire(other, false, Queue::Respect).await
    else {
        panic!()
    };
    backend.check_rest(remaining, |left| left <= LEASE && left > LEASE / 2);
    assert_eq!(two.waiting().await, 0);
}

async fn a_place_in_the_queue_is_kept_by_repeats_and_left_by_abandon(backend: Backend) {
    let two = Two::new(&backend);
    let (holder, first, second) = (owner(0, 1), owner(1, 1), owner(1, 2));
    assert!(is_granted(two.acquire(holder, false, Queue::Barge).await));
    for _ in 0..3 {
        for waiter in [first, second] {
            assert!(matches!(
                two.acquire(waiter, true, Queue::Join).await,
                Acquired::Busy(Busy { queued: true, .. })
            ));
        }
    }
    assert_eq!(two.waiting().await, 2);
    let abandoned = two.stores[1]
        .abandon(request(first, true, Queue::Join), by())
        .await
        .unwrap()
        .value;
    assert_eq!((abandoned, two.waiting().await), (Released::NotHeld, 1));
    assert_eq!(two.release(holder).await, Released::Released);
    eventually("the second hears of its grant", async || {
        !two.heard[1].0.lock().unwrap().is_empty()
    })
    .await;
    let heard = two.heard[1].0.lock().unwrap().clone();
    assert!(
        matches!(heard[..], [(granted, Some(_))] if granted == second),
        "{heard:?}"
    );
    // The first lease is short.
    backend.check_rest(two.remaining().await, |left| left <= LEASE / 5);
    assert!(
        is_granted(two.acquire(second, true, Queue::Join).await),
        "and a repeat finds the grant"
    );
    backend.check_rest(two.remaining().await, |left| left > LEASE / 2);
}

async fn only_the_owner_renews_releases_and_fences(backend: Backend) {
    let two = Two::new(&backend);
    let (mine, other) = (owner(0, 1), owner(1, 1));
    assert!(is_granted(two.acquire(mine, false, Queue::Barge).await));
    assert_eq!(
        two.renew(other, LEASE).await,
        [Renewed::Gone, Renewed::Gone]
    );
    assert_eq!(two.release(other).await, Released::NotHeld);
    assert_eq!(
        two.stores[1]
            .fence(claim("k", other), by())
            .await
            .unwrap()
            .value,
        Fenced::Gone
    );
    let abandoned = two.stores[1]
        .abandon(request(other, false, Queue::Join), by())
        .await
        .unwrap()
        .value;
    assert_eq!(abandoned, Released::NotHeld);
    assert!(matches!(
        two.stores[0]
            .fence(claim("k", mine), by())
            .await
            .unwrap()
            .value,
        Fenced::Token(_)
    ));
    assert_eq!(two.release(mine).await, Released::Released);
}

async fn a_release_repeated_is_not_held(backend: Backend) {
    let two = Two::new(&backend);
    let (mine, other) = (owner(0, 1), owner(1, 1));
    assert!(is_granted(two.acquire(mine, false, Queue::Barge).await));
    assert_eq!(two.release(mine).await, Released::Released);
    assert!(is_granted(two.acquire(other, false, Queue::Barge).await));
    assert_eq!(two.release(mine).await, Released::NotHeld);
    assert_eq!(two.release(other).await, Released::Released);
}

async fn a_kept_key_has_no_owner_any_more(backend: Backend) {
    let two = Two::new(&backend);
    let (mine, other) = (owner(0, 1), owner(1, 1));
    assert!(is_granted(two.acquire(mine, false, Queue::Barge).await));
    let keep = Release::new(claim("k", mine), LEASE);
    assert_eq!(
        two.stores[0].release(vec![keep], by()).await.unwrap().value,
        [Released::Released]
    );
    // A renewal or a repeat that was under way must neither prolong the kept key nor end it.
    assert_eq!(
        two.renew(mine, LEASE * 6).await,
        [Renewed::Gone, Renewed::Gone]
    );
    assert_eq!(two.release(mine).await, Released::NotHeld);
    let again = two.acquire(mine, false, Queue::Respect).await;
    assert!(matches!(again, Acquired::Busy(_)), "{again:?}");
    assert!(matches!(
        two.acquire(other, false, Queue::Barge).await,
        Acquired::Busy(_)
    ));
    backend.check_rest(two.remaining().await, |left| left <= LEASE);
}

async fn an_abandon_undoes_a_grant(backend: Backend) {
    let two = Two::new(&backend);
    let (mine, other) = (owner(0, 1), owner(1, 1));
    assert!(is_granted(two.acquire(mine, true, Queue::Join).await));
    let abandon = || two.stores[0].abandon(request(mine, true, Queue::Join), by());
    assert_eq!(abandon().await.unwrap().value, Released::Released);
    assert_eq!(abandon().await.unwrap().value, Released::NotHeld);
    assert!(is_granted(two.acquire(other, false, Queue::Barge).await));
}

async fn a_renewal_never_shortens_and_never_makes_a_key(backend: Backend) {
    let two = Two::new(&backend);
    let mine = owner(0, 1);
    assert!(is_granted(two.acquire(mine, false, Queue::Barge).await));
    assert_eq!(
        two.renew(mine, LEASE * 6).await,
        [Renewed::Gone, Renewed::Renewed]
    );
    backend.check_rest(two.remaining().await, |left| left > LEASE * 5);
    assert_eq!(
        two.renew(mine, LEASE / 10).await,
        [Renewed::Gone, Renewed::Renewed]
    );
    backend.check_rest(two.remaining().await, |left| left > LEASE * 5);
    assert_eq!(two.release(mine).await, Released::Released);
    assert_eq!(two.renew(mine, LEASE).await, [Renewed::Gone, Renewed::Gone]);
    assert_eq!(backend.leftovers().await, 0);
}

async fn a_free_lock_goes_to_the_head_of_its_queue_unless_a_request_barges(backend: Backend) {
    let two = Two::new(&backend);
    let (gone, first, second, late) = (owner(0, 1), owner(1, 1), owner(1, 2), owner(0, 2));
    two.await_both().await;
    let mut brief = request(gone, false, Queue::Barge);
    brief.lease = LEASE / 5;
    assert!(is_granted(
        two.stores[0].acquire(brief, by()).await.unwrap().value
    ));
    for waiter in [first, second] {
        assert!(matches!(
            two.acquire(waiter, false, Queue::Join).await,
            Acquired::Busy(Busy { queued: true, .. })
        ));
    }
    eventually("the lease ends", async || !two.has(gone).await).await;
    // The second one looks first. The lock goes to the head all the same.
    assert!(matches!(
        two.acquire(second, false, Queue::Join).await,
        Acquired::Busy(Busy { queued: true, .. })
    ));
    eventually("the head hears of it", async || {
        *two.heard[1].0.lock().unwrap() == [(first, None)]
    })
    .await;
    assert_eq!(two.waiting().await, 1);
    assert!(matches!(
        two.acquire(late, false, Queue::Respect).await,
        Acquired::Busy(Busy { queued: false, .. })
    ));
    assert!(is_granted(two.acquire(first, false, Queue::Join).await));
}

async fn a_place_whose_client_is_gone_is_dropped(backend: Backend) {
    for released in [true, false] {
        let mut two = Two::new(&backend);
        let (holder, gone, next) = (owner(0, 1), owner(1, 1), owner(0, 2));
        let lease = if released { LEASE } else { LEASE / 5 };
        two.await_both().await;
        let mut first = request(holder, false, Queue::Barge);
        first.lease = lease;
        let granted = two.stores[0].acquire(first, by()).await.unwrap().value;
        assert!(is_granted(granted));
        for waiter in [gone, next] {
            assert!(matches!(
                two.acquire(waiter, false, Queue::Join).await,
                Acquired::Busy(Busy { queued: true, .. })
            ));
        }
        // Both its store and its listener end.
        two.stores[1] = Arc::clone(&two.stores[0]);
        two.heard[1] = Arc::clone(&two.heard[0]);
        eventually("the server noticed", async || backend.channels().await <= 1).await;
        if released {
            assert_eq!(two.release(holder).await, Released::Released);
            eventually("the next one hears of its grant", async || {
                *two.heard[0].0.lock().unwrap() == [(next, None)]
            })
            .await;
        } else {
            eventually("the lease ends", async || !two.has(holder).await).await;
        }
        assert!(is_granted(two.acquire(next, false, Queue::Join).await));
        assert_eq!(two.waiting().await, 0);
        assert_eq!(two.release(next).await, Released::Released);
    }
}
