//! Rate limiters.

use lock_runtime::{Rate, StoreErrorKind};
use lock_store::Rated;
use lock_testkit::store_decorator::Reply;

use crate::fates::{DOWN, Fate};
use crate::recording_store::{RecordingStore, of, short, simulated};

#[test]
fn what_did_not_arrive_is_sent_again_within_the_wait() {
    simulated(async {
        for (fates, wait, sent, expected) in [
            (vec![DOWN, DOWN], 1000, 3, "passes at 150"),
            (vec![DOWN; 9], 1000, 5, "Disconnected at 750"),
            (vec![DOWN, DOWN], 150, 2, "Disconnected at 50"),
            (vec![DOWN], 0, 1, "Disconnected at 0"),
            // What may have arrived has taken its tokens, and what is denied stays so.
            (vec![Fate::Lost], 1000, 1, "Timeout at 500"),
            (vec![Fate::Silence], 200, 1, "Timeout at 500"),
            (
                vec![Fate::Fails(StoreErrorKind::Denied)],
                1000,
                1,
                "Denied at 0",
            ),
        ] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("wait {wait}, {} times {:?}", fates.len(), fates[0]));
            store.next("rate", &fates);
            let limiter = client.rate_limiter("r", Rate::per_second(1)).wait(of(wait));
            let answer = store.asks(wait, limiter.acquire()).await;
            let answer = answer.map_or_else(|error| short(&error), |()| "passes".to_owned());
            assert_eq!(format!("{answer} at {}", store.now()), expected);
            assert_eq!(store.when("rate").len(), sent);
        }
    });
}

#[test]
fn a_delay_counts_from_the_answer() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.next("rate", &[Fate::Replies(40, 0)]);
        let (delay, left) = (of(100), 0);
        store.answers(Reply::Rate(Rated::Passed { delay, left }));
        let limiter = client.rate_limiter("r", Rate::per_second(1)).wait(of(900));
        store.asks(900, limiter.acquire()).await.unwrap();
        assert_eq!(store.now(), 140);
        assert_eq!(store.calls(), [(0, "rate")]);
    });
}
