//! One request that waits: for a holder, for its turn, or for a store that fails.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use lock_runtime::{Guard, LockClient, LockError, StoreErrorKind};
use lock_store::{Acquired, Busy, HandedOver, Link, Owner, Queue, Released, Trust};
use lock_testkit_core::store_decorator::{Reply, Request};

use crate::fates::{DOWN, Fate};
use crate::recording_store::{RecordingStore, WAIT, ms, of, short, simulated};
use crate::schedule::Command;

/// A key that another process holds.
async fn taken() -> (Arc<RecordingStore>, LockClient, Guard) {
    let (store, client) = RecordingStore::open().await;
    let guard = store.other().await.lock("k").acquire().await.unwrap();
    (store, client, guard)
}

/// The reply to a request that has a place in the queue.
const TAKEN: Acquired = Acquired::busy(None, true);

/// This many unusable grants end a wait without end.
const GRANTS_TOO_LATE: usize = 5;

/// The pauses between these times.
fn pauses(times: &[u64]) -> Vec<u64> {
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[test]
fn a_waiter_asks_each_second_and_looks_at_the_key_before_it_says_busy() {
    simulated(async {
        let (store, client, _guard) = taken().await;
        let request = client.lock("k").wait(of(3000)).acquire();
        let error = store.ask(3000, request).await.unwrap_err();
        let LockError::Busy { waited, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!((*waited, store.now()), (of(3000), 3000));
        ms(1).await;
        let (tries, look) = (
            [0, 0, 1000, 2000].map(|at| (at, "acquire")),
            (2500, "inspect"),
        );
        let calls = store.calls();
        assert_eq!(calls[..4], tries);
        assert_eq!(calls[4..], [look, (3000, "abandon")]);
    });
}

#[test]
fn a_try_asks_once() {
    simulated(async {
        let (store, client, _guard) = taken().await;
        let attempt = store.ask(0, client.lock("k").try_acquire()).await;
        assert!(attempt.unwrap().is_none());
        let request = client.lock("k").wait(of(0)).acquire();
        let error = store.ask(0, request).await.unwrap_err();
        assert!(error.is_busy());
        ms(1000).await;
        assert_eq!(store.calls(), [(0, "acquire"), (0, "acquire")]);
    });
}

#[test]
fn a_try_that_may_have_been_carried_out_is_repeated_by_its_owner() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let fate = Fate::FailsLate(StoreErrorKind::Timeout, 1000);
        store.next("acquire", &[fate]);
        let request = client.lock("k").wait(of(0)).acquire();
        let guard = store.ask(0, request).await.unwrap();
        let seen = store.seen();
        // The plain first try does not recognise its own grant.
        let queue = |one: &Command| match &one.request {
            Request::Acquire(request) => request.queue,
            other => panic!("{other:?}"),
        };
        let queues: Vec<_> = seen.iter().map(queue).collect();
        assert_eq!(queues, [Queue::Barge, Queue::Respect]);
        drop(guard);
        ms(3000).await;
    });
}

/// Layouts of other libraries have another lock for those that are.
#[test]
fn the_store_is_told_whether_a_request_is_fair() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        for fair in [false, true] {
            let lock = match fair {
                true => client.lock("k").fair(),
                false => client.lock("k"),
            };
            drop(store.ask(WAIT, lock.acquire()).await.unwrap());
            ms(1).await;
            let seen = store.seen();
            let said = matches!(&seen[0].request, Request::Acquire(one) if one.fair == fair);
            assert!(said, "{:?}", seen[0]);
        }
    });
}

#[test]
fn a_silent_store_is_given_up_when_the_wait_ends() {
    simulated(async {
        for wait in [0, 20, 460, 3000] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("wait {wait}"));
            store.set_usual("acquire", Fate::Silence);
            store.set_usual("ping", Fate::Silence);
            let request = client.lock("k").wait(of(wait)).acquire();
            let error = store.ask(wait, request).await.unwrap_err();
            assert_eq!(short(&error), "Timeout");
            assert_eq!(store.now(), wait.max(500));
        }
    });
}

