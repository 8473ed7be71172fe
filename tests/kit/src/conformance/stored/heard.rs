//! Places of requests that no longer wait, and of processes that stand still. Time passes by hand:
//! all stamps of the queue become older.

use std::time::Duration;

use crate::{Backend, wall_micros};
use lock_store::{Acquire, Acquired, Holder, Owner, Permits, Queue};

use super::{LOCK, QUEUE, Stored, WHOLES, permits, request};
use crate::conformance::verbs::owner;

crate::conformance::on_one_server!(
    a_place_whose_wait_has_ended_is_not_served,
    a_client_that_is_not_heard_is_suspended_until_it_looks_and_then_has_its_places_back,
    one_look_confirms_all_places_of_its_client,
    a_new_place_is_served_in_its_turn,
    a_client_that_takes_a_new_place_is_heard_and_has_the_earlier_ones_back,
    a_writer_that_stands_still_stops_no_readers,
    a_writer_whose_wait_has_ended_stops_no_readers,
    a_clock_set_back_costs_no_place,
    a_stamp_ahead_of_the_clock_is_set_to_now,
    places_of_a_client_that_is_gone_are_not_kept,
    of_a_queue_without_places_nothing_is_left,
    a_place_that_was_suspended_is_kept_for_a_minute,
    clients_that_wait_no_more_are_forgotten_while_others_keep_the_queue,
    a_client_that_was_suspended_is_remembered_for_a_minute,
);

/// From here on stand the times when clients were heard, in microseconds.
const HEARD: u64 = 6_000_000_000_000_000;
/// A little longer than a client may be silent.
const SILENCE: Duration = Duration::from_millis(2100);

impl Stored {
    /// Makes all stamps in the queue older by this many microseconds.
    async fn age(&self, by: i64) {
        let script = "local all = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
            for i = 1, #all, 2 do
                local in_millis = all[i + 1] - 6000000000000000
                local suspended = in_millis > 0 and in_millis < 100000000000000
                local by = ARGV[1] / (suspended and 1000 or 1)
                redis.call('ZADD', KEYS[1], all[i + 1] - by, all[i])
            end";
        let by = by.to_string();
        self.server()
            .command(&["EVAL", script, "1", QUEUE, &by])
            .await;
    }

    async fn pass_time(&self, time: Duration) {
        self.age(time.as_micros().try_into().unwrap()).await;
    }

    async fn holder(&self) -> Option<Holder> {
        let found = self.two.stores[0].inspect("k".into(), super::by()).await;
        let holder = found.unwrap().value.unwrap().holder;
        holder.map(|found| found.who())
    }

    async fn is_held_by(&self, owner: Owner) -> bool {
        self.holder().await == Some(Holder::Owner(owner))
    }

    /// Where it stands in the queue, by the beginning of its name.
    async fn score(&self, name: &str) -> Option<u64> {
        let words = ["ZRANGE", QUEUE, "0", "-1", "WITHSCORES"];
        let all: Vec<String> = self.server().query(&words).await;
        let found = all.chunks(2).find(|pair| pair[0].starts_with(name))?;
        Some(found[1].parse().unwrap())
    }

    async fn waiting(&self) -> usize {
        let found = self.two.stores[0].inspect("k".into(), super::by()).await;
        found.unwrap().value.unwrap().waiting
    }
}

fn for_a_second(owner: Owner, share: Option<Permits>) -> Acquire {
    let mut request = request(owner, share, Queue::Join);
    request.wait = Some(Duration::from_secs(1));
    request
}

async fn a_place_whose_wait_has_ended_is_not_served(backend: Backend) {
    let stored = Stored::on(backend);
    let (holder, late, next) = (owner(0, 1), owner(1, 1), owner(1, 2));
    stored.take(holder, None).await;
    stored.ask(for_a_second(late, None)).await;
    stored.queue(next, None, 0).await;
    stored.pass_time(Duration::from_millis(1100)).await;
    stored.free(holder, None).await;
    assert!(stored.is_held_by(next).await);
    assert_eq!(stored.waiting().await, 0);
}

async fn a_client_that_is_not_heard_is_suspended_until_it_looks_and_then_has_its_places_back(
    backend: Backend,
) {
    let stored = Stored::on(backend);
    let (holder, silent, too, runs) = (owner(0, 1), owner(1, 1), owner(1, 2), owner(0, 2));
    for share in [None, Some(Permits::WRITE), permits(5, 5)] {
        stored.take(holder, share).await;
        stored.queue(silent, share, 0).await;
        stored.queue(too, share, 0).await;
        stored.pass_time(SILENCE).await;
        stored.queue(runs, share, 0).await;
        stored.free(holder, share).await;
        assert!(stored.is_held_by(runs).await, "{share:?}");
        stored.free(runs, share).await;
        assert_eq!(stored.holder().await, None, "no other client runs");
        assert_eq!(stored.waiting().await, 2, "their places are kept");
        let reply = stored.ask(request(silent, share, Queue::Join)).await;
        assert!(matches!(reply, Acquired::Granted(_)), "{reply:?}");
        // The other place has not moved: it is in front of later ones.
        stored.queue(runs, share, 0).await;
        stored.free(silent, share).await;
        assert!(stored.is_held_by(too).await, "{share:?}");
        stored.free(too, share).await;
        assert!(stored.is_held_by(runs).await, "{share:?}");
        stored.free(runs, share).await;
        assert!(stored.server().keys("*").await.is_empty());
    }
}

