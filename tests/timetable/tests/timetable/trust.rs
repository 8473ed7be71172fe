//! Stores that say for themselves how far their replies are to be trusted, and when to ask again.

use std::sync::Arc;

use lock_runtime::{Guard, LockClient, LockClientBuilder, LockError, Rate};
use lock_store::{
    Ability, Acquired, AcquiredAll, Busy, Capabilities, Granted, Holder, Renewed, StoreErrorKind,
    Trust,
};
use lock_testkit_core::runtime_now;
use lock_testkit_core::store_decorator::Reply;

use crate::fates::{DOWN, Fate};
use crate::recording_store::{RecordingStore, WAIT, ms, of, simulated};

/// A grant that can be trusted for so long.
fn granted_for(milliseconds: u64) -> Reply {
    let mut granted = Granted::new(None, 0);
    granted.until = Some(runtime_now() + of(milliseconds));
    Reply::Acquire(Acquired::Granted(granted))
}

#[test]
fn a_grant_is_trusted_for_as_long_as_the_store_says() {
    simulated(async {
        for (allowed, trusted) in [(600, 600), (60_000, 2968)] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("{allowed} ms of 3000"));
            store.answer(granted_for(allowed));
            let request = client.lock("k").lease(of(3000)).acquire();
            let guard = store.ask(10_000, request).await.unwrap();
            assert_eq!(guard.remaining(), of(trusted));
            store.set_usual("renew", DOWN);
            ms(trusted - 1).await;
            assert!(guard.is_held());
            ms(1).await;
            assert!(!guard.is_held());
        }
    });
}

/// And for no more than the rest.
#[test]
fn the_rest_of_a_fixed_lease_that_is_trusted_for_less_is_asked_for() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.answer(granted_for(600));
        let request = client.lock("k").lease(of(3000)).acquire();
        let guard = store.ask(10_000, request).await.unwrap();
        store.answer(Reply::Renew(vec![Renewed::Until(runtime_now() + of(1100))]));
        ms(201).await;
        assert_eq!(guard.remaining(), of(899));
        store.answer(Reply::Renew(vec![Renewed::Renewed]));
        ms(300).await;
        assert_eq!(store.when("renew"), [200, 500]);
        // 2500 ms from then on, less what is never trusted of a lease.
        assert_eq!(guard.remaining(), of(2472));
        ms(2471).await;
        assert!(guard.is_held());
        ms(1).await;
        assert!(!guard.is_held());
        assert!(store.when("renew").is_empty());
    });
}

#[test]
fn a_hold_that_is_trusted_for_less_is_renewed_sooner() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.answer(granted_for(600));
        let guard = store.ask(10_000, client.lock("k").acquire());
        let guard = guard.await.unwrap();
        store.answer(Reply::Renew(vec![Renewed::Until(runtime_now() + of(1100))]));
        ms(201).await;
        assert_eq!(store.when("renew"), [200]);
        assert_eq!(guard.remaining(), of(899));
        store.answer(Reply::Renew(vec![Renewed::Renewed]));
        ms(300).await;
        assert_eq!(store.when("renew"), [500]);
        assert_eq!(guard.remaining(), of(29_697));
    });
}

#[test]
fn a_store_that_tells_of_no_release_says_when_to_ask() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        for _ in 0..3 {
            let mut busy = Busy::new(None, true);
            busy.look_in = Some(of(70));
            store.answer(Reply::Acquire(Acquired::Busy(busy)));
        }
        let request = store.ask(10_000, client.lock("k").acquire());
        drop(request.await.unwrap());
        // A key that is taken is asked for once more, with a place in the queue.
        assert_eq!(store.when("acquire"), [0, 0, 70, 140]);
    });
}

