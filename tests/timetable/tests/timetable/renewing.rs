//! The watchdog.

use std::time::Duration;

use lock_runtime::{LockClientBuilder, LockError};
use lock_store::{LeaseLimits, Released, Renewed};
use lock_testkit_core::store_decorator::{Reply, Request};

use crate::fates::{DOWN, Fate};
use crate::recording_store::{RecordingStore, WAIT, ms, of, short, simulated};
use crate::schedule::Command;

#[test]
fn renewals_that_fail_are_repeated_until_the_deadline() {
    simulated(async {
        for (lease, deadline) in [(30_000, 29_698), (3000, 2968), (600, 592)] {
            for fate in [DOWN, Fate::Silence] {
                let (store, client) = RecordingStore::open().await;
                store.title(format!("lease {lease}, {fate:?}"));
                store.set_usual("renew", fate);
                let request = client.lock("k").lease(of(lease)).renew(true);
                let guard = store.ask(WAIT, request.acquire()).await.unwrap();
                guard.lost().await;
                assert_eq!(store.now(), deadline);
                let renewals = store.when("renew");
                assert_eq!(renewals[0], lease / 3);
                // The pauses, and the last one until the deadline, are no longer than a command and
                // a backoff.
                let pauses = renewals.windows(2).map(|pair| pair[1] - pair[0]);
                let longest = pauses.max().unwrap();
                assert!(longest <= 2000.min(lease / 3), "{longest} of {lease}");
                assert!(deadline - renewals[renewals.len() - 1] <= longest);
            }
        }
    });
}

#[test]
fn a_store_that_is_back_a_second_before_the_deadline_renews() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.set_usual("renew", Fate::Silence);
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        ms(28_600).await;
        store.set_usual("renew", Fate::Passes);
        ms(120_000).await;
        assert!(guard.is_held());
    });
}

#[test]
fn renewals_within_twenty_milliseconds_travel_together() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let mut guards = Vec::new();
        for key in ["a", "b", "c"] {
            let request = client.lock(key).lease(of(3000)).renew(true);
            guards.push(store.ask(WAIT, request.acquire()).await.unwrap());
            ms(if key == "a" { 20 } else { 1 }).await;
        }
        store.seen();
        ms(2500).await;
        let seen = store.seen();
        let sent: Vec<_> = seen
            .iter()
            .map(|one| (one.at, one.request.keys().len()))
            .collect();
        assert_eq!(sent, [(1000, 2), (1021, 1), (2000, 2), (2021, 1)]);
    });
}

/// A server that is silent must not use up the time of holds at another.
#[test]
fn renewals_for_different_servers_travel_apart() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let mut guards = Vec::new();
        for keys in [&["a"][..], &["b@9"], &["c"], &["d", "e@9"]] {
            let lock = client.multi_lock(keys.iter().copied());
            let request = lock.lease(of(3000)).renew(true);
            guards.push(store.ask(WAIT, request.acquire()).await.unwrap());
        }
        store.seen();
        ms(1100).await;
        let seen = store.seen();
        let keys = |command: &Command| {
            let keys = command.request.keys();
            keys.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let mut sent: Vec<_> = seen.iter().map(keys).collect();
        sent.sort();
        assert_eq!(sent, [&["a", "c"][..], &["b@9"], &["d", "e@9"]]);
    });
}

#[test]
fn a_hundred_keys_are_renewed_by_one_command() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let mut guards = Vec::new();
        for number in 0..150 {
            guards.push(
                store
                    .ask(WAIT, client.lock(format!("k{number}")).acquire())
                    .await
                    .unwrap(),
            );
        }
        store.seen();
        ms(10_001).await;
        let counts: Vec<_> = store
            .seen()
            .iter()
            .map(|one| one.request.keys().len())
            .collect();
        assert_eq!(counts, [100, 50]);
    });
}

#[test]
fn a_last_renewal_reaches_the_end_of_max_hold() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let request = client.lock("k").lease(of(3000)).renew(true);
        let guard = store
            .ask(WAIT, request.max_hold(of(5000)).acquire())
            .await
            .unwrap();
        guard.lost().await;
        assert_eq!(store.now(), 4988);
        let seen = store.seen();
        let until = seen.iter().filter_map(|one| match &one.request {
            Request::Renew(holds) => Some(of(one.at) + holds[0].lease),
            _ => None,
        });
        let until: Vec<_> = until.collect();
        assert_eq!(until.last(), Some(&of(5000)));
        assert!(until.iter().all(|until| *until <= of(5000)), "{until:?}");
        let error = guard.release().await.unwrap_err();
        assert_eq!(short(&error), "lost, MaxHold");
        ms(1).await;
        assert_eq!(store.calls(), [(4988, "release")]);
    });
}

