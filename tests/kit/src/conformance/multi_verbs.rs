//! The store contract, for the verbs that take several locks.
//!
//! The keys have one hash tag, so that they fit into one command in a cluster, too. Keys of several
//! slots never do: `topology/cluster.rs`.

use std::time::Duration;

use crate::{Backend, eventually};
use lock_store::{
    Acquire, AcquiredAll, Holder, Owner, Permits, Queue, Release, Released, Renewal, Renewed,
};

use crate::conformance::verbs::{LEASE, Two, by, claim, is_granted, owner, request};

super::on_every_store!(
    all_free_keys_are_granted_each_to_its_owner_and_with_a_token_of_its_own,
    one_busy_key_is_named_and_none_is_taken,
    a_repeat_by_its_owners_is_granted_again_and_never_shortens,
    a_repeat_after_one_was_lost_takes_that_one_again,
    another_kind_of_lock_is_a_conflict_that_names_it_and_none_is_taken,
    a_shared_lock_whose_leases_have_ended_is_free,
    a_free_key_goes_to_its_waiters_unless_a_request_barges,
    a_place_whose_client_is_gone_keeps_no_request_off,
    each_of_several_is_renewed_and_released_for_itself,
);

/// A lease short enough for a test to wait for its end, and long enough for replicas to have it
/// before.
const BRIEF: Duration = Duration::from_millis(250);
/// The key of `Two`, and another key in its slot.
const BESIDE_K: [&str; 2] = ["{lock:k}a", "k"];

fn all(
    keys: &[&str],
    owner_of: impl Fn(usize) -> Owner,
    fence: bool,
    queue: Queue,
) -> Vec<Acquire> {
    let one = |(at, key): (usize, &&str)| {
        let mut request = request(owner_of(at), fence, queue);
        request.claim = claim(key, owner_of(at));
        request
    };
    keys.iter().enumerate().map(one).collect()
}

/// An owner of the first client for each key.
fn mine(at: usize) -> Owner {
    owner(0, at as u64 + 1)
}

fn others(at: usize) -> Owner {
    owner(1, at as u64 + 1)
}

fn tokens(reply: &AcquiredAll) -> Vec<u64> {
    match reply {
        AcquiredAll::Granted { tokens, .. } => tokens.iter().map(|token| token.unwrap()).collect(),
        other => panic!("{other:?}"),
    }
}

async fn take(two: &Two, requests: Vec<Acquire>) -> AcquiredAll {
    let store = usize::try_from(requests[0].claim.owner.client.0 - 1).unwrap();
    let reply = two.stores[store].acquire_all(requests, by()).await;
    reply.unwrap().value
}

async fn release(two: &Two, keys: &[&str], owner_of: impl Fn(usize) -> Owner) -> Vec<Released> {
    let one = |(at, key): (usize, &&str)| Release::new(claim(key, owner_of(at)), Duration::ZERO);
    let requests = keys.iter().enumerate().map(one).collect();
    two.stores[0].release(requests, by()).await.unwrap().value
}

async fn holder(two: &Two, key: &str) -> Option<Holder> {
    let found = two.stores[0].inspect(key.into(), by()).await;
    let holder = found.unwrap().value.unwrap().holder;
    holder.map(|found| found.who())
}

async fn remaining(two: &Two, key: &str) -> Duration {
    // Of this client's own hold.
    let found = two.stores[0].inspect(key.into(), by()).await;
    found.unwrap().value.unwrap().remaining.unwrap()
}

async fn all_free_keys_are_granted_each_to_its_owner_and_with_a_token_of_its_own(store: Backend) {
    let two = Two::new(&store);
    let keys = ["{s}c", "{s}a", "{s}b"];
    let unfenced = take(&two, all(&keys, others, false, Queue::Barge)).await;
    let tokens_of = |tokens| AcquiredAll::granted(tokens);
    assert_eq!(unfenced, tokens_of(vec![None; 3]));
    release(&two, &keys, others).await;
    let mut last = vec![0; 3];
    for queue in [Queue::Barge, Queue::Respect] {
        let granted = tokens(&take(&two, all(&keys, mine, true, queue)).await);
        assert!(granted.iter().zip(&last).all(|(token, last)| token > last));
        last = granted;
        for (at, key) in keys.iter().enumerate() {
            assert_eq!(
                holder(&two, key).await,
                Some(Holder::Owner(mine(at))),
                "{key}"
            );
            assert!(remaining(&two, key).await > LEASE / 2);
        }
        assert_eq!(release(&two, &keys, mine).await, [Released::Released; 3]);
    }
    assert_eq!(store.leftovers().await, 0);
}

