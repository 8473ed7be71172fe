//! Several locks at once.

use lock_runtime::{LockClientBuilder, LockError, StoreErrorKind};
use lock_store::{AcquiredAll, Released, Renewed};
use lock_testkit_core::store_decorator::{Reply, Request};

use crate::fates::{DOWN, Fate};
use crate::recording_store::{RecordingStore, WAIT, ms, of, short, simulated};

/// The keys are not in one part of the store, so they are taken one after the other.
fn apart(store: &RecordingStore) {
    store.answer(Reply::AcquireAll(AcquiredAll::Apart));
}

#[test]
fn free_keys_are_taken_renewed_and_released_together() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let request = client.multi_lock(["b", "a"]).acquire();
        let guard = store.ask(WAIT, request).await.unwrap();
        ms(25_000).await;
        guard.release().await.unwrap();
        let seen = store.seen();
        assert!(seen.iter().all(|one| one.request.keys().len() == 2));
        let sent: Vec<_> = seen.iter().map(|one| (one.at, one.verb())).collect();
        let renewals = [(10_000, "renew"), (20_000, "renew")];
        assert_eq!(sent[..3], [&[(0, "acquire_all")], &renewals[..]].concat());
        assert_eq!(sent[3..], [(25_000, "release")]);
    });
}

#[test]
fn busy_keys_are_taken_one_after_the_other_and_then_confirmed() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let other = store.other().await.lock("b").acquire().await.unwrap();
        let request = client.multi_lock(["a", "b", "c"]).acquire();
        let waits = tokio::spawn(store.ask(WAIT, request));
        ms(1500).await;
        other.release().await.unwrap();
        let guard = waits.await.unwrap().unwrap();
        assert_eq!((store.now(), guard.remaining()), (1500, of(29_698)));
        let seen = store.seen();
        let keys = |one: &crate::schedule::Command| one.request.keys()[0].to_string();
        let one_by_one: Vec<_> = seen
            .iter()
            .filter(|one| one.verb() == "acquire")
            .map(keys)
            .collect();
        assert_eq!(one_by_one, ["a", "b", "b", "b", "c"]);
        let last = seen.last().unwrap();
        let confirmed = (last.at, last.verb(), last.request.keys().len());
        assert_eq!(confirmed, (1500, "renew", 3));
        ms(11_000).await;
        assert_eq!(store.calls(), [(11_500, "renew")]);
        drop(guard);
        ms(1).await;
        assert_eq!(store.calls(), [(12_500, "release")]);
    });
}

#[test]
fn one_command_that_fails_is_followed_by_one_for_each() {
    simulated(async {
        let denied = Fate::Fails(StoreErrorKind::Denied);
        for (fate, error, undone) in [
            (DOWN, "Disconnected", false),
            (Fate::Lost, "Timeout", true),
            (Fate::Silence, "Timeout", false),
            (denied, "Denied", false),
            (Fate::Replies(988, 0), "Timeout, seen by us", true),
        ] {
            for wait in [0, 5000] {
                let (store, client) = RecordingStore::open().await;
                store.title(format!("{fate:?}, wait {wait}"));
                store.next("acquire_all", &[fate]);
                let request = client.multi_lock(["a", "b"]).lease(of(1000)).wait(of(wait));
                let answer = store.ask(wait, request.acquire()).await;
                let answer = answer.map(|guard| guard.remaining());
                ms(3000).await;
                let calls = store.calls();
                let count = |verb| calls.iter().filter(|(_, name)| *name == verb).count();
                let tries = if wait == 0 || error == "Denied" {
                    assert_eq!(short(&answer.unwrap_err()), error);
                    0
                } else {
                    assert_eq!(answer.unwrap(), of(988));
                    2
                };
                assert_eq!((count("acquire_all"), count("acquire")), (1, tries));
                // Whatever may have been carried out is undone, for each key.
                assert_eq!(count("abandon"), if undone { 2 } else { 0 });
            }
        }
    });
}

