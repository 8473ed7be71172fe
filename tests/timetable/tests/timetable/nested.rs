//! Requests inside of a hold of their own call chain.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use lock_runtime::{KeyKind, LockClientBuilder, LockError, StoreErrorKind};
use lock_store::Fenced;
use lock_testkit_core::store_decorator::Reply;

use crate::fates::{DOWN, Fate};
use crate::recording_store::{RecordingStore, WAIT, ms, of, short, simulated};

#[test]
fn the_first_that_wants_a_token_asks_for_it_until_its_wait_ends() {
    simulated(async {
        for (fates, expected) in [
            (vec![DOWN, DOWN], "ok 150"),
            (vec![DOWN; 9], "Disconnected 350"),
            (vec![Fate::Silence; 9], "Timeout 500"),
            (vec![Fate::Fails(StoreErrorKind::Denied)], "Denied 0"),
        ] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("{} times {:?}", fates.len(), fates[0]));
            store.next("fence", &fates);
            let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
            let inner = store.ask(400, client.lock("k").fenced().wait(of(400)).acquire());
            let answer = guard.scope(inner).await;
            let what = answer.map_or_else(
                |error| short(&error),
                |guard| {
                    if guard.fencing_token().is_some() {
                        "ok"
                    } else {
                        "none"
                    }
                    .to_owned()
                },
            );
            assert_eq!(format!("{what} {}", store.now()), expected);
        }
    });
}

#[test]
fn a_hold_that_is_gone_has_no_token() {
    simulated(async {
        for (reply, expected) in [(Fenced::Gone, "lost, Gone"), (Fenced::Conflict, "conflict")] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("{reply:?}"));
            store.answer(Reply::Fence(reply));
            let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
            let inner = store.ask(WAIT, client.lock("k").fenced().acquire());
            let error = guard.scope(inner).await.unwrap_err();
            assert_eq!(short(&error), expected);
            let is_held = reply == Fenced::Conflict;
            assert_eq!(guard.is_held(), is_held);
            assert_eq!(client.stats().lost, u64::from(!is_held));
        }
    });
}

/// Also inside of a hold on several keys, of which another is the first.
#[test]
fn a_nested_request_that_fails_names_the_key_that_it_asked_for() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let both = client.multi_lock(["a", "b"]).lease(of(1000)).acquire();
        let guard = store.ask(WAIT, both).await.unwrap();
        let lock = || client.lock("b").wait(of(300)).acquire();
        let body = async {
            let _first = store.ask(WAIT, lock()).await.unwrap();
            let busy = store.ask(300, lock()).await.unwrap_err();
            assert_eq!(busy.key().map(|key| key.as_str()), Some("b"), "{busy}");
            ms(1000).await;
            let lost = store.ask(300, lock()).await.unwrap_err();
            assert_eq!(lost.key().map(|key| key.as_str()), Some("b"), "{lost}");
            assert_eq!(short(&busy), "busy after 300ms");
            assert_eq!(short(&lost), "lost, Expired");
        };
        guard.scope(body).await;
    });
}

#[test]
fn siblings_wait_for_each_other_and_no_longer_than_they_may() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        store.seen();
        let body = async {
            let first = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
            let error = store
                .ask(300, client.lock("k").wait(of(300)).acquire())
                .await
                .unwrap_err();
            assert_eq!(
                (short(&error).as_str(), store.now()),
                ("busy after 300ms", 300)
            );
            let second = store.ask(WAIT, client.lock("k").acquire());
            let (second, ()) = tokio::join!(second, async {
                ms(100).await;
                drop(first);
            });
            assert_eq!(store.now(), 400);
            drop(second.unwrap());
        };
        guard.scope(body).await;
        assert_eq!(store.calls(), []);
    });
}