async fn one_look_confirms_all_places_of_its_client(backend: Backend) {
    let stored = Stored::on(backend);
    let (holder, first, second) = (owner(0, 1), owner(1, 1), owner(1, 2));
    stored.take(holder, None).await;
    stored.queue(first, None, 0).await;
    stored.queue(second, None, 0).await;
    stored.queue(owner(0, 2), None, 0).await;
    stored.pass_time(SILENCE).await;
    stored.queue(first, None, 0).await;
    stored.pass_time(SILENCE / 2).await;
    stored.free(holder, None).await;
    assert!(stored.is_held_by(first).await);
    stored.free(first, None).await;
    assert!(stored.is_held_by(second).await);
}

async fn a_new_place_is_served_in_its_turn(backend: Backend) {
    let stored = Stored::on(backend);
    let (holder, silent, new) = (owner(0, 1), owner(1, 1), owner(1, 2));
    stored.take(holder, None).await;
    stored.queue(silent, None, 0).await;
    stored.pass_time(SILENCE).await;
    stored.queue(new, None, 0).await;
    stored.free(holder, None).await;
    assert!(stored.is_held_by(new).await);
    assert_eq!(stored.waiting().await, 1);
}

async fn a_writer_that_stands_still_stops_no_readers(backend: Backend) {
    let stored = Stored::on(backend);
    let (reader, writer, another) = (owner(0, 1), owner(1, 1), owner(0, 2));
    stored.take(reader, Some(Permits::READ)).await;
    stored.queue(writer, Some(Permits::WRITE), 0).await;
    stored.queue(another, Some(Permits::READ), 0).await;
    stored.pass_time(SILENCE).await;
    let look = request(another, Some(Permits::READ), Queue::Join);
    let reply = stored.ask(look).await;
    assert!(matches!(reply, Acquired::Granted(_)), "{reply:?}");
    // The writer is heard again, and is next.
    stored.queue(writer, Some(Permits::WRITE), 0).await;
    stored.queue(owner(0, 3), Some(Permits::READ), 0).await;
}

async fn a_writer_whose_wait_has_ended_stops_no_readers(backend: Backend) {
    let stored = Stored::on(backend);
    let (reader, writer) = (owner(0, 1), owner(1, 1));
    stored.take(reader, Some(Permits::READ)).await;
    stored.ask(for_a_second(writer, Some(Permits::WRITE))).await;
    stored.queue(owner(0, 2), Some(Permits::READ), 0).await;
    stored.pass_time(Duration::from_millis(1100)).await;
    stored.take(owner(0, 3), Some(Permits::READ)).await;
}

async fn a_clock_set_back_costs_no_place(backend: Backend) {
    let stored = Stored::on(backend);
    let (holder, first, second) = (owner(0, 1), owner(1, 1), owner(1, 2));
    stored.take(holder, None).await;
    stored.ask(for_a_second(first, None)).await;
    stored.ask(for_a_second(second, None)).await;
    stored.age(-60_000_000).await;
    stored.free(holder, None).await;
    assert!(stored.is_held_by(first).await);
    stored.pass_time(SILENCE).await;
    stored.free(first, None).await;
    assert!(stored.is_held_by(second).await, "its stamp is ahead still");
}

/// Else a place could stand before others for as long as the clock was ahead, though its client
/// stands still.
async fn a_stamp_ahead_of_the_clock_is_set_to_now(backend: Backend) {
    let stored = Stored::on(backend);
    let (reader, writer) = (owner(0, 1), owner(1, 1));
    let (read, write) = (Some(Permits::READ), Some(Permits::WRITE));
    stored.take(reader, read).await;
    stored.queue(writer, write, 0).await;
    stored.age(-3_600_000_000).await;
    let before = wall_micros();
    stored.queue(owner(0, 2), read, 0).await;
    let place = stored.score(&format!("{writer}:")).await.unwrap();
    assert!(
        (before..=wall_micros()).contains(&place),
        "{place} {before}"
    );
    // So is the time when its client was heard.
    stored.pass_time(SILENCE).await;
    let ahead = HEARD + wall_micros() + 3_600_000_000;
    let client = format!("{:032x}", writer.client.0);
    stored
        .command(&format!("ZADD {QUEUE} {ahead} {client}"))
        .await;
    let before = HEARD + wall_micros();
    stored.queue(owner(0, 3), read, 0).await;
    let words = ["ZSCORE", QUEUE, &client];
    let heard: String = stored.server().query(&words).await;
    let heard: u64 = heard.parse().unwrap();
    assert!(
        (before..=HEARD + wall_micros()).contains(&heard),
        "{heard} {before}"
    );
}