#[test]
fn replies_that_are_too_few_or_without_tokens_are_no_grant() {
    simulated(async {
        for (tokens, granted) in [
            (vec![Some(1)], false),
            (vec![Some(1), None], false),
            (vec![Some(1), Some(2)], true),
        ] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("{tokens:?}"));
            let all = tokens.iter().copied().flatten().collect::<Vec<_>>();
            store.answer(Reply::AcquireAll(AcquiredAll::granted(tokens)));
            let request = client.multi_lock(["a", "b"]).fenced().wait(of(0));
            let answer = store.ask(0, request.acquire()).await;
            let answer = answer.map(|guard| guard.fencing_tokens());
            ms(10).await;
            match answer {
                Ok(tokens) => {
                    let tokens = tokens.unwrap().into_iter().map(u64::from);
                    assert_eq!((tokens.collect::<Vec<_>>(), granted), (all, true));
                }
                Err(error) => {
                    assert_eq!(short(&error), "Refused, seen by us");
                    assert_eq!((store.when("abandon"), granted), (vec![0, 0], false));
                }
            }
        }
    });
}

#[test]
fn one_key_lost_on_the_way_starts_all_anew_after_a_pause() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        apart(&store);
        store.next("renew", &[Fate::LosesAll; 3]);
        let request = client.multi_lock(["a", "b"]).acquire();
        let guard = store.ask(WAIT, request).await.unwrap();
        // Both keys each time, after ever longer pauses.
        let each = [0, 50, 150, 350];
        assert_eq!(store.when("acquire"), each.map(|at| [at; 2]).concat());
        assert_eq!(store.now(), 350);
        drop(guard);
        // The wait may end during such a pause.
        apart(&store);
        store.set_usual("renew", Fate::LosesAll);
        let request = client.multi_lock(["a", "b"]).wait(of(200));
        let error = store.ask(200, request.acquire()).await.unwrap_err();
        assert_eq!(
            (short(&error).as_str(), store.now()),
            ("busy after 200ms", 550)
        );
    });
}

#[test]
fn a_last_command_that_fails_leaves_it_to_the_watchdog() {
    simulated(async {
        let denied = Fate::Fails(StoreErrorKind::Denied);
        for (fate, expected) in [
            (DOWN, Some(4648)),
            (Fate::Silence, Some(4148)),
            (denied, None),
        ] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("{fate:?}"));
            apart(&store);
            store.next("acquire", &[Fate::Replies(300, 0)]);
            store.next("renew", &[fate]);
            let request = client.multi_lock(["a", "b"]).lease(of(5000)).acquire();
            let answer = store.ask(WAIT, request).await;
            let left = answer.as_ref().map(|guard| guard.remaining());
            let renewals = store.when("renew").len();
            let now = store.now();
            ms(4000).await;
            if let Some(expected) = expected {
                assert_eq!(left.unwrap(), of(expected));
                assert_eq!((renewals, store.calls()), (1, vec![(now, "renew")]));
            } else {
                assert_eq!(left.map_err(short).unwrap_err(), "Denied");
                assert_eq!(store.calls(), [(now, "release"); 2]);
            }
        }
    });
}

#[test]
fn max_hold_of_several_counts_from_the_last_grant() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        apart(&store);
        store.next("acquire", &[Fate::Replies(300, 0)]);
        let request = client.multi_lock(["a", "b"]).lease(of(3000)).renew(true);
        let request = request.max_hold(of(5000)).acquire();
        let guard = store.ask(WAIT, request).await.unwrap();
        guard.lost().await;
        assert_eq!(store.now(), 300 + 4988);
        for command in store.seen() {
            if let Request::Renew(holds) = &command.request {
                assert!(of(command.at) + holds[0].lease <= of(5300), "{command}");
            }
        }
    });
}

#[test]
fn a_try_waits_for_releases_of_its_own_process_and_asks_once() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.set_usual("release", Fate::Replies(100, 0));
        let request = |wait| {
            let request = client.multi_lock(["a", "b"]).wait(of(wait));
            store.ask(wait, request.acquire())
        };
        drop(request(WAIT).await.unwrap());
        let first = [(0, "acquire_all"), (0, "release"), (100, "acquire_all")];
        let guard = request(0).await.unwrap();
        assert_eq!((store.now(), store.calls()), (100, first.to_vec()));
        drop(guard);
        let answer = request(1000).await;
        assert_eq!((store.now(), answer.is_ok()), (200, true));
    });
}

