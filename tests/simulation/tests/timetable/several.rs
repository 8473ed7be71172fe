//! Several locks at once.

use lock_runtime::StoreErrorKind;
use lock_store::AcquiredAll;

use crate::desk::{Desk, Fate, ms, of, short, simulated};

const DOWN: Fate = Fate::Fails(StoreErrorKind::Disconnected);

#[test]
fn free_keys_are_had_renewed_and_released_together() {
    simulated(async {
        let mut story = Vec::new();
        let (desk, client) = Desk::open().await;
        let guard = client.multi_lock(["b", "a"]).acquire().await.unwrap();
        ms(25_000).await;
        guard.release().await.unwrap();
        story.push(desk.story());
        assert_eq!(
            story,
            [
                "0 acquire_all a,b 500; 10000 renew a,b 30000 500; 20000 renew a,b 30000 500; 25000 release a,b 0 500",
            ]
        );
    });
}

#[test]
fn taken_keys_are_had_one_after_the_other_and_then_confirmed() {
    simulated(async {
        let mut story = Vec::new();
        let (desk, client) = Desk::open().await;
        let other = desk.other().await.lock("b").acquire().await.unwrap();
        let waits = tokio::spawn(client.multi_lock(["a", "b", "c"]).acquire());
        ms(1500).await;
        other.release().await.unwrap();
        let guard = waits.await.unwrap().unwrap();
        story.push(format!(
            "{} {:?} {}",
            desk.now(),
            guard.remaining(),
            desk.story()
        ));
        ms(11_000).await;
        story.push(format!("later {}", desk.story()));
        drop(guard);
        ms(1).await;
        story.push(format!("end {}", desk.story()));
        assert_eq!(
            story,
            [
                "1500 29.698s 0 acquire_all a,b,c 500; 0 acquire a Barge 500; 0 acquire b Barge 500; 0 acquire b Join 500; 1000 acquire b Join 500; 1500 acquire c Barge 500; 1500 renew a,b,c 30000 500",
                "later 11500 renew a,b,c 30000 500",
                "end 12500 release a,b,c 0 500",
            ]
        );
    });
}

#[test]
fn one_command_that_fails_is_followed_by_one_for_each() {
    simulated(async {
        let mut story = Vec::new();
        for fate in [
            DOWN,
            Fate::Lost,
            Fate::Silence,
            Fate::Fails(StoreErrorKind::Denied),
            Fate::Replies(990, 0),
        ] {
            for wait in [0, 5000] {
                let (desk, client) = Desk::open().await;
                desk.next("acquire_all", &[fate]);
                let request = client.multi_lock(["a", "b"]).lease(of(1000)).wait(of(wait));
                let answer = request
                    .acquire()
                    .await
                    .map(|guard| guard.remaining())
                    .map_err(|error| short(&error));
                ms(3000).await;
                story.push(format!("{fate:?} {wait} {answer:?} {}", desk.story()));
            }
        }
        assert_eq!(
            story,
            [
                "Fails(Disconnected) 0 Err(\"Disconnected\") 0 acquire_all a,b 500",
                "Fails(Disconnected) 5000 Ok(988ms) 0 acquire_all a,b 500; 0 acquire a Barge 500; 0 acquire b Barge 500; 0 renew a,b 1000 500; 0 release a,b 0 500",
                "Lost 0 Err(\"Timeout\") 0 acquire_all a,b 500; 500 abandon a 500; 500 abandon b 500",
                "Lost 5000 Ok(988ms) 0 acquire_all a,b 500; 500 abandon a 500; 500 abandon b 500; 500 acquire a Join 500; 500 acquire b Barge 500; 500 renew a,b 1000 500; 500 release a,b 0 500",
                "Silence 0 Err(\"Timeout\") 0 acquire_all a,b 500",
                "Silence 5000 Ok(988ms) 0 acquire_all a,b 500; 500 acquire a Barge 500; 500 acquire b Barge 500; 500 renew a,b 1000 500; 500 release a,b 0 500",
                "Fails(Denied) 0 Err(\"Denied\") 0 acquire_all a,b 500",
                "Fails(Denied) 5000 Err(\"Denied\") 0 acquire_all a,b 500",
                "Replies(990, 0) 0 Err(\"Timeout, seen by us\") 0 acquire_all a,b 500; 990 abandon a 500; 990 abandon b 500",
                "Replies(990, 0) 5000 Ok(988ms) 0 acquire_all a,b 500; 990 abandon a 500; 990 abandon b 500; 990 acquire a Join 500; 990 acquire b Barge 500; 990 renew a,b 1000 500; 990 release a,b 0 500",
            ]
        );
    });
}

