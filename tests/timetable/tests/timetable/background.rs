//! Releases in the background, and those that fail.

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use lock_runtime::observe::{Event, What};
use lock_runtime::{LockError, LostReason, StoreErrorKind};
use lock_store::{Released, Renewed, StoreError};
use lock_testkit_core::store_decorator::{Reply, Request};

use crate::fates::{DOWN, Fate};
use crate::recording_store::{RecordingStore, WAIT, ms, of, simulated};
use crate::schedule::Command;

/// The times at which a release is tried that always fails. The hold has this `lease` and is
/// dropped after `held` milliseconds.
async fn tried(lease: u64, held: u64) -> Vec<u64> {
    let (store, client) = RecordingStore::open().await;
    store.title(format!("lease {lease}, dropped after {held}"));
    store.set_usual("release", DOWN);
    let guard = store
        .ask(WAIT, client.lock("k").lease(of(lease)).acquire())
        .await
        .unwrap();
    ms(held).await;
    drop(guard);
    ms(20_000).await;
    store.when("release")
}

#[test]
fn a_release_that_fails_is_repeated_until_the_hold_has_ended_by_itself() {
    simulated(async {
        // Until a fiftieth of the lease after the deadline. This hold has ended by 3,159.
        let expected = [0, 50, 150, 350, 750, 1550, 3150, 5150];
        assert_eq!(tried(3130, 0).await, expected);
        // And until a lease after the release, since a renewal may be under way.
        let expected = [1000, 1050, 1150, 1350, 1750, 2550, 4150];
        assert_eq!(tried(2500, 1000).await, expected);
        let expected = [500, 550, 650, 850, 1250, 2050];
        assert_eq!(tried(1500, 500).await, expected);
    });
}

/// The store may have carried the extension out. Then it keeps the key for as long.
#[test]
fn an_extension_that_was_not_answered_is_released_for_as_long_as_it_may_last() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let request = client.lock("k").lease(of(2000));
        let guard = store.ask(WAIT, request.acquire()).await.unwrap();
        store.next("renew", &[Fate::Lost]);
        guard.extend(of(20_000)).await.unwrap_err();
        store.set_usual("release", DOWN);
        drop(guard);
        ms(40_000).await;
        let tried = store.when("release");
        assert_eq!(tried[..4], [500, 550, 650, 850]);
        assert_eq!(tried.last(), Some(&21_650));
    });
}

/// Carried out late, the acquire takes the key again, and then the extension keeps it.
#[test]
fn an_acquire_that_may_be_late_is_undone_for_as_long_as_an_extension_may_keep_it() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.next("acquire", &[Fate::Lost]);
        let request = client.lock("k").lease(of(2000));
        let guard = store.ask(WAIT, request.acquire()).await.unwrap();
        store.next("renew", &[Fate::Lost]);
        guard.extend(of(100_000)).await.unwrap_err();
        store.next("release", &[Fate::Replies(0, 9)]);
        store.set_usual("abandon", DOWN);
        drop(guard);
        ms(150_000).await;
        let tried = store.when("abandon");
        assert!(tried.last() > Some(&100_000), "{tried:?}");
        assert!(tried.last() < Some(&106_000), "{tried:?}");
    });
}

#[test]
fn releases_that_fail_or_find_nothing_are_counted() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.next("release", &[DOWN]);
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        let error = guard.release().await.unwrap_err();
        assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
        assert_eq!(client.health().await.unwrap().release_failures, 1);
        ms(100).await;
        assert_eq!(store.when("release"), [0, 0]);
        assert_eq!(client.inspect("k").await.unwrap().holder, None);

        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        client.force_release("k").await.unwrap();
        drop(guard);
        ms(1).await;
        assert_eq!(client.health().await.unwrap().release_failures, 2);

        // A release that fails in the background is counted each time. That the hold is gone in the
        // end is not counted.
        store.next("release", &[DOWN]);
        drop(store.ask(WAIT, client.lock("k").acquire()).await.unwrap());
        ms(100).await;
        assert_eq!(client.health().await.unwrap().release_failures, 3);
    });
}

#[test]
fn an_answered_health_check_says_how_long_it_took() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.next("ping", &[Fate::Replies(30, 0)]);
        assert_eq!(client.health().await.unwrap().round_trip, of(30));
        assert_eq!(store.calls(), [(0, "ping")]);
    });
}

