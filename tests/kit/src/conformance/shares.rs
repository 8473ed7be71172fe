//! The store contract for holds in shares, verb by verb. `drift` in `lock-simulation` shows that
//! the embedded store and Redis agree.

use std::time::Duration;

use crate::{Backend, eventually};
use lock_store::{
    Acquire, Acquired, Busy, Claim, Fenced, Granted, LockFound, Owner, Permits, Queue, Release,
    Released, Renewal, Renewed,
};

use super::verbs::{LEASE, Two, by, owner, store_of};

super::on_every_store!(
    a_share_repeated_by_its_owner_counts_once,
    a_waiting_writer_is_not_overtaken_by_later_readers,
    readers_that_wait_next_to_each_other_enter_together_in_their_order,
    an_acquire_that_is_served_at_its_place_goes_on_to_those_behind_it,
    a_writer_that_leaves_the_queue_lets_the_readers_behind_it_in,
    a_waiting_writer_whose_client_is_gone_is_dropped_at_the_next_look,
    a_share_vanishes_with_its_own_lease_while_others_are_renewed,
    a_big_request_is_not_starved_by_small_ones,
    kinds_of_locks_conflict_in_both_orders,
    each_request_says_how_many_permits_there_are,
    the_first_of_the_queue_blocks_requests_with_a_larger_number,
    a_downgrade_lets_readers_in_and_no_writer_between,
    a_downgrade_may_be_repeated_and_raced_by_any_other_command,
    a_kept_share_stays_taken_and_has_no_owner,
    rests_of_one_owner_with_different_permits_stay_beside_each_other,
    a_writer_that_became_a_reader_leaves_a_readers_rest,
    a_forced_release_takes_all_shares_and_serves_the_queue,
    a_forced_release_to_a_client_that_is_gone_leaves_nothing_in_use,
    tokens_rise_over_readers_writers_and_nested_fences,
    a_renewal_of_a_share_concerns_its_owner_only,
    a_place_of_another_kind_holds_up_no_request,
);

const READ: Option<Permits> = Some(Permits::READ);
const WRITE: Option<Permits> = Some(Permits::WRITE);

fn permits(permits: u32, of: u32) -> Option<Permits> {
    Some(Permits { count: permits, of })
}

fn claim(owner: Owner, share: Option<Permits>) -> Claim {
    Claim::new("k".into(), owner, share)
}

fn request(owner: Owner, share: Option<Permits>, queue: Queue) -> Acquire {
    let mut request = Acquire::new(claim(owner, share), LEASE);
    request.first_lease = LEASE / 5;
    request.queue = queue;
    request
}

impl Two {
    async fn ask(&self, request: Acquire) -> Acquired {
        let owner = request.claim.owner;
        if request.queue == Queue::Join {
            self.hears(owner).await;
        }
        let store = &self.stores[store_of(owner)];
        store.acquire(request, by()).await.unwrap().value
    }

    async fn join(&self, owner: Owner, share: Option<Permits>) -> Acquired {
        self.ask(request(owner, share, Queue::Join)).await
    }

    /// Asks without queueing.
    async fn would(&self, owner: Owner, share: Option<Permits>) -> Acquired {
        self.ask(request(owner, share, Queue::Respect)).await
    }

    async fn take(&self, owner: Owner, share: Option<Permits>) {
        let reply = self.join(owner, share).await;
        assert!(matches!(reply, Acquired::Granted(_)), "{reply:?}");
    }

    async fn queue(&self, owner: Owner, share: Option<Permits>) {
        let reply = self.join(owner, share).await;
        let queued = matches!(reply, Acquired::Busy(Busy { queued: true, .. }));
        assert!(queued, "{reply:?}");
    }

    async fn busy(&self, owner: Owner, share: Option<Permits>) {
        let reply = self.would(owner, share).await;
        let queued = matches!(reply, Acquired::Busy(Busy { queued: false, .. }));
        assert!(queued, "{reply:?}");
    }

    async fn end(&self, owner: Owner, share: Option<Permits>, keep: Duration) -> Released {
        let release = Release::new(claim(owner, share), keep);
        let store = &self.stores[store_of(owner)];
        store.release(vec![release], by()).await.unwrap().value[0]
    }

    async fn free(&self, owner: Owner, share: Option<Permits>) {
        let released = self.end(owner, share, Duration::ZERO).await;
        assert_eq!(released, Released::Released);
    }

