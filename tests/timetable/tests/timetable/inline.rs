//! Tasks that their executor runs inside of the wake-up. The engine holds none of its locks then:
//! such a task would wait for ever.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use lock_runtime::{HeldBy, LockClient, LockClientBuilder};
use lock_store::Renewed;
use lock_testkit_core::store_decorator::Reply;

use crate::fates::Fate;
use crate::recording_store::{RecordingStore, WAIT, ms, of, simulated};

type Boxed = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A task that is polled whenever it is woken, by whoever wakes it.
struct Inline {
    future: Mutex<Option<Boxed>>,
    is_woken: AtomicBool,
}

impl Inline {
    fn spawn(future: impl Future<Output = ()> + Send + 'static) -> Arc<Self> {
        let task = Arc::new(Self {
            future: Mutex::new(Some(Box::pin(future))),
            is_woken: AtomicBool::new(false),
        });
        Arc::clone(&task).wake();
        task
    }

    fn is_finished(&self) -> bool {
        self.future.lock().unwrap().is_none()
    }

    fn cancel(&self) {
        self.future.lock().unwrap().take();
    }
}

impl Wake for Inline {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        // If it is being polled now, whoever polls it does so again.
        while let Ok(mut future) = self.future.try_lock() {
            if !self.is_woken.swap(false, Ordering::SeqCst) {
                return;
            }
            let waker = Waker::from(Arc::clone(&self));
            let poll = |one: &mut Boxed| one.as_mut().poll(&mut Context::from_waker(&waker));
            if future.as_mut().is_some_and(|one| poll(one).is_ready()) {
                *future = None;
            }
        }
    }
}

/// [`simulated`], with an end also if a task waits for a lock of its own thread.
#[track_caller]
fn assert_ends<F: Future<Output = ()>>(test: impl FnOnce() -> F + Send + 'static) {
    let (done, ended) = mpsc::channel();
    // The snapshot is named after the thread.
    let name = thread::current().name().unwrap().to_owned();
    let run = move || {
        simulated(test());
        done.send(()).unwrap();
    };
    thread::Builder::new().name(name).spawn(run).unwrap();
    ended.recv_timeout(Duration::from_secs(20)).unwrap();
}

/// Gets this lock at once or later, and releases it or drops its guard.
fn use_lock(
    store: &Arc<RecordingStore>,
    client: &LockClient,
    key: &'static str,
    drops: bool,
) -> Arc<Inline> {
    let request = store.ask(WAIT, client.lock(key).acquire());
    Inline::spawn(async move {
        let guard = request.await.unwrap();
        match drops {
            true => drop(guard),
            false => guard.release().await.unwrap(),
        }
    })
}

#[test]
fn a_hold_is_handed_off_through_all_who_wait() {
    assert_ends(|| async {
        let settings = |builder: LockClientBuilder| builder.local_tenure(8, of(60_000));
        let (store, client) = RecordingStore::open_with(settings).await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        let tasks = [false, true, false, true].map(|drops| use_lock(&store, &client, "k", drops));
        // Who leaves wakes the next.
        tasks[0].cancel();
        ms(1).await;
        guard.release().await.unwrap();
        assert!(tasks[1..].iter().all(|task| task.is_finished()));
        assert_eq!(store.when("acquire"), [0]);
    });
}

#[test]
fn who_waits_for_a_hold_asks_when_it_is_lost() {
    assert_ends(|| async {
        let settings = |builder: LockClientBuilder| builder.local_tenure(8, of(60_000));
        let (store, client) = RecordingStore::open_with(settings).await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        let guard = Arc::new(guard);
        let watched = Arc::clone(&guard);
        let watches = Inline::spawn(async move {
            watched.lost().await;
            assert!(!watched.is_held());
        });
        ms(9_900).await;
        let waits = use_lock(&store, &client, "k", true);
        store.answer(Reply::Renew(vec![Renewed::Gone]));
        ms(200).await;
        assert!(watches.is_finished());
        drop(guard);
        ms(100).await;
        assert!(waits.is_finished());
    });
}

#[test]
fn who_waits_is_handed_the_lock_or_asks_when_messages_may_be_lost() {
    assert_ends(|| async {
        let (store, client) = RecordingStore::open().await;
        let other = store.other().await;
        let taken = other.lock("k").acquire().await.unwrap();
        let second = other.lock("l").acquire().await.unwrap();
        let tasks = ["k", "l"].map(|key| use_lock(&store, &client, key, true));
        ms(100).await;
        store.call_all();
        ms(100).await;
        taken.release().await.unwrap();
        second.release().await.unwrap();
        ms(100).await;
        assert!(tasks.iter().all(|task| task.is_finished()));
    });
}

#[test]
fn who_waits_for_a_release_goes_on_when_it_is_answered() {
    assert_ends(|| async {
        let (store, client) = RecordingStore::open().await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        store.next("release", &[Fate::Replies(100, 0)]);
        drop(guard);
        let one = use_lock(&store, &client, "k", true);
        let request = client.multi_lock(["k", "l"]).wait(of(0)).acquire();
        let request = store.ask(0, request);
        let several = Inline::spawn(async move { drop(request.await) });
        assert!(!one.is_finished() && !several.is_finished());
        ms(150).await;
        assert!(one.is_finished() && several.is_finished());
    });
}