#[test]
fn an_unanswered_renewal_is_repeated_and_a_missing_hold_is_lost() {
    simulated(async {
        use Renewed::{Gone, Renewed as Well, Unanswered};
        for (replies, held, renewals) in [
            (vec![Unanswered, Well], true, 2),
            (vec![Well, Unanswered], true, 2),
            (vec![Gone, Unanswered], false, 1),
            (vec![Unanswered, Gone], false, 1),
            (vec![Well], false, 1),
            (vec![Well, Well], true, 1),
        ] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("{replies:?}"));
            let request = client.multi_lock(["a", "b"]).lease(of(3000)).renew(true);
            let guard = store.ask(WAIT, request.acquire()).await.unwrap();
            store.answer(Reply::Renew(replies));
            ms(1900).await;
            assert_eq!(guard.is_held(), held);
            assert_eq!(store.when("renew").len(), renewals);
        }
    });
}

#[test]
fn a_loss_keeps_its_reason() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.answer(Reply::Renew(vec![Renewed::Gone]));
        let request = client.lock("k").lease(of(3000)).renew(true);
        let guard = store.ask(WAIT, request.acquire()).await.unwrap();
        ms(9000).await;
        // Long after its deadline.
        assert!(!guard.is_held());
        let error = guard.release().await.unwrap_err();
        assert_eq!(short(&error), "lost, Gone");
    });
}

#[test]
fn a_hold_that_could_not_be_renewed_is_not_one_whose_max_hold_has_ended() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.set_usual("renew", DOWN);
        let request = client.lock("k").lease(of(3000)).renew(true);
        let guard = store
            .ask(WAIT, request.max_hold(of(60_000)).acquire())
            .await
            .unwrap();
        guard.lost().await;
        let error = guard.release().await.unwrap_err();
        assert_eq!(
            (store.now(), short(&error)),
            (2968, "lost, NotRenewed".into())
        );
    });
}

#[test]
fn unanswered_renewals_of_another_lock_say_nothing_about_this_one() {
    simulated(async {
        for (lease, start, wait, expected) in [
            // Renewals with little time left: 200 to 330, 361 to 438 and so on.
            (600, 0, 700, "busy after 700ms"),
            // A renewal with a whole command's time, from 10,000 to 10,500.
            (30_000, 9900, 900, "busy after 900ms"),
        ] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("lease {lease}"));
            let _taken = store.other().await.lock("k").acquire().await.unwrap();
            store.set_usual("renew", Fate::Silence);
            let request = client.lock("h").lease(of(lease)).renew(true);
            let _guard = store.ask(WAIT, request.acquire()).await.unwrap();
            ms(start).await;
            let error = store
                .ask(wait, client.lock("k").wait(of(wait)).acquire())
                .await
                .unwrap_err();
            assert_eq!(
                (short(&error).as_str(), store.now()),
                (expected, start + wait)
            );
        }
    });
}

#[test]
fn the_silence_of_a_renewal_counts_if_it_had_the_time_of_a_command() {
    simulated(async {
        // The renewal at 10,000 has 500 ms, the one at 200 has 166.
        for (lease, asked, ended) in [(30_000, 10_600, 11_100), (600, 380, 1380)] {
            let patience = |builder: LockClientBuilder| builder.unavailable_after(of(1000));
            let (store, client) = RecordingStore::open_with(patience).await;
            store.title(format!("lease {lease}"));
            let request = client.lock("held").lease(of(lease)).renew(true).acquire();
            let _guard = store.ask(WAIT, request).await.unwrap();
            store.set_usual("renew", Fate::Silence);
            store.set_usual("acquire", Fate::Silence);
            ms(asked).await;
            let request = store.ask(WAIT, client.lock("k").acquire());
            assert_eq!(short(&request.await.unwrap_err()), "Timeout");
            assert_eq!(store.now(), ended, "lease {lease}");
        }
    });
}

#[test]
fn a_hold_that_lasts_for_long_is_logged_once() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        store.seen();
        ms(600_000).await;
        let logged = store.noted("log: a lock is held for longer");
        let times: Vec<_> = logged.iter().map(|(at, _)| *at).collect();
        assert_eq!(times, [300_000]);
        drop(guard);
    });
}

#[test]
fn an_extension_is_checked_before_it_is_sent() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        store.seen();
        for lease in [0, u64::MAX / 4] {
            let error = guard.extend(of(lease)).await.unwrap_err();
            assert!(matches!(error, LockError::Config { .. }), "{error}");
        }
        assert_eq!(store.calls(), []);
        store.answer(Reply::Renew(vec![Renewed::Gone]));
        assert!(guard.extend(of(1000)).await.unwrap_err().is_lost());
        assert_eq!((guard.is_held(), client.stats().lost), (false, 1));
        assert_eq!(client.stats().held, 0);
        ms(60_000).await;
        assert_eq!(store.calls(), [(0, "renew")]);
    });
}

