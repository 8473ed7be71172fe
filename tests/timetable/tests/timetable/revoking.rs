//! A lock that is taken from its holders in good order: when they are asked to stop, when the store
//! is looked at, and what is said of each.

use lock_runtime::{LockClient, LockError, Revocation, WhyHeld};
use lock_store::{
    ClientId, ClientMessage, FoundHolder, LockKey, Owner, RevokeAnswer, StoreErrorKind,
};
use lock_testkit_core::store_decorator::Reply;
use tokio::task::JoinHandle;

use crate::fates::{DOWN, Fate};
use crate::recording_store::{RecordingStore, ms, of, short, simulated};

/// A hold of a client that the test speaks for.
const THEIRS: Owner = Owner::new(ClientId(99), 1);

fn owner(kept: bool) -> FoundHolder {
    FoundHolder::Owner {
        owner: THEIRS,
        kept,
        permits: None,
    }
}

fn foreign(text: &str) -> FoundHolder {
    FoundHolder::Foreign(text.to_owned())
}

/// What it says to a demand.
fn answers(answer: RevokeAnswer) -> ClientMessage {
    ClientMessage::Revoking {
        key: LockKey::from("k"),
        owner: THEIRS,
        name: Box::from("theirs"),
        answer,
    }
}

/// What another client says who wants the end of this hold.
fn demand(owner: Owner) -> ClientMessage {
    ClientMessage::Revoke {
        key: LockKey::from("k"),
        asker: ClientId(99),
        owner,
        only: None,
    }
}

fn revoke(client: &LockClient, timeout: u64) -> JoinHandle<Result<Revocation, LockError>> {
    let request = client.revoke("k", of(timeout));
    tokio::spawn(async move { request.await })
}

/// Bodies of another client, each under a permit of its own.
async fn run_permits(store: &RecordingStore, all: u32) -> Vec<JoinHandle<Result<(), LockError>>> {
    let semaphore = store.other().await.semaphore("k", all);
    let run = |_| tokio::spawn(semaphore.permit().run(std::future::pending()));
    let bodies = (0..all).map(run).collect();
    ms(100).await;
    bodies
}

/// Otherwise a lost message would leave the lock with its holder, or a revocation would keep the
/// store and the holder busy, or notice late that all is done.
#[test]
fn a_demand_is_sent_again_after_a_second_and_the_store_is_looked_at_soon_after_its_answer() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let body = store
            .other()
            .await
            .lock("k")
            .run(std::future::pending::<()>());
        let body = tokio::spawn(body);
        ms(100).await;
        store.next("tell", &[Fate::Lost]);
        let revoked = client.revoke("k", of(60_000)).await.unwrap();
        assert!(revoked.is_complete(), "{revoked}");
        assert_eq!(revoked.released, 1);
        let looks = vec![100, 110, 130, 170, 250, 410, 660, 910, 1160, 1170];
        let demands = vec![100, 1160];
        assert_eq!(store.when_both("holders", "demands"), (looks, demands));
        let lost = body.await.unwrap().unwrap_err();
        assert_eq!(short(&lost), "lost, Revoked");
    });
}

/// Otherwise a revocation would take a message's time for each holder, and tell of holds that have
/// ended meanwhile.
#[test]
fn all_holders_are_asked_at_once_and_looked_at_after_slow_messages() {
    simulated(async {
        for (timeout, ends) in [(0, 410), (50, 410), (400, 400)] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("within {timeout}"));
            let bodies = run_permits(&store, 2).await;
            store.next("tell", &[Fate::Replies(400, 0); 2]);
            let revoked = client.revoke("k", of(timeout)).await.unwrap();
            assert_eq!(store.now(), 100 + ends);
            let (looks, demands) = store.when_both("holders", "demands");
            assert_eq!((looks, demands), (vec![100, 100 + ends], vec![100; 2]));
            match timeout {
                // They were told, and had no time.
                400 => assert_eq!((revoked.released, revoked.left.len()), (0, 2)),
                _ => assert_eq!((revoked.released, revoked.left.len()), (2, 0)),
            }
            for body in bodies {
                body.await.unwrap().unwrap_err();
            }
        }
    });
}