#[test]
fn a_store_that_is_down_is_asked_ever_more_seldom() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.set_usual("acquire", DOWN);
        store.set_usual("ping", DOWN);
        for (wait, ends) in [(Some(9000), 9000), (None, 19_000)] {
            let request = client.lock("k");
            let request = match wait {
                Some(wait) => request.wait(of(wait)),
                None => request.wait_forever(),
            };
            let error = store.ask(wait, request.acquire()).await.unwrap_err();
            assert_eq!(
                (short(&error).as_str(), store.now()),
                ("Disconnected", ends)
            );
            let pauses = pauses(&store.when("acquire"));
            assert!(pauses.is_sorted(), "{pauses:?}");
            assert_eq!((pauses[0], pauses.last()), (50, Some(&2000)));
        }
    });
}

#[test]
fn a_store_that_comes_back_starts_the_count_of_failures_anew() {
    simulated(async {
        let (store, client, guard) = taken().await;
        store.next("acquire", &[DOWN, DOWN, Fate::Passes, DOWN, DOWN]);
        let request = client.lock("k").wait(of(9000)).acquire();
        let waits = tokio::spawn(store.ask(9000, request));
        ms(2000).await;
        guard.release().await.unwrap();
        let guard = waits.await.unwrap().unwrap();
        assert_eq!(store.now(), 2000);
        let pauses = pauses(&store.when("acquire"));
        assert_eq!(pauses[..2], pauses[3..], "{pauses:?}");
        drop(guard);
    });
}

#[test]
fn a_wait_for_ever_ends_when_a_silent_store_has_no_more_patience() {
    simulated(async {
        let (store, client, _guard) = taken().await;
        let request = client.lock("k").wait_forever().acquire();
        let waits = tokio::spawn(store.ask(None, request));
        ms(5500).await;
        store.set_usual("acquire", Fate::Silence);
        store.set_usual("ping", Fate::Silence);
        let error = waits.await.unwrap().unwrap_err();
        // The last answered command was sent at 5,000. The wait ends 10 s later, the client's
        // default wait.
        assert_eq!((store.now(), short(&error)), (15_000, "Timeout".to_owned()));
        let answered = [0, 0, 1000, 2000, 3000, 4000, 5000];
        let asked = store.when("acquire");
        assert_eq!(asked[..7], answered);
        assert!(asked[7..].len() > 5, "{asked:?}");
    });
}

#[test]
fn a_store_that_refuses_every_acquire_is_not_called_busy() {
    simulated(async {
        let (store, client, _guard) = taken().await;
        store.set_usual("acquire", Fate::Fails(StoreErrorKind::OutOfMemory));
        let request = || client.lock("k").wait(of(3000));
        let first = tokio::spawn(store.ask(3000, request().acquire()));
        let second = tokio::spawn(store.ask(3000, request().acquire()));
        let third = tokio::spawn(store.ask(3000, request().fair().acquire()));
        for waits in [first, second, third] {
            let error = waits.await.unwrap().unwrap_err();
            assert_eq!((short(&error).as_str(), store.now()), ("OutOfMemory", 3000));
        }
    });
}

/// Its client gives up a silent store after a second.
#[test]
fn a_wait_for_ever_at_a_key_that_others_keep_has_time_for_each_command() {
    simulated(async {
        let (store, client) = RecordingStore::open_with(|builder| builder.wait(of(1000))).await;
        store.set_usual("acquire", Fate::Fails(StoreErrorKind::Contended));
        let request = client.lock("k").wait_forever().acquire();
        let waits = tokio::spawn(store.ask(100_000, request));
        ms(10_000).await;
        store.set_usual("acquire", Fate::Replies(20, 1));
        let guard = waits.await.unwrap().unwrap();
        assert!(store.now() < 12_500, "{}", store.now());
        guard.release().await.unwrap();
    });
}

/// The first asks again at 1550 and at 3150 ms.
#[test]
fn a_refusal_that_was_met_before_a_request_came_is_not_told_to_it() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.set_usual("acquire", Fate::Fails(StoreErrorKind::OutOfMemory));
        let first = tokio::spawn(store.ask(WAIT, client.lock("k").acquire()));
        for (comes, told, at) in [(1600, "Timeout", 2100), (3000, "OutOfMemory", 3500)] {
            ms(comes - store.now()).await;
            let request = client.lock("k").wait(of(100)).acquire();
            let error = store.ask(100, request).await.unwrap_err();
            assert_eq!((short(&error).as_str(), store.now()), (told, at));
            let text = error.to_string();
            assert_eq!(
                text.contains("it refused another"),
                told == "Timeout",
                "{text}"
            );
        }
        first.abort();
    });
}

