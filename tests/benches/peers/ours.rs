//! This process as one process of a service, with our lock or with a reference. It speaks the same
//! line protocol as the other crates' program.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lock_runtime::{Guard, LockClient};
use lock_testkit::monotonic_nanos;
use redis::aio::MultiplexedConnection;
use tokio::io::AsyncBufReadExt as _;

use crate::attribute;
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

#[derive(Clone, Copy)]
enum Way {
    Plain,
    Fenced,
    Fair,
}

#[derive(Clone)]
struct Ours(LockClient, Way);

impl Library for Ours {
    type Held = Guard;

    async fn acquire(&self, key: &str) -> Guard {
        let lock = self.0.lock(key).wait_forever();
        let lock = match self.1 {
            Way::Plain => lock,
            Way::Fenced => lock.fenced(),
            Way::Fair => lock.fair(),
        };
        lock.acquire().await.expect("the lock")
    }

    async fn release(&self, held: Guard) {
        held.release().await.expect("the release");
    }
}

/// The usual hand-written lock: SET NX PX, a retry after a doubling pause, compare and delete.
#[derive(Clone)]
struct Bare {
    connection: MultiplexedConnection,
    release: Arc<redis::Script>,
    /// Takes the lock, and a token if one is wanted.
    fence: Option<Arc<redis::Script>>,
    owner: Arc<str>,
}

impl Bare {
    async fn new(job: &Job, fenced: bool) -> Self {
        Self {
            connection: job.connection().await,
            release: Arc::new(redis::Script::new(COMPARE_AND_DELETE)),
            fence: fenced.then(|| Arc::new(redis::Script::new(SET_AND_FENCE))),
            owner: format!("owner-of-a-bare-loop-{}", job.process).into(),
        }
    }
}

impl Library for Bare {
    type Held = (String, String);

    async fn acquire(&self, key: &str) -> Self::Held {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let owner = format!("{}-{}", self.owner, NEXT.fetch_add(1, Ordering::Relaxed));
        let mut connection = self.connection.clone();
        let mut pause = 1;
        loop {
            let reply: Option<String> = match &self.fence {
                None => {
                    let mut set = redis::cmd("SET");
                    set.arg(key).arg(&owner).arg("NX").arg("PX").arg(30_000);
                    set.query_async(&mut connection).await.expect("SET")
                }
                Some(script) => script
                    .key(key)
                    .key(format!("{key}:fence"))
                    .arg(&owner)
                    .arg(30_000)
                    .invoke_async(&mut connection)
                    .await
                    .expect("the script"),
            };
            if reply.is_some() {
                return (key.to_owned(), owner);
            }
            tokio::time::sleep(Duration::from_millis(pause)).await;
            pause = (pause * 2).min(64);
        }
    }

    async fn release(&self, (key, owner): Self::Held) {
        let _: i64 = self
            .release
            .key(key)
            .arg(owner)
            .invoke_async(&mut self.connection.clone())
            .await
            .expect("the script");
    }
}

/// One task without any lock: the cost of the work itself.
#[derive(Clone)]
struct NoLock;

impl Library for NoLock {
    type Held = ();

    async fn acquire(&self, _: &str) {}

    async fn release(&self, (): ()) {}
}

/// The least that a lock inside one process costs.
#[derive(Clone)]
struct Mutex(Arc<tokio::sync::Mutex<()>>);

impl Library for Mutex {
    type Held = tokio::sync::OwnedMutexGuard<()>;

    async fn acquire(&self, _: &str) -> Self::Held {
        Arc::clone(&self.0).lock_owned().await
    }

    async fn release(&self, held: Self::Held) {
        drop(held);
    }
}

/// `LIBRARY KIND URL TASKS PROCESS`.
pub(crate) async fn work(arguments: &[String]) {
    let library = arguments[0].as_str();
    let job = Job::read(&arguments[1..], monotonic_nanos);
    if job.kind == "attribute" {
        return attribute::work().await;
    }
    let way = match library {
        "no-lock" if job.kind == "turns" => return round_trips(&job).await,
        "no-lock" => return job.run(NoLock).await,
        "mutex" => return job.run(Mutex(Arc::default())).await,
        "bare" | "bare-fenced" => {
            let bare = Bare::new(&job, library == "bare-fenced").await;
            return job.run(bare).await;
        }
        "ours-fenced" => Way::Fenced,
        "ours-fair" => Way::Fair,
        _ => Way::Plain,
    };
    let client = LockClient::builder().url(&job.url).connect().await;
    job.run(Ours(client.expect("a client"), way)).await;
}

/// `ask`: one command and its reply, at the pace of the turns that are compared with it.
async fn round_trips(job: &Job) {
    let mut connection = job.connection().await;
    let mut commands = tokio::io::BufReader::new(tokio::io::stdin()).lines();
    println!("ready");
    while let Ok(Some(_)) = commands.next_line().await {
        let began = Instant::now();
        let _: Option<String> = redis::cmd("GET")
            .arg("bench")
            .query_async(&mut connection)
            .await
            .expect("a reply");
        println!("took {}", began.elapsed().as_nanos());
    }
}