/// A process may have all permits of a large semaphore.
#[test]
fn a_client_with_many_holds_is_told_of_each_at_once() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let bodies = run_permits(&store, 70).await;
        let revoked = client.revoke("k", of(500)).await.unwrap();
        assert_eq!((revoked.released, revoked.left.len()), (70, 0));
        assert_eq!(store.when("holders"), [100, 110]);
        for body in bodies {
            body.await.unwrap().unwrap_err();
        }
    });
}

/// The next look may be a quarter of a second away.
#[test]
fn what_a_holder_says_while_another_is_told_is_heard() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let bodies = run_permits(&store, 2).await;
        let slow = Fate::FailsLate(StoreErrorKind::Timeout, 100);
        store.next("tell", &[Fate::Lost, Fate::Lost, Fate::Passes, slow]);
        let revoked = client.revoke("k", of(60_000)).await.unwrap();
        assert_eq!(revoked.released, 2);
        let (looks, demands) = store.when_both("holders", "demands");
        assert_eq!(demands, [100, 100, 1160, 1160, 2270]);
        assert_eq!(looks[7..], [910, 1160, 1270, 1520, 1770, 2020, 2270, 2280]);
        for body in bodies {
            body.await.unwrap().unwrap_err();
        }
    });
}

/// Its grant may be on its way to it, so a hold that it does not know today may run tomorrow. Who
/// has said that it stops was heard, however long it takes.
#[test]
fn who_does_not_have_the_hold_yet_is_asked_again_and_who_stops_is_not() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        for _ in 0..20 {
            store.answer(Reply::Holders(Some(vec![owner(false)])));
        }
        let revoked = revoke(&client, 2500);
        ms(5).await;
        store.hears(answers(RevokeAnswer::HasNone));
        // A message may come twice. The look after it is a second after the demand.
        ms(985).await;
        store.hears(answers(RevokeAnswer::HasNone));
        ms(15).await;
        store.hears(answers(RevokeAnswer::Stops));
        let revoked = revoked.await.unwrap().unwrap();
        assert_eq!(store.now(), 2500);
        let (_, demands) = store.when_both("holders", "demands");
        assert_eq!(demands, [0, 1000]);
        assert_eq!((revoked.released, revoked.left.len()), (0, 1));
        assert_eq!(revoked.left[0].why, WhyHeld::Running);
        assert_eq!(revoked.left[0].client.as_deref(), Some("theirs"));
    });
}

#[test]
fn a_revocation_looks_for_the_last_time_when_its_timeout_is_over() {
    simulated(async {
        // After the timeout nobody is told again, either.
        let long = vec![0, 10, 30, 70, 150, 310, 560, 810, 1000];
        for (timeout, looks) in [(0, vec![0]), (50, vec![0, 10, 30, 50]), (1000, long)] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("within {timeout}"));
            let _held = store.other().await.lock("k").acquire().await.unwrap();
            store.next("tell", &[Fate::Lost]);
            // One look more would fail, and the revocation with it.
            store.next("holders", &vec![Fate::Passes; looks.len()]);
            store.set_usual("holders", DOWN);
            let revoked = client.revoke("k", of(timeout)).await.unwrap();
            assert_eq!(store.now(), timeout);
            assert_eq!(store.when("holders"), looks);
            assert_eq!((revoked.released, revoked.left.len()), (0, 1));
            assert_eq!(revoked.left[0].why, WhyHeld::NoAnswer);
        }
    });
}

/// A short failure of the store does not end a revocation. And nobody is told that the holders are
/// still there if nobody could look.
#[test]
fn a_look_that_fails_is_repeated_and_the_last_one_fails_the_revocation() {
    simulated(async {
        for (fails, looks) in [(1, vec![0, 10, 30]), (3, vec![0, 10, 30, 50])] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("{fails} looks fail"));
            let held = store.other().await.lock("k").acquire().await.unwrap();
            let mut fates = vec![Fate::Passes];
            fates.resize(1 + fails, DOWN);
            store.next("holders", &fates);
            let revoked = revoke(&client, 50);
            ms(5).await;
            drop(held);
            let revoked = revoked.await.unwrap().map_err(|error| short(&error));
            let released = revoked.map(|revoked| (revoked.released, revoked.is_complete()));
            match fails {
                1 => assert_eq!(released, Ok((1, true))),
                _ => assert_eq!(released, Err("Disconnected".to_owned())),
            }
            assert_eq!(store.when("holders"), looks);
        }
    });
}