/// It hears each second of what the first has met.
#[test]
fn a_later_wait_for_ever_ends_soon_after_the_first_is_refused_again() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.set_usual("acquire", Fate::Fails(StoreErrorKind::OutOfMemory));
        let first = client.lock("k").wait(of(100_000)).acquire();
        let first = tokio::spawn(store.ask(100_000, first));
        ms(12_000).await;
        let later = client.lock("k").wait_forever().acquire();
        let error = store.ask(100_000, later).await.unwrap_err();
        assert_eq!(store.when("acquire").last(), Some(&13_150));
        assert_eq!(
            (short(&error).as_str(), store.now()),
            ("OutOfMemory", 14_000)
        );
        first.abort();
    });
}

#[test]
fn an_error_that_waiting_does_not_change_is_reported_at_once() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.next("acquire", &[Fate::Fails(StoreErrorKind::Denied)]);
        let request = store.ask(WAIT, client.lock("k").acquire());
        let error = request.await.unwrap_err();
        assert_eq!((short(&error).as_str(), store.now()), ("Denied", 0));
        assert_eq!(store.calls(), [(0, "acquire")]);
    });
}

#[test]
fn a_hand_over_is_trusted_at_once_or_asked_about() {
    simulated(async {
        for (fenced, token, after, trusted) in [
            (false, None, 100, true),
            (true, Some(5), 100, true),
            (true, None, 100, false),
            (false, None, 990, true),
        ] {
            let (store, client, _guard) = taken().await;
            store.title(format!("fenced {fenced}, a token {token:?} at {after}"));
            let request = client.lock("k").wait(of(9000));
            let request = if fenced { request.fenced() } else { request };
            let waits = tokio::spawn(store.ask(9000, request.acquire()));
            ms(after).await;
            store.seen();
            store.notify_granted(0, token);
            ms(300).await;
            assert_eq!(waits.is_finished(), trusted);
            // It is renewed, or asked about with the grant.
            let calls = store.calls();
            if trusted {
                assert!(
                    matches!(calls[..], [(at, "renew")] if at > after),
                    "{calls:?}"
                );
            } else {
                assert_eq!(calls, [(after, "acquire")]);
            }
            waits.abort();
            ms(1).await;
        }
    });
}

#[test]
fn a_grant_that_is_heard_over_another_link_than_the_last_reply_is_not_believed() {
    simulated(async {
        let (store, client, _guard) = taken().await;
        let request = client.lock("k").wait(of(9000)).acquire();
        let waits = tokio::spawn(store.ask(9000, request));
        ms(100).await;
        store.seen();
        store.notify_granted_over(Link(7), 0, None);
        ms(50).await;
        assert_eq!((waits.is_finished(), store.calls()), (false, vec![]));
        store.notify_granted(0, None);
        ms(50).await;
        assert!(waits.is_finished());
    });
}

#[test]
fn a_grant_that_is_heard_while_the_store_is_asked_is_believed_over_a_new_link_only() {
    simulated(async {
        // The last reply came over the first link, the next one comes over link 0.
        for (first, told, asks_again) in [(7, 0, true), (0, 0, true), (0, 7, false)] {
            let (store, client, _guard) = taken().await;
            store.title(format!("over link {first}, told over link {told}"));
            store.next("acquire", &[Fate::Passes, Fate::Replies(0, first)]);
            let request = client.lock("k").wait(of(9000)).acquire();
            let waits = tokio::spawn(store.ask(9000, request));
            ms(500).await;
            store.next("acquire", &[Fate::Replies(100, 0)]);
            ms(550).await;
            store.notify_granted_over(Link(told), 0, None);
            store.seen();
            ms(150).await;
            let expected = if asks_again { vec![1100] } else { vec![] };
            assert_eq!(store.when("acquire"), expected, "{first}, {told}");
            waits.abort();
        }
    });
}

#[test]
fn who_backs_off_asks_when_messages_may_be_lost_but_not_at_once() {
    simulated(async {
        // It has failed at 350, and would ask again at 750.
        for (called, asks) in [(360, 400), (500, 500)] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("called at {called}"));
            store.set_usual("acquire", DOWN);
            let waits = tokio::spawn(store.ask(WAIT, client.lock("k").acquire()));
            ms(called).await;
            store.seen();
            store.call_all();
            ms(600 - called).await;
            assert_eq!(store.when("acquire"), [asks]);
            waits.abort();
        }
    });
}

