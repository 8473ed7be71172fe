//! Latches.

use lock_runtime::StoreErrorKind;
use lock_store::{LatchState, Latched};

use crate::desk::{Desk, Fate, ms, of, short, simulated};

const DOWN: Fate = Fate::Fails(StoreErrorKind::Disconnected);

#[test]
fn a_call_is_repeated_for_as_long_as_the_wait_of_its_client() {
    simulated(async {
        let mut story = Vec::new();
        for fate in [
            DOWN,
            Fate::Silence,
            Fate::Lost,
            Fate::Fails(StoreErrorKind::Denied),
        ] {
            let (desk, client) = Desk::open().await;
            desk.always("set", fate);
            let answer = client
                .latch("l")
                .set(1)
                .await
                .map_err(|error| short(&error));
            story.push(format!(
                "{fate:?} {} {answer:?} {}",
                desk.now(),
                desk.story()
            ));
        }
        let (desk, client) = Desk::open().await;
        desk.next("count_down", &[DOWN, Fate::Silence]);
        client.latch("l").set(2).await.unwrap();
        assert_eq!(client.latch("l").count_down().await.unwrap(), 1);
        story.push(format!("{} {}", desk.now(), desk.story()));
        assert_eq!(
            story,
            [
                "Fails(Disconnected) 9500 Err(\"Disconnected\") 0 set l 500; 50 set l 500; 150 set l 500; 350 set l 500; 750 set l 500; 1550 set l 500; 3150 set l 500; 5150 set l 500; 7150 set l 500; 9150 set l 500; 9500 set l 500",
                "Silence 10000 Err(\"Timeout\") 0 set l 500; 550 set l 500; 1150 set l 500; 1850 set l 500; 2750 set l 500; 4050 set l 500; 6150 set l 500; 8650 set l 500; 9500 set l 500",
                "Lost 10000 Err(\"Timeout\") 0 set l 500; 550 set l 500; 1150 set l 500; 1850 set l 500; 2750 set l 500; 4050 set l 500; 6150 set l 500; 8650 set l 500; 9500 set l 500",
                "Fails(Denied) 0 Err(\"Denied\") 0 set l 500",
                "650 0 set l 500; 0 count_down l 500; 50 count_down l 500; 650 count_down l 500",
            ]
        );
    });
}

#[test]
fn one_looks_for_all_each_second_and_leaves_when_all_have_left() {
    simulated(async {
        let mut story = Vec::new();
        let (desk, client) = Desk::open().await;
        client.latch("l").set(1).await.unwrap();
        desk.seen();
        let one = tokio::spawn({
            let latch = client.latch("l");
            async move { latch.wait(of(2500)).await }
        });
        ms(300).await;
        let two = tokio::spawn({
            let latch = client.latch("l");
            async move { latch.wait(of(1200)).await }
        });
        story.push(format!(
            "{:?} {}",
            two.await.unwrap().map_err(|error| short(&error)),
            desk.now()
        ));
        story.push(format!(
            "{:?} {}",
            one.await.unwrap().map_err(|error| short(&error)),
            desk.now()
        ));
        ms(10).await;
        story.push(desk.story());
        assert_eq!(
            story,
            [
                "Err(\"busy after 1.2s\") 1500",
                "Err(\"busy after 2.5s\") 2500",
                "0 wait l 500; 300 wait l 500; 1000 ping - 500; 1300 wait l 500; 2000 ping - 500; 2300 wait l 500; 2500 leave l 500",
            ]
        );
    });
}

