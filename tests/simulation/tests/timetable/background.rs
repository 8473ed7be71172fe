//! Releases that nobody waits for, and those that fail.

use lock_runtime::{LockError, LostReason, StoreErrorKind};
use lock_store::memory::MemoryStore;
use lock_store::{Released, Renewed};

use crate::desk::{Desk, Fate, ms, of, simulated};

const DOWN: Fate = Fate::Fails(StoreErrorKind::Disconnected);

/// When a release is tried that never comes through, of a hold of `lease` that is dropped after `held` milliseconds.
async fn tried(lease: u64, held: u64) -> Vec<u64> {
    let (desk, client) = Desk::open().await;
    desk.always("release", DOWN);
    let guard = client.lock("k").lease(of(lease)).acquire().await.unwrap();
    ms(held).await;
    drop(guard);
    ms(20_000).await;
    desk.when("release")
}

#[test]
fn a_release_that_fails_is_repeated_until_the_hold_has_ended_by_itself() {
    simulated(async {
        // Until a fiftieth of the lease after the deadline: this one has ended by 3,159.
        let expected = [0, 50, 150, 350, 750, 1550, 3150, 5150];
        assert_eq!(tried(3130, 0).await, expected);
        // And until a lease after the release, since a renewal may be under way.
        let expected = [1000, 1050, 1150, 1350, 1750, 2550, 4150];
        assert_eq!(tried(2500, 1000).await, expected);
        let expected = [500, 550, 650, 850, 1250, 2050];
        assert_eq!(tried(1500, 500).await, expected);
    });
}

#[test]
fn releases_that_fail_or_find_nothing_are_counted() {
    simulated(async {
        let (desk, client) = Desk::open().await;
        desk.next("release", &[DOWN]);
        let guard = client.lock("k").acquire().await.unwrap();
        let error = guard.release().await.unwrap_err();
        assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
        assert_eq!(client.health().await.unwrap().release_failures, 1);
        ms(100).await;
        assert_eq!(desk.when("release"), [0, 0]);
        assert_eq!(client.inspect("k").await.unwrap().holder, None);

        let guard = client.lock("k").acquire().await.unwrap();
        client.force_release("k").await.unwrap();
        drop(guard);
        ms(1).await;
        assert_eq!(client.health().await.unwrap().release_failures, 2);

        // One that fails in the background is counted each time, and not for being gone in the end.
        desk.next("release", &[DOWN]);
        drop(client.lock("k").acquire().await.unwrap());
        ms(100).await;
        assert_eq!(client.health().await.unwrap().release_failures, 3);
    });
}

#[test]
fn an_answered_health_check_says_how_long_it_took() {
    simulated(async {
        let (desk, client) = Desk::open().await;
        desk.next("ping", &[Fate::Replies(30, 0)]);
        assert_eq!(client.health().await.unwrap().round_trip, of(30));
        assert_eq!(desk.seen(), ["0 ping - 500"]);
    });
}

#[test]
fn what_is_gone_is_not_released_and_what_has_run_into_its_deadline_is() {
    simulated(async {
        let (desk, client) = Desk::open().await;
        desk.says
            .lock()
            .unwrap()
            .renewed
            .push_back(vec![Renewed::Gone]);
        let guard = client
            .lock("k")
            .lease(of(900))
            .renew(true)
            .acquire()
            .await
            .unwrap();
        guard.lost().await;
        assert_eq!(desk.now(), 300);
        drop(guard);
        ms(5000).await;
        assert_eq!(desk.when("release"), []);

        let request = client.lock("l").lease(of(1000)).renew(false);
        let guard = request.acquire().await.unwrap();
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
        assert_eq!(desk.when("release").len(), 1);
        assert_eq!(client.health().await.unwrap().lost, 2);
        assert_eq!(client.health().await.unwrap().release_failures, 0);
    });
}