#[test]
fn a_lost_hold_is_released_when_its_owner_knows_also_if_it_is_gone() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.answer(Reply::Renew(vec![Renewed::Gone]));
        let request = client.lock("k").lease(of(900)).renew(true);
        let guard = store.ask(WAIT, request.acquire()).await.unwrap();
        guard.lost().await;
        assert_eq!(store.now(), 300);
        ms(100).await;
        assert!(store.when("release").is_empty());
        drop(guard);
        ms(5000).await;
        assert_eq!(store.when("release"), [400]);

        let request = client.lock("l").lease(of(1000)).renew(false);
        let guard = store.ask(WAIT, request.acquire()).await.unwrap();
        guard.lost().await;
        let error = guard.release().await.unwrap_err();
        let lost = matches!(
            error,
            LockError::Lost {
                reason: LostReason::Expired,
                ..
            }
        );
        assert!(lost, "{error}");
        ms(1).await;
        assert_eq!(store.when("release").len(), 1);
        assert_eq!(client.health().await.unwrap().lost, 2);
        assert_eq!(client.health().await.unwrap().release_failures, 0);
    });
}

/// After the deadline the key may belong to another owner, so no request waits for that release. At
/// the end of `max_hold` the key may still be held.
#[test]
fn a_later_request_waits_for_the_release_of_what_may_be_held_still() {
    simulated(async {
        for (max_hold, expected) in [(false, 988), (true, 1995)] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("max_hold {max_hold}"));
            store.set_usual("release", Fate::Replies(1000, 0));
            let request = client.lock("k").lease(of(1000)).renew(max_hold);
            let request = if max_hold {
                request.max_hold(of(1000))
            } else {
                request
            };
            let guard = store.ask(WAIT, request.acquire()).await.unwrap();
            store.seen();
            guard.lost().await;
            drop(guard);
            let asks = tokio::spawn(store.ask(5000, client.lock("k").wait(of(5000)).acquire()));
            ms(3000).await;
            assert_eq!(store.when("acquire")[0], expected);
            drop(asks.await.unwrap().unwrap());
        }
    });
}

#[test]
fn a_release_that_finds_nothing_says_so_and_is_not_repeated() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        store.answer(Reply::Release(vec![Released::NotHeld]));
        let error = guard.release().await.unwrap_err();
        let gone = matches!(
            error,
            LockError::Lost {
                reason: LostReason::Gone,
                ..
            }
        );
        assert!(gone, "{error}");
        ms(5000).await;
        assert_eq!(store.when("release"), [0]);
        assert_eq!(client.health().await.unwrap().release_failures, 1);
    });
}

/// An acquire whose reply was lost may still be carried out as long as its link has not answered a
/// later command.
#[test]
fn a_lost_reply_is_followed_by_an_undo_until_its_own_link_answers() {
    simulated(async {
        for (link, dropped, undos) in [(0, false, 0), (9, false, 1), (0, true, 0), (9, true, 1)] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("the release over link {link}, dropped {dropped}"));
            store.next("acquire", &[Fate::Lost]);
            let guard = store
                .ask(WAIT, client.lock("k").lease(of(1000)).acquire())
                .await
                .unwrap();
            store.next("release", &[Fate::Replies(0, link)]);
            if dropped {
                drop(guard);
            } else {
                guard.release().await.unwrap();
            }
            ms(100).await;
            assert_eq!(store.when("abandon").len(), undos, "over {link}, {dropped}");
        }
    });
}

#[test]
fn a_late_command_is_undone_ever_more_seldom_until_its_lease_has_ended() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.set_usual("abandon", Fate::Replies(0, 9));
        store.next("acquire", &[Fate::Lost]);
        let request = store.ask(0, client.lock("k").lease(of(2000)).wait(of(0)).acquire());
        request.await.unwrap_err();
        assert_eq!(store.now(), 500);
        ms(5000).await;
        // The first undo goes out at once. The last goes out when a lease that was sent at 0 has
        // ended.
        let expected = [500, 550, 650, 850, 1050, 1250, 1450, 1650, 1850, 2000];
        assert_eq!(store.when("abandon"), expected);
    });
}