/// It knows how its other clients take turns.
#[test]
fn a_foreign_holder_s_key_is_looked_at_often_unless_the_store_says_when() {
    simulated(async {
        for look_in in [None, Some(70)] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("look in {look_in:?}"));
            for _ in 0..2 {
                let mut busy = Busy::new(None, true);
                busy.holder = Some(Holder::Foreign(7));
                busy.look_in = look_in.map(of);
                store.answer(Reply::Acquire(Acquired::Busy(busy)));
            }
            let request = store.ask(10_000, client.lock("k").acquire());
            drop(request.await.unwrap());
            let asked = store.when("acquire");
            match look_in {
                Some(look_in) => assert_eq!(asked, [0, 0, look_in]),
                None => assert!(matches!(asked[..], [0, 0, 1..50]), "{asked:?}"),
            }
        }
    });
}

#[test]
fn the_message_of_a_hand_over_is_believed_as_far_as_it_says() {
    simulated(async {
        let until = |milliseconds| Trust::Until(runtime_now() + of(milliseconds));
        for (name, trust, left, asks) in [
            ("until then", until(1300), Some(999), 0),
            ("too short to begin with", until(700), None, 1),
            ("not at all", Trust::Ask(lock_store::Link(0)), None, 1),
        ] {
            let (store, client) = RecordingStore::open().await;
            store.title(name);
            let held = store.other().await.lock("k").acquire().await.unwrap();
            let waiting = tokio::spawn(store.ask(10_000, client.lock("k").acquire()));
            ms(300).await;
            store.seen();
            store.notify_granted_with(trust, 1, None);
            ms(1).await;
            assert_eq!(store.when("acquire").len(), asks, "{name}");
            if let Some(left) = left {
                let guard = waiting.await.unwrap().unwrap();
                assert_eq!(guard.remaining(), of(left), "{name}");
            }
            drop(held);
        }
    });
}

#[test]
fn a_late_command_is_undone_for_as_long_as_the_store_says() {
    simulated(async {
        for (late, undone_until) in [(None, 30_000), (Some(of(2000)), 2000)] {
            let (store, client) =
                RecordingStore::open_as(|can| can.carried_out_within = late).await;
            store.title(format!("{late:?}"));
            store.next("acquire", &[Fate::Lost]);
            store.set_usual("abandon", Fate::Replies(0, 9));
            let request = client.lock("k").wait(of(0)).acquire();
            let error: LockError = store.ask(0, request).await.unwrap_err();
            assert!(error.is_unavailable());
            ms(40_000).await;
            assert_eq!(store.when("abandon").last(), Some(&undone_until));
        }
    });
}

#[test]
fn what_a_store_lacks_is_refused_with_its_reason() {
    simulated(async {
        let lacks = |what: &str| Ability::no(format!("no {what} here"));
        let (store, client) = RecordingStore::open_as(|can| {
            can.shares = lacks("shares");
            can.fair = lacks("order");
            can.fencing = lacks("tokens");
            can.rate = lacks("rates");
            can.latch = lacks("latches");
            can.leases.range = of(1000)..=of(60_000);
            can.leases.advice = "ask for another".into();
        })
        .await;
        let asked = [
            (client.rw_lock("k").read(), "no shares here"),
            (client.lock("k").fair(), "no order here"),
            (client.lock("k").fenced(), "no tokens here"),
            (
                client.lock("k").lease(of(999)),
                "at least 1s: ask for another",
            ),
            (
                client.lock("k").lease(of(60_001)),
                "at most 60s: ask for another",
            ),
            (client.lock("k").hold_at_least(of(60_001)), "at most 60s"),
        ];
        for (request, says) in asked {
            let error = store.ask(10_000, request.acquire()).await.unwrap_err();
            assert!(matches!(error, LockError::Config { .. }), "{error}");
            assert!(error.to_string().contains(says), "{error}");
        }
        let latch = client.latch("k").count().await.unwrap_err();
        assert!(latch.to_string().contains("no latches here"), "{latch}");
        let request = client.lock("k").hold_at_least(of(1)).acquire();
        let guard = store.ask(10_000, request).await.unwrap();
        let token = guard.extend(of(60_001)).await.unwrap_err();
        assert!(token.to_string().contains("at most 60s"), "{token}");
        assert_eq!(store.calls(), [(0, "acquire")]);
    });
}