#[test]
fn replies_that_are_too_few_or_without_tokens_are_no_grant() {
    simulated(async {
        let mut story = Vec::new();
        for tokens in [vec![Some(1)], vec![Some(1), None], vec![Some(1), Some(2)]] {
            let (desk, client) = Desk::open().await;
            let granted = AcquiredAll::Granted {
                tokens: tokens.clone(),
            };
            desk.says.lock().unwrap().all.push_back(granted);
            let request = client.multi_lock(["a", "b"]).fenced().wait(of(0));
            let answer = request
                .acquire()
                .await
                .map(|guard| guard.fencing_tokens())
                .map_err(|error| short(&error));
            ms(10).await;
            story.push(format!("{tokens:?} {answer:?} {}", desk.story()));
        }
        assert_eq!(
            story,
            [
                "[Some(1)] Err(\"Timeout, seen by us\") 0 acquire_all a,b 500; 0 abandon a 500; 0 abandon b 500",
                "[Some(1), None] Err(\"Timeout, seen by us\") 0 acquire_all a,b 500; 0 abandon a 500; 0 abandon b 500",
                "[Some(1), Some(2)] Ok(Some([FencingToken(1), FencingToken(2)])) 0 acquire_all a,b 500; 0 release a,b 0 500",
            ]
        );
    });
}

#[test]
fn one_that_is_lost_on_the_way_begins_it_all_anew_after_a_pause() {
    simulated(async {
        let mut story = Vec::new();
        let (desk, client) = Desk::open().await;
        desk.says.lock().unwrap().all.push_back(AcquiredAll::Apart);
        desk.next("renew", &[Fate::LosesAll; 3]);
        let guard = client.multi_lock(["a", "b"]).acquire().await.unwrap();
        story.push(format!("{} {}", desk.now(), desk.story()));
        drop(guard);
        // The wait may end in such a pause.
        desk.says.lock().unwrap().all.push_back(AcquiredAll::Apart);
        desk.always("renew", Fate::LosesAll);
        let request = client.multi_lock(["a", "b"]).wait(of(200));
        let error = request.acquire().await.unwrap_err();
        let error = short(&error);
        story.push(format!("{} {error} {}", desk.now(), desk.story()));
        assert_eq!(
            story,
            [
                "350 0 acquire_all a,b 500; 0 acquire a Barge 500; 0 acquire b Barge 500; 0 renew a,b 30000 500; 50 acquire a Barge 500; 50 acquire b Barge 500; 50 renew a,b 30000 500; 150 acquire a Barge 500; 150 acquire b Barge 500; 150 renew a,b 30000 500; 350 acquire a Barge 500; 350 acquire b Barge 500; 350 renew a,b 30000 500",
                "550 busy after 200ms 350 release a,b 0 500; 350 acquire a Join 500; 350 acquire b Barge 500; 350 renew a,b 30000 500; 400 acquire a Barge 450; 400 acquire b Barge 450; 400 renew a,b 30000 450; 500 acquire a Barge 350; 500 acquire b Barge 350; 500 renew a,b 30000 350; 550 acquire a Barge 300; 550 acquire b Barge 300; 550 renew a,b 30000 300",
            ]
        );
    });
}

#[test]
fn a_last_command_that_fails_leaves_it_to_the_watchdog() {
    simulated(async {
        let mut story = Vec::new();
        for fate in [DOWN, Fate::Silence, Fate::Fails(StoreErrorKind::Denied)] {
            let (desk, client) = Desk::open().await;
            desk.says.lock().unwrap().all.push_back(AcquiredAll::Apart);
            desk.next("acquire", &[Fate::Replies(300, 0)]);
            desk.next("renew", &[fate]);
            let answer = client
                .multi_lock(["a", "b"])
                .lease(of(5000))
                .acquire()
                .await;
            let left = answer
                .as_ref()
                .map(|guard| guard.remaining())
                .map_err(short);
            story.push(format!("{fate:?} {} {left:?} {}", desk.now(), desk.story()));
            ms(4000).await;
            story.push(format!("later {}", desk.story()));
        }
        assert_eq!(
            story,
            [
                "Fails(Disconnected) 300 Ok(4.648s) 0 acquire_all a,b 500; 0 acquire a Barge 500; 300 acquire b Barge 500; 300 renew a,b 5000 500",
                "later 300 renew a,b 5000 500",
                "Silence 800 Ok(4.148s) 0 acquire_all a,b 500; 0 acquire a Barge 500; 300 acquire b Barge 500; 300 renew a,b 5000 500",
                "later 800 renew a,b 5000 500",
                "Fails(Denied) 300 Err(\"Denied\") 0 acquire_all a,b 500; 0 acquire a Barge 500; 300 acquire b Barge 500; 300 renew a,b 5000 500",
                "later 300 release a 0 500; 300 release b 0 500",
            ]
        );
    });
}

