//! Many of one process who wait for shares of one key get in together: also behind a lease that
//! ends by itself, and if the messages of their grants are lost. They do not wait a poll each.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use lock_runtime::{Guard, Lock, LockClient};
use lock_store::{HandedOver, Listener, WakeUp};
use tokio::task::JoinSet;

use crate::{Backend, eventually};

super::on_every_store!(
    twelve_readers_behind_a_lease_that_ends_enter_together,
    twelve_permits_behind_a_lease_that_ends_are_taken_together,
    twelve_readers_whose_grants_are_not_heard_enter_together,
    twelve_permits_whose_grants_are_not_heard_are_taken_together,
);

const TWELVE: u32 = 12;
const WAIT: Duration = Duration::from_secs(60);
/// Some milliseconds, and more where the machine is busy. If each waits for a poll, it is eleven
/// seconds.
const TOGETHER: Duration = Duration::from_secs(4);

#[derive(Clone, Copy)]
enum Kind {
    Readers,
    Permits,
}

impl Kind {
    fn all(self, client: &LockClient) -> Lock {
        match self {
            Self::Readers => client.rw_lock("k").write(),
            Self::Permits => client.semaphore("k", TWELVE).permits(TWELVE),
        }
    }

    fn one(self, client: &LockClient) -> Lock {
        match self {
            Self::Readers => client.rw_lock("k").read(),
            Self::Permits => client.semaphore("k", TWELVE).permit(),
        }
        .wait(WAIT)
    }
}

/// How the one before them ends. What is left of its guard is kept until all are in.
type Ends = Pin<Box<dyn Future<Output = Option<Guard>> + Send>>;

async fn enter_together(
    kind: Kind,
    (holds, waits): (LockClient, LockClient),
    lease: Duration,
    ends: impl FnOnce(Guard) -> Ends,
) {
    let holder = kind.all(&holds).lease(lease).acquire().await.unwrap();
    let mut waiters = JoinSet::new();
    for _ in 0..TWELVE {
        let request = kind.one(&waits);
        waiters.spawn(async move {
            let guard = request.acquire().await.unwrap();
            (Instant::now(), guard)
        });
    }
    eventually("all wait", async || {
        holds.inspect("k").await.unwrap().waiting == TWELVE as usize
    })
    .await;
    let rest = ends(holder).await;
    // Nobody leaves before all are in.
    let entered = waiters.join_all().await;
    let times = entered.iter().map(|(at, _)| *at);
    let (first, last) = (times.clone().min().unwrap(), times.max().unwrap());
    assert!(last - first < TOGETHER, "{:?} apart", last - first);
    drop((entered, rest));
}

async fn behind_a_lease_that_ends(kind: Kind, store: Backend) {
    let clients = (store.client().await, store.client().await);
    // Time for all to queue. It is not renewed.
    let lease = Duration::from_secs(3);
    let ends = |guard: Guard| -> Ends {
        Box::pin(async move {
            guard.lost().await;
            Some(guard)
        })
    };
    enter_together(kind, clients, lease, ends).await;
    store.until_empty().await;
}

async fn twelve_readers_behind_a_lease_that_ends_enter_together(store: Backend) {
    behind_a_lease_that_ends(Kind::Readers, store).await;
}

async fn twelve_permits_behind_a_lease_that_ends_are_taken_together(store: Backend) {
    behind_a_lease_that_ends(Kind::Permits, store).await;
}

/// Hears everything but grants, as if their messages were lost, or whoever had to send them.
#[derive(Debug)]
struct Deaf(Weak<dyn Listener>);

impl Deaf {
    fn to(listener: &Weak<dyn Listener>) -> Arc<dyn Listener> {
        Arc::new(Self(Weak::clone(listener)))
    }
}

impl Listener for Deaf {
    fn on_granted(&self, _: HandedOver) -> WakeUp {
        WakeUp::default()
    }

    fn recheck(&self) {
        if let Some(listener) = self.0.upgrade() {
            listener.recheck();
        }
    }
}

async fn whose_grants_are_not_heard(kind: Kind, store: Backend) {
    let (backend, deaf) = (store.clone(), Arc::<std::sync::Mutex<Vec<_>>>::default());
    let kept = Arc::clone(&deaf);
    let waits = store.builder().store(move |context| {
        let listener = Deaf::to(&context.listener);
        let opened = backend.store(context.client, &listener, context.clock);
        // Stores have weak references.
        kept.lock().unwrap().push(listener);
        Ok(opened)
    });
    let clients = (store.client().await, waits.connect().await.unwrap());
    let ends = |guard: Guard| -> Ends {
        Box::pin(async move {
            guard.release().await.unwrap();
            None
        })
    };
    enter_together(kind, clients, Duration::from_secs(30), ends).await;
    store.until_empty().await;
    drop(deaf);
}

async fn twelve_readers_whose_grants_are_not_heard_enter_together(store: Backend) {
    whose_grants_are_not_heard(Kind::Readers, store).await;
}

async fn twelve_permits_whose_grants_are_not_heard_are_taken_together(store: Backend) {
    whose_grants_are_not_heard(Kind::Permits, store).await;
}