#[test]
fn a_look_that_fails_is_tried_again() {
    simulated(async {
        let mut story = Vec::new();
        for fate in [
            DOWN,
            Fate::Silence,
            Fate::Fails(StoreErrorKind::Denied),
            Fate::Fails(StoreErrorKind::OutOfMemory),
        ] {
            for wait in [0, 100, 3000] {
                let (desk, client) = Desk::open().await;
                client.latch("l").set(1).await.unwrap();
                desk.seen();
                for verb in ["wait", "look", "ping"] {
                    desk.always(verb, fate);
                }
                let answer = client
                    .latch("l")
                    .wait(of(wait))
                    .await
                    .map_err(|error| short(&error));
                story.push(format!(
                    "{fate:?} {wait} {} {answer:?} {}",
                    desk.now(),
                    desk.story()
                ));
                desk.next("leave", &[DOWN, DOWN]);
                ms(3000).await;
                story.push(format!("end {}", desk.story()));
            }
        }
        assert_eq!(
            story,
            [
                "Fails(Disconnected) 0 0 Err(\"Disconnected\") 0 look l 500",
                "end ",
                "Fails(Disconnected) 100 100 Err(\"Disconnected\") 0 wait l 500; 50 wait l 500",
                "end 100 leave l 500; 150 leave l 500; 250 leave l 500",
                "Fails(Disconnected) 3000 3000 Err(\"Disconnected\") 0 wait l 500; 50 wait l 500; 150 wait l 500; 350 wait l 500; 750 wait l 500; 1550 wait l 500",
                "end 3000 leave l 500; 3050 leave l 500; 3150 leave l 500",
                "Silence 0 500 Err(\"Timeout\") 0 look l 500",
                "end ",
                "Silence 100 500 Err(\"Timeout, seen by us\") 0 wait l 500",
                "end 500 leave l 500; 550 leave l 500; 650 leave l 500",
                "Silence 3000 3000 Err(\"Timeout\") 0 wait l 500; 550 wait l 500; 1150 wait l 500; 1850 wait l 500; 2750 wait l 500",
                "end 3250 leave l 500; 3300 leave l 500; 3400 leave l 500",
                "Fails(Denied) 0 0 Err(\"Denied\") 0 look l 500",
                "end ",
                "Fails(Denied) 100 0 Err(\"Denied\") 0 wait l 500",
                "end 0 leave l 500; 50 leave l 500; 150 leave l 500",
                "Fails(Denied) 3000 0 Err(\"Denied\") 0 wait l 500",
                "end 0 leave l 500; 50 leave l 500; 150 leave l 500",
                "Fails(OutOfMemory) 0 0 Err(\"OutOfMemory\") 0 look l 500",
                "end ",
                "Fails(OutOfMemory) 100 100 Err(\"OutOfMemory\") 0 wait l 500; 50 wait l 500",
                "end 100 leave l 500; 150 leave l 500; 250 leave l 500",
                "Fails(OutOfMemory) 3000 3000 Err(\"OutOfMemory\") 0 wait l 500; 50 wait l 500; 150 wait l 500; 350 wait l 500; 750 wait l 500; 1550 wait l 500",
                "end 3000 leave l 500; 3050 leave l 500; 3150 leave l 500",
            ]
        );
    });
}

/// Counts left, generation, and the one that opened before it.
fn name(reply: &Latched) -> String {
    match reply {
        Latched::Is(latch) => format!("{}/{}/{}", latch.count, latch.generation, latch.opened),
        other => format!("{other:?}"),
    }
}

fn state(count: u32, generation: u64, opened: u64) -> Latched {
    Latched::Is(LatchState {
        count,
        generation,
        opened,
        remaining: Some(of(60_000)),
    })
}

#[test]
fn what_a_waiter_learns_from_two_looks() {
    simulated(async {
        let mut story = Vec::new();
        for (first, second) in [
            (state(1, 5, 0), state(1, 5, 0)),
            (state(1, 5, 0), state(0, 5, 0)),
            (state(1, 5, 0), state(1, 6, 5)),
            (state(1, 5, 0), state(1, 7, 6)),
            (state(1, 5, 0), state(1, 6, 0)),
            (state(1, 5, 0), state(1, 6, 4)),
            (state(1, 5, 0), Latched::NotSet),
            (Latched::NotSet, state(1, 5, 0)),
            (Latched::NotSet, state(1, 5, 4)),
            (Latched::NotSet, Latched::NotSet),
            (Latched::NotSet, state(0, 5, 0)),
            (Latched::Conflict, Latched::NotSet),
            (state(1, 5, 0), Latched::Conflict),
        ] {
            let (desk, client) = Desk::open().await;
            desk.says.lock().unwrap().latched.extend([first, second]);
            desk.always("wait", Fate::Passes);
            let answer = client
                .latch("l")
                .wait(of(1700))
                .await
                .map_err(|error| short(&error));
            story.push(format!(
                "{} then {} {} {answer:?} {}",
                name(&first),
                name(&second),
                desk.now(),
                desk.story()
            ));
        }
        assert_eq!(
            story,
            [
                "1/5/0 then 1/5/0 1700 Err(\"busy after 1.7s\") 0 wait l 500; 1000 wait l 500; 1200 ping - 500",
                "1/5/0 then 0/5/0 1000 Ok(()) 0 wait l 500; 1000 wait l 500",
                "1/5/0 then 1/6/5 1000 Ok(()) 0 wait l 500; 1000 wait l 500",
                "1/5/0 then 1/7/6 1000 Ok(()) 0 wait l 500; 1000 wait l 500",
                "1/5/0 then 1/6/0 1000 Err(\"lost, NotSet\") 0 wait l 500; 1000 wait l 500",
                "1/5/0 then 1/6/4 1000 Err(\"lost, NotSet\") 0 wait l 500; 1000 wait l 500",
                "1/5/0 then NotSet 1000 Err(\"lost, NotSet\") 0 wait l 500; 1000 wait l 500",
                "NotSet then 1/5/0 1700 Err(\"busy after 1.7s\") 0 wait l 500; 1000 wait l 500; 1200 ping - 500",
                "NotSet then 1/5/4 1000 Ok(()) 0 wait l 500; 1000 wait l 500",
                "NotSet then NotSet 1700 Err(\"busy after 1.7s\") 0 wait l 500; 1000 wait l 500; 1200 ping - 500",
                "NotSet then 0/5/0 1000 Ok(()) 0 wait l 500; 1000 wait l 500",
                "Conflict then NotSet 0 Err(\"conflict\") 0 wait l 500",
                "1/5/0 then Conflict 1000 Err(\"conflict\") 0 wait l 500; 1000 wait l 500",
            ]
        );
    });
}