    async fn leave(&self, owner: Owner, share: Option<Permits>) -> Released {
        let request = request(owner, share, Queue::Join);
        let store = &self.stores[store_of(owner)];
        store.abandon(request, by()).await.unwrap().value
    }

    async fn renew_hold(&self, owner: Owner, share: Option<Permits>, lease: Duration) -> Renewed {
        let claim = claim(owner, share);
        let store = &self.stores[store_of(owner)];
        let renewal = vec![Renewal::new(claim, lease)];
        store.renew(renewal, by()).await.unwrap().value[0]
    }

    async fn shrink(&self, owner: Owner, share: Option<Permits>) -> Released {
        let store = &self.stores[store_of(owner)];
        let shrunk = store.shrink(claim(owner, share), 1, by()).await;
        shrunk.unwrap().value
    }

    async fn found(&self) -> LockFound {
        let found = self.stores[0].inspect("k".into(), by()).await;
        found.unwrap().value.unwrap()
    }

    async fn await_grants(&self, client: usize, owners: &[Owner]) {
        eventually("it hears of its grants", async || {
            let heard = self.heard[client].0.lock().unwrap();
            heard
                .iter()
                .map(|(owner, _)| *owner)
                .eq(owners.iter().copied())
        })
        .await;
    }

    /// The second client's process ends.
    async fn second_dies(&mut self, backend: &Backend) {
        self.stores[1] = self.stores[0].clone();
        self.heard[1] = self.heard[0].clone();
        eventually("the server noticed", async || backend.channels().await <= 1).await;
    }
}

async fn a_share_repeated_by_its_owner_counts_once(backend: Backend) {
    let two = Two::new(&backend);
    let of3 = permits(1, 3);
    for _ in 0..5 {
        two.take(owner(0, 1), of3).await;
    }
    two.take(owner(1, 1), permits(2, 3)).await;
    two.take(owner(1, 1), permits(2, 3)).await;
    two.busy(owner(0, 2), of3).await;
    assert_eq!(two.found().await.holders, 2);
    two.free(owner(0, 1), of3).await;
    assert_eq!(
        two.end(owner(0, 1), of3, Duration::ZERO).await,
        Released::NotHeld
    );
    two.take(owner(0, 2), of3).await;
    two.busy(owner(0, 3), of3).await;
    two.free(owner(0, 2), of3).await;
    two.free(owner(1, 1), permits(2, 3)).await;
    assert_eq!(backend.leftovers().await, 0);
}

async fn a_waiting_writer_is_not_overtaken_by_later_readers(backend: Backend) {
    let two = Two::new(&backend);
    let (first, writer, late, tries) = (owner(0, 1), owner(1, 1), owner(0, 2), owner(0, 3));
    two.take(first, READ).await;
    two.queue(writer, WRITE).await;
    for _ in 0..3 {
        two.queue(late, READ).await;
        two.busy(tries, READ).await;
    }
    assert_eq!(two.found().await.waiting, 2);
    two.free(first, READ).await;
    two.await_grants(1, &[writer]).await;
    two.queue(late, READ).await;
    two.take(writer, WRITE).await;
    two.free(writer, WRITE).await;
    two.await_grants(0, &[late]).await;
    two.take(late, READ).await;
    two.take(tries, READ).await;
}

async fn readers_that_wait_next_to_each_other_enter_together_in_their_order(backend: Backend) {
    let two = Two::new(&backend);
    let (writer, last) = (owner(0, 100), owner(1, 100));
    two.take(writer, WRITE).await;
    let readers: Vec<Owner> = (0..20).map(|number| owner(number % 2, 1)).collect();
    let readers: Vec<Owner> = readers
        .into_iter()
        .zip(1..)
        .map(|(reader, request)| Owner { request, ..reader })
        .collect();
    for reader in &readers {
        // The last of them is looked at many commands after its grant.
        let mut waits = request(*reader, READ, Queue::Join);
        waits.first_lease = LEASE;
        let reply = two.ask(waits).await;
        let queued = matches!(reply, Acquired::Busy(Busy { queued: true, .. }));
        assert!(queued, "{reply:?}");
    }
    two.queue(last, WRITE).await;
    two.queue(owner(0, 101), READ).await;
    two.free(writer, WRITE).await;
    for client in [0, 1] {
        let theirs = readers.iter().filter(|reader| store_of(**reader) == client);
        two.await_grants(client, &theirs.copied().collect::<Vec<_>>())
            .await;
    }
    let found = two.found().await;
    assert_eq!(
        (found.holders, found.waiting),
        (20, 2),
        "no reader behind the writer"
    );
    for reader in &readers {
        two.take(*reader, READ).await;
        two.free(*reader, READ).await;
    }
    two.take(last, WRITE).await;
}