/// One that reserves one token only: each hand-over to a fenced request goes through it.
#[test]
fn a_grant_says_how_many_tokens_it_has_reserved() {
    simulated(async {
        for (reserved, commands) in [(1, 2), (65, 1)] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("{reserved} reserved"));
            let request = || store.ask(10_000, client.lock("k").fenced().acquire());
            let first = tokio::spawn(request());
            let second = tokio::spawn(request());
            let granted = Granted::new(Some(7), reserved);
            store.answer(Reply::Acquire(Acquired::Granted(granted)));
            let guard = first.await.unwrap().unwrap();
            ms(1).await;
            drop(guard);
            let guard = second.await.unwrap();
            if commands == 1 {
                assert_eq!(guard.unwrap().fencing_token().map(u64::from), Some(8));
            }
            assert_eq!(store.when("acquire").len(), commands);
        }
    });
}

#[test]
fn a_failure_knows_when_its_command_is_over() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.next(
            "acquire",
            &[Fate::FailsLate(StoreErrorKind::Disconnected, 1500)],
        );
        let request = client.lock("k").wait(of(0)).acquire();
        store.set_usual("abandon", Fate::Replies(0, 9));
        assert!(store.ask(0, request).await.unwrap_err().is_unavailable());
        ms(40_000).await;
        assert_eq!(store.when("abandon").last(), Some(&1500));
    });
}

#[test]
fn an_acquire_has_the_time_of_its_request_where_slow_is_not_silent() {
    simulated(async {
        let mut can = Capabilities::all();
        can.tells_slow = true;
        let settings = |builder: LockClientBuilder| builder.command_timeout(of(50));
        let (store, client) = RecordingStore::open_both(settings, can).await;
        let _guard = store.other().await.lock("k").acquire().await.unwrap();
        let request = client.lock("k").wait(of(400)).acquire();
        store.ask(400, request).await.unwrap_err();
        let seen = store.seen().into_iter();
        let acquires = seen.filter(|command| command.verb() == "acquire");
        let acquires: Vec<_> = acquires.map(|it| (it.at, it.within)).collect();
        assert_eq!(acquires, [(0, 400), (0, 400)]);
    });
}

/// What each request for this key is told.
async fn told(client: &LockClient, key: &str) -> Vec<LockError> {
    let (latch, keys) = (client.latch(key), [key.to_owned(), "b".to_owned()]);
    let rate = Rate::per_second(1);
    let answers = [
        client.lock(key).acquire().await.map(drop),
        client.lock(key).wait(of(0)).acquire().await.map(drop),
        client.multi_lock(keys.clone()).acquire().await.map(drop),
        client.inspect(key).await.map(drop),
        client.force_release(key).await.map(drop),
        latch.set(1).await.map(drop),
        latch.count_down().await.map(drop),
        latch.count().await.map(drop),
        latch.wait(of(10)).await,
        latch.wait(of(0)).await,
        client.rate_limiter(key, rate).acquire().await.map(drop),
    ];
    answers.map(Result::unwrap_err).into()
}

#[test]
fn a_bad_key_is_refused_by_every_request_without_a_command() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        for error in told(&client, &"k".repeat(2000)).await {
            assert!(matches!(error, LockError::InvalidKey { .. }), "{error:?}");
        }
        assert_eq!(store.calls(), []);
    });
}

#[test]
fn after_a_shutdown_every_request_is_refused_without_a_command() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        client.shutdown(of(0)).await;
        for error in told(&client, "k").await {
            assert!(matches!(error, LockError::Shutdown), "{error:?}");
        }
        assert!(matches!(client.health().await, Err(LockError::Shutdown)));
        assert_eq!(store.calls(), []);
    });
}