/// Replies about other locks say nothing about this one: those locks may lie on another server.
#[test]
fn a_try_asks_in_the_second_half_of_its_time_if_a_release_hangs() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let request = store.ask(WAIT, client.lock("k").acquire());
        let guard = request.await.unwrap();
        store.set_usual("release", Fate::Lost);
        drop(guard);
        ms(10).await;
        let attempt = store.ask(0, client.lock("k").try_acquire()).await;
        assert!(attempt.unwrap().is_some());
        assert_eq!(store.when("acquire"), [0, 260]);
    });
}

#[test]
fn silence_about_other_locks_is_none_about_this_one() {
    simulated(async {
        for several in [false, true] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("several {several}"));
            let _taken = store.other().await.lock("k").acquire().await.unwrap();
            let waits = tokio::spawn(store.ask(900, client.lock("k").wait(of(900)).acquire()));
            ms(100).await;
            apart(&store);
            store.next("renew", &[Fate::Silence]);
            let guard = if several {
                Some(
                    store
                        .ask(WAIT, client.multi_lock(["a", "b"]).acquire())
                        .await
                        .unwrap(),
                )
            } else {
                None
            };
            let error = waits.await.unwrap().unwrap_err();
            assert_eq!(
                (short(&error).as_str(), store.now()),
                ("busy after 900ms", 900)
            );
            drop(guard);
        }
    });
}

#[test]
fn a_lost_reply_is_undone_for_each_key_until_the_lease_has_ended() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.set_usual("abandon", Fate::Replies(0, 9));
        store.next("acquire_all", &[Fate::Lost]);
        let request = client.multi_lock(["a", "b"]).lease(of(700)).wait(of(0));
        store.ask(0, request.acquire()).await.unwrap_err();
        ms(2000).await;
        let expected = [500, 500, 550, 550, 620, 620, 690, 690, 700, 700];
        assert_eq!(store.when("abandon"), expected);
    });
}

#[test]
fn waiting_does_not_count_for_max_hold() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let other = store.other().await.lock("b").acquire().await.unwrap();
        let request = client.multi_lock(["a", "b"]).lease(of(600)).renew(true);
        let waits = tokio::spawn(store.ask(WAIT, request.max_hold(of(1000)).acquire()));
        ms(3000).await;
        other.release().await.unwrap();
        let guard = waits.await.unwrap().unwrap();
        let seen = store.seen();
        let is_first = |request: &Request| match request {
            Request::Acquire(one) => one.claim.key.to_string() == "a",
            _ => false,
        };
        let first = seen.iter().filter(|one| is_first(&one.request));
        assert_eq!(first.count(), 1, "{seen:#?}");
        guard.lost().await;
        // A second after the last grant, less the untrusted part of the last lease.
        assert_eq!(store.now(), 3996);
    });
}

#[test]
fn a_key_that_is_named_twice_is_taken_once() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let request = client.multi_lock(["b", "a", "b"]).acquire();
        let guard = store.ask(WAIT, request).await.unwrap();
        guard.release().await.unwrap();
        let seen = store.seen();
        assert!(seen.iter().all(|one| one.request.keys().len() == 2));
    });
}

#[test]
fn keys_of_which_one_is_waited_for_are_not_asked_for_at_once() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let other = store.other().await.lock("a").acquire().await.unwrap();
        let before = tokio::spawn(store.ask(WAIT, client.lock("a").acquire()));
        ms(1).await;
        let request = client.multi_lock(["a", "b"]).acquire();
        let waits = tokio::spawn(store.ask(WAIT, request));
        ms(1).await;
        other.release().await.unwrap();
        drop(before.await.unwrap());
        drop(waits.await.unwrap().unwrap());
        assert!(store.when("acquire_all").is_empty());
    });
}

#[test]
fn a_wait_for_ever_ends_when_each_of_five_rounds_has_lost_a_key() {
    simulated(async {
        for (wait, lost, answer) in [
            (None, 4, "ok"),
            (None, 5, "Timeout, seen by us"),
            (Some(60_000), 7, "ok"),
        ] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("wait {wait:?}, {lost} lost rounds"));
            apart(&store);
            for _ in 0..lost {
                store.answer(Reply::Renew(vec![Renewed::Renewed, Renewed::Gone]));
            }
            let request = client.multi_lock(["a", "b"]).lease(of(1000));
            let request = match wait {
                Some(wait) => request.wait(of(wait)),
                None => request.wait_forever(),
            };
            let ended = store.ask(wait, request.acquire()).await;
            let ended = ended.map_or_else(|error| short(&error), |_| "ok".to_owned());
            assert_eq!(ended, answer, "{wait:?}, {lost}");
            let rounds = store.when("renew").len();
            assert_eq!(rounds, if answer == "ok" { lost + 1 } else { lost });
        }
    });
}