/// So little time says nothing about the store, which may have carried it out all the same.
#[test]
fn a_command_that_the_end_of_its_wait_cuts_short_is_undone() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let held = client.lock("k").lease(of(2700)).acquire().await.unwrap();
        store.set_usual("abandon", Fate::Replies(0, 9));
        let request = client.lock("k").lease(of(1000)).wait(of(3000)).acquire();
        let waits = tokio::spawn(store.ask(3000, request));
        ms(2600).await;
        store.set_usual("acquire", Fate::Lost);
        waits.await.unwrap().unwrap_err();
        assert_eq!(store.now(), 3000);
        ms(5000).await;
        let calls = store.calls();
        let when = |verb| {
            calls
                .iter()
                .filter(move |call| call.1 == verb)
                .map(|call| call.0)
        };
        let sent = when("acquire").next_back().unwrap();
        let undos: Vec<u64> = when("abandon").collect();
        assert!(sent > 2600);
        assert_eq!((undos[0], undos[undos.len() - 1]), (3000, sent + 1000));
        drop(held);
    });
}

#[test]
fn an_undo_that_fails_is_repeated_for_a_minute() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.set_usual("abandon", DOWN);
        store.next("acquire", &[Fate::Lost]);
        let request = store.ask(0, client.lock("k").lease(of(1000)).wait(of(0)).acquire());
        request.await.unwrap_err();
        ms(9000).await;
        assert_eq!(
            store.when("abandon")[..7],
            [500, 550, 650, 850, 1250, 2050, 3650]
        );
        // The store forgets a place in the queue after a minute.
        ms(80_000).await;
        assert_eq!(store.when("abandon").last(), Some(&61_650));
    });
}

#[test]
fn an_extension_may_reach_the_end_of_max_hold_and_no_further() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let request = client.lock("k").max_hold(of(50_000));
        let guard = store.ask(WAIT, request.acquire()).await.unwrap();
        guard.extend(of(50_000)).await.unwrap();
        assert_eq!(guard.remaining(), of(49_498));
        let error = guard.extend(of(50_001)).await.unwrap_err();
        assert!(matches!(error, LockError::Config { .. }), "{error}");
        let seen = store.seen();
        let Request::Renew(holds) = &seen[1].request else {
            panic!("{seen:#?}")
        };
        assert_eq!((seen.len(), holds[0].lease), (2, of(50_000)));
    });
}

#[test]
fn an_extension_that_was_not_answered_for_all_loses_nothing() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let guard = store
            .ask(WAIT, client.multi_lock(["a", "b"]).acquire())
            .await
            .unwrap();
        let say = |renewed| store.answer(Reply::Renew(renewed));
        say(vec![Renewed::Renewed, Renewed::Unanswered]);
        let error = guard.extend(of(5000)).await.unwrap_err();
        assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
        assert!(guard.is_held());
        say(vec![Renewed::Gone, Renewed::Unanswered]);
        let error = guard.extend(of(5000)).await.unwrap_err();
        let gone = matches!(
            error,
            LockError::Lost {
                reason: LostReason::Gone,
                ..
            }
        );
        assert!(gone, "{error}");
    });
}

#[test]
fn a_shutdown_gives_bodies_their_time_and_then_two_commands() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.set_usual("release", Fate::Silence);
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        client.shutdown(of(300)).await;
        assert_eq!(store.now(), 1300);
        assert!(!guard.is_held());
        assert_eq!(store.when("release")[0], 300);
    });
}

#[test]
fn a_shutdown_with_nothing_to_do_takes_no_time() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        let ends = tokio::spawn({
            let client = client.clone();
            async move { client.shutdown(of(5000)).await }
        });
        ms(100).await;
        guard.release().await.unwrap();
        ends.await.unwrap();
        assert_eq!(store.now(), 100);
    });
}