#[test]
fn who_asks_whether_a_key_is_busy_hears_it() {
    assert_ends(|| async {
        let (store, client) = RecordingStore::open().await;
        let _taken = store.other().await.lock("k").acquire().await.unwrap();
        let tasks = [300, 300, 400].map(|wait| {
            let request = client.lock("k").wait(of(wait)).acquire();
            let request = store.ask(wait, request);
            Inline::spawn(async move { assert!(request.await.unwrap_err().is_busy()) })
        });
        store.set_usual("inspect", Fate::Replies(20, 0));
        ms(450).await;
        assert!(tasks.iter().all(|task| task.is_finished()));
    });
}

/// Nobody answers the look, and what another was told says it, too.
#[test]
fn who_asks_whether_a_key_is_busy_hears_it_from_a_later_request() {
    assert_ends(|| async {
        let (store, client) = RecordingStore::open().await;
        let _taken = store.other().await.lock("k").acquire().await.unwrap();
        store.set_usual("inspect", Fate::Silence);
        let request = client.lock("k").wait(of(300)).acquire();
        let request = store.ask(300, request);
        let task = Inline::spawn(async move { assert!(request.await.unwrap_err().is_busy()) });
        ms(200).await;
        assert_eq!(store.when("inspect"), [150]);
        let later = client.lock("k").fair().wait(of(WAIT)).acquire();
        let later = store.ask(WAIT, later);
        let later = Inline::spawn(async move { drop(later.await) });
        ms(101).await;
        assert!(task.is_finished());
        later.cancel();
    });
}

#[test]
fn who_waits_for_a_latch_or_a_shutdown_goes_on() {
    assert_ends(|| async {
        let (store, client) = RecordingStore::open().await;
        let other = store.other().await;
        other.latch("l").set(1).await.unwrap();
        let tasks = [1, 2].map(|_| {
            let (store, latch) = (Arc::clone(&store), client.latch("l"));
            Inline::spawn(async move {
                store.ask(WAIT, latch.wait(of(WAIT))).await.unwrap();
            })
        });
        ms(100).await;
        tasks[0].cancel();
        other.latch("l").count_down().await.unwrap();
        ms(100).await;
        assert!(tasks[1].is_finished());
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        let closing = client.clone();
        let closes = Inline::spawn(async move { closing.shutdown(of(5000)).await });
        ms(100).await;
        assert!(!closes.is_finished());
        drop(guard);
        ms(100).await;
        assert!(closes.is_finished());
    });
}

#[test]
fn who_asks_for_the_name_of_a_holder_hears_it() {
    assert_ends(|| async {
        let (store, client) = RecordingStore::open().await;
        let _taken = store.other().await.lock("k").acquire().await.unwrap();
        let asking = client.clone();
        let task = Inline::spawn(async move {
            let found = asking.inspect("k").await.unwrap();
            assert!(matches!(found.held_by, Some(HeldBy::Client { .. })));
        });
        ms(1).await;
        assert!(task.is_finished());
        store.next("tell", &[Fate::Lost]);
        let _taken = store.other().await.lock("l").acquire().await.unwrap();
        let task = Inline::spawn(async move {
            let found = client.inspect("l").await.unwrap();
            assert!(matches!(found.held_by, Some(HeldBy::Disconnected)));
        });
        ms(1).await;
        assert!(task.is_finished());
    });
}

#[test]
fn who_waits_behind_one_that_is_skipped_asks() {
    assert_ends(|| async {
        let (store, client) = RecordingStore::open().await;
        let _taken = store.other().await.lock("k").acquire().await.unwrap();
        let mut unpolled = pin!(store.ask(WAIT, client.lock("k").acquire()));
        let once = poll_fn(|cx| Poll::Ready(unpolled.as_mut().poll(cx)));
        assert!(once.await.is_pending());
        let next = use_lock(&store, &client, "k", true);
        store.seen();
        ms(2500).await;
        assert!(store.when("acquire").contains(&2000));
        next.cancel();
    });
}

#[test]
fn who_shares_a_hold_hears_that_the_outer_guard_has_ended() {
    assert_ends(|| async {
        let (store, client) = RecordingStore::open().await;
        let guard = store.ask(WAIT, client.lock("k").acquire()).await.unwrap();
        let inner = guard.scope(store.ask(WAIT, client.lock("k").acquire()));
        let inner = inner.await.unwrap();
        let watches = Inline::spawn(async move { inner.lost().await });
        drop(guard);
        assert!(watches.is_finished());
    });
}

#[test]
fn who_waits_for_a_sibling_goes_on() {
    assert_ends(|| async {
        let (store, client) = RecordingStore::open().await;
        let ask = || store.ask(WAIT, client.lock("k").acquire());
        let guard = Arc::new(ask().await.unwrap());
        let first = guard.scope(ask()).await.unwrap();
        let tasks = [ask(), ask()].map(|request| {
            let outer = Arc::clone(&guard);
            Inline::spawn(async move { drop(outer.scope(request).await.unwrap()) })
        });
        drop(first);
        assert!(tasks.iter().all(|task| task.is_finished()));
    });
}

#[test]
fn a_release_that_waits_for_the_poll_of_a_body_inside_goes_on() {
    assert_ends(|| async {
        let (store, client) = RecordingStore::open().await;
        let ask = || store.ask(WAIT, client.lock("k").acquire());
        let guard = ask().await.unwrap();
        let inner = guard.scope(ask()).await.unwrap();
        let body = async {
            let ends = Inline::spawn(async move { guard.release().await.unwrap() });
            assert!(!ends.is_finished());
            ends
        };
        let ends = inner.scope(body).await;
        ms(1).await;
        assert!(ends.is_finished());
    });
}
