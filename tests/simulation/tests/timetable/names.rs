//! Who holds a key, by name.

use lock_runtime::{HeldBy, LockError, StoreErrorKind};
use lock_store::{Acquired, Busy};
use lock_testkit::store_decorator::Reply;

use crate::fates::Fate;
use crate::recording_store::{RecordingStore, ms, of, simulated};

#[test]
fn a_question_that_comes_twice_is_answered_once() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let _one = store
            .asks(0, client.lock("one").wait(of(0)).acquire())
            .await;
        ms(1000).await;
        let _two = store
            .asks(0, client.lock("two").wait(of(0)).acquire())
            .await;
        store.told();
        for (key, after) in [
            ("one", 0),
            ("one", 99),
            ("two", 0),
            ("one", 0),
            ("one", 100),
        ] {
            ms(after).await;
            store.is_asked_who_holds(key);
            ms(0).await;
        }
        ms(1).await;
        let said = [
            (1000, "says that this holds one for Some(1s)"),
            (1099, "says that this holds two for Some(99ms)"),
            (1099, "says that this holds one for Some(1.099s)"),
            (1199, "says that this holds one for Some(1.199s)"),
        ];
        assert_eq!(store.told(), said.map(|(at, text)| (at, text.to_owned())));
    });
}

#[test]
fn who_inspects_a_key_waits_a_moment_for_the_name_of_its_holder() {
    simulated(async {
        let named =
            |held_by: &HeldBy| matches!(held_by, HeldBy::Client { name, .. } if &**name == "other");
        for (fate, waits) in [
            (Fate::Passes, 0),
            (Fate::Silence, 250),
            (Fate::Fails(StoreErrorKind::Denied), 250),
        ] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("{fate:?}"));
            let _held = store.other().await.lock("k").acquire().await.unwrap();
            store.next("tell", &[fate]);
            let found = client.inspect("k").await.unwrap().held_by.unwrap();
            assert_eq!(store.now(), waits, "{fate:?}");
            assert_eq!(named(&found), waits == 0, "{found:?}");
            assert!(
                named(&found) || matches!(found, HeldBy::AnotherClient),
                "{found:?}"
            );
            // It is not asked again within a second.
            drop(client.inspect("k").await.unwrap());
            assert_eq!(store.told().len(), 1);
        }
    });
}

#[test]
fn a_busy_request_knows_that_its_own_client_has_the_key() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let _guard = store.asks(0, client.lock("k").wait(of(0)).acquire()).await;
        for key in ["k", "l"] {
            store.answers(Reply::Acquire(Acquired::Busy(Busy::new(None, false))));
            let request = client.lock(key).wait(of(0)).acquire();
            let error = store.asks(0, request).await.unwrap_err();
            let LockError::Busy { held_by, .. } = error else {
                panic!("{error}");
            };
            assert_eq!(
                matches!(held_by, HeldBy::ThisClient),
                key == "k",
                "{held_by:?}"
            );
        }
    });
}
