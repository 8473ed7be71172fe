//! Rate limiters.

use lock_runtime::{Rate, StoreErrorKind};
use lock_store::Rated;
use lock_testkit_core::store_decorator::Reply;

use crate::fates::{DOWN, Fate};
use crate::recording_store::{RecordingStore, of, short, simulated};

#[test]
fn a_request_that_did_not_arrive_is_sent_again_within_the_wait() {
    simulated(async {
        for (fates, wait, sent, expected) in [
            (vec![DOWN, DOWN], 1000, 3, "passes at 150"),
            (vec![DOWN; 9], 1000, 5, "Disconnected at 750"),
            (vec![DOWN, DOWN], 150, 2, "Disconnected at 50"),
            (vec![DOWN], 0, 1, "Disconnected at 0"),
            // A request that may have arrived may have taken its tokens. A denied request stays
            // denied.
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
            let answer = store.ask(wait, limiter.acquire()).await;
            let answer = answer.map_or_else(|error| short(&error), |()| "passes".to_owned());
            assert_eq!(format!("{answer} at {}", store.now()), expected);
            assert_eq!(store.when("rate").len(), sent);
        }
    });
}

/// No reply of a store may put a call to sleep that does not wait.
#[test]
fn a_delay_beyond_the_wait_is_told_and_not_slept() {
    simulated(async {
        for (wait, delay) in [(0, 1), (500, 501), (500, 86_400_000)] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("wait {wait}, delay {delay}"));
            let (delay, left) = (of(delay), 0);
            store.answer(Reply::Rate(Rated::Passed { delay, left }));
            let limiter = client.rate_limiter("r", Rate::per_second(1)).wait(of(wait));
            let error = store.ask(wait, limiter.acquire()).await.unwrap_err();
            assert!(error.to_string().contains("which can't be"), "{error}");
            assert_eq!(
                (short(&error).as_str(), store.now()),
                ("Refused, seen by us", 0)
            );
        }
    });
}

#[test]
fn a_delay_counts_from_the_answer() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.next("rate", &[Fate::Replies(40, 0)]);
        let (delay, left) = (of(100), 0);
        store.answer(Reply::Rate(Rated::Passed { delay, left }));
        let limiter = client.rate_limiter("r", Rate::per_second(1)).wait(of(900));
        store.ask(900, limiter.acquire()).await.unwrap();
        assert_eq!(store.now(), 140);
        assert_eq!(store.calls(), [(0, "rate")]);
    });
}

#[test]
fn a_call_may_pass_at_the_very_end_of_its_wait() {
    simulated(async {
        for delay in [999, 1000] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("after {delay}"));
            store.answer(Reply::Rate(Rated::Passed {
                delay: of(delay),
                left: 0,
            }));
            let limiter = client.rate_limiter("r", Rate::per_second(1)).wait(of(1000));
            store.ask(1000, limiter.acquire()).await.unwrap();
            assert_eq!(store.now(), delay);
        }
    });
}
