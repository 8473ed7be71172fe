//! The watchdog.

use lock_runtime::StoreErrorKind;
use lock_store::Renewed;

use crate::desk::{Desk, Fate, ms, of, short, simulated};

const DOWN: Fate = Fate::Fails(StoreErrorKind::Disconnected);

#[test]
fn renewals_that_fail_are_repeated_until_the_deadline() {
    simulated(async {
        let mut story = Vec::new();
        for lease in [30_000, 3000, 600] {
            for fate in [DOWN, Fate::Silence] {
                let (desk, client) = Desk::open().await;
                desk.always("renew", fate);
                let request = client.lock("k").lease(of(lease)).renew(true);
                let guard = request.acquire().await.unwrap();
                guard.lost().await;
                let seen: Vec<_> = desk
                    .seen()
                    .iter()
                    .filter(|l| l.contains("renew"))
                    .map(|l| l.replace("renew k ", ""))
                    .collect();
                story.push(format!("{lease} {fate:?} {} {seen:?}", desk.now()));
            }
        }
        assert_eq!(
            story,
            [
                "30000 Fails(Disconnected) 29698 [\"10000 30000 500\", \"10050 30000 500\", \"10150 30000 500\", \"10350 30000 500\", \"10750 30000 500\", \"11550 30000 500\", \"13050 30000 500\", \"14550 30000 500\", \"16050 30000 500\", \"17550 30000 500\", \"19050 30000 500\", \"20550 30000 500\", \"22050 30000 500\", \"23550 30000 500\", \"25050 30000 500\", \"26550 30000 500\", \"28050 30000 500\", \"29550 30000 49\"]",
                "30000 Silence 29698 [\"10000 30000 500\", \"10550 30000 500\", \"11150 30000 500\", \"11850 30000 500\", \"12750 30000 500\", \"14050 30000 500\", \"16050 30000 500\", \"18050 30000 500\", \"20050 30000 500\", \"22050 30000 500\", \"24050 30000 500\", \"26050 30000 500\", \"28050 30000 500\"]",
                "3000 Fails(Disconnected) 2968 [\"1000 3000 500\", \"1050 3000 500\", \"1150 3000 500\", \"1300 3000 500\", \"1450 3000 500\", \"1600 3000 456\", \"1750 3000 406\", \"1900 3000 356\", \"2050 3000 306\", \"2200 3000 256\", \"2350 3000 206\", \"2500 3000 156\", \"2650 3000 106\", \"2800 3000 56\", \"2950 3000 6\"]",
                "3000 Silence 2968 [\"1000 3000 500\", \"1550 3000 472\", \"2123 3000 281\", \"2555 3000 137\", \"2843 3000 41\"]",
                "600 Fails(Disconnected) 592 [\"200 600 130\", \"230 600 120\", \"260 600 110\", \"290 600 100\", \"320 600 90\", \"350 600 80\", \"380 600 70\", \"410 600 60\", \"440 600 50\", \"470 600 40\", \"500 600 30\", \"530 600 20\", \"560 600 10\", \"590 600 5\"]",
                "600 Silence 592 [\"200 600 130\", \"361 600 77\", \"468 600 41\", \"540 600 17\", \"588 600 5\"]",
            ]
        );
    });
}

#[test]
fn renewals_within_twenty_milliseconds_travel_together() {
    simulated(async {
        let mut story = Vec::new();
        let (desk, client) = Desk::open().await;
        let mut guards = Vec::new();
        for key in ["a", "b", "c"] {
            guards.push(
                client
                    .lock(key)
                    .lease(of(3000))
                    .renew(true)
                    .acquire()
                    .await
                    .unwrap(),
            );
            ms(if key == "a" { 20 } else { 1 }).await;
        }
        desk.seen();
        ms(2500).await;
        story.push(desk.story());
        assert_eq!(
            story,
            [
                "1000 renew a,b 3000 500; 1021 renew c 3000 500; 2000 renew a,b 3000 500; 2021 renew c 3000 500",
            ]
        );
    });
}

#[test]
fn a_hundred_keys_are_renewed_by_one_command() {
    simulated(async {
        let mut story = Vec::new();
        let (desk, client) = Desk::open().await;
        let mut guards = Vec::new();
        for number in 0..150 {
            guards.push(client.lock(format!("k{number}")).acquire().await.unwrap());
        }
        desk.seen();
        ms(10_001).await;
        let counts: Vec<_> = desk
            .seen()
            .iter()
            .map(|line| line.split(',').count())
            .collect();
        story.push(format!("{counts:?}"));
        assert_eq!(story, ["[100, 50]",]);
    });
}