#[test]
fn max_hold_of_several_counts_from_the_last_grant() {
    simulated(async {
        let mut story = Vec::new();
        let (desk, client) = Desk::open().await;
        desk.says.lock().unwrap().all.push_back(AcquiredAll::Apart);
        desk.next("acquire", &[Fate::Replies(300, 0)]);
        let request = client.multi_lock(["a", "b"]).lease(of(3000)).renew(true);
        let guard = request.max_hold(of(5000)).acquire().await.unwrap();
        guard.lost().await;
        story.push(format!("{} {}", desk.now(), desk.story()));
        assert_eq!(
            story,
            [
                "5288 0 acquire_all a,b 500; 0 acquire a Barge 500; 300 acquire b Barge 500; 300 renew a,b 3000 500; 1300 renew a,b 3000 500; 2300 renew a,b 3000 500; 3300 renew a,b 2000 500; 4300 renew a,b 1000 326",
            ]
        );
    });
}

#[test]
fn a_try_waits_for_releases_of_its_own_process_and_asks_once() {
    simulated(async {
        let mut story = Vec::new();
        let (desk, client) = Desk::open().await;
        desk.always("release", Fate::Replies(100, 0));
        drop(client.multi_lock(["a", "b"]).acquire().await.unwrap());
        let answer = client.multi_lock(["a", "b"]).wait(of(0)).acquire().await;
        story.push(format!(
            "{} {:?} {}",
            desk.now(),
            answer.is_ok(),
            desk.story()
        ));
        drop(answer);
        let answer = client.multi_lock(["a", "b"]).wait(of(1000)).acquire().await;
        story.push(format!(
            "{} {:?} {}",
            desk.now(),
            answer.is_ok(),
            desk.story()
        ));
        assert_eq!(
            story,
            [
                "100 true 0 acquire_all a,b 500; 0 release a,b 0 500; 100 acquire_all a,b 400",
                "200 true 100 release a,b 0 500; 200 acquire a Join 500; 200 acquire b Barge 500; 200 renew a,b 30000 500",
            ]
        );
    });
}

/// A request that waits is told that the lock is busy, unless a command has failed since the store's last sign of life.
#[test]
fn a_silent_last_command_counts_as_a_failure_of_the_store() {
    simulated(async {
        for (several, expected) in [(false, "busy after 900ms"), (true, "Timeout")] {
            let (desk, client) = Desk::open().await;
            let _taken = desk.other().await.lock("k").acquire().await.unwrap();
            let waits = tokio::spawn(client.lock("k").wait(of(900)).acquire());
            ms(100).await;
            desk.says.lock().unwrap().all.push_back(AcquiredAll::Apart);
            desk.next("renew", &[Fate::Silence]);
            let guard = if several {
                Some(client.multi_lock(["a", "b"]).acquire().await.unwrap())
            } else {
                None
            };
            let error = waits.await.unwrap().unwrap_err();
            assert_eq!((short(&error).as_str(), desk.now()), (expected, 900));
            drop(guard);
        }
    });
}

#[test]
fn a_lost_reply_is_undone_for_each_key_until_the_lease_has_ended() {
    simulated(async {
        let (desk, client) = Desk::open().await;
        desk.always("abandon", Fate::Replies(0, 9));
        desk.next("acquire_all", &[Fate::Lost]);
        let request = client.multi_lock(["a", "b"]).lease(of(700)).wait(of(0));
        request.acquire().await.unwrap_err();
        ms(2000).await;
        let expected = [500, 500, 550, 550, 620, 620, 690, 690, 700, 700];
        assert_eq!(desk.when("abandon"), expected);
    });
}

#[test]
fn what_is_waited_for_does_not_count_for_max_hold() {
    simulated(async {
        let (desk, client) = Desk::open().await;
        let other = desk.other().await.lock("b").acquire().await.unwrap();
        let request = client.multi_lock(["a", "b"]).lease(of(600)).renew(true);
        let waits = tokio::spawn(request.max_hold(of(1000)).acquire());
        ms(3000).await;
        other.release().await.unwrap();
        let guard = waits.await.unwrap().unwrap();
        let seen = desk.seen();
        let first = seen.iter().filter(|line| line.contains("acquire a"));
        assert_eq!(first.count(), 1, "{seen:#?}");
        guard.lost().await;
        // A second after the last grant, less what is not trusted of the last lease.
        assert_eq!(desk.now(), 3996);
    });
}
