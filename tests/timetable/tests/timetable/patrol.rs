//! Requests that nobody polls: what they have is given to others, and they go on when they are
//! polled again.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use lock_runtime::{Guard, LockClient, LockError, StoreErrorKind};
use lock_store::{Acquire, Acquired, Link};
use lock_testkit_core::store_decorator::{Reply, Request as Sent};
use tokio::time::timeout;

use crate::fates::{DOWN, Fate};
use crate::recording_store::{RecordingStore, WAIT, ms, of, simulated};

type Request = Pin<Box<dyn Future<Output = Result<Guard, LockError>>>>;

/// Polls it once. It has no answer yet.
async fn begin(request: &mut Request) {
    let once = std::future::poll_fn(|cx| Poll::Ready(request.as_mut().poll(cx)));
    assert!(once.await.is_pending());
}

fn ask(store: &Arc<RecordingStore>, client: &LockClient) -> Request {
    Box::pin(store.ask(WAIT, client.lock("k").acquire()))
}

#[test]
fn the_place_of_one_that_sleeps_on_is_given_up_and_it_asks_anew() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let other = store.other().await.lock("k").acquire().await.unwrap();
        let mut unpolled = ask(&store, &client);
        begin(&mut unpolled).await;
        let next = tokio::spawn(store.ask(WAIT, client.lock("k").acquire()));
        // It should ask after a second. The patrol sees five times that it does not.
        ms(2100).await;
        let given_up = store.when("abandon");
        assert!(matches!(given_up[..], [2000..2100]), "{given_up:?}");
        ms(1000).await;
        begin(&mut unpolled).await;
        ms(10).await;
        other.release().await.unwrap();
        let guard = next.await.unwrap().unwrap();
        begin(&mut unpolled).await;
        guard.release().await.unwrap();
        let guard = unpolled.await.unwrap();
        guard.release().await.unwrap();
        ms(100).await;
    });
}

/// A client at which nobody waits looks at nobody.
#[test]
fn the_patrol_begins_with_the_first_that_waits() {
    simulated(async {
        for begins_at in [0, 100] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("from {begins_at}"));
            let _other = store.other().await.lock("k").acquire().await.unwrap();
            ms(begins_at).await;
            let mut unpolled = ask(&store, &client);
            begin(&mut unpolled).await;
            ms(3000).await;
            assert_eq!(store.when("abandon"), [begins_at + 2000]);
        }
    });
}

#[test]
fn one_that_asks_anew_hears_of_its_grant() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let other = store.other().await.lock("k").acquire().await.unwrap();
        let mut unpolled = ask(&store, &client);
        begin(&mut unpolled).await;
        ms(3000).await;
        assert_eq!(store.when("abandon").len(), 1);
        begin(&mut unpolled).await;
        ms(10).await;
        // Its place has been given up: it asks for another.
        begin(&mut unpolled).await;
        assert_eq!(store.when("acquire"), [3010]);
        ms(90).await;
        other.release().await.unwrap();
        drop(unpolled.await.unwrap());
        assert_eq!(store.now(), 3100);
        ms(100).await;
    });
}

#[test]
fn one_that_has_not_asked_anew_has_nothing_to_give_up() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let _other = store.other().await.lock("k").acquire().await.unwrap();
        let mut unpolled = ask(&store, &client);
        begin(&mut unpolled).await;
        ms(3000).await;
        begin(&mut unpolled).await;
        ms(10).await;
        store.seen();
        drop(unpolled);
        ms(100).await;
        assert!(store.calls().is_empty());
    });
}

#[test]
fn what_one_was_handed_that_is_not_polled_is_given_back() {
    simulated(async {
        for told in [false, true] {
            let (store, client) = RecordingStore::open().await;
            store.title(if told {
                "told by the store"
            } else {
                "while it is asked"
            });
            let other = store.other().await.lock("k").acquire().await.unwrap();
            if !told {
                store.next("acquire", &[Fate::Passes, Fate::Replies(300, 0)]);
            }
            let mut unpolled = ask(&store, &client);
            begin(&mut unpolled).await;
            other.release().await.unwrap();
            ms(2500).await;
            // Nobody has it now.
            let other = store.other().await.lock("k").wait(of(0)).acquire().await;
            other.unwrap().release().await.unwrap();
            let guard = unpolled.await.unwrap();
            assert!(guard.is_held());
            guard.release().await.unwrap();
            ms(100).await;
        }
    });
}

