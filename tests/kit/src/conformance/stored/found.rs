//! What the scripts make of what they find: values of others, impossible places, leases that ended.

use std::time::Duration;

use crate::Backend;
use lock_store::{Acquired, AcquiredAll, Fenced, Permits, Queue, Released, Renewed};

use super::{KINDS, LOCK, QUEUE, Stored, WHOLES, claim, permits, request};
use crate::conformance::verbs::{LEASE, by, owner};

crate::conformance::on_one_server!(
    values_of_others_are_conflicts_that_stay_as_they_are,
    a_queue_of_another_type_keeps_no_request_from_a_free_lock,
    a_failed_abandon_is_reported,
    impossible_places_are_ignored,
    places_of_another_kind_get_no_share,
    a_request_that_hands_the_key_to_another_kind_is_a_conflict,
    a_lease_that_has_ended_is_removed_by_the_next_command,
);

async fn values_of_others_are_conflicts_that_stay_as_they_are(backend: Backend) {
    let stored = Stored::on(backend);
    let me = owner(0, 1);
    for value in [
        "RPUSH lock:k x",
        "HSET lock:k field 1",
        "ZADD lock:k 1 member",
        "ZADD lock:k -1 used",
        "ZADD lock:k -5 of 3 member",
    ] {
        stored.command("DEL lock:k").await;
        stored.command(value).await;
        // A waiter goes on waiting.
        let place = format!("{}:1000:0", owner(1, 9));
        stored.places(&place).await;
        let before: Vec<u8> = stored.server().query(&["DUMP", LOCK]).await;
        for share in KINDS {
            for queue in [Queue::Respect, Queue::Join] {
                let reply = stored.ask(request(me, share, queue)).await;
                assert_eq!(reply, Acquired::Conflict, "{value} {share:?}");
            }
            assert_eq!(stored.abandon(me, share).await, Released::NotHeld);
            assert_eq!(
                stored.end(me, share, LEASE).await,
                Released::NotHeld,
                "{value}"
            );
            assert_eq!(stored.renew_hold(me, share, LEASE).await, Renewed::Gone);
            assert_eq!(stored.fence(me, share).await, Fenced::Conflict, "{value}");
        }
        let store = &stored.two.stores[0];
        let shrunk = store.shrink(claim(me, Some(Permits::WRITE)), 1, by()).await;
        assert_eq!(shrunk.unwrap().value, Released::NotHeld);
        let forced = store.force_release("k".into(), by()).await.unwrap().value;
        assert_eq!(forced, None, "{value}");
        let found = store.inspect("k".into(), by()).await.unwrap().value;
        assert!(found.is_none(), "{value}");
        assert_eq!(stored.all(me, &["k"], 0).await, AcquiredAll::Conflict(0));
        let after: Vec<u8> = stored.server().query(&["DUMP", LOCK]).await;
        assert_eq!(before, after, "{value}");
        let places: Vec<String> = stored.server().query(&["ZRANGE", QUEUE, "0", "-1"]).await;
        assert_eq!(places, [place], "{value}");
        assert_eq!(stored.server().keys("*").await.len(), 2, "{value}");
    }
}

async fn a_queue_of_another_type_keeps_no_request_from_a_free_lock(backend: Backend) {
    let stored = Stored::on(backend);
    let (me, other) = (owner(0, 1), owner(0, 2));
    stored.command(&format!("SET {QUEUE} text")).await;
    for share in KINDS {
        stored.take(me, share).await;
        let reply = stored.ask(request(other, share, Queue::Join)).await;
        if share != permits(2, 5) && share != Some(Permits::READ) {
            assert_eq!(reply, Acquired::Conflict, "{share:?}");
        }
        assert_eq!(
            stored.abandon(other, share).await == Released::Released,
            matches!(reply, Acquired::Granted(_))
        );
        assert_eq!(stored.abandon(me, share).await, Released::Released);
        stored.take(me, share).await;
        stored.free(me, share).await;
        assert_eq!(stored.number("EXISTS lock:k").await, 0, "{share:?}");
    }
    let left: String = stored.server().query(&["GET", QUEUE]).await;
    assert_eq!(left, "text");
}

async fn a_failed_abandon_is_reported(backend: Backend) {
    let stored = Stored::on(backend);
    let (me, waits) = (owner(0, 1), owner(0, 2));
    stored.take(me, None).await;
    stored.queue(waits, None, 0).await;
    stored.command("REPLICAOF 127.0.0.1 1").await;
    for owner in [me, waits] {
        let abandoned = stored.two.stores[0].abandon(request(owner, None, Queue::Join), by());
        assert!(abandoned.await.is_err());
    }
    stored.command("REPLICAOF NO ONE").await;
}