#[test]
fn who_waits_for_a_hold_of_its_process_asks_when_messages_may_be_lost() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let request = || store.ask(WAIT, client.lock("k").acquire());
        let _guard = request().await.unwrap();
        let waits = tokio::spawn(request());
        ms(100).await;
        store.seen();
        store.call_all();
        ms(50).await;
        assert_eq!(store.when("acquire"), [100]);
        waits.abort();
    });
}

#[test]
fn a_hand_over_with_a_token_that_does_not_rise_is_asked_about() {
    simulated(async {
        for (more, asks) in [(0, vec![100]), (9, vec![])] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("{more} more"));
            let request = || store.ask(9000, client.lock("k").fenced().wait(of(9000)).acquire());
            let guard = request().await.unwrap();
            let last = u64::from(guard.fencing_token().unwrap());
            guard.release().await.unwrap();
            let _taken = store.other().await.lock("k").acquire().await.unwrap();
            let waits = tokio::spawn(request());
            ms(100).await;
            store.seen();
            store.notify_granted(1, Some(last + more));
            ms(50).await;
            assert_eq!(store.when("acquire"), asks, "{more} more");
            assert_eq!(waits.is_finished(), asks.is_empty(), "{more} more");
        }
    });
}

#[test]
fn a_hand_over_is_counted_from_a_later_command_that_has_changed_the_store() {
    simulated(async {
        // Of the 2000 ms of its first lease, from 0 or from 500.
        for (queued, left) in [(None, 1828), (Some(true), 1828), (Some(false), 1328)] {
            let (store, client, _guard) = taken().await;
            let another = match queued {
                None => "is granted".to_owned(),
                Some(queued) => format!("is told that it is taken, queued {queued}"),
            };
            store.title(format!("another {another}"));
            let request = client.lock("k").fair().wait(of(9000)).acquire();
            let waits = tokio::spawn(store.ask(9000, request));
            ms(500).await;
            if let Some(queued) = queued {
                let busy = Acquired::Busy(Busy::new(None, queued));
                store.answer(Reply::Acquire(busy));
            }
            let another = client.lock("another").fair().wait(of(1000)).acquire();
            let another = tokio::spawn(store.ask(1000, another));
            ms(150).await;
            store.notify_granted(0, None);
            ms(0).await;
            let guard = waits.await.unwrap().unwrap();
            assert_eq!(guard.remaining(), of(left), "{queued:?}");
            another.abort();
        }
    });
}

#[test]
fn a_grant_that_could_not_be_used_is_forgotten_when_the_key_is_taken() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.next("acquire", &[Fate::Replies(988, 0)]);
        let request = client.lock("k").lease(of(1000)).wait(of(3000)).acquire();
        let waits = tokio::spawn(store.ask(3000, request));
        ms(1000).await;
        for _ in 0..9 {
            store.answer(Reply::Acquire(TAKEN));
        }
        let error = waits.await.unwrap().unwrap_err();
        assert_eq!(short(&error), "busy after 3s");
    });
}

#[test]
fn one_that_became_the_first_asks_when_the_lease_of_the_holder_ends() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let held = store.other().await.lock("k").lease(of(1500)).renew(false);
        let _held = held.acquire().await.unwrap();
        let first = tokio::spawn(store.ask(WAIT, client.lock("k").acquire()));
        ms(1).await;
        let second = tokio::spawn(store.ask(WAIT, client.lock("k").acquire()));
        ms(99).await;
        // The store will not tell it.
        first.abort();
        ms(1).await;
        store.seen();
        store.next("acquire", &[Fate::Passes]);
        ms(1300).await;
        assert_eq!(store.when("acquire"), [1100]);
        drop(second.await.unwrap().unwrap());
        assert!(store.now() <= 1501, "{}", store.now());
        ms(100).await;
    });
}

#[test]
fn who_asks_over_a_link_that_is_lost_meanwhile_asks_again() {
    simulated(async {
        let (store, client, _guard) = taken().await;
        store.next("acquire", &[Fate::Passes, Fate::Replies(100, 0)]);
        let waits = tokio::spawn(store.ask(WAIT, client.lock("k").acquire()));
        ms(50).await;
        store.seen();
        store.lose(Link(0));
        ms(100).await;
        assert_eq!(store.when("acquire"), [100]);
        // From now on it waits for news over link 0 only.
        store.lose(Link(7));
        ms(100).await;
        assert!(store.calls().is_empty());
        store.lose(Link(0));
        ms(100).await;
        assert_eq!(store.when("acquire"), [250]);
        waits.abort();
    });
}