async fn one_busy_key_is_named_and_none_is_taken(store: Backend) {
    let two = Two::new(&store);
    let keys = ["{s}a", "{s}b", "{s}c"];
    for busy in 0..3 {
        take(&two, all(&keys[busy..=busy], others, false, Queue::Barge)).await;
        for (queue, fence) in [(Queue::Barge, false), (Queue::Respect, true)] {
            let reply = take(&two, all(&keys, mine, fence, queue)).await;
            assert_eq!(reply, AcquiredAll::Busy(busy));
            assert_eq!(store.leftovers().await, 1);
        }
        release(&two, &keys[busy..=busy], others).await;
    }
}

async fn a_repeat_by_its_owners_is_granted_again_and_never_shortens(store: Backend) {
    let two = Two::new(&store);
    let keys = ["{s}a", "{s}b"];
    let first = tokens(&take(&two, all(&keys, mine, true, Queue::Barge)).await);
    let mut shorter = all(&keys, mine, true, Queue::Barge);
    for request in &mut shorter {
        request.lease = LEASE / 10;
    }
    let second = tokens(&take(&two, shorter).await);
    assert!(
        first
            .iter()
            .zip(&second)
            .all(|(first, second)| second > first)
    );
    for key in keys {
        assert!(remaining(&two, key).await > LEASE / 2);
    }
}

async fn a_repeat_after_one_was_lost_takes_that_one_again(store: Backend) {
    let two = Two::new(&store);
    let keys = ["{s}a", "{s}b"];
    take(&two, all(&keys, mine, false, Queue::Barge)).await;
    two.stores[1]
        .force_release("{s}b".into(), by())
        .await
        .unwrap();
    let again = take(&two, all(&keys, mine, false, Queue::Barge)).await;
    assert!(matches!(again, AcquiredAll::Granted { .. }), "{again:?}");
    two.stores[1]
        .force_release("{s}b".into(), by())
        .await
        .unwrap();
    take(&two, all(&["{s}x", "{s}b"], others, false, Queue::Barge)).await;
    let again = take(&two, all(&keys, mine, false, Queue::Barge)).await;
    assert_eq!(again, AcquiredAll::Busy(1));
}

fn permit(key: &str, owner: Owner, lease: Duration) -> Acquire {
    let mut request = request(owner, false, Queue::Respect);
    request.claim = claim(key, owner);
    request.claim.permits = Some(Permits { count: 1, of: 3 });
    request.lease = lease;
    request
}

async fn another_kind_of_lock_is_a_conflict_that_names_it_and_none_is_taken(store: Backend) {
    let two = Two::new(&store);
    let permit = permit("{s}b", others(0), LEASE);
    assert!(is_granted(
        two.stores[1].acquire(permit, by()).await.unwrap().value
    ));
    for queue in [Queue::Barge, Queue::Respect] {
        let reply = take(&two, all(&["{s}a", "{s}b"], mine, true, queue)).await;
        assert_eq!(reply, AcquiredAll::Conflict(1));
    }
    // Only Redis can hold something other than a lock.
    let Some(server) = store.server_of("lock:{s}c").await else {
        return;
    };
    server
        .command(&["RPUSH", "lock:{s}c", "somebody's list"])
        .await;
    server
        .command(&["SET", "lock:%fence:{s}:lock:{s}d", "no number"])
        .await;
    for foreign in ["{s}c", "{s}d"] {
        let reply = take(&two, all(&["{s}a", foreign], mine, true, Queue::Barge)).await;
        assert_eq!(reply, AcquiredAll::Conflict(1), "{foreign}");
    }
    assert_eq!(server.keys("lock:{s}a").await, Vec::<String>::new());
    assert_eq!(server.keys("lock:{s}d").await, Vec::<String>::new());
}

