//! Who stands where, and what is left when everybody has gone.

use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use lock_store::{ClientId, Owner};

use super::*;
use crate::config::LOOKS_UNTIL_SKIPPED;
use crate::engine::fencing::window::TokenWindow;
use crate::engine::local_queue::Tenure;

const MS: Duration = Duration::from_millis(1);

fn owner(request: u64) -> Owner {
    Owner::new(ClientId(1), request)
}

fn key(text: &str) -> LockKey {
    LockKey::from(text)
}

struct Queues {
    queues: LocalQueues,
    start: Instant,
}

impl Queues {
    fn new() -> Self {
        Self {
            queues: LocalQueues::default(),
            start: Instant::now(),
        }
    }

    /// A waiter that sleeps until the start, and whether it is the first.
    fn join(&self, key: &LockKey, since: u32) -> (Waiter, bool) {
        let request = QueuedRequest {
            owner: owner(1),
            permits: None,
            lease: MS,
            since: self.start + since * MS,
        };
        self.queues
            .join(key, request, true, Doing::Sleeps(self.start))
    }

    fn handoff(&self, key: &LockKey) -> Handoff {
        let marker = self.queues.marker(key);
        let tokens = TokenWindow::new(None, 0);
        Tenure::new(owner(7), self.start, None, tokens, marker).into_handoff(self.start)
    }
}

#[test]
fn the_first_is_who_came_first_unless_a_release_is_under_way() {
    let (all, key) = (Queues::new(), key("k"));
    let (first, is_first) = all.join(&key, 0);
    assert!(is_first && first.standing().is_first && !first.has_others_behind());
    let (second, is_first) = all.join(&key, 1);
    assert!(!is_first && !second.standing().is_first && first.has_others_behind());
    let (third, _) = all.join(&key, 2);
    assert_eq!((first.ahead(), second.ahead(), third.ahead()), (0, 1, 2));
    drop(second);
    assert_eq!(third.ahead(), 1);
    let releasing = all.queues.releasing(&key);
    assert!(!first.standing().is_first && !all.queues.is_idle(&key));
    drop(releasing);
    assert!(first.standing().is_first);
    drop(first);
    assert!(third.standing().is_first && !all.queues.is_idle(&key));
    drop(third);
    assert!(all.queues.is_idle(&key));
    let releasing = all.queues.releasing(&key);
    assert!(!all.join(&key, 3).1 && !all.queues.is_idle(&key));
    drop(releasing);
}

#[test]
fn the_oldest_request_of_all_keys_is_known_and_how_many_there_are() {
    let all = Queues::new();
    assert_eq!((all.queues.oldest(), all.queues.waiting()), (None, 0));
    let _waiters =
        [("a", 5), ("a", 3), ("b", 4), ("b", 7)].map(|(name, at)| all.join(&key(name), at));
    assert_eq!(all.queues.oldest(), Some(all.start + 3 * MS));
    assert_eq!(all.queues.waiting(), 4);
}

#[test]
fn a_hold_that_may_be_handed_off_is_known_while_it_lasts() {
    let (all, key) = (Queues::new(), key("k"));
    assert!(!all.queues.has_hold(&key));
    let (waiter, _) = all.join(&key, 0);
    assert!(!all.queues.has_hold(&key) && !waiter.standing().may_get_handoff);
    let marker = all.queues.marker(&key);
    assert!(all.queues.has_hold(&key) && waiter.standing().may_get_handoff);
    assert!(waiter.decline_handoffs().is_none());
    assert!(!waiter.standing().may_get_handoff);
    drop(marker);
    assert!(!all.queues.has_hold(&key));
}

#[test]
fn a_waiter_is_given_one_hold_and_who_leaves_gives_it_back() {
    let (all, key) = (Queues::new(), key("k"));
    let (first, _) = all.join(&key, 0);
    let (second, _) = all.join(&key, 1);
    assert!(all.queues.hand_off(all.handoff(&key)).is_ok());
    assert!(all.queues.hand_off(all.handoff(&key)).is_err());
    let handoffs = all.queues.take_handoffs();
    assert_eq!(handoffs.len(), 1);
    assert!(all.queues.take_handoffs().is_empty());
    assert!(first.leave().is_none());
    assert!(all.queues.hand_off(all.handoff(&key)).is_ok());
    assert!(second.leave().is_some());
    // Who has left stands nowhere.
    assert!(!first.standing().is_first && !first.standing().may_get_handoff);
    assert!(!second.standing().is_first);
    assert!(all.queues.hand_off(all.handoff(&key)).is_err());
}