/// The key of a hold that has run into its deadline may be somebody else's by then, and nobody waits for its release; at
/// the end of `max_hold` it may still be held.
#[test]
fn a_later_request_waits_for_the_release_of_what_may_be_held_still() {
    simulated(async {
        for (max_hold, expected) in [(false, 988), (true, 1995)] {
            let (desk, client) = Desk::open().await;
            desk.always("release", Fate::Replies(1000, 0));
            let request = client.lock("k").lease(of(1000)).renew(max_hold);
            let request = if max_hold {
                request.max_hold(of(1000))
            } else {
                request
            };
            let guard = request.acquire().await.unwrap();
            desk.seen();
            guard.lost().await;
            drop(guard);
            let asks = tokio::spawn(client.lock("k").wait(of(5000)).acquire());
            ms(3000).await;
            assert_eq!(desk.when("acquire")[0], expected);
            drop(asks.await.unwrap().unwrap());
        }
    });
}

#[test]
fn a_release_that_finds_nothing_says_so_and_is_not_repeated() {
    simulated(async {
        let (desk, client) = Desk::open().await;
        let guard = client.lock("k").acquire().await.unwrap();
        desk.says
            .lock()
            .unwrap()
            .released
            .push_back(Released::NotHeld);
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
        assert_eq!(desk.when("release"), [0]);
        assert_eq!(client.health().await.unwrap().release_failures, 1);
    });
}

/// An acquire whose reply was lost may be carried out again as long as its link has not answered a later command.
#[test]
fn a_lost_reply_is_followed_by_an_undo_until_its_own_link_answers() {
    simulated(async {
        for (link, dropped, undos) in [(0, false, 0), (9, false, 1), (0, true, 0), (9, true, 1)] {
            let (desk, client) = Desk::open().await;
            desk.next("acquire", &[Fate::Lost]);
            let guard = client.lock("k").lease(of(1000)).acquire().await.unwrap();
            desk.next("release", &[Fate::Replies(0, link)]);
            if dropped {
                drop(guard);
            } else {
                guard.release().await.unwrap();
            }
            ms(100).await;
            assert_eq!(desk.when("abandon").len(), undos, "over {link}, {dropped}");
        }
    });
}

#[test]
fn a_late_command_is_undone_ever_more_seldom_until_its_lease_has_ended() {
    simulated(async {
        let (desk, client) = Desk::open().await;
        desk.always("abandon", Fate::Replies(0, 9));
        desk.next("acquire", &[Fate::Lost]);
        let request = client.lock("k").lease(of(2000)).wait(of(0)).acquire();
        request.await.unwrap_err();
        assert_eq!(desk.now(), 500);
        ms(5000).await;
        // The first of them at once, the last one at the end of what a command sent at 0 can have.
        let expected = [500, 550, 650, 850, 1050, 1250, 1450, 1650, 1850, 2000];
        assert_eq!(desk.when("abandon"), expected);
    });
}

#[test]
fn an_undo_that_fails_is_repeated_for_a_minute() {
    simulated(async {
        let (desk, client) = Desk::open().await;
        desk.always("abandon", DOWN);
        desk.next("acquire", &[Fate::Lost]);
        let request = client.lock("k").lease(of(1000)).wait(of(0)).acquire();
        request.await.unwrap_err();
        ms(9000).await;
        assert_eq!(
            desk.when("abandon")[..7],
            [500, 550, 650, 850, 1250, 2050, 3650]
        );
        // A place in the queue would be forgotten after a minute.
        ms(80_000).await;
        assert_eq!(desk.when("abandon").last(), Some(&61_650));
    });
}

#[test]
fn an_extension_may_reach_the_end_of_max_hold_and_no_further() {
    simulated(async {
        let (desk, client) = Desk::open().await;
        let request = client.lock("k").max_hold(of(50_000));
        let guard = request.acquire().await.unwrap();
        guard.extend(of(50_000)).await.unwrap();
        assert_eq!(guard.remaining(), of(49_498));
        let error = guard.extend(of(50_001)).await.unwrap_err();
        assert!(matches!(error, LockError::Config { .. }), "{error}");
        assert_eq!(desk.seen()[1], "0 renew k 50000 500");
    });
}