#[test]
fn messages_that_a_latch_has_opened() {
    simulated(async {
        let mut story = Vec::new();
        for message in [Some(5), Some(4), Some(6), None] {
            for first in [state(1, 5, 0), Latched::NotSet] {
                let (desk, client) = Desk::open().await;
                desk.says
                    .lock()
                    .unwrap()
                    .latched
                    .extend([first, first, first, first]);
                let waits = tokio::spawn({
                    let latch = client.latch("l");
                    async move { latch.wait(of(2700)).await }
                });
                ms(200).await;
                desk.tell_granted(0, message);
                ms(1).await;
                story.push(format!(
                    "{message:?} {} {} {}",
                    name(&first),
                    waits.is_finished(),
                    desk.story()
                ));
                waits.abort();
                ms(10).await;
                story.push(desk.story());
            }
        }
        assert_eq!(
            story,
            [
                "Some(5) 1/5/0 true 0 wait l 500",
                "",
                "Some(5) NotSet true 0 wait l 500",
                "",
                "Some(4) 1/5/0 false 0 wait l 500",
                "201 leave l 500",
                "Some(4) NotSet true 0 wait l 500",
                "",
                "Some(6) 1/5/0 true 0 wait l 500",
                "",
                "Some(6) NotSet true 0 wait l 500",
                "",
                "None 1/5/0 false 0 wait l 500; 200 wait l 500",
                "201 leave l 500",
                "None NotSet false 0 wait l 500; 200 wait l 500",
                "201 leave l 500",
            ]
        );
    });
}

#[test]
fn what_is_heard_during_a_look_counts() {
    simulated(async {
        for (reply, message, expected) in [
            (state(1, 5, 0), Some(5), "100 Ok(()) "),
            (
                state(1, 5, 0),
                None,
                "1400 Err(\"busy after 1.4s\") 100 wait l 500; ",
            ),
            (
                Latched::NotSet,
                Some(5),
                "1400 Err(\"busy after 1.4s\") 100 wait l 500; ",
            ),
        ] {
            let (desk, client) = Desk::open().await;
            desk.says.lock().unwrap().latched.extend([reply; 9]);
            desk.next("wait", &[Fate::Replies(100, 0)]);
            let latch = client.latch("l");
            let waits = tokio::spawn(async move { latch.wait(of(1400)).await });
            ms(50).await;
            desk.seen();
            desk.tell_granted(0, message);
            let answer = waits.await.unwrap().map_err(|error| short(&error));
            let told = format!("{} {answer:?} {}", desk.now(), desk.story());
            assert!(told.starts_with(expected), "{told}");
        }
    });
}

#[test]
fn a_latch_that_opens_while_a_sign_of_life_is_awaited_is_open() {
    simulated(async {
        let (desk, client) = Desk::open().await;
        desk.says.lock().unwrap().latched.push_back(state(1, 5, 0));
        desk.next("ping", &[Fate::Replies(350, 0)]);
        let latch = client.latch("l");
        let waits = tokio::spawn(async move { latch.wait(of(700)).await });
        ms(600).await;
        desk.tell_granted(0, Some(5));
        waits.await.unwrap().unwrap();
        assert_eq!(desk.now(), 700);
    });
}

#[test]
fn a_place_is_given_up_for_as_long_as_the_store_would_keep_it() {
    simulated(async {
        for (fate, last) in [(DOWN, 61_250), (Fate::Fails(StoreErrorKind::Denied), 100)] {
            let (desk, client) = Desk::open().await;
            client.latch("l").set(1).await.unwrap();
            desk.always("leave", fate);
            let error = client.latch("l").wait(of(100)).await.unwrap_err();
            assert!(error.is_busy(), "{error}");
            ms(100_000).await;
            assert_eq!(desk.when("leave").last(), Some(&last));
        }
    });
}