async fn an_acquire_that_is_served_at_its_place_goes_on_to_those_behind_it(backend: Backend) {
    let two = Two::new(&backend);
    let (writer, first, next, other) = (owner(0, 1), owner(0, 2), owner(0, 3), owner(1, 1));
    let (late, behind) = (owner(1, 2), owner(1, 3));
    two.take(writer, WRITE).await;
    for reader in [first, next, other] {
        let mut fenced = request(reader, READ, Queue::Join);
        fenced.tokens = 1;
        assert!(matches!(two.ask(fenced).await, Acquired::Busy(_)));
    }
    two.queue(late, WRITE).await;
    two.queue(behind, READ).await;
    // What is kept ends by itself, and nobody is told.
    let keep = Duration::from_millis(20);
    assert_eq!(two.end(writer, WRITE, keep).await, Released::Released);
    let is_over = async || match backend.can_barge() {
        true => two.found().await.holders == 0,
        false => two.found().await.permits != WRITE,
    };
    eventually("it ends", is_over).await;
    if !backend.can_barge() {
        two.await_grants(0, &[first, next]).await;
        two.await_grants(1, &[other]).await;
        let found = two.found().await;
        assert_eq!((found.holders, found.waiting), (3, 2));
        return;
    }
    let mut fenced = request(first, READ, Queue::Join);
    fenced.tokens = 1;
    let granted = two.ask(fenced).await;
    let Acquired::Granted(Granted { token, .. }) = granted else {
        panic!("{granted:?}");
    };
    two.await_grants(0, &[next]).await;
    two.await_grants(1, &[other]).await;
    let found = two.found().await;
    assert_eq!((found.holders, found.waiting), (3, 2));
    for heard in &two.heard {
        let heard = heard.0.lock().unwrap();
        assert!(
            heard.iter().all(|(_, later)| *later > token),
            "{heard:?} after {token:?}"
        );
    }
    for reader in [first, next, other] {
        two.free(reader, READ).await;
    }
    two.await_grants(1, &[other, late]).await;
}

async fn a_writer_that_leaves_the_queue_lets_the_readers_behind_it_in(backend: Backend) {
    let two = Two::new(&backend);
    let (first, writer, late) = (owner(0, 1), owner(1, 1), owner(0, 2));
    two.take(first, READ).await;
    two.queue(writer, WRITE).await;
    two.queue(late, READ).await;
    assert_eq!(two.leave(writer, WRITE).await, Released::NotHeld);
    // At once, without a look.
    two.await_grants(0, &[late]).await;
    assert_eq!(two.found().await.holders, 2);
}

async fn a_waiting_writer_whose_client_is_gone_is_dropped_at_the_next_look(backend: Backend) {
    let mut two = Two::new(&backend);
    let (first, writer, late, other) = (owner(0, 1), owner(1, 1), owner(0, 2), owner(0, 3));
    two.take(first, READ).await;
    two.queue(writer, WRITE).await;
    two.queue(late, READ).await;
    two.second_dies(&backend).await;
    // A look also serves the places in front of it.
    two.take(other, READ).await;
    two.await_grants(0, &[late]).await;
    let found = two.found().await;
    assert_eq!((found.holders, found.waiting), (3, 0));
}

async fn a_share_vanishes_with_its_own_lease_while_others_are_renewed(backend: Backend) {
    let two = Two::new(&backend);
    let (dead, live, writer) = (owner(0, 1), owner(1, 1), owner(1, 2));
    let brief = LEASE / 5;
    two.await_both().await;
    let mut request = request(dead, READ, Queue::Join);
    request.lease = brief;
    assert!(matches!(
        two.ask(request).await,
        Acquired::Granted(Granted { token: None, .. })
    ));
    two.take(live, READ).await;
    let Acquired::Busy(Busy { remaining, .. }) = two.join(writer, WRITE).await else {
        panic!()
    };
    // The writer looks when the first lease ends.
    backend.check_rest(remaining, |left| left <= brief);
    eventually("the dead reader vanishes", async || {
        assert_eq!(two.renew_hold(live, READ, LEASE).await, Renewed::Renewed);
        two.found().await.holders == 1
    })
    .await;
    assert_eq!(two.renew_hold(dead, READ, LEASE).await, Renewed::Gone);
    assert_eq!(two.end(dead, READ, Duration::ZERO).await, Released::NotHeld);
    two.queue(writer, WRITE).await;
    two.free(live, READ).await;
    two.await_grants(1, &[writer]).await;
}