/// What is left of a request that ends while its command is under way.
#[test]
fn an_abandoned_command_is_undone_until_its_lease_has_ended() {
    simulated(async {
        for keys in [vec!["a"], vec!["a", "b"]] {
            let (store, client) = RecordingStore::open().await;
            store.title(keys.join(" and "));
            store.set_usual("abandon", Fate::Replies(0, 9));
            for verb in ["acquire", "acquire_all"] {
                store.set_usual(verb, Fate::Silence);
            }
            let request = client.multi_lock(keys.clone()).lease(of(600));
            let asks = tokio::spawn(store.ask(WAIT, request.acquire()));
            ms(100).await;
            asks.abort();
            ms(2000).await;
            let each = [100, 150, 210, 270, 330, 390, 450, 510, 570, 600];
            let expected = each.iter().flat_map(|at| vec![*at; keys.len()]);
            assert_eq!(store.when("abandon"), expected.collect::<Vec<_>>());
        }
    });
}

#[test]
fn a_shutdown_is_told_to_waiters_at_once() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let _guard = store.other().await.lock("k").acquire().await.unwrap();
        let fair = tokio::spawn(store.ask(WAIT, client.lock("k").fair().acquire()));
        let (first, second) = (
            tokio::spawn(store.ask(WAIT, client.lock("k").acquire())),
            tokio::spawn(store.ask(None, client.lock("k").wait_forever().acquire())),
        );
        let latch = client.latch("l");
        let waits = async move { latch.wait_forever().await };
        let latch = tokio::spawn(store.ask(None, waits));
        ms(300).await;
        assert_eq!(client.health().await.unwrap().waiting, 4);
        client.shutdown(of(0)).await;
        for waits in [fair, first, second] {
            let error = waits.await.unwrap().unwrap_err();
            assert!(matches!(error, LockError::Shutdown), "{error}");
        }
        let error = latch.await.unwrap().unwrap_err();
        assert!(matches!(error, LockError::Shutdown), "{error}");
        assert_eq!(store.now(), 300);
    });
}

#[test]
fn a_shutdown_waits_for_a_release_under_way_and_no_longer() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        store.next("release", &[Fate::Replies(100, 0)]);
        let releases = tokio::spawn(guard.release());
        ms(1).await;
        client.shutdown(of(5000)).await;
        assert_eq!(store.now(), 100);
        releases.await.unwrap().unwrap();
    });
}

#[test]
fn a_key_stays_until_the_same_time_however_often_its_release_fails() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let request = client.lock("k").hold_at_least(of(3000)).acquire();
        let guard = store.ask(WAIT, request).await.unwrap();
        ms(100).await;
        store.seen();
        store.next("release", &[DOWN, DOWN]);
        drop(guard);
        ms(5000).await;
        let seen = store.seen();
        let keep = |one: &Command| match &one.request {
            Request::Release(requests) => requests[0].keep,
            other => panic!("{other:?}"),
        };
        let kept: Vec<_> = seen.iter().map(|one| (one.at, keep(one))).collect();
        assert_eq!(kept, [(100, of(2900)), (150, of(2850)), (250, of(2750))]);
    });
}

#[test]
fn a_later_request_waits_for_the_first_answer_to_a_release_or_an_undo_and_no_longer() {
    simulated(async {
        for undo in [false, true] {
            let (store, client) = RecordingStore::open().await;
            store.title(if undo { "an undo" } else { "a release" });
            let verb = if undo { "abandon" } else { "release" };
            if undo {
                store.next("acquire", &[Fate::Lost]);
            }
            let request = store.ask(500, client.lock("k").wait(of(500)).acquire());
            let guard = request.await;
            store.next(verb, &[Fate::Silence; 9]);
            drop(guard);
            store.seen();
            let began = store.now();
            let next = store.ask(5000, client.lock("k").wait(of(5000)).acquire());
            let next = tokio::spawn(next);
            ms(510).await;
            assert_eq!(store.calls(), [(began, verb), (began + 500, "acquire")]);
            next.abort();
            ms(3000).await;
        }
    });
}

#[test]
fn a_release_that_fails_ends_with_its_lease_to_the_instant() {
    simulated(async {
        assert_eq!(tried(350, 100).await, [100, 150, 250, 450]);
    });
}

#[test]
fn a_release_is_repeated_in_its_time_beside_an_undo_that_waits() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.set_usual("abandon", Fate::Replies(0, 9));
        store.next("acquire", &[Fate::Lost]);
        let lost = client.lock("lost").wait(of(0)).acquire();
        store.ask(0, lost).await.unwrap_err();
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        // By then the undo has long pauses.
        ms(20_000).await;
        store.seen();
        store.next("release", &[DOWN, DOWN]);
        drop(guard);
        ms(1000).await;
        assert_eq!(store.when("release"), [20_500, 20_550, 20_650]);
    });
}