#[test]
fn a_hold_that_was_handed_off_to_one_that_is_not_polled_goes_to_the_next() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let guard = ask(&store, &client).await.unwrap();
        let mut unpolled = ask(&store, &client);
        begin(&mut unpolled).await;
        let next = tokio::spawn(store.ask(WAIT, client.lock("k").acquire()));
        ms(1).await;
        guard.release().await.unwrap();
        let began = store.now();
        let guard = next.await.unwrap().unwrap();
        assert!((1000..1600).contains(&(store.now() - began)));
        begin(&mut unpolled).await;
        guard.release().await.unwrap();
        drop(unpolled.await.unwrap());
        ms(100).await;
    });
}

#[test]
fn one_whose_command_is_under_way_has_the_time_of_the_command_and_five_looks() {
    simulated(async {
        for silent in [false, true] {
            let (store, client) = RecordingStore::open().await;
            store.title(if silent { "no answer" } else { "a late answer" });
            let other = store.other().await.lock("k").acquire().await.unwrap();
            // It was told that the key is taken, and asks for a place.
            let late = if silent {
                Fate::Lost
            } else {
                Fate::Replies(2900, 0)
            };
            store.next("acquire", &[Fate::Passes, late]);
            let mut unpolled = ask(&store, &client);
            begin(&mut unpolled).await;
            ms(3000).await;
            let given_up = store.when("abandon");
            assert!(matches!(given_up[..], [1500..1800, ..]), "{given_up:?}");
            begin(&mut unpolled).await;
            other.release().await.unwrap();
            drop(unpolled.await.unwrap());
            ms(100).await;
        }
    });
}

#[test]
fn one_that_is_polled_is_not_skipped() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let _other = store.other().await.lock("k").acquire().await.unwrap();
        let waits = tokio::spawn(store.ask(WAIT, client.lock("k").acquire()));
        ms(WAIT + 10).await;
        assert!(waits.await.unwrap().unwrap_err().is_busy());
        assert_eq!(store.when("abandon"), [WAIT]);
    });
}

#[test]
fn one_that_has_asked_for_no_place_yet_is_let_alone() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.next("acquire", &[Fate::Replies(2900, 0)]);
        let mut unpolled = ask(&store, &client);
        begin(&mut unpolled).await;
        ms(3000).await;
        assert!(store.when("abandon").is_empty());
        drop(unpolled.await.unwrap());
        ms(100).await;
    });
}

/// How often a future is polled until it ends.
async fn count_polls(future: impl Future) -> u32 {
    let (mut future, mut polls) = (pin!(future), 0);
    std::future::poll_fn(|cx| {
        polls += 1;
        future.as_mut().poll(cx).map(|_| polls)
    })
    .await
}

#[test]
fn who_has_nothing_new_to_learn_is_not_woken() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let other = store.other().await;
        other.latch("l").set(1).await.unwrap();
        let latch = client.latch("l");
        let (asking, closing) = (Arc::clone(&store), client.clone());
        let waits = async move { asking.ask(WAIT, latch.wait(of(WAIT))).await };
        let waits = tokio::spawn(count_polls(waits));
        ms(5500).await;
        other.latch("l").count_down().await.unwrap();
        // At first, at the first reply, and when it opened.
        assert_eq!(waits.await.unwrap(), 3);
        let mut guards = Vec::new();
        for key in ["a", "b", "c", "d"] {
            guards.push(store.ask(WAIT, client.lock(key).acquire()).await.unwrap());
        }
        store.set_usual("release", Fate::Replies(100, 0));
        let closes = tokio::spawn(count_polls(async move { closing.shutdown(of(9000)).await }));
        for guard in guards {
            ms(10).await;
            tokio::spawn(guard.release());
        }
        // At first, when the last hold had ended, when its release had, and when nothing was left
        // to do in the background.
        assert_eq!(closes.await.unwrap(), 4);
    });
}

#[test]
fn the_place_of_one_that_is_not_polled_is_given_up_over_its_link_for_a_minute() {
    simulated(async {
        for key in ["k", "k@9"] {
            let (store, client) = RecordingStore::open().await;
            store.title(key);
            let _other = store.other().await.lock(key).acquire().await.unwrap();
            let mut unpolled: Request = Box::pin(store.ask(WAIT, client.lock(key).acquire()));
            begin(&mut unpolled).await;
            store.set_usual("abandon", DOWN);
            ms(100_000).await;
            let last = *store.when("abandon").last().unwrap();
            assert!((61_000..65_000).contains(&last), "{last}");
            drop(unpolled);
        }
    });
}

