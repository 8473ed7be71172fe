//! One request that waits: for a holder, for its turn, or for a store that fails.

use std::pin::pin;
use std::task::Poll;

use lock_runtime::StoreErrorKind;
use lock_runtime::{LockClient, LockError};
use lock_store::{Acquired, Link, Released};

use crate::desk::{Desk, Fate, ms, of, short, simulated};

const DOWN: Fate = Fate::Fails(StoreErrorKind::Disconnected);

/// A key that another process holds.
async fn taken() -> (std::sync::Arc<Desk>, LockClient, lock_runtime::Guard) {
    let (desk, client) = Desk::open().await;
    let guard = desk.other().await.lock("k").acquire().await.unwrap();
    (desk, client, guard)
}

#[test]
fn a_waiter_looks_each_second_and_asks_for_a_sign_of_life_before_it_says_busy() {
    simulated(async {
        let mut story = Vec::new();
        let (desk, client, _guard) = taken().await;
        let error = client.lock("k").wait(of(3000)).acquire().await.unwrap_err();
        let LockError::Busy { waited, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!((*waited, desk.now()), (of(3000), 3000));
        ms(1).await;
        story.push(desk.story());
        assert_eq!(
            story,
            [
                "0 acquire k Barge 500; 0 acquire k Join 500; 1000 acquire k Join 500; 2000 acquire k Join 500; 2500 ping - 500; 3000 abandon k 500",
            ]
        );
    });
}

#[test]
fn a_try_asks_once() {
    simulated(async {
        let mut story = Vec::new();
        let (desk, client, _guard) = taken().await;
        assert!(client.lock("k").try_acquire().await.unwrap().is_none());
        let error = client.lock("k").wait(of(0)).acquire().await.unwrap_err();
        assert!(error.is_busy());
        ms(1000).await;
        story.push(desk.story());
        assert_eq!(story, ["0 acquire k Barge 500; 0 acquire k Barge 500",]);
    });
}

#[test]
fn a_silent_store_is_given_up_when_the_wait_ends() {
    simulated(async {
        let mut story = Vec::new();
        for wait in [0, 20, 460, 3000] {
            let (desk, client) = Desk::open().await;
            desk.always("acquire", Fate::Silence);
            desk.always("ping", Fate::Silence);
            let error = client.lock("k").wait(of(wait)).acquire().await.unwrap_err();
            let error = short(&error);
            story.push(format!("{wait} {} {error} {}", desk.now(), desk.story()));
        }
        assert_eq!(
            story,
            [
                "0 500 Timeout 0 acquire k Barge 500",
                "20 500 Timeout 0 acquire k Barge 500",
                "460 500 Timeout 0 acquire k Barge 500",
                "3000 3000 Timeout 0 acquire k Barge 500; 550 acquire k Join 500; 1150 acquire k Join 500; 1850 acquire k Join 500; 2750 acquire k Join 250",
            ]
        );
    });
}

#[test]
fn a_store_that_is_down_is_asked_ever_more_seldom() {
    simulated(async {
        let mut story = Vec::new();
        let (desk, client) = Desk::open().await;
        desk.always("acquire", DOWN);
        desk.always("ping", DOWN);
        let error = client.lock("k").wait(of(9000)).acquire().await.unwrap_err();
        let error = short(&error);
        story.push(format!("{} {error} {}", desk.now(), desk.story()));
        let error = client.lock("k").wait_forever().acquire().await.unwrap_err();
        let error = short(&error);
        story.push(format!("{} {error} {}", desk.now(), desk.story()));
        assert_eq!(
            story,
            [
                "9000 Disconnected 0 acquire k Barge 500; 50 acquire k Join 500; 150 acquire k Join 500; 350 acquire k Join 500; 750 acquire k Join 500; 1550 acquire k Join 500; 3150 acquire k Join 500; 5150 acquire k Join 500; 7150 acquire k Join 500",
                "19000 Disconnected 9000 acquire k Barge 500; 9050 acquire k Join 500; 9150 acquire k Join 500; 9350 acquire k Join 500; 9750 acquire k Join 500; 10550 acquire k Join 500; 12150 acquire k Join 500; 14150 acquire k Join 500; 16150 acquire k Join 500; 18150 acquire k Join 500",
            ]
        );
    });
}

#[test]
fn a_store_that_comes_back_starts_the_count_of_failures_anew() {
    simulated(async {
        let mut story = Vec::new();
        let (desk, client, guard) = taken().await;
        desk.next("acquire", &[DOWN, DOWN, Fate::Passes, DOWN, DOWN]);
        let waits = tokio::spawn(client.lock("k").wait(of(9000)).acquire());
        ms(2000).await;
        guard.release().await.unwrap();
        let guard = waits.await.unwrap().unwrap();
        story.push(format!("{} {}", desk.now(), desk.story()));
        drop(guard);
        assert_eq!(
            story,
            [
                "2000 0 acquire k Barge 500; 50 acquire k Join 500; 150 acquire k Join 500; 1150 acquire k Join 500; 1200 acquire k Join 500; 1300 acquire k Join 500",
            ]
        );
    });
}

#[test]
fn a_wait_for_ever_ends_when_a_silent_store_has_no_more_patience() {
    simulated(async {
        let (desk, client, _guard) = taken().await;
        let waits = tokio::spawn(client.lock("k").wait_forever().acquire());
        ms(5500).await;
        desk.always("acquire", Fate::Silence);
        desk.always("ping", Fate::Silence);
        let error = waits.await.unwrap().unwrap_err();
        // The last command that was answered was sent at 5,000. From 15,000 on no other could be.
        assert_eq!((desk.now(), short(&error)), (15_000, "Timeout".to_owned()));
        let expected = [
            0, 0, 1000, 2000, 3000, 4000, 5000, 6000, 6550, 7150, 7850, 8750, 10_050, 12_150,
            14_650,
        ];
        assert_eq!(desk.when("acquire"), expected);
    });
}

#[test]
fn a_store_that_refuses_every_acquire_is_not_called_busy() {
    simulated(async {
        let mut story = Vec::new();
        let (desk, client, _guard) = taken().await;
        desk.always("acquire", Fate::Fails(StoreErrorKind::OutOfMemory));
        let first = tokio::spawn(client.lock("k").wait(of(3000)).acquire());
        let second = tokio::spawn(client.lock("k").wait(of(3000)).acquire());
        let third = tokio::spawn(client.lock("k").wait(of(3000)).fair().acquire());
        for waits in [first, second, third] {
            let error = waits.await.unwrap().unwrap_err();
            let error = short(&error);
            story.push(format!("{} {error}", desk.now()));
        }
        story.push(desk.story());
        assert_eq!(
            story,
            [
                "3000 OutOfMemory",
                "3000 OutOfMemory",
                "3000 OutOfMemory",
                "0 acquire k Barge 500; 0 acquire k Join 500; 50 acquire k Join 500; 50 acquire k Join 500; 150 acquire k Join 500; 150 acquire k Join 500; 350 acquire k Join 500; 350 acquire k Join 500; 750 acquire k Join 500; 750 acquire k Join 500; 1550 acquire k Join 500; 1550 acquire k Join 500",
            ]
        );
    });
}

#[test]
fn what_waiting_does_not_change_is_told_at_once() {
    simulated(async {
        let mut story = Vec::new();
        let (desk, client) = Desk::open().await;
        desk.next("acquire", &[Fate::Fails(StoreErrorKind::Denied)]);
        let error = client.lock("k").acquire().await.unwrap_err();
        let error = short(&error);
        story.push(format!("{} {error} {}", desk.now(), desk.story()));
        assert_eq!(story, ["0 Denied 0 acquire k Barge 500",]);
    });
}

#[test]
fn a_hand_over_is_trusted_at_once_or_asked_about() {
    simulated(async {
        let mut story = Vec::new();
        for (fenced, token, after) in [
            (false, None, 100),
            (true, Some(5), 100),
            (true, None, 100),
            (false, None, 990),
        ] {
            let (desk, client, _guard) = taken().await;
            let request = client.lock("k").wait(of(9000));
            let request = if fenced { request.fenced() } else { request };
            let waits = tokio::spawn(request.acquire());
            ms(after).await;
            desk.seen();
            desk.tell_granted(0, token);
            ms(300).await;
            story.push(format!(
                "{fenced} {token:?} {after} {} {}",
                waits.is_finished(),
                desk.story()
            ));
            waits.abort();
            ms(1).await;
        }
        assert_eq!(
            story,
            [
                "false None 100 true 335 renew k 30000 500",
                "true Some(5) 100 true 335 renew k 30000 500",
                "true None 100 false 100 acquire k Join 500 +1",
                "false None 990 true 1114 renew k 30000 288",
            ]
        );
    });
}

#[test]
fn a_grant_that_is_heard_over_another_link_than_the_last_reply_is_not_believed() {
    simulated(async {
        let (desk, client, _guard) = taken().await;
        let waits = tokio::spawn(client.lock("k").wait(of(9000)).acquire());
        ms(100).await;
        desk.seen();
        desk.tell_granted_over(Link(7), 0, None);
        ms(50).await;
        assert_eq!((waits.is_finished(), desk.story()), (false, String::new()));
        desk.tell_granted(0, None);
        ms(50).await;
        assert!(waits.is_finished());
    });
}

#[test]
fn a_grant_is_counted_from_the_newest_change_that_was_confirmed_before_it_over_its_link() {
    simulated(async {
        let mut story = Vec::new();
        for (look, released) in [
            (Fate::Passes, None),
            (Fate::Replies(0, 7), None),
            (Fate::Replies(700, 0), None),
            (Fate::Replies(0, 7), Some(Released::Released)),
            // A replica says that, too.
            (Fate::Replies(0, 7), Some(Released::NotHeld)),
        ] {
            let (desk, client, _guard) = taken().await;
            desk.next("acquire", &[Fate::Passes, Fate::Passes, Fate::Passes, look]);
            let other = client.lock("other").acquire().await.unwrap();
            // The first looks again after a second, the second does not.
            let first = client.lock("k").fair().wait(of(9000));
            let first = tokio::spawn(first.acquire());
            ms(1).await;
            let mut second = pin!(client.lock("k").fair().wait(of(9000)).acquire());
            let mut once = std::future::poll_fn(|cx| Poll::Ready(second.as_mut().poll(cx)));
            assert!((&mut once).await.is_pending());
            ms(1199).await;
            if let Some(released) = released {
                desk.says.lock().unwrap().released.push_back(released);
                let _ = other.release().await;
            }
            ms(450).await;
            desk.tell_granted(2, None);
            // It wakes after what is heard later still.
            ms(70).await;
            desk.seen();
            let remaining = match once.await {
                Poll::Ready(guard) => Some(guard.unwrap().remaining()),
                Poll::Pending => None,
            };
            story.push(format!(
                "{look:?} {released:?} {remaining:?} {}",
                desk.story()
            ));
            first.abort();
            ms(1).await;
        }
        assert_eq!(
            story,
            [
                "Passes None Some(1.258s) ",
                "Replies(0, 7) None None 1720 acquire k Join 500",
                "Replies(700, 0) None None 1720 acquire k Join 500",
                "Replies(0, 7) Some(Released) Some(1.458s) ",
                "Replies(0, 7) Some(NotHeld) None 1720 acquire k Join 500",
            ]
        );
    });
}

#[test]
fn one_request_of_a_process_asks_for_all_unless_they_are_fair() {
    simulated(async {
        let mut story = Vec::new();
        for fair in [false, true] {
            let (desk, client, guard) = taken().await;
            let mut waiting = Vec::new();
            for _ in 0..3 {
                let request = client.lock("k").wait(of(9000));
                let request = if fair { request.fair() } else { request };
                waiting.push(tokio::spawn(request.acquire()));
                ms(10).await;
            }
            ms(1500).await;
            story.push(format!("{fair} {}", desk.story()));
            desk.listener.lock().unwrap().as_ref().unwrap().recheck();
            ms(1).await;
            story.push(format!("look again {}", desk.story()));
            guard.release().await.unwrap();
            for waits in waiting {
                waits.await.unwrap().unwrap().release().await.unwrap();
            }
            story.push(format!("end {}", desk.story()));
        }
        assert_eq!(
            story,
            [
                "false 0 acquire k Barge 500; 0 acquire k Join 500; 1000 acquire k Join 500",
                "look again 1530 acquire k Join 500",
                "end 1531 release k 0 500",
                "true 0 acquire k Join 500; 10 acquire k Join 500; 20 acquire k Join 500; 1000 acquire k Join 500",
                "look again 1530 acquire k Join 500; 1530 acquire k Join 500; 1530 acquire k Join 500",
                "end 1531 release k 0 500; 1531 release k 0 500; 1531 release k 0 500",
            ]
        );
    });
}

#[test]
fn a_grant_that_comes_after_its_lease_is_not_trusted() {
    simulated(async {
        let mut story = Vec::new();
        for wait in [0, 5000] {
            let (desk, client) = Desk::open().await;
            desk.next("acquire", &[Fate::Replies(989, 0)]);
            let request = client.lock("k").lease(of(1000)).wait(of(wait));
            let answer = request.acquire().await;
            story.push(format!(
                "{} {:?} {}",
                desk.now(),
                answer
                    .map(|guard| guard.remaining())
                    .map_err(|error| short(&error)),
                desk.story()
            ));
        }
        assert_eq!(
            story,
            [
                "989 Err(\"Timeout, seen by us\") 0 acquire k Barge 500",
                "1039 Ok(988ms) 0 acquire k Barge 500; 1039 acquire k Join 500",
            ]
        );
    });
}

#[test]
fn a_fenced_grant_without_a_token_is_no_grant() {
    simulated(async {
        let mut story = Vec::new();
        let (desk, client) = Desk::open().await;
        desk.says
            .lock()
            .unwrap()
            .acquired
            .push_back(Acquired::Granted { token: None });
        let guard = client.lock("k").fenced().acquire().await.unwrap();
        story.push(format!(
            "{} {:?} {}",
            desk.now(),
            guard.fencing_token().is_some(),
            desk.story()
        ));
        assert_eq!(
            story,
            ["50 true 0 acquire k Barge 500 +1; 50 acquire k Join 500 +1",]
        );
    });
}

#[test]
fn a_sign_of_life_that_fails_is_not_asked_for_again_and_again() {
    simulated(async {
        let (desk, client, _guard) = taken().await;
        desk.always("ping", DOWN);
        let error = client.lock("k").wait(of(3000)).acquire().await.unwrap_err();
        assert_eq!((desk.now(), short(&error)), (3000, "Disconnected".into()));
        assert_eq!(desk.when("ping"), [2500]);
    });
}

#[test]
fn a_wait_for_ever_is_not_ended_by_a_store_that_answers_something() {
    simulated(async {
        let (desk, client, guard) = taken().await;
        let waits = tokio::spawn(client.lock("k").wait_forever().acquire());
        ms(60_000).await;
        assert_eq!(desk.when("ping"), []);
        guard.release().await.unwrap();
        drop(waits.await.unwrap().unwrap());
    });
}

#[test]
fn what_is_heard_while_a_command_is_under_way_is_looked_into() {
    simulated(async {
        let (desk, client, _guard) = taken().await;
        desk.next("acquire", &[Fate::Passes, Fate::Replies(100, 0)]);
        let waits = tokio::spawn(client.lock("k").acquire());
        ms(50).await;
        let listener = desk.listener.lock().unwrap().clone().unwrap();
        listener.recheck();
        ms(60).await;
        assert_eq!(desk.when("acquire"), [0, 0, 100]);
        waits.abort();
    });
}