#[test]
fn a_last_renewal_reaches_the_end_of_max_hold() {
    simulated(async {
        let mut story = Vec::new();
        let (desk, client) = Desk::open().await;
        let request = client
            .lock("k")
            .lease(of(3000))
            .renew(true)
            .max_hold(of(5000));
        let guard = request.acquire().await.unwrap();
        guard.lost().await;
        story.push(format!("{} {}", desk.now(), desk.story()));
        let error = guard.release().await.unwrap_err();
        let error = short(&error);
        story.push(error);
        ms(1).await;
        story.push(desk.story());
        assert_eq!(
            story,
            [
                "4988 0 acquire k Barge 500; 1000 renew k 3000 500; 2000 renew k 3000 500; 3000 renew k 2000 500; 4000 renew k 1000 326",
                "lost, MaxHold",
                "4988 release k 0 500",
            ]
        );
    });
}

#[test]
fn what_was_not_answered_is_asked_again_and_what_is_gone_is_lost() {
    simulated(async {
        let mut story = Vec::new();
        use Renewed::{Gone, Renewed as Well, Unanswered};
        for replies in [
            vec![Unanswered, Well],
            vec![Well, Unanswered],
            vec![Gone, Unanswered],
            vec![Unanswered, Gone],
            vec![Well],
            vec![Well, Well],
        ] {
            let (desk, client) = Desk::open().await;
            let guard = client
                .multi_lock(["a", "b"])
                .lease(of(3000))
                .renew(true)
                .acquire()
                .await
                .unwrap();
            desk.seen();
            desk.says.lock().unwrap().renewed.push_back(replies.clone());
            ms(1900).await;
            story.push(format!("{replies:?} {} {}", guard.is_held(), desk.story()));
        }
        assert_eq!(
            story,
            [
                "[Unanswered, Renewed] true 1000 renew a,b 3000 500; 1050 renew a,b 3000 500",
                "[Renewed, Unanswered] true 1000 renew a,b 3000 500; 1050 renew a,b 3000 500",
                "[Gone, Unanswered] false 1000 renew a,b 3000 500",
                "[Unanswered, Gone] false 1000 renew a,b 3000 500",
                "[Renewed] false 1000 renew a,b 3000 500",
                "[Renewed, Renewed] true 1000 renew a,b 3000 500",
            ]
        );
    });
}

#[test]
fn a_loss_keeps_its_reason() {
    simulated(async {
        let (desk, client) = Desk::open().await;
        desk.says
            .lock()
            .unwrap()
            .renewed
            .push_back(vec![Renewed::Gone]);
        let request = client.lock("k").lease(of(3000)).renew(true);
        let guard = request.acquire().await.unwrap();
        ms(9000).await;
        // Long after its deadline.
        assert!(!guard.is_held());
        let error = guard.release().await.unwrap_err();
        assert_eq!(short(&error), "lost, Gone");
    });
}

#[test]
fn a_hold_that_could_not_be_renewed_is_not_one_whose_max_hold_has_ended() {
    simulated(async {
        let (desk, client) = Desk::open().await;
        desk.always("renew", DOWN);
        let request = client.lock("k").lease(of(3000)).renew(true);
        let guard = request.max_hold(of(60_000)).acquire().await.unwrap();
        guard.lost().await;
        let error = guard.release().await.unwrap_err();
        assert_eq!((desk.now(), short(&error)), (2968, "lost, Expired".into()));
    });
}

/// A request that waits is told that the lock is busy, unless a command has failed since the store's last sign of life.
#[test]
fn silence_counts_as_a_failure_of_the_store_if_it_was_as_long_as_a_command_may_take() {
    simulated(async {
        for (lease, start, wait, expected) in [
            // Renewals with little time left: 200 to 330, 361 to 438 and so on.
            (600, 0, 700, "busy after 700ms"),
            // One with a whole command's time, from 10,000 to 10,500.
            (30_000, 9900, 900, "Timeout"),
        ] {
            let (desk, client) = Desk::open().await;
            let _taken = desk.other().await.lock("k").acquire().await.unwrap();
            desk.always("renew", Fate::Silence);
            let request = client.lock("h").lease(of(lease)).renew(true);
            let _guard = request.acquire().await.unwrap();
            ms(start).await;
            let error = client.lock("k").wait(of(wait)).acquire().await.unwrap_err();
            assert_eq!(
                (short(&error).as_str(), desk.now()),
                (expected, start + wait)
            );
        }
    });
}
