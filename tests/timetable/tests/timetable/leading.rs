//! Leaders: how soon one stands again, after a term and in an outage.

use std::cell::Cell;
use std::sync::{Arc, Mutex};

use lock_runtime::observe::{Event, What};
use lock_runtime::{Guard, LockClientBuilder};

use crate::fates::{DOWN, Fate};
use crate::recording_store::{RecordingStore, ms, of, simulated};

/// Notes when a body is dropped.
struct Ends<'c>(&'c RecordingStore, &'c Cell<Option<u64>>);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.1.set(Some(self.0.now()));
    }
}

/// The pauses grow from 50 ms to 2 s, until a term lasts for half a lease.
#[test]
fn a_leader_whose_terms_are_short_stands_ever_more_seldom() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        // When the lock is taken away, in milliseconds. The next renewal, after a third of the
        // lease or two, finds it gone.
        let (short, long) = (0, 10_500);
        let terms = [
            short, short, short, short, short, short, short, short, long, short, short,
        ];
        let mut terms = terms.into_iter();
        let ended = Cell::new(None);
        let mut pauses = Vec::new();
        let lock = client.lock("k").lease(of(30_000));
        let leads = lock.lead(async |_: &Guard| {
            pauses.extend(ended.get().map(|ended| store.now() - ended));
            let Some(until) = terms.next() else {
                return;
            };
            let _ends = Ends(&store, &ended);
            ms(until).await;
            assert!(client.force_release("k").await.unwrap());
            std::future::pending::<()>().await;
        });
        store.ask(None, leads).await.unwrap();
        let growing = [50, 100, 200, 400, 800, 1600, 2000, 2000];
        assert_eq!(pauses[..8], growing);
        assert_eq!(pauses[8..], growing[..3], "after a long term");
    });
}

/// A term that lasts as long as its lease, or its `max_hold`, is not a short one.
#[test]
fn a_term_as_long_as_its_lease_is_followed_by_the_next_one_at_once() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let lock = |key: &str| client.lock(key.to_owned());
        for lock in [
            lock("lease").lease(of(10_000)).renew(false),
            lock("max_hold").max_hold(of(10_000)),
        ] {
            let ended = Cell::new(None);
            let mut pauses = Vec::new();
            let leads = lock.lead(async |_: &Guard| {
                pauses.extend(ended.get().map(|ended| store.now() - ended));
                let _ends = Ends(&store, &ended);
                if pauses.len() < 3 {
                    std::future::pending::<()>().await;
                }
            });
            store.ask(None, leads).await.unwrap();
            assert_eq!(pauses, [50, 50, 50]);
        }
    });
}

#[test]
fn a_candidate_asks_a_store_that_is_down_ever_more_seldom_and_leads_when_it_is_back() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.set_usual("acquire", DOWN);
        let leads = client.lock("k").lead(async |_: &Guard| store.now());
        let back = async {
            ms(60_000).await;
            store.set_usual("acquire", Fate::Passes);
        };
        let (led, ()) = tokio::join!(store.ask(None, leads), back);
        let asked = store.when("acquire");
        // One request ends after the client's wait of 10 s, and the next one begins with a short
        // pause again. The pauses between them grow.
        let first: Vec<u64> = asked.iter().copied().filter(|at| *at < 10_000).collect();
        assert_eq!(first[..7], [0, 50, 150, 350, 750, 1550, 3150]);
        let begins = [10_050, 20_150, 30_350, 40_750, 51_550];
        assert!(begins.iter().all(|at| asked.contains(at)), "{asked:?}");
        assert!(asked.len() <= 60, "{asked:?}");
        assert!(led.unwrap() < 62_001);
    });
}

/// Each of two outages is a warning, with a minute between them in which others have the lock.
#[test]
fn an_outage_is_told_once_and_the_next_one_once_more() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let other = store.other().await;
        let lock = other.lock("k").lease(of(3_600_000));
        let held = lock.acquire().await.unwrap();
        let leads = client.lock("k").lead(async |_: &Guard| ());
        let outages = async {
            for _ in 0..2 {
                store.set_usual("acquire", DOWN);
                ms(40_000).await;
                store.set_usual("acquire", Fate::Passes);
                ms(60_000).await;
            }
            held.release().await
        };
        let (led, released) = tokio::join!(store.ask(None, leads), outages);
        led.and(released).unwrap();
        let told = store.noted("log: can't stand for a lock");
        let told: Vec<u64> = told.iter().map(|(at, _)| at / 1000).collect();
        // Ten seconds after the last answer.
        assert_eq!(told, [10, 109]);
    });
}

/// Else a leader whose pauses have grown would stay slow after a good term.
#[test]
fn a_term_of_half_its_lease_is_no_short_one() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        let mut terms = [1000, 1000, 15_000, 14_999, 1000].into_iter();
        let ended = Cell::new(None);
        let mut pauses = Vec::new();
        let lock = client.lock("k").lease(of(30_000));
        let leads = lock.lead(async |guard: &Guard| {
            pauses.extend(ended.get().map(|ended| store.now() - ended));
            let Some(lasts) = terms.next() else {
                return;
            };
            let _ends = Ends(&store, &ended);
            store.set_usual("renew", DOWN);
            ms(lasts).await;
            store.set_usual("renew", Fate::Passes);
            assert!(client.force_release("k").await.unwrap());
            // Finds at once that it is gone.
            guard.extend(of(30_000)).await.unwrap_err();
            std::future::pending::<()>().await;
        });
        store.ask(None, leads).await.unwrap();
        assert_eq!(pauses, [50, 100, 50, 100, 200]);
    });
}