async fn a_client_that_was_suspended_is_remembered_for_a_minute(backend: Backend) {
    let stored = Stored::on(backend);
    let waits = owner(0, 2);
    stored.take(owner(0, 1), None).await;
    stored.queue(waits, None, 0).await;
    for (seconds, stays) in [(30, true), (61, false)] {
        let then = HEARD + wall_micros() / 1000 - seconds * 1000;
        stored
            .command(&format!("ZADD {QUEUE} {then} {:032x}", 9))
            .await;
        stored.queue(waits, None, 0).await;
        let found = stored.score(&format!("{:032x}", 9)).await;
        assert_eq!(found.is_some(), stays, "{seconds}");
    }
}

async fn places_of_a_client_that_is_gone_are_not_kept(backend: Backend) {
    let stored = Stored::on(backend);
    let (holder, next) = (owner(0, 1), owner(0, 2));
    stored.take(holder, None).await;
    // A client that was never heard.
    stored.places(&format!("{}:1000:0", owner(9, 1))).await;
    stored.pass_time(SILENCE).await;
    stored.queue(next, None, 0).await;
    stored.free(holder, None).await;
    assert!(stored.is_held_by(next).await);
    assert_eq!(stored.waiting().await, 0);
}

async fn of_a_queue_without_places_nothing_is_left(backend: Backend) {
    let stored = Stored::on(backend);
    let (holder, one, two) = (owner(0, 1), owner(1, 1), owner(1, 2));
    stored.take(holder, None).await;
    for _ in 0..2 {
        stored.queue(one, None, 0).await;
        stored.queue(two, None, 0).await;
    }
    // Behind the places stands when their client was heard.
    assert_eq!(stored.number(&format!("ZCARD {QUEUE}")).await, 3);
    assert_eq!(stored.waiting().await, 2);
    stored.abandon(one, None).await;
    stored.abandon(two, None).await;
    assert_eq!(stored.number(&format!("EXISTS {QUEUE}")).await, 0);
    for _ in 0..2 {
        stored.queue(one, None, 0).await;
        stored.queue(two, None, 0).await;
    }
    stored.free(holder, None).await;
    stored.free(one, None).await;
    assert_eq!(stored.number(&format!("EXISTS {QUEUE}")).await, 0);
    // Nor if the last of them finds the lock free.
    for share in WHOLES {
        stored.command("FLUSHALL").await;
        stored.take(holder, share).await;
        for _ in 0..2 {
            stored.queue(one, share, 0).await;
        }
        stored.command(&format!("DEL {LOCK}")).await;
        let reply = stored.ask(request(one, share, Queue::Join)).await;
        assert!(matches!(reply, Acquired::Granted(_)), "{reply:?}");
        assert_eq!(stored.number(&format!("EXISTS {QUEUE}")).await, 0);
    }
}

async fn a_client_that_takes_a_new_place_is_heard_and_has_the_earlier_ones_back(backend: Backend) {
    let stored = Stored::on(backend);
    let (holder, silent, runs) = (owner(0, 1), owner(1, 1), owner(0, 2));
    for share in [None, Some(Permits::WRITE)] {
        stored.take(holder, share).await;
        stored.queue(silent, share, 0).await;
        stored.pass_time(SILENCE).await;
        stored.queue(runs, share, 0).await;
        stored.free(holder, share).await;
        assert!(stored.is_held_by(runs).await);
        stored.queue(owner(0, 3), share, 0).await;
        stored.queue(owner(1, 2), share, 0).await;
        stored.free(runs, share).await;
        assert!(stored.is_held_by(silent).await, "{share:?}");
        stored.command("FLUSHALL").await;
    }
}

async fn a_place_that_was_suspended_is_kept_for_a_minute(backend: Backend) {
    let stored = Stored::on(backend);
    let (holder, silent, runs) = (owner(0, 1), owner(1, 1), owner(0, 2));
    for (minute, kept) in [(Duration::from_secs(59), 1), (Duration::from_secs(61), 0)] {
        stored.take(holder, None).await;
        stored.queue(silent, None, 0).await;
        stored.pass_time(SILENCE).await;
        stored.free(holder, None).await;
        assert_eq!(stored.waiting().await, 1);
        stored.pass_time(minute).await;
        stored.take(holder, None).await;
        stored.queue(runs, None, 0).await;
        stored.queue(runs, None, 0).await;
        assert_eq!(stored.waiting().await, 1 + kept, "{minute:?}");
        stored.command("FLUSHALL").await;
    }
}

async fn clients_that_wait_no_more_are_forgotten_while_others_keep_the_queue(backend: Backend) {
    let stored = Stored::on(backend);
    stored.take(owner(0, 1), None).await;
    stored.queue(owner(0, 2), None, 0).await;
    // A reader is there at every moment, while others come and go.
    for client in 5..25 {
        let entry = 6_000_000_000_000_000 + wall_micros() - 61_000_000;
        let member = format!("{client:032x}");
        stored
            .command(&format!("ZADD {QUEUE} {entry} {member}"))
            .await;
    }
    for _ in 0..20 {
        stored.queue(owner(0, 2), None, 0).await;
    }
    assert_eq!(stored.number(&format!("ZCARD {QUEUE}")).await, 2);
}
