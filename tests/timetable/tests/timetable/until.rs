//! Stores that say until when what they grant can be trusted.

use lock_runtime::LockError;
use lock_store::Renewed;
use lock_testkit_core::runtime_now;
use lock_testkit_core::store_decorator::Reply;

use crate::fates::Fate;
use crate::recording_store::{RecordingStore, WAIT, ms, of, simulated};

#[test]
fn of_several_keys_the_one_that_is_trusted_least_counts_at_each_renewal() {
    simulated(async {
        for ends in [[3500, 3200], [3200, 3500]] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("{ends:?}"));
            let several = client.multi_lock(["k", "l"]).lease(of(3000)).renew(true);
            let guard = store.ask(WAIT, several.acquire()).await.unwrap();
            let until = |at: u64| Renewed::Until(runtime_now() + of(at));
            store.answer(Reply::Renew(ends.map(until).to_vec()));
            ms(1001).await;
            assert_eq!(store.when("renew"), [1000]);
            assert_eq!(guard.remaining(), of(3200 - 1001));
        }
    });
}

#[test]
fn of_several_keys_that_were_had_one_by_one_the_one_that_is_trusted_least_counts() {
    simulated(async {
        for ends in [[1000, 800], [800, 1000]] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("{ends:?}"));
            let other = store.other().await.lock("l").acquire().await.unwrap();
            let until = |at: u64| Renewed::Until(runtime_now() + of(at));
            store.answer(Reply::Renew(ends.map(until).to_vec()));
            let several = client.multi_lock(["k", "l"]).lease(of(3000)).renew(true);
            let waits = tokio::spawn(store.ask(WAIT, several.acquire()));
            store.set_usual("renew", Fate::Silence);
            store.next("renew", &[Fate::Passes]);
            ms(200).await;
            other.release().await.unwrap();
            let guard = waits.await.unwrap().unwrap();
            guard.lost().await;
            assert_eq!(store.now(), 800);
        }
    });
}

/// One of several is trusted for less, and another is not answered.
#[test]
fn what_is_said_of_one_counts_although_another_is_not_answered() {
    simulated(async {
        for (title, replied_at, ends_at) in [
            ("renewed", 1000, 1800),
            ("extended", 1000, 1800),
            ("had one by one", 200, 1000),
        ] {
            for at in [0, 1] {
                let (store, client) = RecordingStore::open().await;
                store.title(format!("{title}, {at}"));
                let several = client.multi_lock(["k", "l"]).lease(of(3000)).renew(true);
                let other = match title {
                    "had one by one" => Some(store.other().await.lock("l").acquire().await),
                    _ => None,
                };
                let mut replies = vec![Renewed::Unanswered; 2];
                replies[at] = Renewed::Until(runtime_now() + of(ends_at));
                store.answer(Reply::Renew(replies));
                store.set_usual("renew", Fate::Silence);
                store.next("renew", &[Fate::Passes]);
                let waits = tokio::spawn(store.ask(WAIT, several.acquire()));
                ms(replied_at - 100).await;
                if let Some(other) = other {
                    ms(100).await;
                    other.unwrap().release().await.unwrap();
                }
                let guard = waits.await.unwrap().unwrap();
                if title == "extended" {
                    let refused = guard.extend(of(3000)).await.unwrap_err();
                    assert!(matches!(refused, LockError::Unavailable { .. }));
                    assert_eq!(guard.remaining(), of(ends_at - store.now()));
                    ms(2).await;
                    assert_eq!(store.when("renew").len(), 2, "it asks again at once");
                }
                guard.lost().await;
                assert_eq!(store.now(), ends_at);
            }
        }
    });
}

/// Nobody else asks for more of a lease that is not renewed.
#[test]
fn the_rest_of_a_fixed_lease_is_asked_for_after_an_extension_without_an_answer() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let several = client.multi_lock(["k", "l"]).lease(of(10_000));
        let guard = store.ask(WAIT, several.acquire()).await.unwrap();
        ms(100).await;
        let until = Renewed::Until(runtime_now() + of(1000));
        store.answer(Reply::Renew(vec![until, Renewed::Unanswered]));
        guard.extend(of(10_000)).await.unwrap_err();
        assert_eq!(guard.remaining(), of(1000));
        ms(5000).await;
        assert!(guard.is_held());
    });
}

#[test]
fn an_extension_that_is_trusted_for_less_is_renewed_in_time() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        ms(2000).await;
        store.answer(Reply::Renew(vec![Renewed::Until(runtime_now() + of(3000))]));
        guard.extend(of(30_000)).await.unwrap();
        assert_eq!(guard.remaining(), of(3000));
        store.seen();
        ms(100_000).await;
        assert!(guard.is_held());
        assert_eq!(store.when("renew")[0], 3000);
    });
}

#[test]
fn a_fixed_lease_that_was_extended_is_asked_for_to_its_new_end() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let request = client.lock("k").lease(of(3000)).acquire();
        let guard = store.ask(WAIT, request).await.unwrap();
        store.answer(Reply::Renew(vec![Renewed::Until(runtime_now() + of(1100))]));
        guard.extend(of(10_000)).await.unwrap();
        assert_eq!(guard.remaining(), of(1100));
        guard.lost().await;
        assert!((9900..10_000).contains(&store.now()), "{}", store.now());
    });
}

/// The store was asked for less than a renewal asks for.
#[test]
fn a_short_extension_is_followed_by_a_renewal_at_a_third_of_it() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        ms(2000).await;
        guard.extend(of(3000)).await.unwrap();
        ms(1100).await;
        assert_eq!(store.when("renew"), [2000, 3000]);
    });
}

/// The store would be asked for each handoff instead.
#[test]
fn what_is_trusted_for_less_since_its_renewal_is_handed_off_and_renewed_in_time() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        store.answer(Reply::Renew(vec![Renewed::Until(runtime_now() + of(3000))]));
        guard.extend(of(30_000)).await.unwrap();
        let next = tokio::spawn(store.ask(WAIT, client.lock("k").acquire()));
        ms(1).await;
        store.seen();
        guard.release().await.unwrap();
        let guard = next.await.unwrap().unwrap();
        assert_eq!(guard.remaining(), of(2999));
        ms(1000).await;
        assert_eq!(store.calls(), [(1000, "renew")]);
    });
}