#[test]
fn of_more_than_a_hundred_those_with_the_least_time_left_go_first() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let mut guards = Vec::new();
        for (name, lease, number) in [("long", 30_000, 60), ("short", 3000, 60)] {
            for number in 0..number {
                let key = format!("{name}{number}");
                let request = client.lock(key).lease(of(lease)).renew(true).acquire();
                guards.push(store.ask(WAIT, request).await.unwrap());
            }
            ms(if name == "long" { 9000 } else { 1001 }).await;
        }
        let seen = store.seen();
        let first = seen.iter().find(|one| one.verb() == "renew").unwrap();
        let names: Vec<_> = first
            .request
            .keys()
            .iter()
            .map(ToString::to_string)
            .collect();
        let count = |name: &str| names.iter().filter(|key| key.starts_with(name)).count();
        assert_eq!((first.at, count("short"), count("long")), (10_000, 60, 40));
    });
}

#[test]
fn a_hold_that_a_renewal_finds_gone_is_counted_at_once() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        store.answer(Reply::Renew(vec![Renewed::Gone]));
        guard.lost().await;
        assert_eq!((store.now(), client.stats().lost), (10_000, 1));
        // Its guard is there still.
        assert_eq!(client.stats().held, 0);
    });
}

/// The watchdog reads the clock each second, in case its machine was asleep.
#[test]
fn a_look_at_the_clock_brings_no_renewal_forward() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let request = client.lock("k").lease(of(3030)).renew(true);
        let _guard = store.ask(WAIT, request.acquire()).await.unwrap();
        ms(1100).await;
        assert_eq!(store.when("renew"), [1010]);
    });
}

#[test]
fn a_writer_that_a_downgrade_finds_gone_is_lost() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let request = client.rw_lock("k").write().acquire();
        let guard = store.ask(WAIT, request).await.unwrap();
        store.answer(Reply::Shrink(Released::NotHeld));
        assert!(guard.downgrade().await.unwrap_err().is_lost());
        assert_eq!((guard.is_held(), client.stats().lost), (false, 1));
    });
}

/// Its task was woken in the same moment as the watchdog.
#[test]
fn a_hold_that_is_released_when_its_renewal_is_due_is_not_renewed() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let request = client.lock("k").lease(of(600)).renew(true).acquire();
        let guard = store.ask(WAIT, request).await.unwrap();
        store.seen();
        let releases = tokio::spawn(async move {
            ms(200).await;
            drop(guard);
        });
        ms(1000).await;
        releases.await.unwrap();
        assert_eq!(store.calls(), [(200, "release")]);
    });
}

/// 450 of 500 ms are a command's time.
#[test]
fn the_silence_of_a_renewal_counts_if_it_had_nine_tenths_of_the_time_of_a_command() {
    simulated(async {
        // The renewal goes out at 687. It has a third of the time until the deadline: 450 ms, or
        // a nanosecond less.
        for (nanos, ended) in [(2_059_595_958, 2140), (2_059_595_959, 1687)] {
            let patience = |builder: LockClientBuilder| builder.unavailable_after(of(1000));
            let (store, client) = RecordingStore::open_with(patience).await;
            store.title(format!("a lease of {nanos} ns"));
            let lease = Duration::from_nanos(nanos);
            let request = client.lock("held").lease(lease).renew(true).acquire();
            let _guard = store.ask(WAIT, request).await.unwrap();
            store.set_usual("renew", Fate::Silence);
            store.set_usual("acquire", Fate::Silence);
            ms(1140).await;
            let request = store.ask(WAIT, client.lock("k").acquire());
            assert_eq!(short(&request.await.unwrap_err()), "Timeout");
            assert_eq!(store.now(), ended);
        }
    });
}

#[test]
fn a_renewal_that_is_answered_after_the_end_of_its_hold_tells_nothing_of_it() {
    simulated(async {
        for (lease, after, released) in [(3000, 100, true), (600, 500, false)] {
            let settings = |builder: LockClientBuilder| builder.warn_held_after(of(100));
            let (store, client) = RecordingStore::open_with(settings).await;
            store.title(if released { "released" } else { "lost" });
            store.next("renew", &[Fate::Replies(after, 0)]);
            let request = client.lock("k").lease(of(lease)).renew(true).acquire();
            let guard = store.ask(WAIT, request).await.unwrap();
            let due = lease / 3;
            ms(due + 50).await;
            let kept = if released {
                drop(guard);
                None
            } else {
                Some(guard)
            };
            ms(after).await;
            let logged = store.noted("log: a lock is held for longer");
            assert_eq!(logged, []);
            drop(kept);
            ms(100).await;
        }
    });
}