#[test]
fn an_extension_that_was_not_answered_for_all_loses_nothing() {
    simulated(async {
        let (desk, client) = Desk::open().await;
        let guard = client.multi_lock(["a", "b"]).acquire().await.unwrap();
        let say = |renewed| desk.says.lock().unwrap().renewed.push_back(renewed);
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
        let (desk, client) = Desk::open().await;
        desk.always("release", Fate::Silence);
        let guard = client.lock("k").acquire().await.unwrap();
        client.shutdown(of(300)).await;
        assert_eq!(desk.now(), 1300);
        assert!(!guard.is_held());
        assert_eq!(desk.when("release")[0], 300);
    });
}

#[test]
fn a_shutdown_with_nothing_to_do_takes_no_time() {
    simulated(async {
        let (desk, client) = Desk::open_with(MemoryStore::new(), |builder| builder).await;
        let guard = client.lock("k").acquire().await.unwrap();
        let ends = tokio::spawn({
            let client = client.clone();
            async move { client.shutdown(of(5000)).await }
        });
        ms(100).await;
        guard.release().await.unwrap();
        ends.await.unwrap();
        assert_eq!(desk.now(), 100);
    });
}

/// What is left of a request that ends while its command is under way.
#[test]
fn a_command_that_nobody_waits_for_any_more_is_undone_until_its_lease_has_ended() {
    simulated(async {
        for keys in [vec!["a"], vec!["a", "b"]] {
            let (desk, client) = Desk::open().await;
            desk.always("abandon", Fate::Replies(0, 9));
            for verb in ["acquire", "acquire_all"] {
                desk.always(verb, Fate::Silence);
            }
            let request = client.multi_lock(keys.clone()).lease(of(600));
            let asks = tokio::spawn(request.acquire());
            ms(100).await;
            asks.abort();
            ms(2000).await;
            let each = [100, 150, 210, 270, 330, 390, 450, 510, 570, 600];
            let expected = each.iter().flat_map(|at| vec![*at; keys.len()]);
            assert_eq!(desk.when("abandon"), expected.collect::<Vec<_>>());
        }
    });
}

#[test]
fn a_shutdown_is_told_at_once_to_whoever_waits() {
    simulated(async {
        let (desk, client) = Desk::open().await;
        let _guard = desk.other().await.lock("k").acquire().await.unwrap();
        let fair = tokio::spawn(client.lock("k").fair().acquire());
        let (first, second) = (
            tokio::spawn(client.lock("k").acquire()),
            tokio::spawn(client.lock("k").wait_forever().acquire()),
        );
        let latch = client.latch("l");
        let latch = tokio::spawn(async move { latch.wait_forever().await });
        ms(300).await;
        assert_eq!(client.health().await.unwrap().waiting, 4);
        client.shutdown(of(0)).await;
        for waits in [fair, first, second] {
            let error = waits.await.unwrap().unwrap_err();
            assert!(matches!(error, LockError::Shutdown), "{error}");
        }
        let error = latch.await.unwrap().unwrap_err();
        assert!(matches!(error, LockError::Shutdown), "{error}");
        assert_eq!(desk.now(), 300);
    });
}

#[test]
fn a_shutdown_waits_for_a_release_under_way_and_no_longer() {
    simulated(async {
        let (desk, client) = Desk::open().await;
        let guard = client.lock("k").acquire().await.unwrap();
        desk.next("release", &[Fate::Replies(100, 0)]);
        let releases = tokio::spawn(guard.release());
        ms(1).await;
        client.shutdown(of(5000)).await;
        assert_eq!(desk.now(), 100);
        releases.await.unwrap().unwrap();
    });
}