#[test]
fn an_unanswered_command_for_all_is_undone_for_as_long_as_it_may_be_carried_out() {
    simulated(async {
        let late = |until| Fate::FailsLate(StoreErrorKind::Timeout, until);
        // What is known of the command, and when the last undo is tried: it may be carried out
        // until then, or have been and last for its lease.
        for (fate, least) in [
            (Fate::Lost, 30_000),
            (late(10), 30_000),
            (late(60_000), 60_000),
        ] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("{fate:?}"));
            store.next("acquire_all", &[fate]);
            store.set_usual("abandon", DOWN);
            let request = client.multi_lock(["a", "b"]).wait(of(0)).acquire();
            let error = store.ask(0, request).await.unwrap_err();
            assert_eq!(short(&error), "Timeout");
            ms(100_000).await;
            let last = *store.when("abandon").last().unwrap();
            assert!((least..least + 4000).contains(&last), "{fate:?}: {last}");
        }
    });
}

#[test]
fn a_release_that_finds_one_of_several_gone_says_so() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let request = client.multi_lock(["a", "b"]).acquire();
        let guard = store.ask(WAIT, request).await.unwrap();
        store.answer(Reply::Release(vec![Released::Released, Released::NotHeld]));
        assert!(guard.release().await.unwrap_err().is_lost());
        assert_eq!(client.stats().release_failures, 1);
    });
}

#[test]
fn a_last_command_that_comes_back_at_the_very_end_is_no_hold() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        apart(&store);
        store.next("renew", &[Fate::Replies(988, 0)]);
        let request = client.multi_lock(["a", "b"]).lease(of(1000)).acquire();
        let guard = store.ask(WAIT, request).await.unwrap();
        assert_eq!(store.when("acquire").len(), 4);
        drop(guard);
        ms(100).await;
    });
}

#[test]
fn the_undo_of_a_short_lease_ends_with_it_to_the_instant() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.next(
            "acquire_all",
            &[Fate::FailsLate(StoreErrorKind::Timeout, 10)],
        );
        store.set_usual("abandon", DOWN);
        let request = client.multi_lock(["a", "b"]).lease(of(350)).wait(of(0));
        store.ask(0, request.acquire()).await.unwrap_err();
        ms(3000).await;
        assert_eq!(store.when("abandon"), [0, 0, 50, 50, 150, 150, 350, 350]);
    });
}

#[test]
fn the_silence_of_a_last_command_counts_if_it_had_the_time_of_a_command() {
    simulated(async {
        // At 0 it has 500 ms. At 200, of a wait of 400, it has 300: then the silence begins with
        // the renewal at 500.
        for (wait, second, ended) in [(10_000, 0, 1100), (400, 200, 1500)] {
            let patience = |builder: LockClientBuilder| builder.unavailable_after(of(1000));
            let (store, client) = RecordingStore::open_with(patience).await;
            store.title(format!("wait {wait}"));
            apart(&store);
            store.next("acquire", &[Fate::Passes, Fate::Replies(second, 0)]);
            store.set_usual("renew", Fate::Silence);
            let request = client.multi_lock(["a", "b"]).wait(of(wait)).acquire();
            let _guard = store.ask(wait, request).await;
            store.set_usual("acquire", Fate::Silence);
            ms(100).await;
            assert_eq!(store.now(), 600);
            let request = store.ask(WAIT, client.lock("k").acquire());
            assert_eq!(short(&request.await.unwrap_err()), "Timeout");
            assert_eq!(store.now(), ended, "wait {wait}");
        }
    });
}