/// A replica stands by for days, and a term has no end: neither is a fault.
#[test]
fn a_leader_may_wait_and_hold_for_long_without_a_warning() {
    simulated(async {
        let settings = |builder: LockClientBuilder| {
            let builder = builder.warn_after(of(100));
            builder.warn_held_after(of(100))
        };
        let (store, client) = RecordingStore::open_with(settings).await;
        let warned = || {
            let waits = store.noted("log: a request still waits").len();
            (waits, store.noted("log: a lock is held for longer").len())
        };
        let held = client.lock("k").lease(of(10_000)).acquire();
        let held = store.ask(None, held).await.unwrap();
        let end_it = async {
            ms(5000).await;
            drop(held);
        };
        let leads = client.lock("k").lead(async |_: &Guard| ms(60_000).await);
        let (led, ()) = tokio::join!(store.ask(None, leads), end_it);
        led.unwrap();
        assert_eq!(warned(), (0, 0));
        // Any other request is told of.
        let held = client.lock("k").lease(of(3000)).renew(true).acquire();
        let held = store.ask(None, held).await.unwrap();
        let busy = client.lock("k").wait(of(5000)).acquire();
        drop(store.ask(None, busy).await);
        assert_eq!(store.noted("log: a lock is held for longer").len(), 1);
        drop(held);
    });
}

/// Nobody would look at a store that fails anew if the log were silent.
#[test]
fn an_outage_after_a_term_is_told_once_more() {
    simulated(async {
        let (store, client) = RecordingStore::open().await;
        store.set_usual("acquire", DOWN);
        let mut terms = 0;
        let leads = client.lock("k").lead(async |guard: &Guard| {
            terms += 1;
            if terms == 1 {
                store.set_usual("acquire", DOWN);
                assert!(client.force_release("k").await.unwrap());
                guard.extend(of(30_000)).await.unwrap_err();
                std::future::pending::<()>().await;
            }
        });
        let outages = async {
            for _ in 0..2 {
                ms(15_000).await;
                store.set_usual("acquire", Fate::Passes);
            }
        };
        let (led, ()) = tokio::join!(store.ask(None, leads), outages);
        led.unwrap();
        let told = store.noted("log: can't stand for a lock");
        let told: Vec<u64> = told.iter().map(|(at, _)| at / 1000).collect();
        // Ten seconds after each began.
        assert_eq!(told, [10, 25]);
    });
}

/// Observers count by the key that is the same for each order in which the keys are given.
#[test]
fn a_candidate_for_several_keys_is_told_by_the_first_and_how_many_more_there_are() {
    simulated(async {
        let told = Arc::new(Mutex::new(Vec::new()));
        let tells = Arc::clone(&told);
        let observer = move |event: &Event<'_>| {
            let name = match event.what {
                What::Candidate => "stands",
                What::TermBegan => "begins",
                What::TermEnded { .. } => "ends",
                _ => return,
            };
            let lock = event.lock.unwrap();
            let key = lock.key.to_string();
            tells.lock().unwrap().push((name, key, lock.more_keys));
        };
        let (store, client) = RecordingStore::open_with(|builder| builder.observer(observer)).await;
        let leads = client
            .multi_lock(["b", "c", "a"])
            .lead(async |_: &Guard| ());
        store.ask(None, leads).await.unwrap();
        let expected = ["stands", "begins", "ends"].map(|name| (name, "a".to_owned(), 2));
        assert_eq!(*told.lock().unwrap(), expected);
    });
}

/// A store that was back for a moment has not worked: its failures are one outage.
#[test]
fn an_outage_is_another_one_after_a_request_of_more_than_half_a_minute() {
    simulated(async {
        // A request begins at 10,050 and looks each second. It ends ten seconds after an answer.
        for (fails_from, expected) in [(30_500, vec![10]), (31_500, vec![10, 41])] {
            let (store, client) = RecordingStore::open().await;
            store.title(format!("the store fails once more from {fails_from}"));
            let other = store.other().await;
            let lock = other.lock("k").lease(of(3_600_000));
            let held = lock.acquire().await.unwrap();
            store.set_usual("acquire", DOWN);
            let leads = client.lock("k").lead(async |_: &Guard| ());
            let outages = async {
                ms(10_025).await;
                store.set_usual("acquire", Fate::Passes);
                ms(fails_from - 10_025).await;
                store.set_usual("acquire", DOWN);
                ms(15_000).await;
                store.set_usual("acquire", Fate::Passes);
                held.release().await
            };
            let (led, released) = tokio::join!(store.ask(None, leads), outages);
            led.and(released).unwrap();
            let told = store.noted("log: can't stand for a lock");
            let told: Vec<u64> = told.iter().map(|(at, _)| at / 1000).collect();
            assert_eq!(told, expected);
        }
    });
}
