//! Tasks that take locks all the time while something happens to the servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lock_runtime::{LockClient, LockError};
use lock_testkit::eventually;
use tokio::task::JoinSet;

/// The lease of all these locks. After it, no holder believes in a lock any more that a failover
/// has lost.
pub(crate) const LEASE: Duration = Duration::from_secs(2);

/// A load of several clients with several tasks each, over a few keys.
pub(crate) struct Load {
    tasks: JoinSet<()>,
    shared: Arc<Shared>,
}

struct Shared {
    keys: Vec<Key>,
    stop: AtomicBool,
    /// From now on, no two tasks may be inside together.
    strict: AtomicBool,
    overlaps: AtomicU64,
}

struct Key {
    name: String,
    inside: AtomicU64,
    turns: AtomicU64,
}

impl Load {
    pub(crate) fn start(
        clients: &[LockClient],
        keys: impl IntoIterator<Item = String>,
        tasks_per_key: usize,
    ) -> Self {
        let key = |name| Key {
            name,
            inside: AtomicU64::new(0),
            turns: AtomicU64::new(0),
        };
        let shared = Arc::new(Shared {
            keys: keys.into_iter().map(key).collect(),
            stop: AtomicBool::new(false),
            strict: AtomicBool::new(true),
            overlaps: AtomicU64::new(0),
        });
        let mut tasks = JoinSet::new();
        for client in clients {
            for key in 0..shared.keys.len() {
                for _ in 0..tasks_per_key {
                    tasks.spawn(work(client.clone(), Arc::clone(&shared), key));
                }
            }
        }
        Self { tasks, shared }
    }

    /// From now on acknowledged locks may be lost: another server becomes master, and replication
    /// is asynchronous.
    pub(crate) fn forgive(&self) {
        self.shared.strict.store(false, Ordering::SeqCst);
    }

    /// The new order stands. When the leases are over, no holder believes in a lock that was lost
    /// in between.
    pub(crate) async fn strict_again(&self) {
        tokio::time::sleep(LEASE + Duration::from_millis(500)).await;
        self.shared.strict.store(true, Ordering::SeqCst);
    }

    /// Waits until each key has had this many more turns.
    pub(crate) async fn more_turns(&self, turns: u64) {
        for key in &self.shared.keys {
            let wanted = key.turns.load(Ordering::SeqCst) + turns;
            eventually(&format!("{:?} is locked again", key.name), async || {
                key.turns.load(Ordering::SeqCst) >= wanted
            })
            .await;
        }
    }

    /// Ends the load, and expects that no two tasks were inside together.
    pub(crate) async fn finish(mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        while let Some(task) = self.tasks.join_next().await {
            task.unwrap();
        }
        assert_eq!(
            self.shared.overlaps.load(Ordering::SeqCst),
            0,
            "two holders"
        );
    }
}

async fn work(client: LockClient, shared: Arc<Shared>, key: usize) {
    let key = &shared.keys[key];
    let request = client
        .lock(key.name.as_str())
        .lease(LEASE)
        .renew(true)
        .wait(Duration::from_secs(5));
    while !shared.stop.load(Ordering::SeqCst) {
        let body = async {
            let strict = shared.strict.load(Ordering::SeqCst);
            let alone = key.inside.fetch_add(1, Ordering::SeqCst) == 0;
            let _leave = Leave(&key.inside);
            if strict && !alone {
                shared.overlaps.fetch_add(1, Ordering::SeqCst);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        };
        match request.clone().run(body).await {
            Ok(()) => _ = key.turns.fetch_add(1, Ordering::SeqCst),
            Err(LockError::Unavailable { source, .. }) => {
                assert!(worth_a_retry(source.kind()), "{source}");
            }
            Err(LockError::Busy { .. } | LockError::Lost { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn worth_a_retry(kind: lock_runtime::StoreErrorKind) -> bool {
    use lock_runtime::StoreErrorKind as Kind;
    matches!(
        kind,
        Kind::Disconnected | Kind::Timeout | Kind::ReadOnly | Kind::Loading
    )
}

/// A body can be dropped half-way.
struct Leave<'c>(&'c AtomicU64);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