#[test]
fn the_silence_of_a_request_for_a_token_counts() {
    simulated(async {
        let patience = |builder: LockClientBuilder| builder.unavailable_after(of(1000));
        let (store, client) = RecordingStore::open_with(patience).await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        store.set_usual("fence", Fate::Silence);
        store.set_usual("acquire", Fate::Silence);
        let inner = client.lock("k").fenced().wait(of(400)).acquire();
        let inner = guard.scope(store.ask(400, inner)).await;
        assert_eq!(short(&inner.unwrap_err()), "Timeout");
        assert_eq!(store.now(), 500);
        ms(100).await;
        let request = store.ask(WAIT, client.lock("l").acquire());
        assert_eq!(short(&request.await.unwrap_err()), "Timeout");
        // It asked at 600 and had the time of a command.
        assert_eq!(store.now(), 1100);
    });
}

/// A fiftieth of the lease and 15 ms before the end of `max_hold`, nobody can tell a renewal that
/// failed from the last one, which ends there.
#[test]
fn a_hold_that_is_lost_just_before_the_end_of_max_hold_is_lost_for_it() {
    simulated(async {
        for (max_hold, reason) in [(1023, "lost, MaxHold"), (1024, "lost, NotRenewed")] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("max_hold {max_hold}"));
            store.set_usual("renew", DOWN);
            let request = client.lock("k").lease(of(1000)).renew(true);
            let request = request.max_hold(of(max_hold)).acquire();
            let guard = store.ask(WAIT, request).await.unwrap();
            guard.lost().await;
            assert_eq!(store.now(), 988);
            assert_eq!(short(&guard.release().await.unwrap_err()), reason);
            ms(1).await;
        }
    });
}

#[test]
fn an_extension_is_as_long_as_a_lease_may_be_whatever_the_store_can_keep() {
    simulated(async {
        let day = Duration::from_secs(24 * 60 * 60);
        for (lease, is_sent) in [
            (of(9), false),
            (of(10), true),
            (day, true),
            (day + of(1), false),
        ] {
            let any = LeaseLimits::new(Duration::ZERO..=Duration::MAX, "any");
            let (store, client) = RecordingStore::open_as(|can| can.leases = any).await;
            store.title(format!("{lease:?}"));
            let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
            store.seen();
            match guard.extend(lease).await {
                Ok(()) => assert!(is_sent),
                Err(LockError::Config { .. }) => assert!(!is_sent),
                Err(other) => panic!("{other}"),
            }
            let calls = [(0, "renew")];
            assert_eq!(store.calls(), calls[..usize::from(is_sent)]);
        }
    });
}

/// There is nothing to renew, and each try would cost a command.
#[test]
fn a_lock_that_was_gone_when_it_was_downgraded_is_renewed_no_more() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let request = client.rw_lock("k").write().lease(of(3000)).renew(true);
        let guard = store.ask(WAIT, request.acquire()).await.unwrap();
        store.answer(Reply::Shrink(Released::NotHeld));
        let error = guard.downgrade().await.unwrap_err();
        assert_eq!(short(&error), "lost, Gone");
        ms(5000).await;
        assert_eq!(store.calls(), [(0, "acquire"), (0, "shrink")]);
    });
}

/// Its body may still run, and until then the store keeps it for nobody else.
#[test]
fn a_lock_that_was_taken_from_its_holder_is_over_at_its_deadline_to_the_instant() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let request = client.lock("k").lease(of(600)).acquire();
        let guard = store.ask(WAIT, request).await.unwrap();
        drop(client.revoke("k", of(0)).await.unwrap());
        ms(591 - store.now()).await;
        assert_eq!((guard.is_held(), client.stats().held), (false, 1));
        ms(1).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!((store.now(), client.stats().held), (592, 0));
    });
}

/// How near to the end it is goes by the lease of the extension.
#[test]
fn a_hold_that_was_extended_by_less_to_the_same_deadline_is_lost_for_max_hold_if_that_ends_it() {
    simulated(async {
        for (max_hold, reason) in [(4029, "lost, MaxHold"), (4030, "lost, NotRenewed")] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("max_hold {max_hold}"));
            let request = client.lock("k").lease(of(4000)).renew(true);
            let request = request.max_hold(of(max_hold)).acquire();
            let guard = store.ask(WAIT, request).await.unwrap();
            ms(1188).await;
            guard.extend(of(2800)).await.unwrap();
            store.set_usual("renew", DOWN);
            guard.lost().await;
            assert_eq!(store.now(), 3958);
            assert_eq!(short(&guard.release().await.unwrap_err()), reason);
            ms(1).await;
        }
    });
}
