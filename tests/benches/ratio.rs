//! Our lock against a bare redis-rs loop of the classic recipe (SET NX PX, compare and delete, polling while busy), in
//! one run against one server, interleaved, medians of several rounds: `cargo bench -p lock-tests`.
//!
//! Only ratios are worth quoting; machines are shared and noisy.
#![expect(clippy::expect_used, reason = "a benchmark that can't go on ends")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use lock_runtime::LockClient;
use lock_tests::RedisServer;
use redis::aio::MultiplexedConnection;
use tokio::task::JoinSet;

const ROUNDS: usize = 7;

/// Tasks, whether they share one key, and cycles of each task.
const WORKLOADS: [(&str, usize, bool, usize); 3] = [
    ("solo: 1 task, 1 key", 1, true, 4000),
    ("many: 64 tasks, own keys", 64, false, 400),
    ("hot: 64 tasks, 1 key", 64, true, 60),
];

#[derive(Clone)]
enum Contender {
    Bare(MultiplexedConnection, Arc<redis::Script>),
    Ours(LockClient),
    OursFenced(LockClient),
    OursFair(LockClient),
}

impl Contender {
    async fn cycle(&mut self, key: &str, owner: &str) {
        match self {
            Self::Bare(connection, script) => {
                let mut pause = 1;
                loop {
                    let mut set = redis::cmd("SET");
                    set.arg(key).arg(owner).arg("NX").arg("PX").arg(30_000);
                    let reply: Option<String> = set.query_async(connection).await.expect("SET");
                    if reply.is_some() {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                    pause = (pause * 2).min(64);
                }
                let _: i64 = script
                    .key(key)
                    .arg(owner)
                    .invoke_async(connection)
                    .await
                    .expect("the script");
            }
            Self::Ours(client) => held(client.lock(key)).await,
            Self::OursFenced(client) => held(client.lock(key).fenced()).await,
            Self::OursFair(client) => held(client.lock(key).fair()).await,
        }
    }
}

async fn held(request: lock_runtime::Lock) {
    request
        .wait_forever()
        .acquire()
        .await
        .expect("the lock")
        .release()
        .await
        .expect("the release");
}

/// Cycles per second.
async fn measure(contender: &Contender, tasks: usize, shared: bool, cycles: usize) -> f64 {
    let started = Instant::now();
    let mut running = JoinSet::new();
    for task in 0..tasks {
        let mut contender = contender.clone();
        running.spawn(async move {
            let key = if shared {
                "hot".to_owned()
            } else {
                format!("own:{task}")
            };
            let owner = format!("owner-{task}-of-the-bare-loop");
            for _ in 0..cycles {
                contender.cycle(&key, &owner).await;
            }
        });
    }
    while let Some(task) = running.join_next().await {
        task.expect("no panic");
    }
    f64::from(u32::try_from(tasks * cycles).expect("few")) / started.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[tokio::main]
async fn main() {
    let server = RedisServer::start().await;
    let bare = redis::Client::open(server.url()).expect("a URL");
    let bare = bare
        .get_multiplexed_async_connection()
        .await
        .expect("a connection");
    let script = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";
    let ours = LockClient::builder()
        .url(server.url())
        .connect()
        .await
        .expect("a client");
    let contenders = [
        (
            "bare loop",
            Contender::Bare(bare, Arc::new(redis::Script::new(script))),
        ),
        ("ours", Contender::Ours(ours.clone())),
        ("ours, fenced", Contender::OursFenced(ours.clone())),
        ("ours, fair", Contender::OursFair(ours)),
        ("ours, in memory", Contender::Ours(LockClient::in_memory())),
    ];
    for (workload, tasks, shared, cycles) in WORKLOADS {
        let mut figures = vec![Vec::new(); contenders.len()];
        for _ in 0..ROUNDS {
            for (figures, (_, contender)) in figures.iter_mut().zip(&contenders) {
                figures.push(measure(contender, tasks, shared, cycles).await);
            }
        }
        println!("{workload}");
        let medians: Vec<f64> = figures.into_iter().map(median).collect();
        for ((name, _), cycles) in contenders.iter().zip(&medians) {
            println!(
                "  {name:16} {cycles:10.0} cycles/s  {:6.2} of the bare loop",
                cycles / medians[0]
            );
        }
    }
}