async fn a_big_request_is_not_starved_by_small_ones(backend: Backend) {
    let two = Two::new(&backend);
    let (one, big) = (permits(1, 3), permits(3, 3));
    two.take(owner(0, 1), one).await;
    two.take(owner(0, 2), one).await;
    two.queue(owner(1, 1), big).await;
    for small in 3..8 {
        two.busy(owner(0, small), one).await;
        two.queue(owner(0, small), one).await;
    }
    two.free(owner(0, 1), one).await;
    two.busy(owner(0, 9), one).await;
    two.free(owner(0, 2), one).await;
    two.await_grants(1, &[owner(1, 1)]).await;
    two.take(owner(1, 1), big).await;
    two.free(owner(1, 1), big).await;
    // As many as there are permits, in their order.
    two.await_grants(0, &[owner(0, 3), owner(0, 4), owner(0, 5)])
        .await;
    two.leave(owner(0, 6), one).await;
    two.free(owner(0, 4), one).await;
    two.await_grants(0, &[owner(0, 3), owner(0, 4), owner(0, 5), owner(0, 7)])
        .await;
}

async fn kinds_of_locks_conflict_in_both_orders(backend: Backend) {
    let kinds = [None, READ, WRITE, permits(1, 1), permits(2, 5)];
    for holds in kinds {
        for asks in kinds {
            let two = Two::new(&backend);
            let (holder, other) = (owner(0, 1), owner(1, 1));
            two.take(holder, holds).await;
            let same = match (holds, asks) {
                (None, None) => true,
                (Some(holds), Some(asks)) => holds.is_read_write() == asks.is_read_write(),
                _ => false,
            };
            for queue in [Queue::Respect, Queue::Join] {
                let reply = two.ask(request(other, asks, queue)).await;
                assert_eq!(reply == Acquired::Conflict, !same, "{holds:?} {asks:?}");
            }
            if !same {
                assert_eq!(two.renew_hold(holder, holds, LEASE).await, Renewed::Renewed);
                assert_eq!(two.found().await.waiting, 0);
            }
            two.leave(other, asks).await;
            two.free(holder, holds).await;
            assert_eq!(backend.leftovers().await, 0, "{holds:?} {asks:?}");
            two.take(other, asks).await;
            two.free(other, asks).await;
        }
    }
}

async fn each_request_says_how_many_permits_there_are(backend: Backend) {
    let two = Two::new(&backend);
    let (holder, other, third) = (owner(0, 1), owner(1, 1), owner(1, 2));
    two.take(holder, permits(2, 3)).await;
    let reply = two.would(other, permits(2, 3)).await;
    assert!(
        matches!(reply, Acquired::Busy(Busy { limit: None, .. })),
        "{reply:?}"
    );
    // Four of five. A later request with another number is told the number of the last one.
    let reply = two.ask(request(other, permits(2, 5), Queue::Respect)).await;
    assert!(
        matches!(reply, Acquired::Granted(Granted { limit: Some(3), .. })),
        "{reply:?}"
    );
    let reply = two.would(third, permits(1, 3)).await;
    assert!(
        matches!(reply, Acquired::Busy(Busy { limit: Some(5), .. })),
        "{reply:?}"
    );
    two.busy(third, permits(2, 5)).await;
    two.take(third, permits(1, 5)).await;
    // Each hold keeps the number that it was taken with.
    assert_eq!(
        two.renew_hold(holder, permits(2, 3), LEASE).await,
        Renewed::Renewed
    );
    two.take(holder, permits(2, 3)).await;
    // Nor does it change the last one's when its owner asks again.
    let reply = two.would(owner(1, 3), permits(1, 3)).await;
    assert!(
        matches!(reply, Acquired::Busy(Busy { limit: Some(5), .. })),
        "{reply:?}"
    );
    two.free(other, permits(2, 5)).await;
    two.free(third, permits(1, 5)).await;
    two.free(holder, permits(2, 3)).await;
    // The kind stays: a read-write lock is no semaphore.
    two.take(holder, READ).await;
    assert_eq!(two.would(other, permits(1, 5)).await, Acquired::Conflict);
    two.free(holder, READ).await;
}