#[test]
fn a_shutdown_ends_the_wait_for_a_sibling() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        let body = async {
            let first = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
            let (second, ()) = tokio::join!(store.ask(WAIT, client.lock("k").acquire()), async {
                ms(100).await;
                // It does not wait for the holds of its own call chain.
                client.shutdown(of(50)).await;
            });
            assert!(matches!(second, Err(lock_runtime::LockError::Shutdown)));
            drop(first);
        };
        guard.scope(body).await;
        assert_eq!(store.now(), 100);
        assert!(guard.is_held());
        ms(60_000).await;
        assert!(guard.is_held());
        assert!(store.noted("the store is closed").is_empty());
        guard.release().await.unwrap();
        ms(10).await;
        assert_eq!(store.noted("the store is closed").len(), 1);
    });
}

#[test]
fn a_loss_ends_the_wait_for_a_sibling() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let request = client.lock("k").lease(of(1000)).renew(false);
        let guard = store.ask(WAIT, request.acquire()).await.unwrap();
        let body = async {
            let first = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
            let error = store
                .ask(WAIT, client.lock("k").acquire())
                .await
                .unwrap_err();
            assert_eq!(short(&error), "lost, Expired");
            drop(first);
        };
        guard.scope(body).await;
        assert_eq!(store.now(), 988);
    });
}

#[test]
fn a_token_that_was_reserved_is_used_before_one_is_asked_for() {
    simulated(async {
        let settings = |builder: LockClientBuilder| builder.local_tenure(8, of(60_000));
        let (store, client) = RecordingStore::open_with(settings).await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        let fenced = tokio::spawn(store.ask(WAIT, client.lock("k").fenced().acquire()));
        ms(1).await;
        // It waits behind a fenced one, so that one's grant reserves several.
        let plain = tokio::spawn(store.ask(WAIT, client.lock("k").acquire()));
        ms(1).await;
        guard.release().await.unwrap();
        let guard = fenced.await.unwrap().unwrap();
        let first = u64::from(guard.fencing_token().unwrap());
        store.seen();
        guard.release().await.unwrap();
        let guard = plain.await.unwrap().unwrap();
        assert!(guard.fencing_token().is_none());
        let inner = guard.scope(store.ask(WAIT, client.lock("k").fenced().acquire()));
        let inner = inner.await.unwrap();
        assert!(u64::from(inner.fencing_token().unwrap()) > first);
        assert!(store.when("fence").is_empty());
        ms(0).await;
    });
}

#[test]
fn a_request_that_the_hold_can_never_serve_waits_for_no_sibling() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        let body = async {
            let _sibling = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
            let request = client.rw_lock("k").read().wait(of(300)).acquire();
            let error = store.ask(300, request).await.unwrap_err();
            assert_eq!((short(&error).as_str(), store.now()), ("conflict", 0));
        };
        guard.scope(body).await;
    });
}

#[test]
fn a_conflict_inside_of_a_hold_says_what_kind_of_lock_it_is() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let writer = store.ask(WAIT, client.rw_lock("k").write().acquire());
        let permit = store.ask(WAIT, client.semaphore("l", 2).permit().acquire());
        let (writer, permit) = (writer.await.unwrap(), permit.await.unwrap());
        for (guard, kind) in [(writer, KeyKind::ReadWrite), (permit, KeyKind::Semaphore)] {
            let inner = store.ask(WAIT, client.lock(guard.key().clone()).acquire());
            match guard.scope(inner).await {
                Err(LockError::KeyConflict { found, .. }) => assert_eq!(found, kind),
                other => panic!("{other:?}"),
            }
        }
    });
}

/// A writer would wait for ever while readers come and go.
#[test]
fn a_reader_inside_does_not_overtake_a_writer_that_waits() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let lock = client.rw_lock("k");
        let guard = store.ask(WAIT, lock.write().acquire()).await.unwrap();
        let body = async {
            let first = store.ask(WAIT, lock.read().acquire()).await.unwrap();
            let writer = async {
                let _writer = store.ask(WAIT, lock.write().acquire()).await.unwrap();
                ms(100).await;
                store.now()
            };
            let reader = async {
                ms(10).await;
                let _reader = store.ask(WAIT, lock.read().acquire()).await.unwrap();
                store.now()
            };
            let ends = async {
                ms(50).await;
                drop(first);
            };
            let (written, read, ()) = tokio::join!(writer, reader, ends);
            assert_eq!((written, read), (150, 150));
        };
        guard.scope(body).await;
    });
}

