//! Who holds a key, by name.

use lock_runtime::{HeldBy, LockClientBuilder, LockError, StoreErrorKind};
use lock_store::{Acquired, Busy};
use lock_testkit_core::store_decorator::Reply;

use crate::fates::Fate;
use crate::recording_store::{RecordingStore, WAIT, ms, of, simulated};

#[test]
fn a_question_that_comes_twice_is_answered_once() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let _one = store.ask(0, client.lock("one").wait(of(0)).acquire()).await;
        ms(1000).await;
        let _two = store.ask(0, client.lock("two").wait(of(0)).acquire()).await;
        store.seen();
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
            (1000, "says that this holds one for Some(1s), within 250"),
            (1099, "says that this holds two for Some(99ms), within 250"),
            (
                1099,
                "says that this holds one for Some(1.099s), within 250",
            ),
            (
                1199,
                "says that this holds one for Some(1.199s), within 250",
            ),
        ];
        assert_eq!(
            store.noted("says"),
            said.map(|(at, text)| (at, text.to_owned()))
        );
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
            (Fate::Lost, 0),
            (Fate::Fails(StoreErrorKind::Denied), 250),
        ] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("{fate:?}"));
            let _held = store.other().await.lock("k").acquire().await.unwrap();
            store.next("tell", &[fate]);
            let found = client.inspect("k").await.unwrap().held_by.unwrap();
            assert_eq!(store.now(), waits, "{fate:?}");
            assert_eq!(named(&found), matches!(fate, Fate::Passes), "{found:?}");
            let is_gone = matches!(found, HeldBy::Disconnected);
            assert_eq!(is_gone, matches!(fate, Fate::Lost), "{found:?}");
            // It is not asked again within a second.
            drop(client.inspect("k").await.unwrap());
            assert_eq!(store.noted("asks").len(), 1);
        }
    });
}

#[test]
fn a_busy_request_knows_that_its_own_client_has_the_key() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let _guard = store.ask(0, client.lock("k").wait(of(0)).acquire()).await;
        for key in ["k", "l"] {
            store.answer(Reply::Acquire(Acquired::Busy(Busy::new(None, false))));
            let request = client.lock(key).wait(of(0)).acquire();
            let error = store.ask(0, request).await.unwrap_err();
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

/// Only a hold that another task of the client may be passed is known by its key.
#[test]
fn a_busy_request_takes_no_hold_for_its_clients_that_is_never_handed_off() {
    simulated(async {
        for handoffs in [0, 4] {
            let settings = |builder: LockClientBuilder| builder.local_tenure(handoffs, of(10));
            let (store, client) = RecordingStore::open_with(settings).await;
            store.title(format!("at most {handoffs} handoffs"));
            let _permit = match handoffs {
                0 => store.ask(0, client.lock("k").wait(of(0)).acquire()).await,
                _ => {
                    let permit = client.semaphore("k", 2).permit();
                    store.ask(0, permit.wait(of(0)).acquire()).await
                }
            };
            store.answer(Reply::Acquire(Acquired::Busy(Busy::new(None, false))));
            let request = client.lock("k").wait(of(0)).acquire();
            let error = store.ask(0, request).await.unwrap_err();
            let LockError::Busy { held_by, .. } = error else {
                panic!("{error}");
            };
            assert!(matches!(held_by, HeldBy::Unknown), "{held_by:?}");
        }
    });
}

#[test]
fn of_several_holds_the_longest_is_told() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let permit = || store.ask(WAIT, client.semaphore("s", 2).permit().acquire());
        let _first = permit().await.unwrap();
        ms(300).await;
        let _second = permit().await.unwrap();
        ms(200).await;
        store.is_asked_who_holds("s");
        ms(1).await;
        let says = store.noted("says");
        assert_eq!(
            says[0].1,
            "says that this holds s for Some(500ms), within 250"
        );
    });
}

#[test]
fn a_semaphore_of_which_others_say_another_number_is_told_of_once() {
    simulated(async {
        // By the last number this client finds no permit free.
        for (ours, others) in [(2, 1), (2, 3), (1, 3)] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("{ours}, and others say {others}"));
            let other = store.other().await;
            let _held = other
                .semaphore("s", others)
                .permit()
                .acquire()
                .await
                .unwrap();
            for _ in 0..2 {
                let request = client.semaphore("s", ours).permit().wait(of(0)).acquire();
                drop(store.ask(0, request).await);
                ms(10).await;
            }
            let logged = store.noted("log: others have another number");
            assert_eq!(logged.len(), 1, "{logged:?}");
            assert!(
                logged[0]
                    .1
                    .contains(&format!("ours={ours}, theirs={others}")),
                "{logged:?}"
            );
        }
    });
}

#[test]
fn a_client_that_goes_does_not_wait_for_its_answer_to_another() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.next("tell", &[Fate::Replies(250, 0)]);
        store.is_asked_who_holds("k");
        ms(1).await;
        assert_eq!(store.noted("says").len(), 1);
        drop(client);
        store.let_go();
        ms(1000).await;
        let ends = store.noted("the store is closed");
        assert_eq!(ends, [(1, "the store is closed".to_owned())]);
    });
}