#[test]
fn who_was_not_polled_until_its_wait_was_over_says_so() {
    simulated(async {
        let (store, client, _guard) = taken().await;
        store.next("acquire", &[Fate::Replies(12_000, 0)]);
        let mut request = pin!(store.ask(WAIT, client.lock("k").acquire()));
        let once = std::future::poll_fn(|cx| Poll::Ready(request.as_mut().poll(cx)));
        assert!(once.await.is_pending());
        ms(12_001).await;
        let error = request.await.unwrap_err();
        let text = error.to_string() + &format!("{:?}", std::error::Error::source(&error));
        assert!(text.contains("no time to ask it once more"), "{text}");
    });
}

#[test]
fn a_new_first_asks_a_second_after_the_last_one_that_had_a_place() {
    simulated(async {
        let (store, client, _guard) = taken().await;
        let request = || store.ask(9000, client.lock("k").fair().wait(of(9000)).acquire());
        let first = tokio::spawn(request());
        ms(1).await;
        let second = tokio::spawn(request());
        ms(1399).await;
        // Its first command says nothing of the others' places.
        let third = tokio::spawn(request());
        ms(100).await;
        first.abort();
        ms(1000).await;
        assert_eq!(store.when("acquire"), [0, 1, 1000, 1400, 2000]);
        second.abort();
        third.abort();
    });
}

/// The message of its own grant may be lost. Whoever has an exclusive lock has all of it.
#[test]
fn who_follows_one_that_was_granted_a_share_when_it_asked_asks_at_once() {
    simulated(async {
        for (is_shared, expected) in [
            (true, [0, 1, 1000, 1000, 2000].as_slice()),
            (false, &[0, 1, 1000, 2000]),
        ] {
            let (store, client) = RecordingStore::open().await;
            store.title(if is_shared { "readers" } else { "exclusive" });
            let lock = |client: &LockClient, write| match (is_shared, write) {
                (false, _) => client.lock("k").fair(),
                (true, true) => client.rw_lock("k").write(),
                (true, false) => client.rw_lock("k").read(),
            };
            let _held = lock(&store.other().await, true).acquire().await.unwrap();
            let request = || store.ask(9000, lock(&client, false).wait(of(9000)).acquire());
            let first = tokio::spawn(request());
            ms(1).await;
            let second = tokio::spawn(request());
            ms(1).await;
            store.answer(Reply::Acquire(Acquired::granted(None)));
            ms(2400).await;
            assert!(first.is_finished() && !second.is_finished());
            assert_eq!(store.when("acquire"), expected);
            second.abort();
            drop(first.await);
            ms(100).await;
        }
    });
}

/// Its own command was sent after that of the one before it: the store has said how things stand.
#[test]
fn who_has_asked_later_than_the_one_before_does_not_ask_again() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let permits = |count| client.semaphore("k", 2).permits(count).wait(of(9000));
        let other = store.other().await.semaphore("k", 2);
        let _held = other.permits(1).acquire().await.unwrap();
        store.next("acquire", &[Fate::Replies(300, 0), Fate::Replies(0, 0)]);
        let first = tokio::spawn(store.ask(9000, permits(1).acquire()));
        ms(1).await;
        let second = tokio::spawn(store.ask(9000, permits(1).acquire()));
        ms(900).await;
        assert!(first.is_finished() && !second.is_finished());
        assert_eq!(store.when("acquire"), [0, 1]);
        second.abort();
    });
}

#[test]
fn a_grant_is_counted_from_the_newest_change_that_was_confirmed_before_it_over_its_link() {
    simulated(async {
        // What is left is counted from 1,000, or from the release at 1,200. Otherwise the store is
        // asked.
        for (look, released, expected) in [
            (Fate::Passes, None, Some(1258)),
            (Fate::Replies(0, 7), None, None),
            (Fate::Replies(700, 0), None, None),
            (Fate::Replies(0, 7), Some(Released::Released), Some(1458)),
            // A replica says that, too.
            (Fate::Replies(0, 7), Some(Released::NotHeld), None),
        ] {
            let (store, client, _guard) = taken().await;
            store.title(format!("{look:?}, {released:?}"));
            store.next("acquire", &[Fate::Passes, Fate::Passes, Fate::Passes, look]);
            let other = client.lock("other").acquire();
            let other = store.ask(WAIT, other).await.unwrap();
            // The first looks again after a second. The second does not.
            let request = || store.ask(9000, client.lock("k").fair().wait(of(9000)).acquire());
            let first = tokio::spawn(request());
            ms(1).await;
            let mut second = pin!(request());
            let mut once = std::future::poll_fn(|cx| Poll::Ready(second.as_mut().poll(cx)));
            assert!((&mut once).await.is_pending());
            ms(1199).await;
            if let Some(released) = released {
                store.answer(Reply::Release(vec![released]));
                let _ = other.release().await;
            }
            ms(450).await;
            store.notify_granted(2, None);
            // The request wakes after later news still.
            ms(70).await;
            store.seen();
            let remaining = match once.await {
                Poll::Ready(guard) => Some(guard.unwrap().remaining()),
                Poll::Pending => None,
            };
            assert_eq!(remaining, expected.map(of));
            let asked_about = store.when("acquire");
            assert_eq!(asked_about.is_empty(), expected.is_some());
            first.abort();
            ms(1).await;
        }
    });
}