#[test]
fn a_late_command_is_undone_for_a_minute_after_the_release() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.next("acquire", &[Fate::Lost]);
        let guard = store.ask(WAIT, client.lock("k").lease(of(1000)).acquire());
        let guard = guard.await.unwrap();
        // Its answer comes over another link, so it may come before the late command.
        store.set_usual("release", Fate::Replies(0, 9));
        store.set_usual("abandon", DOWN);
        drop(guard);
        ms(100_000).await;
        let last = *store.when("abandon").last().unwrap();
        assert!((58_000..64_000).contains(&last), "{last}");
    });
}

#[test]
fn a_shutdown_ends_holds_when_their_time_is_over_whatever_is_under_way() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        store.next("acquire", &[Fate::Silence]);
        let under_way = tokio::spawn(store.ask(WAIT, client.lock("l").acquire()));
        ms(1).await;
        let closing = client.clone();
        let closes = tokio::spawn(async move { closing.shutdown(of(100)).await });
        guard.lost().await;
        assert_eq!(store.now(), 101);
        closes.await.unwrap();
        assert!(under_way.await.unwrap().is_err());
        drop(guard);
        ms(1000).await;
    });
}

#[test]
fn an_undo_over_the_link_of_the_abandoned_command_is_the_last() {
    simulated(async {
        for keys in [vec!["a@9"], vec!["a@9", "b@9"]] {
            let (store, client) = RecordingStore::open().await;
            store.title(keys.join(" and "));
            store.set_usual("abandon", Fate::Replies(0, 9));
            for verb in ["acquire", "acquire_all"] {
                store.set_usual(verb, Fate::Silence);
            }
            let request = client.multi_lock(keys.clone());
            let asks = tokio::spawn(store.ask(WAIT, request.acquire()));
            ms(100).await;
            asks.abort();
            ms(2000).await;
            assert_eq!(store.when("abandon"), vec![100; keys.len()]);
        }
    });
}

#[test]
fn a_release_whose_reply_was_lost_fails_once() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        store.next("release", &[Fate::Lost]);
        guard.release().await.unwrap_err();
        ms(3000).await;
        assert_eq!(store.when("release"), [0, 500]);
        assert_eq!(client.stats().release_failures, 1);
        let logged = store.noted("log: a lock was gone");
        assert!(logged.is_empty(), "{logged:?}");
    });
}

#[test]
fn the_store_is_closed_when_the_last_client_is_gone_and_its_work_is_done() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        store.set_usual("release", Fate::Replies(200, 0));
        drop(guard);
        drop(client);
        store.let_go();
        ms(1000).await;
        let ends = store.noted("the store");
        let times: Vec<_> = ends.iter().map(|(at, text)| (*at, text.as_str())).collect();
        let expected = [
            (200, "the store is to finish within 500"),
            (200, "the store is closed"),
        ];
        assert_eq!(times, expected);
    });
}

/// The renewal is answered after the shutdown has ended the hold, and before it is over.
#[test]
fn after_a_shutdown_nothing_is_held_also_if_a_renewal_was_answered_meanwhile() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let request = client.lock("k").lease(of(3000)).renew(true).acquire();
        let guard = store.ask(WAIT, request).await.unwrap();
        let other = store.ask(WAIT, client.lock("l").acquire()).await.unwrap();
        store.next("renew", &[Fate::Replies(300, 0)]);
        store.next("release", &[Fate::Replies(450, 0)]);
        ms(1050).await;
        // The shutdown waits for this release until 1,500. The renewal is answered at 1,300.
        let releases = tokio::spawn(async move { other.release().await });
        ms(1).await;
        client.shutdown(of(0)).await;
        assert_eq!(store.now(), 1500);
        assert_eq!(client.stats().held, 0);
        assert!(!guard.is_held());
        releases.await.unwrap().unwrap();
    });
}

