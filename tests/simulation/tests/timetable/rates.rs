//! Rate limiters.

use lock_runtime::{Rate, StoreErrorKind};
use lock_store::Rated;

use crate::desk::{Desk, Fate, ms, of, short, simulated};

const DOWN: Fate = Fate::Fails(StoreErrorKind::Disconnected);

#[test]
fn what_did_not_arrive_is_sent_again_within_the_wait() {
    simulated(async {
        let mut story = Vec::new();
        for (fates, wait) in [
            (vec![DOWN, DOWN], 1000),
            (vec![DOWN; 9], 1000),
            (vec![DOWN, DOWN], 150),
            (vec![Fate::Lost], 1000),
            (vec![DOWN], 0),
            (vec![Fate::Fails(StoreErrorKind::Denied)], 1000),
            (vec![Fate::Silence], 200),
        ] {
            let (desk, client) = Desk::open().await;
            desk.next("rate", &fates);
            let limiter = client.rate_limiter("r", Rate::per_second(1)).wait(of(wait));
            let answer = limiter.acquire().await.map_err(|error| short(&error));
            story.push(format!(
                "{fates:?} {wait} {} {answer:?} {}",
                desk.now(),
                desk.story()
            ));
        }
        assert_eq!(
            story,
            [
                "[Fails(Disconnected), Fails(Disconnected)] 1000 150 Ok(()) 0 rate r 1000 500; 50 rate r 950 500; 150 rate r 850 500",
                "[Fails(Disconnected), Fails(Disconnected), Fails(Disconnected), Fails(Disconnected), Fails(Disconnected), Fails(Disconnected), Fails(Disconnected), Fails(Disconnected), Fails(Disconnected)] 1000 750 Err(\"Disconnected\") 0 rate r 1000 500; 50 rate r 950 500; 150 rate r 850 500; 350 rate r 650 500; 750 rate r 250 250",
                "[Fails(Disconnected), Fails(Disconnected)] 150 50 Err(\"Disconnected\") 0 rate r 150 500; 50 rate r 100 450",
                "[Lost] 1000 500 Err(\"Timeout\") 0 rate r 1000 500",
                "[Fails(Disconnected)] 0 0 Err(\"Disconnected\") 0 rate r 0 500",
                "[Fails(Denied)] 1000 0 Err(\"Denied\") 0 rate r 1000 500",
                "[Silence] 200 500 Err(\"Timeout\") 0 rate r 200 500",
            ]
        );
    });
}

#[test]
fn a_delay_counts_from_the_answer() {
    simulated(async {
        let mut story = Vec::new();
        let (desk, client) = Desk::open().await;
        desk.next("rate", &[Fate::Replies(40, 0)]);
        desk.says.lock().unwrap().rated.push_back(Rated::Passed {
            delay: of(100),
            left: 0,
        });
        client
            .rate_limiter("r", Rate::per_second(1))
            .wait(of(900))
            .acquire()
            .await
            .unwrap();
        story.push(format!("{} {}", desk.now(), desk.story()));
        ms(1).await;
        assert_eq!(story, ["140 0 rate r 900 500",]);
    });
}