#[test]
fn one_request_of_a_process_asks_for_all_unless_fair() {
    simulated(async {
        for (fair, looks, all) in [
            (false, vec![0, 0, 1000], 1),
            (true, vec![0, 10, 20, 1000], 3),
        ] {
            let (store, client, guard) = taken().await;
            store.title(format!("fair {fair}"));
            let mut waiting = Vec::new();
            for _ in 0..3 {
                let request = client.lock("k").wait(of(9000));
                let request = if fair { request.fair() } else { request };
                waiting.push(tokio::spawn(store.ask(9000, request.acquire())));
                ms(10).await;
            }
            ms(1500).await;
            assert_eq!(store.when("acquire"), looks);
            store.note("messages may have been lost");
            store.listener.lock().unwrap().as_ref().unwrap().recheck();
            ms(1).await;
            assert_eq!(store.calls(), vec![(1530, "acquire"); all]);
            guard.release().await.unwrap();
            for waits in waiting {
                waits.await.unwrap().unwrap().release().await.unwrap();
            }
            assert_eq!(store.calls(), vec![(1531, "release"); all]);
        }
    });
}

#[test]
fn a_grant_that_comes_after_its_lease_is_not_trusted() {
    simulated(async {
        for (wait, expected) in [(0, None), (5000, Some((1038, of(988))))] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("wait {wait}"));
            store.next("acquire", &[Fate::Replies(988, 0)]);
            let request = client.lock("k").lease(of(1000)).wait(of(wait));
            let answer = store.ask(wait, request.acquire()).await;
            match answer {
                Ok(guard) => assert_eq!(Some((store.now(), guard.remaining())), expected),
                Err(error) => {
                    assert_eq!(short(&error), "Timeout, seen by us");
                    assert_eq!((store.now(), expected), (988, None));
                }
            }
        }
    });
}

#[test]
fn a_fenced_grant_without_a_token_is_no_grant() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.answer(Reply::Acquire(Acquired::granted(None)));
        let request = client.lock("k").fenced().acquire();
        let guard = store.ask(WAIT, request).await.unwrap();
        assert!(guard.fencing_token().is_some());
        assert_eq!(store.calls(), [(0, "acquire"), (50, "acquire")]);
    });
}

#[test]
fn a_look_that_fails_is_not_repeated_again_and_again() {
    simulated(async {
        let (store, client, _guard) = taken().await;
        store.set_usual("inspect", DOWN);
        let request = client.lock("k").wait(of(3000)).acquire();
        let error = store.ask(3000, request).await.unwrap_err();
        assert_eq!((store.now(), short(&error)), (3000, "Disconnected".into()));
        assert_eq!(store.when("inspect"), [2500]);
    });
}

#[test]
fn a_wait_for_ever_is_not_ended_by_a_store_that_answers_something() {
    simulated(async {
        let (store, client, guard) = taken().await;
        let request = client.lock("k").wait_forever().acquire();
        let waits = tokio::spawn(store.ask(None, request));
        ms(60_000).await;
        assert!(store.when("ping").is_empty());
        guard.release().await.unwrap();
        drop(waits.await.unwrap().unwrap());
    });
}

#[test]
fn a_lease_that_the_network_uses_up_ends_a_wait_for_ever_also_if_others_hold_the_key_in_between() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.set_usual("acquire", Fate::Replies(60, 0));
        for _ in 0..GRANTS_TOO_LATE {
            store.answer(Reply::Acquire(Acquired::granted(None)));
            store.answer(Reply::Acquire(TAKEN));
        }
        let request = client.lock("k").lease(of(50)).wait_forever().acquire();
        let error = store.ask(None, request).await.unwrap_err();
        let LockError::Unavailable { source, .. } = &error else {
            panic!("{error}")
        };
        assert!(source.detail().contains("use a longer lease"), "{error}");
        assert_eq!(store.when("acquire").len(), 2 * GRANTS_TOO_LATE - 1);
    });
}