#[test]
fn every_call_on_a_latch_and_a_rate_is_refused_by_a_store_without_them() {
    simulated(async {
        let lacks = || Ability::no("not here");
        let (store, client) = RecordingStore::open_as(|can| {
            (can.rate, can.latch) = (lacks(), lacks());
        })
        .await;
        let latch = client.latch("k");
        let rate = Rate::per_second(1);
        let answers = [
            latch.set(1).await.map(drop),
            latch.count_down().await.map(drop),
            latch.count().await.map(drop),
            latch.wait(of(10)).await,
            client.rate_limiter("k", rate).acquire().await.map(drop),
        ];
        for answer in answers {
            let text = answer.unwrap_err().to_string();
            assert!(text.contains("not here"), "{text}");
        }
        assert_eq!(store.calls(), []);
    });
}

/// What the store has said last was said now: asserted after each of these.
macro_rules! each_is_a_sign_of_life {
    ($client:ident: $($what:expr),* $(,)?) => {
        $(
            ms(10).await;
            {
                let _ended = $what;
            }
            let since = $client.stats().since_last_answer;
            assert_eq!(since, Some(of(0)), "{}", stringify!($what));
        )*
    };
}

#[test]
fn every_answer_is_a_sign_of_life() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let calls = async {
            let lock = client.lock("k").renew(false);
            let held = client.lock("h").fenced().acquire().await.unwrap();
            let written = client.rw_lock("w").write().acquire().await.unwrap();
            let latch = client.latch("l");
            let limiter = client.rate_limiter("r", Rate::per_second(100));
            each_is_a_sign_of_life! { client:
                lock.clone().acquire().await.unwrap(),
                lock.clone().wait(of(0)).acquire().await.unwrap(),
                lock.clone().acquire().await.unwrap().release().await.unwrap(),
                client.multi_lock(["a", "b"]).acquire().await.unwrap().release().await.unwrap(),
                std::mem::ManuallyDrop::new(client.multi_lock(["c", "d"]).acquire().await.unwrap()),
                held.extend(of(30_000)).await.unwrap(),
            {
                store.answer(Reply::AcquireAll(AcquiredAll::Apart));
                store.next("acquire", &[Fate::Passes, Fate::Replies(5, 0)]);
                client.multi_lock(["e", "f"]).acquire().await.unwrap()
            },
                client.inspect("h").await.unwrap(),
                client.force_release("nobody").await.unwrap(),
                client.health().await.unwrap(),
                latch.set(1).await.unwrap(),
                latch.count().await.unwrap(),
                latch.count_down().await.unwrap(),
                latch.wait(of(100)).await.unwrap(),
                limiter.acquire().await.unwrap(),
                written.downgrade().await.unwrap(),
            }
            Ok(())
        };
        store.ask(WAIT, calls).await.unwrap();
    });
}

#[test]
fn that_keys_are_apart_was_not_asked_of_anybody() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        ms(10).await;
        store.answer(Reply::AcquireAll(AcquiredAll::Apart));
        store.set_usual("acquire", DOWN);
        let request = client.multi_lock(["a", "b"]).wait(of(300)).acquire();
        assert!(store.ask(300, request).await.unwrap_err().is_unavailable());
        assert_eq!(client.stats().since_last_answer, None);
    });
}

/// The first task has a lease that the store allows to trust for so long, and releases it `after`
/// a moment. The store then, and what the next task has, which asks for the lease `next`.
async fn passed_on(
    (lease, allows): (u64, u64),
    after: u64,
    next: u64,
    renew: bool,
) -> (Arc<RecordingStore>, Guard) {
    let settings = |builder: LockClientBuilder| builder.local_tenure(4, of(60_000));
    let (store, client) = RecordingStore::open_with(settings).await;
    store.title(format!("{allows} of {lease}, next {next}, renew {renew}"));
    store.answer(granted_for(allows));
    let guard = store.ask(WAIT, client.lock("k").lease(of(lease)).acquire());
    let guard = guard.await.unwrap();
    let request = client.lock("k").lease(of(next)).renew(renew).acquire();
    let waits = tokio::spawn(store.ask(WAIT, request));
    ms(after).await;
    store.seen();
    guard.release().await.unwrap();
    let guard = waits.await.unwrap().unwrap();
    (store, guard)
}

