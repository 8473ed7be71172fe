//! Requests inside of a hold of their own call chain.

use lock_runtime::StoreErrorKind;
use lock_store::Fenced;

use crate::desk::{Desk, Fate, ms, of, short, simulated};

const DOWN: Fate = Fate::Fails(StoreErrorKind::Disconnected);

#[test]
fn the_first_that_wants_a_token_asks_for_it_until_its_wait_ends() {
    simulated(async {
        for (fates, expected) in [
            (vec![DOWN, DOWN], "ok 150"),
            (vec![DOWN; 9], "Disconnected 350"),
            (vec![Fate::Silence; 9], "Timeout 500"),
            (vec![Fate::Fails(StoreErrorKind::Denied)], "Denied 0"),
        ] {
            let (desk, client) = Desk::open().await;
            desk.next("fence", &fates);
            let guard = client.lock("k").acquire().await.unwrap();
            let inner = client.lock("k").fenced().wait(of(400)).acquire();
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
            assert_eq!(format!("{what} {}", desk.now()), expected);
        }
    });
}

#[test]
fn a_hold_that_is_gone_has_no_token() {
    simulated(async {
        for (reply, expected) in [(Fenced::Gone, "lost, Gone"), (Fenced::Conflict, "conflict")] {
            let (desk, client) = Desk::open().await;
            desk.says.lock().unwrap().fenced.push_back(reply);
            let guard = client.lock("k").acquire().await.unwrap();
            let inner = client.lock("k").fenced().acquire();
            let error = guard.scope(inner).await.unwrap_err();
            assert_eq!(short(&error), expected);
            assert_eq!(guard.is_held(), reply == Fenced::Conflict);
        }
    });
}

#[test]
fn siblings_wait_for_each_other_and_no_longer_than_they_may() {
    simulated(async {
        let (desk, client) = Desk::open().await;
        let guard = client.lock("k").acquire().await.unwrap();
        desk.seen();
        let body = async {
            let first = client.lock("k").acquire().await.unwrap();
            let error = client.lock("k").wait(of(300)).acquire().await.unwrap_err();
            assert_eq!(
                (short(&error).as_str(), desk.now()),
                ("busy after 300ms", 300)
            );
            let second = client.lock("k").acquire();
            let (second, ()) = tokio::join!(second, async {
                ms(100).await;
                drop(first);
            });
            assert_eq!(desk.now(), 400);
            drop(second.unwrap());
        };
        guard.scope(body).await;
        assert_eq!(desk.story(), "");
    });
}

#[test]
fn a_shutdown_ends_the_wait_for_a_sibling() {
    simulated(async {
        let (desk, client) = Desk::open().await;
        let guard = client.lock("k").acquire().await.unwrap();
        let body = async {
            let first = client.lock("k").acquire().await.unwrap();
            let (second, ()) = tokio::join!(client.lock("k").acquire(), async {
                ms(100).await;
                client.shutdown(of(50)).await;
            });
            assert!(matches!(second, Err(lock_runtime::LockError::Shutdown)));
            drop(first);
        };
        guard.scope(body).await;
        assert_eq!(desk.now(), 150);
    });
}

#[test]
fn a_loss_ends_the_wait_for_a_sibling() {
    simulated(async {
        let (desk, client) = Desk::open().await;
        let request = client.lock("k").lease(of(1000)).renew(false);
        let guard = request.acquire().await.unwrap();
        let body = async {
            let first = client.lock("k").acquire().await.unwrap();
            let error = client.lock("k").acquire().await.unwrap_err();
            assert_eq!(short(&error), "lost, Expired");
            drop(first);
        };
        guard.scope(body).await;
        assert_eq!(desk.now(), 988);
    });
}