#[test]
fn a_message_during_a_command_is_looked_into() {
    simulated(async {
        let (store, client, _guard) = taken().await;
        store.next("acquire", &[Fate::Passes, Fate::Replies(100, 0)]);
        let waits = tokio::spawn(store.ask(WAIT, client.lock("k").acquire()));
        ms(50).await;
        let listener = store.listener.lock().unwrap().clone().unwrap();
        listener.recheck();
        ms(60).await;
        assert_eq!(store.when("acquire"), [0, 0, 100]);
        waits.abort();
    });
}

#[test]
fn a_silent_store_ends_a_request_after_its_time_and_a_later_one_after_one_command() {
    simulated(async {
        let two = of(2000);
        let (store, client) =
            RecordingStore::open_with(move |builder| builder.unavailable_after(two)).await;
        store.set_usual("acquire", Fate::Silence);
        let request = client.lock("k").wait(of(30_000)).acquire();
        let error = store.ask(30_000, request).await.unwrap_err();
        assert_eq!((short(&error), store.now()), ("Timeout".to_owned(), 2000));
        let later = client.lock("k").wait(of(30_000)).acquire();
        let error = store.ask(30_000, later).await.unwrap_err();
        assert_eq!((short(&error), store.now()), ("Timeout".to_owned(), 2500));
    });
}

#[test]
fn one_that_stands_behind_another_has_no_more_than_its_wait() {
    simulated(async {
        let (store, client, _guard) = taken().await;
        let first = tokio::spawn(store.ask(WAIT, client.lock("k").acquire()));
        ms(10).await;
        // It looks at the key in the middle of its wait, and finds it free for a moment.
        store.answer(Reply::Inspect(None));
        let request = client.lock("k").wait(of(100)).acquire();
        let error = store.ask(100, request).await.unwrap_err();
        assert_eq!(store.when("inspect"), [60]);
        // The first one was told not long ago that the key is taken.
        assert_eq!(short(&error), "busy after 100ms");
        first.abort();
    });
}

#[test]
fn a_grant_to_a_request_that_is_over_wakes_nobody() {
    simulated(async {
        let (store, client, guard) = taken().await;
        let owner = |command: &Command| match &command.request {
            Request::Acquire(request) => request.claim.owner,
            other => panic!("{other:?}"),
        };
        let wakes = |owner: Owner| {
            let listener = store.listener.lock().unwrap().clone().unwrap();
            let mut woken = listener.on_granted(HandedOver::new(owner, None, Trust::Ask(Link(0))));
            woken.0.take().is_some()
        };
        let request = client.lock("k").wait(of(3000)).acquire();
        let waits = tokio::spawn(store.ask(3000, request));
        ms(100).await;
        let gives_up = owner(&store.seen()[0]);
        assert!(wakes(gives_up));
        assert!(waits.await.unwrap().unwrap_err().is_busy());
        let dropped = tokio::spawn(store.ask(WAIT, client.lock("k").acquire()));
        ms(1).await;
        let is_dropped = owner(store.seen().last().unwrap());
        dropped.abort();
        ms(1).await;
        let granted = tokio::spawn(store.ask(WAIT, client.lock("k").acquire()));
        ms(1).await;
        let has_it = owner(store.seen().last().unwrap());
        guard.release().await.unwrap();
        let _guard = granted.await.unwrap().unwrap();
        for owner in [gives_up, is_dropped, has_it] {
            assert!(!wakes(owner), "{owner:?}");
        }
    });
}

#[test]
fn a_wait_for_ever_at_a_latch_has_the_time_of_a_command_to_see_whether_the_store_lives() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let other = store.other().await;
        other.latch("l").set(1).await.unwrap();
        // The second look is answered after more than the client's default wait.
        store.next("wait", &[Fate::Passes, Fate::Replies(11_000, 0)]);
        store.next("look", &[Fate::Replies(400, 0)]);
        let (latch, asking) = (client.latch("l"), Arc::clone(&store));
        let waits = tokio::spawn(async move { asking.ask(None, latch.wait_forever()).await });
        ms(13_000).await;
        assert_eq!(store.when("look"), [10_000]);
        assert!(!waits.is_finished());
        other.latch("l").count_down().await.unwrap();
        waits.await.unwrap().unwrap();
    });
}