#[test]
fn a_shutdown_waits_until_observers_were_told_for_two_commands_at_most() {
    simulated(async {
        let (go_on, blocks) = mpsc::channel::<()>();
        let blocks = Mutex::new(blocks);
        let slow = move |event: &Event<'_>| {
            if let What::Lost { .. } = event.what {
                // Until the test is over.
                blocks.lock().unwrap().recv().unwrap_err();
            }
        };
        let (store, client) = RecordingStore::open_with(|builder| builder.observer(slow)).await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        client.shutdown(of(0)).await;
        assert_eq!(store.now(), 1000);
        drop((go_on, guard));
    });
}

/// As long as an earlier command may be carried out late, whichever of them that is.
#[test]
fn an_undo_goes_on_until_none_of_the_commands_can_be_carried_out_any_more() {
    simulated(async {
        for (late, last) in [([3000, 100], 3000), ([100, 3000], 3050)] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!(
                "the first for {}, the second for {}",
                late[0], late[1]
            ));
            store.set_usual("abandon", Fate::Replies(0, 9));
            let kind = StoreErrorKind::Disconnected;
            store.next("acquire", &late.map(|after| Fate::FailsLate(kind, after)));
            store.set_usual("acquire", DOWN);
            let request = client.lock("k").wait(of(400)).acquire();
            store.ask(400, request).await.unwrap_err();
            ms(10_000).await;
            let calls = store.calls();
            let sent: Vec<_> = calls.iter().filter(|call| call.1 == "acquire").collect();
            assert_eq!((sent[0].0, sent[1].0), (0, 50));
            assert_eq!(calls.last(), Some(&(last, "abandon")));
        }
    });
}

#[test]
fn a_later_request_waits_for_the_repeat_of_a_release_that_its_caller_saw_fail() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        store.seen();
        store.next("release", &[DOWN, Fate::Replies(200, 0)]);
        guard.release().await.unwrap_err();
        let next = store.ask(WAIT, client.lock("k").acquire()).await;
        let calls = [(0, "release"), (0, "release"), (200, "acquire")];
        assert_eq!(store.calls(), calls);
        drop(next.unwrap());
        ms(1).await;
    });
}

/// A client with many releases must not keep a store that fails from its other clients.
#[test]
fn many_releases_that_fail_keep_a_distance_until_the_store_is_back() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let mut guards = Vec::new();
        for number in 0..40 {
            let request = client.lock(format!("k{number}")).acquire();
            guards.push(store.ask(WAIT, request).await.unwrap());
        }
        store.set_usual("release", DOWN);
        drop(guards);
        ms(68).await;
        let tried = store.when("release");
        assert_eq!(tried[..40], [0; 40]);
        assert_eq!(tried[40..], [50, 55, 60, 65]);
        store.set_usual("release", Fate::Passes);
        ms(30).await;
        // All that were not tried a second time.
        assert_eq!(store.when("release"), [70; 36]);
        ms(1000).await;
        assert_eq!(client.stats().undoing, 0);
    });
}

#[test]
fn a_release_is_repeated_in_its_time_beside_one_at_another_server() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let one = store.ask(WAIT, client.lock("k@1").acquire()).await.unwrap();
        let other = store.ask(WAIT, client.lock("l@2").acquire()).await.unwrap();
        store.next("release", &[DOWN, DOWN]);
        drop(one);
        ms(40).await;
        drop(other);
        ms(1000).await;
        assert_eq!(store.when("release"), [0, 40, 50, 90]);
    });
}

/// So many are under way that some can't be sent. No request waits for those longer than for one
/// that was sent.
#[test]
fn a_later_request_waits_for_a_release_that_is_not_sent_yet_for_one_command() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        // With as many servers, each has 16 under way at once.
        let servers = (1..=16).map(|link| format!("k@{link}"));
        let keys = servers.chain((0..20).map(|number| format!("k{number}@17")));
        let mut guards = Vec::new();
        for key in keys {
            let request = client.lock(key).acquire();
            guards.push(store.ask(WAIT, request).await.unwrap());
        }
        store.set_usual("release", Fate::Silence);
        store.seen();
        drop(guards);
        let next = client.lock("k19@17").wait(of(5000)).acquire();
        let next = tokio::spawn(store.ask(5000, next));
        ms(499).await;
        assert_eq!(store.calls(), [(0, "release"); 32]);
        ms(10).await;
        assert_eq!(store.when("acquire"), [500]);
        next.abort();
        ms(10).await;
    });
}