async fn a_shared_lock_whose_leases_have_ended_is_free(store: Backend) {
    let two = Two::new(&store);
    // Redis keeps the set a second longer than the leases in it.
    let permit = permit("{s}b", others(0), BRIEF);
    assert!(is_granted(
        two.stores[1].acquire(permit, by()).await.unwrap().value
    ));
    eventually("its lease ends", async || {
        holder(&two, "{s}b").await.is_none()
    })
    .await;
    let reply = take(&two, all(&["{s}a", "{s}b"], mine, false, Queue::Barge)).await;
    assert!(matches!(reply, AcquiredAll::Granted { .. }), "{reply:?}");
}

async fn a_free_key_goes_to_its_waiters_unless_a_request_barges(store: Backend) {
    for barges in [true, false] {
        if barges && !store.can_barge() {
            continue;
        }
        let two = Two::new(&store);
        let (keys, waiter) = (BESIDE_K, owner(1, 7));
        let mut brief = request(owner(0, 9), false, Queue::Barge);
        brief.lease = BRIEF;
        // Repeated if the lease has ended before the next command.
        loop {
            let brief = brief.clone();
            two.stores[0].acquire(brief, by()).await.unwrap();
            if !is_granted(two.acquire(waiter, false, Queue::Join).await) {
                break;
            }
            two.release(waiter).await;
        }
        let brief = Some(Holder::Owner(owner(0, 9)));
        eventually("the lease ends", async || holder(&two, "k").await != brief).await;
        let queue = if barges { Queue::Barge } else { Queue::Respect };
        let reply = take(&two, all(&keys, mine, false, queue)).await;
        if barges {
            assert!(matches!(reply, AcquiredAll::Granted { .. }), "{reply:?}");
            release(&two, &keys, mine).await;
        } else {
            assert_eq!(reply, AcquiredAll::Busy(1));
        }
        eventually("the waiter hears of its turn", async || {
            *two.heard[1].0.lock().unwrap() == [(waiter, None)]
        })
        .await;
        assert_eq!(two.release(waiter).await, Released::Released);
        assert_eq!(store.leftovers().await, 0);
    }
}

async fn a_place_whose_client_is_gone_keeps_no_request_off(store: Backend) {
    let mut two = Two::new(&store);
    let keys = BESIDE_K;
    let mut brief = request(owner(0, 9), false, Queue::Barge);
    brief.lease = BRIEF;
    two.stores[0].acquire(brief, by()).await.unwrap();
    two.acquire(owner(1, 7), false, Queue::Join).await;
    two.stores[1] = two.stores[0].clone();
    two.heard[1] = two.heard[0].clone();
    eventually("the server noticed", async || store.channels().await == 0).await;
    eventually("the lease ends", async || holder(&two, "k").await.is_none()).await;
    let reply = take(&two, all(&keys, mine, false, Queue::Respect)).await;
    assert!(matches!(reply, AcquiredAll::Granted { .. }), "{reply:?}");
    assert_eq!(release(&two, &keys, mine).await, [Released::Released; 2]);
    assert_eq!(store.leftovers().await, 0);
}

async fn each_of_several_is_renewed_and_released_for_itself(store: Backend) {
    let two = Two::new(&store);
    let keys = ["{s}a", "{s}b", "{s}c"];
    take(&two, all(&keys, mine, false, Queue::Barge)).await;
    two.stores[1]
        .force_release("{s}b".into(), by())
        .await
        .unwrap();
    let renewals = keys
        .iter()
        .enumerate()
        .map(|(at, key)| Renewal::new(claim(key, mine(at)), LEASE * 3));
    let renewed = two.stores[0].renew(renewals.collect(), by()).await;
    let gone = [Renewed::Renewed, Renewed::Gone, Renewed::Renewed];
    assert_eq!(renewed.unwrap().value, gone);
    assert!(remaining(&two, "{s}c").await > LEASE * 2);
    assert_eq!(holder(&two, "{s}b").await, None);
    let ended = [Released::Released, Released::NotHeld, Released::Released];
    assert_eq!(release(&two, &keys, mine).await, ended);
    assert_eq!(release(&two, &keys, mine).await, [Released::NotHeld; 3]);
    assert_eq!(store.leftovers().await, 0);
}
