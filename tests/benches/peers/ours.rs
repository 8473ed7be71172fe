//! This process as one process of a service, with our lock or with a reference. It speaks the same
//! line protocol as the other crates' program.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lock_runtime::observe::MetricsObserver;
use lock_runtime::{Guard, Layout, LockClient};
use lock_testkit::monotonic_nanos;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::io::AsyncBufReadExt as _;

use crate::chain::Chain;
use crate::worker::{Job, Library};
use crate::{allocations, attribute, bare};

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
    let job = Job::read(&arguments[1..], monotonic_nanos, allocations::so_far);
    if job.kind == "attribute" {
        return attribute::work().await;
    }
    let way = match library {
        "no-lock" if job.kind == "turns" => return round_trips(&job).await,
        "no-lock" => return job.run(NoLock).await,
        "chain" => {
            let chain = Chain::new(&job).await;
            return job.run(chain).await;
        }
        "mutex" => return job.run(Mutex(Arc::default())).await,
        "bare" => return bare::work(job, false).await,
        "bare-fenced" => return bare::work(job, true).await,
        "ours-fenced" => Way::Fenced,
        "ours-fair" => Way::Fair,
        _ => Way::Plain,
    };
    let mut client = LockClient::builder().url(&job.url);
    if library == "ours-redisson" {
        client = client.layout(Layout::Redisson);
    }
    if library == "ours-observed" {
        // As the page about observability advises.
        let buckets = [0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 30.0];
        let recorder = PrometheusBuilder::new().set_buckets(&buckets);
        let recorder = recorder.expect("buckets").install_recorder();
        tokio::spawn(keep_small(recorder.expect("the first recorder")));
        client = client.observer(MetricsObserver::new());
    }
    let client = client.connect().await;
    job.run(Ours(client.expect("a client"), way)).await;
}

/// As the exporter's own listener does: histograms are kept as single values until then.
async fn keep_small(recorded: PrometheusHandle) {
    loop {
        tokio::time::sleep(Duration::from_secs(5)).await;
        recorded.run_upkeep();
    }
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