/// Its client may be gone by now. Then nobody may say that it was told.
#[test]
fn what_a_holder_said_to_an_earlier_revocation_does_not_count() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let _held = store.other().await.lock("k").acquire().await.unwrap();
        store.next("tell", &[Fate::Passes, Fate::Lost, Fate::Passes]);
        for why in [WhyHeld::Running, WhyHeld::NoAnswer, WhyHeld::Running] {
            let revoked = client.revoke("k", of(20)).await.unwrap();
            assert_eq!(revoked.left[0].why, why, "{revoked}");
            assert_eq!(store.noted("demands").len(), 1, "{revoked}");
        }
    });
}

#[test]
fn a_holder_of_another_library_is_known_again_by_what_it_wrote() {
    simulated(async {
        for (then, released, left) in [("one", 1, 1), ("other", 2, 0)] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("then {then}"));
            store.answer(Reply::Holders(Some(vec![foreign("one"), owner(false)])));
            store.answer(Reply::Holders(Some(vec![foreign(then)])));
            let revoked = client.revoke("k", of(1000)).await.unwrap();
            assert_eq!((revoked.released, revoked.left.len()), (released, left));
            assert!(revoked.left.iter().all(|one| one.why == WhyHeld::Foreign));
        }
    });
}

/// Who takes a permit from one client by its name wants to know of nobody else.
#[test]
fn a_revocation_by_name_does_not_tell_of_what_nobody_runs_under() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        for (only, left) in [(None, 2), (Some("theirs"), 0)] {
            store.answer(Reply::Holders(Some(vec![foreign("one"), owner(true)])));
            let mut request = client.revoke("k", of(1000));
            if let Some(only) = only {
                request = request.held_by(only);
            }
            let revoked = request.await.unwrap();
            assert_eq!((revoked.released, revoked.left.len()), (0, left));
        }
        assert_eq!(store.now(), 0);
        assert_eq!(store.when_both("holders", "demands"), (vec![0, 0], vec![]));
    });
}

/// It may be the one that was meant.
#[test]
fn a_revocation_by_name_tells_of_who_did_not_answer() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let _held = store.other().await.lock("k").acquire().await.unwrap();
        store.next("tell", &[Fate::Lost]);
        let revoked = client.revoke("k", of(50)).held_by("other");
        let revoked = revoked.await.unwrap();
        assert_eq!((revoked.released, revoked.left.len()), (0, 1));
        assert_eq!(revoked.left[0].why, WhyHeld::NoAnswer);
    });
}

#[test]
fn nothing_is_asked_for_a_key_that_is_none_or_after_a_shutdown() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let error = client.revoke("", of(50)).await.unwrap_err();
        assert!(matches!(error, LockError::InvalidKey { .. }), "{error}");
        assert_eq!(store.calls(), []);
        client.shutdown(of(0)).await;
        store.seen();
        let error = client.revoke("k", of(50)).await.unwrap_err();
        assert!(matches!(error, LockError::Shutdown), "{error}");
        assert_eq!(store.calls(), []);
    });
}

/// An operator sees it at once, and not when its body ends at last.
#[test]
fn a_hold_that_was_revoked_counts_as_lost_while_its_body_still_runs() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let guard = store.ask(0, client.lock("k").wait(of(0)).acquire());
        let guard = guard.await.unwrap();
        let owner = store.seen()[0].request.claims().next().unwrap().owner;
        store.hears(demand(owner));
        ms(1).await;
        let answer = "answers a demand for k with Stops, within 500";
        assert_eq!(store.noted("answers"), [(0, answer.to_owned())]);
        assert!(!guard.is_held());
        assert_eq!(client.stats().lost, 1);
        drop(guard);
        ms(10).await;
        assert_eq!(client.stats().lost, 1);
    });
}

#[test]
fn a_client_that_goes_does_not_wait_for_its_answer_to_a_demand() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.next("tell", &[Fate::Replies(250, 0)]);
        store.hears(demand(THEIRS));
        ms(1).await;
        assert_eq!(store.noted("answers").len(), 1);
        drop(client);
        store.let_go();
        ms(1000).await;
        let ends = store.noted("the store is closed");
        assert_eq!(ends, [(1, "the store is closed".to_owned())]);
    });
}