/// Polls it for this many milliseconds. It has no answer yet.
async fn is_polled_for(request: &mut Request, milliseconds: u64) {
    let polled = timeout(of(milliseconds), request).await;
    assert!(polled.is_err(), "it has ended");
}

fn ask_fairly(store: &Arc<RecordingStore>, client: &LockClient) -> Request {
    Box::pin(store.ask(WAIT, client.lock("k").fair().acquire()))
}

#[test]
fn one_that_is_polled_again_in_time_keeps_its_place_while_the_key_is_looked_at() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let _other = store.other().await.lock("k").acquire().await.unwrap();
        let (passes, another) = (Fate::Passes, Fate::Replies(0, 7));
        store.next("acquire", &[passes, passes, another]);
        store.next("inspect", &[Fate::Replies(300, 0)]);
        let fair = |wait| store.ask(wait, client.lock("k").fair().wait(of(wait)).acquire());
        let first = tokio::spawn(fair(9000));
        ms(1).await;
        let mut unpolled: Request = Box::pin(fair(3000));
        begin(&mut unpolled).await;
        let third = tokio::spawn(fair(9000));
        ms(1299).await;
        // The patrol sees from 1750 on that it was woken and does nothing.
        first.abort();
        ms(700).await;
        // The third one asks, so it need not.
        store.lose(Link(7));
        ms(600).await;
        let error = unpolled.await.unwrap_err();
        assert!(error.is_busy(), "{error}");
        ms(1).await;
        let calls = store.calls();
        let when = |verb| {
            let calls = calls.iter().filter(move |(_, name)| *name == verb);
            calls.map(|(at, _)| *at).collect::<Vec<_>>()
        };
        assert_eq!(when("inspect"), [2600]);
        assert_eq!(when("abandon"), [1300, 3001]);
        third.abort();
    });
}

#[test]
fn grants_that_could_not_be_used_are_counted_anew_after_the_place_was_given_up() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        // Without a token: five of these end a wait without end.
        for _ in 0..5 {
            store.answer(Reply::Acquire(Acquired::granted(None)));
        }
        let request = client.lock("k").fenced().wait_forever().acquire();
        let mut unpolled: Request = Box::pin(store.ask(None, request));
        is_polled_for(&mut unpolled, 600).await;
        assert_eq!(store.when("acquire"), [0, 50, 150, 350]);
        ms(1900).await;
        assert_eq!(store.when("abandon").first(), Some(&1750));
        let guard = unpolled.await.unwrap();
        assert_eq!(store.when("acquire"), [2500, 3300]);
        guard.release().await.unwrap();
    });
}

#[test]
fn one_that_becomes_the_first_again_asks_a_second_after_the_one_before_it() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let _other = store.other().await.lock("k").acquire().await.unwrap();
        let mut unpolled = ask_fairly(&store, &client);
        begin(&mut unpolled).await;
        let request = client.lock("k").fair().acquire();
        let next = tokio::spawn(store.ask(WAIT, request));
        ms(2500).await;
        assert_eq!(store.when("abandon"), [2000]);
        // It goes on from the end, and asks for another place.
        is_polled_for(&mut unpolled, 2000).await;
        next.abort();
        store.seen();
        is_polled_for(&mut unpolled, 2000).await;
        // The other one asked last at 4,000.
        assert_eq!(store.when("acquire"), [5000, 6000]);
        drop(unpolled);
        ms(1).await;
    });
}

#[test]
fn what_may_be_late_of_a_place_that_was_given_up_says_nothing_of_a_later_hold() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let other = store.other().await.lock("k").acquire().await.unwrap();
        let late = Fate::FailsLate(StoreErrorKind::Timeout, 60_000);
        store.next("acquire", &[Fate::Passes, late]);
        let mut unpolled = ask(&store, &client);
        begin(&mut unpolled).await;
        ms(2000).await;
        is_polled_for(&mut unpolled, 100).await;
        other.release().await.unwrap();
        let guard = unpolled.await.unwrap();
        let next = tokio::spawn(store.ask(WAIT, client.lock("k").acquire()));
        ms(1).await;
        store.seen();
        guard.release().await.unwrap();
        // It is handed off: nothing of it is to be undone.
        let guard = next.await.unwrap().unwrap();
        assert_eq!(store.calls(), []);
        drop(guard);
        ms(1).await;
    });
}