/// It would be refused for ever after two nested requests have met once.
#[test]
fn a_writer_can_be_downgraded_after_a_wait_inside() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let ask = || store.ask(WAIT, client.rw_lock("k").write().acquire());
        let guard = ask().await.unwrap();
        let body = async {
            let first = ask().await.unwrap();
            let (second, ()) = tokio::join!(ask(), async {
                ms(100).await;
                drop(first);
            });
            drop(second.unwrap());
        };
        guard.scope(body).await;
        guard.downgrade().await.unwrap();
    });
}

/// A body would go on without the lock.
#[test]
fn who_shares_a_hold_hears_at_once_that_the_outer_guard_has_ended() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        let inner = guard.scope(store.ask(WAIT, client.lock("k").acquire()));
        let inner = inner.await.unwrap();
        let hears = tokio::spawn(async move { inner.lost().await });
        ms(10).await;
        assert!(!hears.is_finished());
        drop(guard);
        ms(10).await;
        assert!(hears.is_finished());
    });
}

/// Others would wait for a guard that is gone.
#[test]
fn a_share_is_given_back_though_a_guard_inside_of_it_is_still_there() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let ask = || store.ask(WAIT, client.lock("k").acquire());
        let guard = ask().await.unwrap();
        let middle = guard.scope(ask()).await.unwrap();
        let inner = middle.scope(ask()).await.unwrap();
        drop(middle);
        assert!(!inner.is_held());
        drop(guard.scope(ask()).await.unwrap());
        assert_eq!(store.now(), 0);
    });
}

/// A sibling would run beside a body that was lent the share.
#[test]
fn a_share_is_given_back_after_the_outermost_poll_of_a_body_inside_of_it() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let ask = || store.ask(WAIT, client.lock("k").acquire());
        let guard = ask().await.unwrap();
        let middle = guard.scope(ask()).await.unwrap();
        let inner = middle.scope(ask()).await.unwrap();
        let body = async {
            inner.scope(async { drop(middle) }).await;
            let mut sibling = pin!(guard.scope(ask()));
            let once = poll_fn(|cx| Poll::Ready(sibling.as_mut().poll(cx)));
            assert!(once.await.is_pending());
            drop(sibling.await.unwrap());
        };
        inner.scope(body).await;
        assert_eq!(store.now(), 0);
    });
}

/// The patrol must not take it for one that nobody polls.
#[test]
fn who_waits_for_ever_for_a_sibling_keeps_its_turn() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        let body = async {
            let first = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
            let second = async {
                let request = client.lock("k").wait_forever().acquire();
                let _second = store.ask(None, request).await.unwrap();
                ms(10).await;
                store.now()
            };
            let third = async {
                ms(1).await;
                let _third = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
                store.now()
            };
            let ends = async {
                ms(3000).await;
                drop(first);
            };
            let (second, third, ()) = tokio::join!(second, third, ends);
            assert_eq!((second, third), (3010, 3010));
        };
        guard.scope(body).await;
    });
}

/// Its guard would be of no worth from the beginning.
#[test]
fn a_token_that_comes_when_the_hold_ends_comes_too_late() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let request = client.lock("k").lease(of(1000)).renew(false);
        let guard = store.ask(WAIT, request.acquire()).await.unwrap();
        let body = async {
            ms(900).await;
            store.next("fence", &[Fate::Replies(88, 0)]);
            let inner = store.ask(WAIT, client.lock("k").fenced().acquire());
            assert_eq!(short(&inner.await.unwrap_err()), "lost, Expired");
        };
        guard.scope(body).await;
        assert_eq!(store.now(), 988);
    });
}

/// It is not to be waited for: another client's hold keeps no store open.
#[test]
fn a_shutdown_inside_of_another_clients_hold_ends_when_the_store_is_closed() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let other = store.other().await;
        let guard = other.lock("k").acquire().await.unwrap();
        guard.scope(client.shutdown(of(50))).await;
        assert_eq!(store.noted("the store is closed").len(), 1);
        assert!(guard.is_held());
    });
}