async fn impossible_places_are_ignored(backend: Backend) {
    let stored = Stored::on(backend);
    let (me, next) = (owner(0, 1), owner(0, 2));
    for share in WHOLES {
        stored.two.heard[0].0.lock().unwrap().clear();
        stored.take(me, share).await;
        for place in ["text", "nobody:1:0", ":1:0", "1-1:x:0", "1-1:1"] {
            stored.places(place).await;
        }
        stored.queue(next, share, 0).await;
        stored.free(me, share).await;
        stored.await_grants(&[next]).await;
        stored.free(next, share).await;
        assert!(stored.server().keys("*").await.is_empty());
    }
}

async fn places_of_another_kind_get_no_share(backend: Backend) {
    let stored = Stored::on(backend);
    let (leaves, stays, next, other) = (owner(0, 1), owner(0, 2), owner(0, 3), owner(0, 4));
    let (two, three) = (permits(2, 5), permits(3, 5));
    stored.take(leaves, two).await;
    stored.take(stays, two).await;
    stored
        .places(&format!("{other}:1000:0:0:1:2147483647"))
        .await;
    stored.queue(next, three, 0).await;
    stored.free(leaves, two).await;
    stored.await_grants(&[next]).await;
    assert_eq!(stored.number("ZSCORE lock:k used").await, -5);
    stored.free(stays, two).await;
    stored.free(next, three).await;
    stored.take(leaves, Some(Permits::READ)).await;
    stored.take(stays, Some(Permits::READ)).await;
    stored.places(&format!("{other}:1000:0:0:1:5")).await;
    stored.free(leaves, Some(Permits::READ)).await;
    assert_eq!(stored.number("ZSCORE lock:k used").await, -1);
    stored.free(stays, Some(Permits::READ)).await;
    stored.await_grants(&[next]).await;
    assert!(stored.server().keys("*").await.is_empty());
}

async fn a_request_that_hands_the_key_to_another_kind_is_a_conflict(backend: Backend) {
    let stored = Stored::on(backend);
    let (me, reader, other) = (owner(0, 1), owner(0, 2), owner(0, 3));
    stored
        .places(&format!("{reader}:1000:0:0:1:2147483647"))
        .await;
    let reply = stored.ask(request(me, None, Queue::Join)).await;
    assert_eq!(reply, Acquired::Conflict);
    stored.await_grants(&[reader]).await;
    stored.free(reader, Some(Permits::READ)).await;
    stored.places(&format!("{other}:1000:0")).await;
    let read = request(me, Some(Permits::READ), Queue::Join);
    assert_eq!(stored.ask(read).await, Acquired::Conflict);
    stored.await_grants(&[reader, other]).await;
}

async fn a_lease_that_has_ended_is_removed_by_the_next_command(backend: Backend) {
    let stored = Stored::on(backend);
    let (gone, rests, me) = (owner(0, 1), owner(0, 2), owner(0, 3));
    let (two, one) = (permits(2, 5), permits(1, 5));
    for finder in 0..8 {
        stored.take(gone, two).await;
        stored.take(rests, one).await;
        stored.command(&format!("ZADD {LOCK} 1 {gone}:2")).await;
        let store = &stored.two.stores[0];
        let mut used = 1;
        match finder {
            // Its own repeat changes nothing else.
            0 => {
                let repeat = request(rests, one, Queue::Respect);
                let lease = LEASE / 2;
                stored
                    .ask({
                        let mut request = repeat;
                        request.lease = lease;
                        request
                    })
                    .await;
            }
            1 => assert_eq!(stored.all(me, &["k"], 0).await, AcquiredAll::Conflict(0)),
            2 => {
                let other = stored.ask(request(me, None, Queue::Join)).await;
                assert_eq!(other, Acquired::Conflict);
            }
            3 => {
                let reply = stored.ask(request(me, permits(5, 5), Queue::Respect)).await;
                assert!(matches!(reply, Acquired::Busy(_)), "{reply:?}");
            }
            4 => assert_eq!(stored.abandon(me, one).await, Released::NotHeld),
            5 => assert_eq!(stored.end(me, one, Duration::ZERO).await, Released::NotHeld),
            6 => {
                let shrunk = store.shrink(claim(me, two), 1, by()).await;
                assert_eq!(shrunk.unwrap().value, Released::NotHeld);
            }
            _ => {
                assert!(matches!(stored.fence(rests, one).await, Fenced::Token(_)));
                stored.take(me, two).await;
                used = 3;
            }
        }
        assert_eq!(stored.number("ZSCORE lock:k used").await, -used, "{finder}");
        let gone = format!("{gone}:2");
        let left: Option<f64> = stored.server().query(&["ZSCORE", LOCK, &gone]).await;
        assert_eq!(left, None, "{finder}");
        stored.command("DEL lock:k").await;
    }
}