/// The store would not find the place, and hand the lock over to nobody.
#[test]
fn a_place_is_given_up_by_the_name_under_which_it_was_asked_for() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let _other = store.other().await.lock("k").acquire().await.unwrap();
        let first = tokio::spawn(store.ask(WAIT, client.lock("k").acquire()));
        ms(1).await;
        let request = client.lock("k").fenced().acquire();
        let mut unpolled: Request = Box::pin(store.ask(WAIT, request));
        begin(&mut unpolled).await;
        let next = tokio::spawn(store.ask(WAIT, client.lock("k").acquire()));
        ms(1).await;
        first.abort();
        is_polled_for(&mut unpolled, 100).await;
        let name = |request: &Acquire| (request.first_lease, request.wait, request.tokens);
        let asked_for = store
            .seen()
            .iter()
            .rev()
            .find_map(|one| match &one.request {
                Sent::Acquire(request) if request.tokens > 0 => Some(name(request)),
                _ => None,
            });
        ms(3000).await;
        let given_up = store.seen().iter().find_map(|one| match &one.request {
            Sent::Abandon(request) => Some(name(request)),
            _ => None,
        });
        assert_eq!(given_up.unwrap(), asked_for.unwrap());
        next.abort();
    });
}

/// It is in nobody's way.
#[test]
fn one_that_was_polled_when_it_was_called_keeps_its_place_behind_another() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let _other = store.other().await.lock("k").acquire().await.unwrap();
        let mut unpolled = ask_fairly(&store, &client);
        begin(&mut unpolled).await;
        let request = client.lock("k").fair().acquire();
        let next = tokio::spawn(store.ask(WAIT, request));
        ms(1).await;
        let mut third = ask_fairly(&store, &client);
        is_polled_for(&mut third, 2500).await;
        assert_eq!(store.when("abandon"), [2000]);
        store.call_all();
        ms(2500).await;
        assert!(store.when("abandon").is_empty());
        next.abort();
        drop(third);
        ms(1).await;
    });
}

/// Those far behind would lose their places for requests that have long gone.
#[test]
fn few_are_called_again_after_one_has_left_by_itself() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let _other = store.other().await.lock("k").acquire().await.unwrap();
        let ask = || store.ask(WAIT, client.lock("k").fair().acquire());
        let mut unpolled: Request = Box::pin(ask());
        begin(&mut unpolled).await;
        let next = tokio::spawn(ask());
        ms(3000).await;
        assert_eq!(store.when("abandon"), [2000]);
        next.abort();
        ms(1).await;
        let mut second: Request = Box::pin(ask());
        begin(&mut second).await;
        let polled: Vec<_> = (0..8).map(|_| tokio::spawn(ask())).collect();
        ms(1).await;
        let mut last: Request = Box::pin(ask());
        begin(&mut last).await;
        ms(4500).await;
        assert!(matches!(store.when("abandon")[..], [3000, 5000..5300]));
        polled.iter().for_each(tokio::task::JoinHandle::abort);
        drop(last);
        ms(1).await;
    });
}

/// The store may answer again, as it does: nobody has asked for the key since, or for another one
/// that was answered.
#[test]
fn a_silence_that_is_over_ends_no_request_behind_an_unpolled_one() {
    simulated(async {
        for comes_at in [1400, 500] {
            let two = of(2000);
            let (store, client) =
                RecordingStore::open_with(move |builder| builder.unavailable_after(two)).await;
            store.title(format!("the other comes at {comes_at}"));
            store.set_usual("acquire", Fate::Silence);
            let mut unpolled = ask(&store, &client);
            let later = client.lock("k").wait(of(10_000)).acquire();
            let later = tokio::spawn({
                let store = Arc::clone(&store);
                async move {
                    ms(comes_at).await;
                    store.ask(10_000, later).await
                }
            });
            timeout(of(1400), unpolled.as_mut()).await.unwrap_err();
            store.set_usual("acquire", Fate::Passes);
            if comes_at == 500 {
                let another = client.lock("l").acquire();
                drop(store.ask(WAIT, another).await.unwrap());
            }
            let guard = later.await.unwrap().unwrap();
            assert!(store.now() > 2500, "it is skipped before: {}", store.now());
            guard.release().await.unwrap();
            drop(unpolled);
        }
    });
}
