//! How long the scripts' keys live, and what a command is told that finds them.

use std::time::Duration;

use crate::{Backend, wall_micros};
use lock_store::{Acquired, AcquiredAll, Busy, FoundHolder, Queue, Renewed};

use super::{LOCK, QUEUE, Stored, permits, request};
use crate::conformance::verbs::{LEASE, by, owner};

crate::conformance::on_one_server!(
    a_set_lives_a_second_longer_than_its_longest_lease,
    an_exclusive_lease_is_kept_to_the_millisecond,
    places_have_the_time_since_when_they_wait_and_a_queue_is_forgotten_after_a_minute,
    a_request_that_finds_it_taken_is_told_when_the_first_lease_ends,
);

async fn a_set_lives_a_second_longer_than_its_longest_lease(backend: Backend) {
    let stored = Stored::on(backend);
    let (long, short) = (owner(0, 1), owner(0, 2));
    let slack = Duration::from_secs(1);
    let share = permits(1, 5);
    let takes = async |owner, lease| {
        let request = request(owner, share, Queue::Respect);
        stored
            .ask({
                let mut request = request;
                request.lease = lease;
                request
            })
            .await
    };
    takes(long, LEASE).await;
    stored.assert_lives(LOCK, LEASE + slack).await;
    takes(short, LEASE / 2).await;
    stored.assert_lives(LOCK, LEASE + slack).await;
    // A repeat prolongs the lease, and never shortens it.
    takes(short, LEASE * 2).await;
    stored.assert_lives(LOCK, LEASE * 2 + slack).await;
    takes(short, LEASE).await;
    stored.assert_lives(LOCK, LEASE * 2 + slack).await;
    assert_eq!(
        stored.renew_hold(long, share, LEASE * 3).await,
        Renewed::Renewed
    );
    stored.assert_lives(LOCK, LEASE * 3 + slack).await;
    assert_eq!(
        stored.renew_hold(short, share, LEASE).await,
        Renewed::Renewed
    );
    stored.assert_lives(LOCK, LEASE * 3 + slack).await;
    assert_eq!(stored.number("ZSCORE lock:k used").await, -2);
    let ends = stored.number(&format!("ZSCORE {LOCK} {short}:1")).await;
    let ends = u64::try_from(ends).unwrap();
    assert!(ends > wall_micros() + 19_000_000 && ends < wall_micros() + 20_000_000);
}

async fn an_exclusive_lease_is_kept_to_the_millisecond(backend: Backend) {
    let stored = Stored::on(backend);
    let me = owner(0, 1);
    let asks = async |lease| {
        let join = request(me, None, Queue::Join);
        stored
            .ask({
                let mut request = join;
                request.lease = lease;
                request
            })
            .await
    };
    for (lease, left) in [(2, 2), (1, 2), (3, 3)] {
        asks(LEASE * lease).await;
        stored.assert_lives(LOCK, LEASE * left).await;
    }
    assert_eq!(stored.renew_hold(me, None, LEASE).await, Renewed::Renewed);
    stored.assert_lives(LOCK, LEASE * 3).await;
    assert_eq!(
        stored.renew_hold(me, None, LEASE * 4).await,
        Renewed::Renewed
    );
    stored.assert_lives(LOCK, LEASE * 4).await;
    stored.end(me, None, LEASE / 2).await;
    stored.assert_lives(LOCK, LEASE / 2).await;
    // Also with several keys at once.
    stored.command("DEL lock:k").await;
    for (left, then) in [(LEASE / 5, LEASE), (LEASE * 5, LEASE * 5)] {
        stored.all(me, &["k"], 0).await;
        let millis = left.as_millis();
        stored.command(&format!("PEXPIRE {LOCK} {millis}")).await;
        let tokens = vec![None];
        let again = stored.all(me, &["k"], 0).await;
        assert_eq!(again, AcquiredAll::granted(tokens));
        stored.assert_lives(LOCK, then).await;
    }
}

async fn places_have_the_time_since_when_they_wait_and_a_queue_is_forgotten_after_a_minute(
    backend: Backend,
) {
    let stored = Stored::on(backend);
    let minute = Duration::from_secs(60);
    stored.take(owner(0, 1), None).await;
    let scores = async || -> Vec<u64> {
        let words = ["ZRANGE", QUEUE, "0", "-1", "WITHSCORES"];
        let found: Vec<String> = stored.server().query(&words).await;
        let scores = found.iter().skip(1).step_by(2);
        scores.map(|score| score.parse().unwrap()).collect()
    };
    let before = wall_micros();
    for request in 2..5 {
        stored.queue(owner(0, request), None, 0).await;
        stored.assert_lives(QUEUE, minute).await;
    }
    let first = scores().await;
    assert!(first.is_sorted() && first.len() == 3, "{first:?}");
    assert!(before <= first[0] && first[2] <= wall_micros(), "{first:?}");
    stored.abandon(owner(0, 2), None).await;
    stored.queue(owner(0, 5), None, 0).await;
    assert_eq!(scores().await[..2], first[1..]);
    stored.command(&format!("PEXPIRE {QUEUE} 5000")).await;
    stored.queue(owner(0, 3), None, 0).await;
    assert_eq!(scores().await[..2], first[1..], "it keeps its place");
    stored.assert_lives(QUEUE, minute).await;
}

async fn a_request_that_finds_it_taken_is_told_when_the_first_lease_ends(backend: Backend) {
    let stored = Stored::on(backend);
    let (long, short) = (owner(0, 1), owner(0, 2));
    let ends = async |share| match stored
        .ask(request(owner(0, 3), share, Queue::Respect))
        .await
    {
        Acquired::Busy(Busy { remaining, .. }) => remaining.unwrap(),
        other => panic!("{other:?}"),
    };
    let within = |left: Duration, longest: Duration| {
        assert!(left <= longest && left * 10 > longest * 9, "{left:?}");
    };
    stored.take(long, permits(3, 5)).await;
    within(ends(permits(3, 5)).await, LEASE);
    let respect = request(short, permits(1, 5), Queue::Respect);
    let lease = LEASE / 2;
    stored
        .ask({
            let mut request = respect;
            request.lease = lease;
            request
        })
        .await;
    within(ends(permits(3, 5)).await, LEASE / 2);
    let found = stored.two.stores[0].inspect("k".into(), by()).await;
    let found = found.unwrap().value.unwrap();
    assert_eq!(found.holders, 2);
    assert_eq!(
        found.holder,
        Some(FoundHolder::parse(format!("{long}:3").as_bytes()))
    );
    within(found.remaining.unwrap(), LEASE);
    // An ended lease belongs to no owner, even before a command removes it.
    stored.command(&format!("ZADD {LOCK} 1 {short}:1")).await;
    let found = stored.two.stores[0].inspect("k".into(), by()).await;
    assert_eq!(found.unwrap().value.unwrap().holders, 1);
    stored.command(&format!("ZADD {LOCK} 1 {long}:3")).await;
    let found = stored.two.stores[0].inspect("k".into(), by()).await;
    let found = found.unwrap().value.unwrap();
    assert_eq!(
        (found.holder, found.holders, found.remaining),
        (None, 0, None)
    );
    stored.take(short, None).await;
    within(ends(None).await, LEASE);
}