#[test]
fn a_try_that_waits_for_a_release_of_its_process_ends_at_a_shutdown() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let guard = store.ask(WAIT, client.lock("a").acquire()).await.unwrap();
        store.next("release", &[Fate::Silence]);
        drop(guard);
        let tries = [client.multi_lock(["a", "b"]), client.lock("a")]
            .map(|request| tokio::spawn(store.ask(0, request.wait(of(0)).acquire())));
        ms(10).await;
        let closes = tokio::spawn(async move { client.shutdown(of(0)).await });
        for one in tries {
            let error = one.await.unwrap().unwrap_err();
            assert!(matches!(error, LockError::Shutdown), "{error}");
            assert_eq!(store.now(), 10);
        }
        closes.await.unwrap();
    });
}

#[test]
fn keys_of_which_one_is_busy_or_of_another_kind_leave_nothing_to_undo() {
    simulated(async {
        for (reply, told) in [
            (AcquiredAll::Busy(1), "busy after 0ns"),
            (AcquiredAll::Conflict(1), "conflict"),
        ] {
            let (store, client) = RecordingStore::open().await;
            store.title(told);
            store.answer(Reply::AcquireAll(reply));
            let request = client.multi_lock(["a", "b"]).wait(of(0)).acquire();
            let error = store.ask(0, request).await.unwrap_err();
            assert_eq!(short(&error), told);
            ms(1000).await;
            assert!(store.when("abandon").is_empty());
        }
    });
}

#[test]
fn what_is_refused_for_several_keys_names_four_and_counts_the_others() {
    simulated(async {
        for (keys, named) in [
            (
                &["a", "b", "c", "d"][..],
                r#""a", "b", "c", "d" together: "#,
            ),
            (
                &["a", "b", "c", "d", "e"],
                r#""a", "b", "c", "d", 1 more together: "#,
            ),
        ] {
            let (store, client) = RecordingStore::open().await;
            store.next("acquire_all", &[Fate::Fails(StoreErrorKind::Denied)]);
            let request = client.multi_lock(keys.iter().copied()).acquire();
            let error = store.ask(WAIT, request).await.unwrap_err();
            let LockError::Unavailable { source, .. } = &error else {
                panic!("{error}")
            };
            assert!(source.detail().starts_with(named), "{error}");
        }
    });
}

/// The client may have connected anew before the command was sent.
#[test]
fn a_lost_command_for_all_is_undone_over_the_link_that_it_went() {
    simulated(async {
        // The keys are at link 9, and the command went over link 0.
        for (link, undone) in [(0, true), (9, false)] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("undone over link {link}"));
            store.next(
                "acquire_all",
                &[Fate::FailsLate(StoreErrorKind::Timeout, 1000)],
            );
            store.set_usual("abandon", Fate::Replies(0, link));
            let request = client.multi_lock(["a@9", "b@9"]).wait(of(0)).acquire();
            store.ask(0, request).await.unwrap_err();
            ms(2000).await;
            assert_eq!(store.when("abandon") == [0, 0], undone, "{link}");
        }
    });
}

/// Its place would stand in the store's queue, or its late grant keep the key.
#[test]
fn a_lost_reply_for_one_of_several_is_followed_by_an_undo() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let other = store.other().await.lock("b").acquire().await.unwrap();
        store.next("acquire", &[Fate::Lost]);
        let several = client.multi_lock(["a", "b"]).acquire();
        let several = tokio::spawn(store.ask(WAIT, several));
        ms(1000).await;
        other.release().await.unwrap();
        let guard = several.await.unwrap().unwrap();
        store.seen();
        // It says nothing of what may come over the link of the lost one.
        store.next("release", &[Fate::Replies(0, 9)]);
        drop(guard);
        ms(10).await;
        assert_eq!(store.calls(), [(1000, "release"), (1000, "abandon")]);
    });
}

/// It had half the time of a command: that silence says nothing about the connection.
#[test]
fn a_try_that_has_waited_for_a_release_is_not_repeated() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        store.set_usual("release", Fate::Lost);
        drop(guard);
        ms(10).await;
        store.next("acquire", &[Fate::FailsLate(StoreErrorKind::Timeout, 1000)]);
        let error = store
            .ask(0, client.lock("k").try_acquire())
            .await
            .unwrap_err();
        assert_eq!(short(&error), "Timeout");
        ms(1000).await;
        assert_eq!(store.when("acquire"), [0, 260]);
    });
}
