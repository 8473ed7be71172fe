//! One process leads as long as it has the lock, and the others stand by.

use std::sync::Arc;
use std::time::Duration;

use super::RENEWED;
use crate::{Backend, eventually};
use lock_runtime::{Guard, Lock, LockClient, LockError, LostReason, OnLost};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

super::on_every_store!(
    one_leads_and_the_next_one_follows_when_it_ends,
    a_leader_whose_lock_is_taken_away_is_stopped_and_stands_again,
    max_hold_ends_a_term_and_another_one_follows,
    a_term_with_a_lease_is_renewed,
    leading_ends_with_its_body_or_a_shutdown,
    leading_ends_with_what_does_not_pass_and_runs_no_body,
    a_body_that_returns_after_its_loss_ends_leading,
    a_revoked_leader_leaves_the_next_term_to_others,
);

super::without_a_queue!(
    one_leads_and_the_next_one_follows_when_it_ends,
    a_leader_whose_lock_is_taken_away_is_stopped_and_stands_again,
    a_term_with_a_lease_is_renewed,
    leading_ends_with_its_body_or_a_shutdown,
    leading_ends_with_what_does_not_pass_and_runs_no_body,
    a_body_that_returns_after_its_loss_ends_leading,
);

const LEASE: Duration = Duration::from_secs(1);

/// What a body says when it begins and when it is dropped.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Began(u32),
    Stopped(u32),
}

struct Running(u32, UnboundedSender<Said>);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.1.send(Said::Stopped(self.0));
    }
}

/// Leads under this number with a body that never returns.
fn candidate(
    number: u32,
    lock: Lock,
    says: &UnboundedSender<Said>,
) -> JoinHandle<Result<(), LockError>> {
    let says = says.clone();
    tokio::spawn(lock.lead(async move |term: &Guard| {
        assert!(term.is_held());
        let _running = Running(number, says.clone());
        let _ = says.send(Said::Began(number));
        std::future::pending().await
    }))
}

/// Waits long enough for any engine under load.
async fn within_a_minute<T>(what: impl Future<Output = T>) -> T {
    let came = tokio::time::timeout(Duration::from_secs(60), what).await;
    came.expect("it comes within a minute")
}

async fn next(heard: &mut UnboundedReceiver<Said>) -> Said {
    within_a_minute(heard.recv()).await.unwrap()
}

async fn one_leads_and_the_next_one_follows_when_it_ends(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let (says, mut heard) = unbounded_channel();
    let first = candidate(1, a.lock("k"), &says);
    assert_eq!(next(&mut heard).await, Said::Began(1));
    let second = candidate(2, b.lock("k"), &says);
    eventually("the second one waits", async || b.stats().waiting == 1).await;
    first.abort();
    assert_eq!(next(&mut heard).await, Said::Stopped(1));
    assert_eq!(next(&mut heard).await, Said::Began(2));
    second.abort();
    assert_eq!(next(&mut heard).await, Said::Stopped(2));
    store.until_empty().await;
}

async fn a_leader_whose_lock_is_taken_away_is_stopped_and_stands_again(store: Backend) {
    let client = store.client().await;
    let (says, mut heard) = unbounded_channel();
    let lock = client.lock("k").lease(store.renewable(RENEWED));
    let leads = candidate(1, lock, &says);
    for _ in 0..3 {
        assert_eq!(next(&mut heard).await, Said::Began(1));
        assert!(client.force_release("k").await.unwrap());
        assert_eq!(next(&mut heard).await, Said::Stopped(1));
    }
    assert_eq!(next(&mut heard).await, Said::Began(1));
    assert!(client.stats().lost >= 3);
    leads.abort();
    store.until_empty().await;
}

async fn max_hold_ends_a_term_and_another_one_follows(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let (says, mut heard) = unbounded_channel();
    let lock = |client: &LockClient| client.lock("k").max_hold(LEASE * 2);
    let first = candidate(1, lock(&a), &says);
    assert_eq!(next(&mut heard).await, Said::Began(1));
    let second = candidate(2, lock(&b), &says);
    // Who has just led leaves the next term to who has waited. A busy machine drops a body later
    // than its hold ends, without running it meanwhile.
    let (mut began, mut stopped) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        match next(&mut heard).await {
            Said::Began(who) => began.push(who),
            Said::Stopped(who) => stopped.push(who),
        }
    }
    assert_eq!((began, stopped), (vec![2, 1], vec![1, 2]));
    first.abort();
    second.abort();
}