async fn the_first_of_the_queue_blocks_requests_with_a_larger_number(backend: Backend) {
    let two = Two::new(&backend);
    two.take(owner(0, 1), permits(1, 6)).await;
    two.take(owner(0, 2), permits(2, 6)).await;
    two.queue(owner(1, 1), permits(1, 2)).await;
    two.queue(owner(1, 2), permits(1, 6)).await;
    two.free(owner(0, 1), permits(1, 6)).await;
    two.queue(owner(1, 2), permits(1, 6)).await;
    two.free(owner(0, 2), permits(2, 6)).await;
    two.await_grants(1, &[owner(1, 1), owner(1, 2)]).await;
}

async fn a_downgrade_lets_readers_in_and_no_writer_between(backend: Backend) {
    let two = Two::new(&backend);
    let (holder, reader, writer) = (owner(0, 1), owner(1, 1), owner(1, 2));
    let (behind, late) = (owner(1, 3), owner(1, 4));
    two.take(holder, WRITE).await;
    two.queue(reader, READ).await;
    two.queue(writer, WRITE).await;
    two.queue(behind, READ).await;
    assert_eq!(two.shrink(holder, WRITE).await, Released::Released);
    two.await_grants(1, &[reader]).await;
    two.queue(writer, WRITE).await;
    two.queue(behind, READ).await;
    two.busy(late, READ).await;
    assert_eq!(two.renew_hold(holder, READ, LEASE).await, Renewed::Renewed);
    two.free(reader, READ).await;
    two.queue(writer, WRITE).await;
    two.free(holder, READ).await;
    two.await_grants(1, &[reader, writer]).await;
}

async fn a_downgrade_may_be_repeated_and_raced_by_any_other_command(backend: Backend) {
    let two = Two::new(&backend);
    let (holder, reader) = (owner(0, 1), owner(1, 1));
    for (sent_before, sent_after) in [(WRITE, READ), (READ, WRITE), (READ, READ), (WRITE, WRITE)] {
        two.take(holder, WRITE).await;
        // Commands that name the share of after the downgrade, sent before it.
        assert_eq!(
            two.renew_hold(holder, sent_before, LEASE).await,
            Renewed::Renewed
        );
        two.busy(reader, READ).await;
        for _ in 0..2 {
            assert_eq!(two.shrink(holder, sent_before).await, Released::Released);
        }
        two.take(reader, READ).await;
        // And commands that name the share of before it, sent after.
        assert_eq!(
            two.renew_hold(holder, sent_after, LEASE).await,
            Renewed::Renewed
        );
        let fenced = two.stores[0].fence(claim(holder, sent_after), by()).await;
        assert!(matches!(fenced.unwrap().value, Fenced::Token(_)));
        two.take(holder, sent_after).await;
        let found = two.found().await;
        assert_eq!(found.holders, 2, "an acquire that comes late changes it");
        two.free(holder, sent_after).await;
        let again = two.end(holder, sent_after, Duration::ZERO).await;
        assert_eq!(again, Released::NotHeld);
        two.free(reader, READ).await;
        assert_eq!(backend.leftovers().await, 0);
        assert_eq!(two.shrink(holder, sent_before).await, Released::NotHeld);
    }
}

async fn a_kept_share_stays_taken_and_has_no_owner(backend: Backend) {
    let two = Two::new(&backend);
    let one = permits(1, 2);
    two.take(owner(0, 1), one).await;
    assert_eq!(
        two.end(owner(0, 1), one, LEASE).await,
        Released::Released,
        "kept"
    );
    assert_eq!(
        two.renew_hold(owner(0, 1), one, LEASE * 6).await,
        Renewed::Gone
    );
    assert_eq!(two.end(owner(0, 1), one, LEASE).await, Released::NotHeld);
    two.take(owner(1, 1), one).await;
    two.busy(owner(1, 2), one).await;
    assert!(two.found().await.remaining <= Some(LEASE));
    two.free(owner(1, 1), one).await;
    // The same owner may come again, by a late command. What it leaves is kept once.
    two.take(owner(0, 1), one).await;
    assert_eq!(two.found().await.holders, 2);
    assert_eq!(
        two.end(owner(0, 1), one, LEASE / 20).await,
        Released::Released
    );
    two.take(owner(1, 1), one).await;
    two.free(owner(1, 1), one).await;
    eventually("it is free in time", async || {
        two.found().await.holders == 0
    })
    .await;
    two.take(owner(1, 1), permits(2, 2)).await;
}