/// Else each hand-over inside the process would cost a command, and would be renewed too late.
#[test]
fn a_hold_that_is_trusted_for_less_is_handed_off_and_renewed_sooner() {
    simulated(async {
        let (store, guard) = passed_on((30_000, 600), 1, 30_000, true).await;
        assert_eq!((store.calls(), guard.remaining()), (vec![], of(599)));
        ms(250).await;
        assert_eq!(store.when("renew"), [200]);
    });
}

/// After a crash the key would stay taken for longer than the one that has it asked for.
#[test]
fn a_hold_that_the_store_keeps_for_longer_than_it_is_trusted_is_handed_off_by_its_lease() {
    simulated(async {
        let (store, _guard) = passed_on((30_000, 600), 1, 1000, true).await;
        assert_eq!(store.when("acquire"), [1]);
    });
}

#[test]
fn a_store_that_allows_the_whole_lease_sets_no_limit_to_the_next_one() {
    simulated(async {
        // Of 30 s, 29,698 ms are trusted in any case: less than half of what is of 60 s.
        for (allows, asks) in [(29_697, vec![]), (29_698, vec![1])] {
            let (store, guard) = passed_on((30_000, allows), 1, 60_000, true).await;
            assert_eq!(store.when("acquire"), asks, "{allows}");
            drop(guard);
            ms(1).await;
        }
    });
}

/// There is no rest to ask for.
#[test]
fn a_fixed_lease_that_the_store_allows_to_trust_wholly_is_handed_off_and_not_renewed() {
    simulated(async {
        // Of 9,900 ms, 9,799 are trusted.
        let (store, guard) = passed_on((9950, 9799), 50, 9900, false).await;
        ms(9000).await;
        assert_eq!((store.calls(), guard.is_held()), (vec![], true));
    });
}

/// Else its user would hear so from the store, or not at all.
#[test]
fn a_store_that_keeps_read_write_locks_for_less_refuses_them_and_no_others() {
    simulated(async {
        let (store, client) = RecordingStore::open_as(|can| {
            can.read_write_lease = Some((of(5000), "ask for less".into()));
        })
        .await;
        let (long, short) = (of(5001), of(5000));
        let (lock, permit) = (|| client.lock("k"), || client.semaphore("s", 1).permit());
        let refused = [
            client.rw_lock("r").read().lease(long),
            client.rw_lock("r").write().lease(long),
            client.rw_lock("r").read().lease(short).hold_at_least(long),
        ];
        for request in refused {
            let error = store.ask(WAIT, request.acquire()).await.unwrap_err();
            assert!(
                error.to_string().contains("at most 5s: ask for less"),
                "{error}"
            );
        }
        assert_eq!(store.calls(), []);
        let granted = [
            client.rw_lock("r").read().lease(short).hold_at_least(short),
            lock().lease(long),
            client.lock("l").lease(short).hold_at_least(long),
            permit().lease(long),
            client
                .semaphore("t", 1)
                .permit()
                .lease(short)
                .hold_at_least(long),
        ];
        for request in granted {
            let guard = store.ask(WAIT, request.acquire()).await;
            guard.unwrap().release().await.unwrap();
        }
    });
}

#[test]
fn more_keys_than_the_store_takes_at_once_are_refused_without_a_command() {
    simulated(async {
        let (store, client) = RecordingStore::open_as(|can| can.most_keys = Some(2)).await;
        let request = client.multi_lock(["a", "b", "c"]).acquire();
        let error = store.ask(WAIT, request).await.unwrap_err();
        assert!(error.to_string().contains("takes 2 at most"), "{error}");
        assert_eq!(store.calls(), []);
        let request = client.multi_lock(["a", "b", "a"]).acquire();
        store
            .ask(WAIT, request)
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
    });
}
