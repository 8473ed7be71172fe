//! The lock that people write by hand: `SET NX PX`, a retry after a doubling pause, compare and
//! delete.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::aio::ConnectionLike;
use redis::cluster::ClusterClient;

use crate::worker::{Job, Library};

const COMPARE_AND_DELETE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

/// The classic recipe with a token that rises, even if the server has lost its data.
const SET_AND_FENCE: &str = "\
    if not redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return false end \
    local time = redis.call('time') \
    local floor = time[1] * 1000000 + time[2] \
    local last = tonumber(redis.call('get', KEYS[2]) or 0) \
    local token = math.max(last + 1, floor) \
    redis.call('set', KEYS[2], string.format('%.0f', token), 'PX', 86400000) \
    return string.format('%.0f', token)";

const LEASE_MS: u32 = 30_000;

/// How long replicas may take, as with our lock.
const CONFIRMATION_MS: u32 = 100;
/// More connections for confirmations are no faster, and one alone is four times slower.
const CONFIRMING: usize = 16;

/// Over one connection, or over one of a cluster.
#[derive(Clone)]
struct Bare<C> {
    connection: C,
    release: Arc<redis::Script>,
    /// Takes the lock, and a token if one is wanted.
    fence: Option<Arc<redis::Script>>,
    /// Connections for locks that a replica has to confirm: `WAIT` holds up what comes after it on
    /// its connection. Empty if no replica has to.
    confirming: Arc<[C]>,
    owner: Arc<str>,
}

pub(crate) async fn work(job: Job, fenced: bool) {
    let Some(hosts) = job.url.strip_prefix("redis-cluster://") else {
        let mut confirming = Vec::new();
        if job.url.ends_with("?replicas=1") {
            for _ in 0..CONFIRMING {
                confirming.push(job.connection().await);
            }
        }
        let bare = Bare::new(job.connection().await, confirming, &job, fenced).await;
        return job.run(bare).await;
    };
    let nodes = hosts.split(',').map(|host| format!("redis://{host}/"));
    let client = ClusterClient::new(nodes).expect("URLs");
    let connection = client.get_async_connection().await;
    let connection = connection.expect("the cluster is up");
    let bare = Bare::new(connection, Vec::new(), &job, fenced).await;
    job.run(bare).await;
}

impl<C: ConnectionLike> Bare<C> {
    async fn new(mut connection: C, confirming: Vec<C>, job: &Job, fenced: bool) -> Self {
        let fence = redis::Script::new(SET_AND_FENCE);
        // So that it can be called by its hash in a pipeline.
        let loaded = fence.load_async(&mut connection).await;
        loaded.expect("the script can be loaded");
        Self {
            connection,
            release: Arc::new(redis::Script::new(COMPARE_AND_DELETE)),
            fence: fenced.then(|| Arc::new(fence)),
            confirming: confirming.into(),
            owner: format!("owner-of-a-bare-loop-{}", job.process).into(),
        }
    }

    /// Whether the lock is taken.
    async fn take(&self, connection: &mut C, key: &str, owner: &str) -> bool {
        let reply: Option<String> = match &self.fence {
            None => {
                let mut set = redis::cmd("SET");
                set.arg(key).arg(owner).arg("NX").arg("PX").arg(LEASE_MS);
                set.query_async(connection).await.expect("SET")
            }
            Some(script) => script
                .key(key)
                .key(counter(key))
                .arg(owner)
                .arg(LEASE_MS)
                .invoke_async(connection)
                .await
                .expect("the script"),
        };
        reply.is_some()
    }

    /// Whether the lock is taken, and a replica has it. `WAIT` covers the connection's writes.
    async fn take_confirmed(&self, connection: &mut C, key: &str, owner: &str) -> bool {
        let mut both = redis::pipe();
        match &self.fence {
            None => both.cmd("SET").arg(key).arg(owner).arg("NX").arg("PX"),
            Some(script) => {
                let both = both.cmd("EVALSHA").arg(script.get_hash()).arg(2);
                both.arg(key).arg(counter(key)).arg(owner)
            }
        };
        both.arg(LEASE_MS);
        both.cmd("WAIT").arg(1).arg(CONFIRMATION_MS);
        let replies: (Option<String>, u32) = both.query_async(connection).await.expect("replies");
        match replies {
            (Some(_), 0) => {
                self.give_back(connection, key, owner).await;
                false
            }
            (reply, _) => reply.is_some(),
        }
    }

    async fn give_back(&self, connection: &mut C, key: &str, owner: &str) {
        let mut script = self.release.key(key);
        let _: i64 = script
            .arg(owner)
            .invoke_async(connection)
            .await
            .expect("the script");
    }
}

/// The key of the counter of tokens, in the same slot of a cluster.
fn counter(key: &str) -> String {
    format!("{{{key}}}:fence")
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> Library for Bare<C> {
    type Held = (String, String);

    async fn acquire(&self, key: &str) -> Self::Held {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let owner = format!("{}-{number}", self.owner);
        let confirming = match self.confirming.is_empty() {
            true => None,
            false => self.confirming.get(number % self.confirming.len()),
        };
        let mut connection = confirming.unwrap_or(&self.connection).clone();
        let mut pause = 1;
        loop {
            let taken = match confirming {
                None => self.take(&mut connection, key, &owner).await,
                Some(_) => self.take_confirmed(&mut connection, key, &owner).await,
            };
            if taken {
                return (key.to_owned(), owner);
            }
            tokio::time::sleep(Duration::from_millis(pause)).await;
            pause = (pause * 2).min(64);
        }
    }

    async fn release(&self, (key, owner): Self::Held) {
        let mut connection = self.connection.clone();
        self.give_back(&mut connection, &key, &owner).await;
    }
}