#[test]
fn a_latch_whose_looks_fail_ends_a_wait_for_ever_though_the_store_answers_for_locks() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.set_usual("wait", DOWN);
        let (latch, asking) = (client.latch("l"), Arc::clone(&store));
        let waits = tokio::spawn(async move { asking.ask(None, latch.wait_forever()).await });
        ms(5000).await;
        drop(store.ask(WAIT, client.lock("k").acquire()).await.unwrap());
        let error = waits.await.unwrap().unwrap_err();
        // After the client's default wait, from the first failure.
        assert_eq!(
            (short(&error).as_str(), store.now()),
            ("Disconnected", 10_000)
        );
    });
}

#[test]
fn the_silence_that_a_lock_has_met_counts_for_a_latch_as_well() {
    simulated(async {
        let two = of(2000);
        let (store, client) =
            RecordingStore::open_with(move |builder| builder.unavailable_after(two)).await;
        store.set_usual("acquire", Fate::Silence);
        store.set_usual("wait", Fate::Silence);
        let lock = tokio::spawn(store.ask(WAIT, client.lock("k").acquire()));
        ms(1000).await;
        let latch = client.latch("l");
        let error = store.ask(WAIT, latch.wait(of(WAIT))).await.unwrap_err();
        assert_eq!((short(&error).as_str(), store.now()), ("Timeout", 2000));
        assert_eq!(short(&lock.await.unwrap().unwrap_err()), "Timeout");
    });
}

/// The store lives, and the caller is told why it got nothing.
#[test]
fn who_lost_every_race_for_a_key_hears_so_though_a_command_failed_before() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.next("acquire", &[DOWN]);
        store.set_usual("acquire", Fate::Fails(StoreErrorKind::Contended));
        let request = client.lock("k").wait(of(1000)).acquire();
        let error = store.ask(1000, request).await.unwrap_err();
        assert_eq!((short(&error).as_str(), store.now()), ("Contended", 1000));
    });
}

#[test]
fn a_later_wait_for_ever_at_a_latch_has_as_much_patience_as_the_first() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.set_usual("wait", DOWN);
        let waits = || {
            let (latch, asking) = (client.latch("l"), Arc::clone(&store));
            tokio::spawn(async move { asking.ask(None, latch.wait_forever()).await })
        };
        let first = waits();
        ms(5000).await;
        for (waits, ends) in [(first, 10_000), (waits(), 15_000)] {
            let error = waits.await.unwrap().unwrap_err();
            assert_eq!(
                (short(&error).as_str(), store.now()),
                ("Disconnected", ends)
            );
        }
    });
}

/// Each of a crowd of readers that came at once would ask when the one before it is granted.
#[test]
fn who_has_asked_at_the_instant_of_the_one_before_does_not_ask_again() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let permits = || client.semaphore("k", 2).permits(1).wait(of(9000));
        let other = store.other().await.semaphore("k", 2);
        let _held = other.permits(1).acquire().await.unwrap();
        store.next("acquire", &[Fate::Replies(300, 0), Fate::Replies(0, 0)]);
        let first = tokio::spawn(store.ask(9000, permits().acquire()));
        let second = tokio::spawn(store.ask(9000, permits().acquire()));
        ms(900).await;
        assert!(first.is_finished() && !second.is_finished());
        assert_eq!(store.when("acquire"), [0, 0]);
        second.abort();
    });
}

#[test]
fn a_store_that_is_down_is_not_asked_once_more_at_the_end_of_the_wait() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        for verb in ["acquire", "inspect", "ping"] {
            store.set_usual(verb, DOWN);
        }
        let request = client.lock("k").wait(of(750)).acquire();
        let error = store.ask(750, request).await.unwrap_err();
        assert_eq!((short(&error).as_str(), store.now()), ("Disconnected", 750));
        // The next try would come at 750.
        assert_eq!(store.when("acquire"), [0, 50, 150, 350]);
    });
}

#[test]
fn the_first_of_a_fair_lock_asks_when_the_lease_of_the_holder_ends() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let held = store.other().await.lock("k").lease(of(1500)).renew(false);
        let _held = held.acquire().await.unwrap();
        let request = client.lock("k").fair().acquire();
        drop(store.ask(WAIT, request).await.unwrap());
        assert!(store.now() <= 1501, "{}", store.now());
        ms(100).await;
    });
}