#[test]
fn who_is_overdue_at_five_looks_in_a_row_is_skipped() {
    let (all, key) = (Queues::new(), key("k"));
    assert!(all.queues.find_unpolled(all.start).is_none());
    let (first, _) = all.join(&key, 0);
    let (second, _) = all.join(&key, 1);
    first.liveness().note(
        all.start,
        || false,
        false,
        &Ok(lock_store::Answer::new(
            lock_store::Acquired::busy(None, true),
            lock_store::Link(0),
        )),
    );
    all.queues.put_on_patrol(first.queue());
    all.queues.put_on_patrol(first.queue());
    let look = || all.queues.find_unpolled(all.start).map(|found| found.len());
    // The first look finds nothing, since it has not seen the waiter before.
    for _ in 0..LOOKS_UNTIL_SKIPPED {
        assert_eq!(look(), Some(0));
    }
    assert_eq!(look(), Some(1));
    assert!(first.signal.was_skipped() && !second.signal.was_skipped());
    assert!(second.standing().is_first);
    // What the store has said to them counts as long as anybody waits.
    assert!(second.liveness().answered().is_some());
    // It was seen before it became the first.
    for _ in 1..LOOKS_UNTIL_SKIPPED {
        assert_eq!(look(), Some(0));
    }
    assert_eq!(look(), Some(1));
    assert!(second.liveness().answered().is_none());
    // Nobody is left, and the next one is looked after again.
    assert!(look().is_none());
    let (third, _) = all.join(&key, 2);
    all.queues.put_on_patrol(third.queue());
    assert_eq!(look(), Some(0));
}

#[test]
fn one_that_reacts_between_two_looks_is_counted_anew() {
    let (all, key) = (Queues::new(), key("k"));
    let (waiter, _) = all.join(&key, 0);
    all.queues.put_on_patrol(waiter.queue());
    for _ in 0..4 {
        for _ in 0..LOOKS_UNTIL_SKIPPED {
            assert!(
                all.queues
                    .find_unpolled(all.start)
                    .is_some_and(|found| found.is_empty())
            );
        }
        waiter.signal.note_doing(Doing::Looks(all.start));
        assert!(
            all.queues
                .find_unpolled(all.start)
                .is_some_and(|found| found.is_empty())
        );
        waiter.signal.note_doing(Doing::Sleeps(all.start));
    }
}

#[test]
fn a_row_that_nobody_polls_is_skipped_in_growing_groups_and_who_reacts_stays() {
    let (all, key) = (Queues::new(), key("k"));
    let join = |at| {
        let (waiter, _) = all.join(&key, at);
        waiter
            .signal
            .note_doing(Doing::Sleeps(all.start + 1000 * MS));
        waiter
    };
    let row: Vec<_> = (0..30).map(join).collect();
    let polled = &row[3];
    all.queues.put_on_patrol(polled.queue());
    polled.queue().wake_first();
    let mut groups = Vec::new();
    for _ in 0..3 * (LOOKS_UNTIL_SKIPPED + 1) {
        groups.extend(all.queues.find_unpolled(all.start).map(|found| found.len()));
        assert!(!polled.signal.take().skipped);
    }
    groups.retain(|found| *found > 0);
    // The second group is of eight, one of which is polled. The third has all the others.
    assert_eq!(groups, [1, 7, 21]);
    assert!(polled.standing().is_first);
    drop(row);
    // A new row begins with one.
    let row: Vec<_> = (0..3).map(join).collect();
    row[0].queue().wake_first();
    all.queues.put_on_patrol(row[0].queue());
    let looks =
        (0..2 * (LOOKS_UNTIL_SKIPPED + 1)).filter_map(|_| all.queues.find_unpolled(all.start));
    let found = looks.map(|found| found.len()).filter(|found| *found > 0);
    assert_eq!(found.collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn what_nobody_uses_is_forgotten_and_nothing_else() {
    let all = Queues::new();
    let (waits, holds, releases) = (key("waits"), key("holds"), key("releases"));
    let (_waiter, _) = all.join(&waits, 0);
    let _marker = all.queues.marker(&holds);
    let _releasing = all.queues.releasing(&releases);
    for number in 0..10_000 {
        drop(all.join(&key(&number.to_string()), 0));
    }
    assert!(all.queues.table.lock().len() < 5000);
    assert!(!all.join(&waits, 1).1);
    assert!(all.queues.has_hold(&holds));
    assert!(all.queues.until_released(&releases).is_some());
}

#[test]
fn a_queue_that_many_have_left_keeps_little_room() {
    let (all, key) = (Queues::new(), key("k"));
    let waiters: Vec<_> = (0..5000).map(|at| all.join(&key, at).0).collect();
    let queue = Arc::clone(waiters[0].queue());
    drop(waiters);
    assert!(queue.state.lock().entries.0.capacity() < 500);
}

#[test]
fn one_that_is_polled_again_as_it_is_skipped_is_woken() {
    let (all, key) = (Queues::new(), key("k"));
    let (waiter, _) = all.join(&key, 0);
    // It has found nothing in its inbox, and sleeps again.
    let signal = Arc::clone(&waiter.signal);
    assert!(!signal.take().skipped);
    let mut sleeps = pin!(signal.notified());
    let mut context = Context::from_waker(Waker::noop());
    assert!(sleeps.as_mut().poll(&mut context).is_pending());
    assert!(Skipped::take(waiter.queue(), waiter.ticket).is_some());
    assert!(sleeps.as_mut().poll(&mut context).is_ready());
    assert!(signal.take().skipped);
}