/// A request may be granted again under its number, by a late command, and may have given back some
/// of its permits then. What it kept before, with more permits, must not be free early.
async fn rests_of_one_owner_with_different_permits_stay_beside_each_other(backend: Backend) {
    let two = Two::new(&backend);
    for again in 1..3 {
        two.take(owner(0, 1), permits(2, 5)).await;
        let kept = two.end(owner(0, 1), permits(2, 5), LEASE).await;
        assert_eq!(kept, Released::Released, "time {again}");
        assert_eq!(two.found().await.holders, 1, "time {again}");
    }
    two.take(owner(0, 1), permits(2, 5)).await;
    let shrunk = two.shrink(owner(0, 1), permits(2, 5)).await;
    assert_eq!(shrunk, Released::Released);
    let kept = two.end(owner(0, 1), permits(1, 5), LEASE).await;
    assert_eq!(kept, Released::Released);
    assert_eq!(two.found().await.holders, 2);
    two.busy(owner(1, 1), permits(3, 5)).await;
    two.take(owner(1, 1), permits(2, 5)).await;
    two.busy(owner(1, 2), permits(1, 5)).await;
}

async fn a_writer_that_became_a_reader_leaves_a_readers_rest(backend: Backend) {
    let two = Two::new(&backend);
    two.take(owner(0, 1), WRITE).await;
    assert_eq!(two.shrink(owner(0, 1), WRITE).await, Released::Released);
    let crossed = two.end(owner(0, 1), WRITE, LEASE).await;
    assert_eq!(crossed, Released::Released);
    two.busy(owner(1, 1), WRITE).await;
    two.take(owner(0, 1), READ).await;
    let kept = two.end(owner(0, 1), READ, LEASE).await;
    assert_eq!(kept, Released::Released);
    assert_eq!(two.found().await.holders, 1, "it is one rest");
    two.take(owner(1, 1), READ).await;
}

async fn a_forced_release_takes_all_shares_and_serves_the_queue(backend: Backend) {
    let two = Two::new(&backend);
    for reader in 1..4 {
        two.take(owner(0, reader), READ).await;
    }
    two.queue(owner(1, 1), WRITE).await;
    let forced = two.stores[0].force_release("k".into(), by()).await;
    assert_eq!(forced.unwrap().value, Some(true));
    two.await_grants(1, &[owner(1, 1)]).await;
    assert_eq!(
        two.renew_hold(owner(0, 1), READ, LEASE).await,
        Renewed::Gone
    );
    two.take(owner(1, 1), WRITE).await;
    assert_eq!(
        two.end(owner(0, 2), READ, Duration::ZERO).await,
        Released::NotHeld
    );
    two.free(owner(1, 1), WRITE).await;
    let forced = two.stores[0].force_release("k".into(), by()).await;
    assert_eq!(forced.unwrap().value, Some(false));
}

async fn a_forced_release_to_a_client_that_is_gone_leaves_nothing_in_use(backend: Backend) {
    let mut two = Two::new(&backend);
    two.take(owner(0, 1), WRITE).await;
    two.queue(owner(1, 1), READ).await;
    two.second_dies(&backend).await;
    let forced = two.stores[0].force_release("k".into(), by()).await;
    assert_eq!(forced.unwrap().value, Some(true));
    two.take(owner(0, 2), READ).await;
    two.free(owner(0, 2), READ).await;
    two.take(owner(0, 3), WRITE).await;
}