/// The same for undos, of which fewer are under way at once.
#[test]
fn a_later_request_waits_for_an_undo_that_is_not_sent_yet_for_one_command() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.next("acquire", &[Fate::Lost; 40]);
        store.set_usual("abandon", Fate::Silence);
        let ask_all = |wait| {
            let ask = |number| {
                let lock = client.lock(format!("k{number}"));
                tokio::spawn(store.ask(wait, lock.wait(of(wait)).acquire()))
            };
            (0..40).map(ask).collect::<Vec<_>>()
        };
        for lost in ask_all(500) {
            lost.await.unwrap().unwrap_err();
        }
        let next = ask_all(5000);
        ms(499).await;
        assert_eq!(store.when("abandon"), [500; 32]);
        ms(10).await;
        assert_eq!(store.when("acquire"), [1000; 40]);
        next.iter().for_each(tokio::task::JoinHandle::abort);
        store.set_usual("abandon", Fate::Passes);
        ms(3000).await;
    });
}

/// One of several servers may be silent. Nobody who wants a key of another waits for it.
#[test]
fn a_hold_at_two_servers_is_released_at_each_by_itself() {
    simulated(async {
        for (silent, [healthy, late]) in [(0, ["b@2", "a@1"]), (1, ["a@1", "b@2"])] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("the server of {late} is silent"));
            let both = client.multi_lock(["a@1", "b@2"]).acquire();
            let both = store.ask(WAIT, both).await.unwrap();
            let mut fates = [Fate::Passes; 2];
            fates[silent] = Fate::Silence;
            store.next("release", &fates);
            store.seen();
            drop(both);
            // The second, until the release was sent again.
            for (key, at) in [(healthy, 0), (late, 550)] {
                let next = client.lock(key).wait(of(WAIT)).acquire();
                drop(store.ask(WAIT, next).await.unwrap());
                assert_eq!(store.now(), at, "{key}");
            }
        }
    });
}

/// The same of undos.
#[test]
fn many_undos_at_a_silent_server_hold_back_no_request_for_a_key_of_another() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.next("acquire", &[Fate::Lost; 41]);
        let lost = (0..40).map(|number| format!("k{number}@1"));
        let lost: Vec<_> = lost
            .chain(["l@2".to_owned()])
            .map(|key| tokio::spawn(store.ask(500, client.lock(key).wait(of(500)).acquire())))
            .collect();
        store.next("abandon", &[Fate::Silence; 32]);
        for one in lost {
            one.await.unwrap().unwrap_err();
        }
        store.seen();
        let next = store.ask(WAIT, client.lock("l@2").acquire()).await;
        assert_eq!(store.when("acquire"), [500]);
        drop(next.unwrap());
        ms(3000).await;
    });
}

/// Else a dashboard would show connections of a client that is no more.
#[test]
fn a_shutdown_is_the_end_of_each_connection_and_no_other_is_told_after_it() {
    simulated(async {
        let (go_on, blocks) = mpsc::channel::<()>();
        let (tells, told) = mpsc::channel();
        let observed = Mutex::new((tells, blocks));
        let observer = move |event: &Event<'_>| {
            let (tells, blocks) = &*observed.lock().unwrap();
            match event.what {
                What::Connected { server, .. } => tells.send(format!("{server} is there")),
                What::Disconnected { server, .. } => tells.send(format!("{server} is gone")),
                _ => return,
            }
            .unwrap();
            // Until the shutdown is over, so that it takes the same time always.
            blocks.recv().unwrap_err();
        };
        let (store, client) = RecordingStore::open_with(|builder| builder.observer(observer)).await;
        let listener = store.listener.lock().unwrap().take().unwrap();
        listener.on_connected("one");
        listener.on_connected("two");
        client.shutdown(of(0)).await;
        let error = StoreError::new(StoreErrorKind::Disconnected, "the test ends it");
        listener.on_disconnected("one", &error);
        listener.on_connected("late");
        drop((go_on, listener, client));
        store.let_go();
        ms(1000).await;
        let told = std::iter::from_fn(|| told.recv_timeout(Duration::from_secs(10)).ok());
        let expected = ["one is there", "two is there", "one is gone", "two is gone"];
        assert!(told.eq(expected));
    });
}