async fn a_term_with_a_lease_is_renewed(store: Backend) {
    let client = store.client().await;
    let lasts = client.lock("k").lease(LEASE).lead(async |term: &Guard| {
        tokio::time::sleep(LEASE * 3).await;
        term.is_held()
    });
    assert!(within_a_minute(lasts).await.unwrap());
    // Unless it is said that it is not.
    let mut terms = 0;
    let fixed = client.lock("k").lease(LEASE).renew(false);
    let lasts = fixed.lead(async |term: &Guard| {
        terms += 1;
        if terms == 1 {
            term.lost().await;
            std::future::pending::<()>().await;
        }
    });
    within_a_minute(lasts).await.unwrap();
    assert_eq!(terms, 2);
}

async fn leading_ends_with_its_body_or_a_shutdown(store: Backend) {
    let (a, b) = (store.client().await, store.client().await);
    let seven = a.lock("k").lead(async |_: &Guard| 7).await;
    assert_eq!(seven.unwrap(), 7);
    assert!(a.lock("k").try_acquire().await.unwrap().is_some(), "free");

    let (says, mut heard) = unbounded_channel();
    let leads = candidate(1, a.lock("k"), &says);
    assert_eq!(next(&mut heard).await, Said::Began(1));
    let stands_by = candidate(2, b.lock("k"), &says);
    eventually("the second one waits", async || b.stats().waiting == 1).await;
    // Who stands by, then who leads.
    b.shutdown(Duration::ZERO).await;
    let ended = within_a_minute(stands_by).await.unwrap();
    assert!(matches!(ended, Err(LockError::Shutdown)), "{ended:?}");
    a.shutdown(Duration::ZERO).await;
    let ended = within_a_minute(leads).await.unwrap();
    assert!(matches!(ended, Err(LockError::Shutdown)), "{ended:?}");
    assert_eq!(next(&mut heard).await, Said::Stopped(1));
    store.until_empty().await;
}

async fn leading_ends_with_what_does_not_pass_and_runs_no_body(store: Backend) {
    let client = store.client().await;
    let refused = async |lock: Lock| {
        let led = lock.lead(async |_: &Guard| panic!("the body runs"));
        within_a_minute(led).await.unwrap_err()
    };
    let continues = client.lock("k").on_lost(OnLost::Continue);
    let told = refused(continues).await;
    assert!(matches!(told, LockError::Config { .. }), "{told:?}");
    assert!(told.to_string().contains("`on_lost`"), "{told}");
    let no_lease = client.lock("k").lease(Duration::ZERO);
    let told = refused(no_lease).await;
    assert!(matches!(told, LockError::Config { .. }), "{told:?}");
    let told = refused(client.lock("")).await;
    assert!(matches!(told, LockError::InvalidKey { .. }), "{told:?}");
    let guard = client.lock("k").acquire().await.unwrap();
    let nested = client.lock("k").reentrant(false);
    let told = guard.scope(refused(nested)).await;
    assert!(matches!(told, LockError::WouldDeadlock { .. }), "{told:?}");
}

async fn a_body_that_returns_after_its_loss_ends_leading(store: Backend) {
    let client = store.client().await;
    let terms = Arc::new(());
    let counted = Arc::clone(&terms);
    let short = LEASE / 4;
    let lock = client.lock("k").lease(short).renew(false);
    let led = lock.lead(async move |_: &Guard| {
        // Blocks its thread for longer than the lease.
        std::thread::sleep(short * 2);
        std::mem::forget(Arc::clone(&counted));
    });
    let ended = within_a_minute(led).await.unwrap_err();
    assert!(ended.is_lost() && ended.body_ended(), "{ended}");
    let LockError::Lost { reason, .. } = ended else {
        panic!("{ended:?}")
    };
    assert_eq!(reason, LostReason::Expired);
    assert_eq!(Arc::strong_count(&terms), 2, "its body ran once");
}

async fn a_revoked_leader_leaves_the_next_term_to_others(store: Backend) {
    let (client, other) = (store.client().await, store.client().await);
    let (says, mut heard) = unbounded_channel();
    let leads = candidate(1, client.lock("k").lease(2 * LEASE), &says);
    assert_eq!(next(&mut heard).await, Said::Began(1));
    let since = std::time::Instant::now();
    let revoked = other.revoke("k", Duration::from_secs(30)).await.unwrap();
    assert!(revoked.is_complete(), "{revoked:?}");
    assert_eq!(next(&mut heard).await, Said::Stopped(1));
    assert_eq!(next(&mut heard).await, Said::Began(1));
    assert!(since.elapsed() >= 2 * LEASE, "{:?}", since.elapsed());
    leads.abort();
}