async fn tokens_rise_over_readers_writers_and_nested_fences(backend: Backend) {
    let two = Two::new(&backend);
    let mut last = 0;
    let mut rises = |token: Option<u64>| {
        let token = token.expect("a token");
        assert!(token > last, "{token} after {last}");
        last = token;
    };
    for round in 0..5 {
        for (number, share) in [(1, READ), (2, READ), (3, READ)] {
            let mut request = request(owner(0, 10 * round + number), share, Queue::Join);
            // The first has none before the others have theirs.
            request.tokens = u32::from(number > 1);
            let Acquired::Granted(Granted { token, .. }) = two.ask(request).await else {
                panic!()
            };
            if number > 1 {
                rises(token);
            }
        }
        let mut writer = request(owner(1, round), WRITE, Queue::Join);
        writer.tokens = 1;
        assert!(matches!(
            two.ask(writer.clone()).await,
            Acquired::Busy(Busy { queued: true, .. })
        ));
        let fence = two.stores[0].fence(claim(owner(0, 10 * round + 1), READ), by());
        let Fenced::Token(token) = fence.await.unwrap().value else {
            panic!()
        };
        rises(Some(token));
        for number in 1..4 {
            two.free(owner(0, 10 * round + number), READ).await;
        }
        eventually("the writer hears of its grant", async || {
            two.heard[1].0.lock().unwrap().len() as u64 == round + 1
        })
        .await;
        let (granted, token) = *two.heard[1].0.lock().unwrap().last().unwrap();
        assert_eq!(granted, owner(1, round));
        rises(token);
        two.free(owner(1, round), WRITE).await;
    }
}

async fn a_renewal_of_a_share_concerns_its_owner_only(backend: Backend) {
    let two = Two::new(&backend);
    let (mine, other) = (owner(0, 1), owner(1, 1));
    two.take(mine, READ).await;
    assert_eq!(two.renew_hold(other, READ, LEASE).await, Renewed::Gone);
    two.take(other, READ).await;
    assert_eq!(
        two.renew_hold(mine, READ, LEASE * 6).await,
        Renewed::Renewed
    );
    backend.check_rest(two.found().await.remaining, |left| left > LEASE * 5);
    assert_eq!(
        two.renew_hold(mine, READ, LEASE / 10).await,
        Renewed::Renewed
    );
    // Never shorter.
    backend.check_rest(two.found().await.remaining, |left| left > LEASE * 5);
    // A repeated acquire neither shortens nor adds up.
    two.take(mine, READ).await;
    let is_long = |left| left > LEASE * 5 && left <= LEASE * 6;
    backend.check_rest(two.found().await.remaining, is_long);
    two.free(mine, READ).await;
    // The other's own.
    backend.check_rest(two.found().await.remaining, |left| left <= LEASE);
    two.free(other, READ).await;
    assert_eq!(two.renew_hold(mine, READ, LEASE).await, Renewed::Gone);
    assert_eq!(backend.leftovers().await, 0);
}

async fn a_place_of_another_kind_holds_up_no_request(backend: Backend) {
    let two = Two::new(&backend);
    // A reader waits, the writer's lease ends, and an exclusive lock takes the key with the plain
    // command.
    let (writer, reader, barges) = (owner(0, 1), owner(1, 1), owner(0, 2));
    let mut brief = request(writer, WRITE, Queue::Join);
    brief.lease = LEASE / 20;
    two.hears(reader).await;
    eventually(
        "the reader waits before the writer's lease ends",
        async || {
            two.ask(brief.clone()).await;
            let reply = two.join(reader, READ).await;
            if let Acquired::Granted(_) = reply {
                two.free(reader, READ).await;
            }
            matches!(reply, Acquired::Busy(Busy { queued: true, .. }))
        },
    )
    .await;
    if !backend.can_barge() {
        two.await_grants(1, &[reader]).await;
        let barged = two.ask(request(barges, None, Queue::Barge)).await;
        assert_eq!(barged, Acquired::Conflict);
        return;
    }
    eventually("the key is taken", async || {
        let reply = two.ask(request(barges, None, Queue::Barge)).await;
        matches!(reply, Acquired::Granted(_))
    })
    .await;
    two.queue(owner(0, 3), None).await;
    // It asks last: a machine may be so slow that its client is silent for three seconds.
    assert_eq!(two.join(reader, READ).await, Acquired::Conflict);
    // The reader has kept its place: the first request is served first, of whatever kind.
    two.free(barges, None).await;
    two.await_grants(1, &[reader]).await;
    // Now an exclusive waiter stands behind a reader. It is told so, and the readers behind it
    // don't wait for it.
    let mut hears = vec![reader];
    for late in 2..4 {
        two.take(owner(1, late), READ).await;
        hears.push(owner(1, late));
    }
    assert_eq!(two.join(owner(0, 3), None).await, Acquired::Conflict);
    assert_eq!(two.found().await.waiting, 0);
}
