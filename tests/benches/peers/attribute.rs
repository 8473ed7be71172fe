//! What the attribute costs over `client.lock(key).run(…)` written by hand, on the in-memory store.
//!
//! Short batches run in turn, and the figure is the median of the ratios of neighbours, because
//! machines are shared. The hand-written call runs twice: its ratio to itself shows how far such a
//! figure can be trusted.

use std::hint::black_box;
use std::time::{Duration, Instant};

use lock_runtime::{LockClient, LockError, distributed_lock, lock_key};
use serde_json::{Value, json};
use tokio::io::AsyncBufReadExt as _;

const CALLS: u32 = 500;

#[derive(Clone, Copy)]
enum Way {
    ByHand,
    ByHandAgain,
    Attribute,
}

#[distributed_lock(key = "stock:<product_id>", lease = "10s", client = client)]
async fn deduct(client: &LockClient, product_id: u64, amount: u32) -> Result<u32, LockError> {
    Ok(black_box(amount) + 1)
}

async fn deduct_by_hand(
    client: &LockClient,
    product_id: u64,
    amount: u32,
) -> Result<u32, LockError> {
    client
        .lock(lock_key!("stock:<product_id>"))
        .lease(std::time::Duration::from_secs(10))
        .run(async move { Ok(black_box(amount) + 1) })
        .await?
}

/// Seconds for one batch.
async fn batch(client: &LockClient, way: Way) -> f64 {
    let started = Instant::now();
    for call in 0..CALLS {
        let sum = match way {
            Way::ByHand | Way::ByHandAgain => deduct_by_hand(client, 42, call).await,
            Way::Attribute => deduct(client, 42, call).await,
        };
        assert_eq!(sum.expect("the lock"), call + 1);
    }
    started.elapsed().as_secs_f64()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// `go SECONDS`: as many rounds as fit into that time.
pub(crate) async fn work() {
    println!("ready");
    let mut commands = tokio::io::BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(command)) = commands.next_line().await {
        let seconds = command.strip_prefix("go ").expect("`go SECONDS`");
        let time = Duration::from_secs_f64(seconds.parse().expect("seconds"));
        println!("{}", measure(time).await);
    }
}

async fn measure(time: Duration) -> Value {
    let client = LockClient::in_memory();
    let started = Instant::now();
    let mut by_hand = Vec::new();
    let mut again = Vec::new();
    let mut attribute = Vec::new();
    while started.elapsed() < time {
        // The order turns, so that no way is always first.
        let mut ways = [Way::ByHand, Way::ByHandAgain, Way::Attribute];
        ways.rotate_left(by_hand.len() % 3);
        let mut seconds = [0.0; 3];
        for way in ways {
            seconds[way as usize] = batch(&client, way).await;
        }
        by_hand.push(f64::from(CALLS) / seconds[0]);
        again.push(seconds[0] / seconds[1]);
        attribute.push(seconds[0] / seconds[2]);
    }
    let calls = median(&mut by_hand) * time.as_secs_f64();
    json!({
        "seconds": time.as_secs_f64(),
        "tasks": [calls as u64],
        "more": {
            "attribute / run()": median(&mut attribute),
            "run() / run()": median(&mut again),
        },
    })
}
