//! What the attribute costs over `client.lock(key).run(…)` written by hand, on the in-memory store:
//! `cargo bench -p lock-tests --bench attribute`.
//!
//! Short batches in turn, and the median of the ratios of neighbours, because machines are shared. The hand-written one
//! runs twice: the ratio of it to itself tells how far such a figure can be trusted.
#![expect(clippy::expect_used, reason = "a benchmark that can't go on ends")]

use std::hint::black_box;
use std::time::Instant;

use lock_runtime::{LockClient, LockError, distributed_lock, lock_key};

const ROUNDS: u32 = 400;
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

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let client = LockClient::in_memory();
    let mut by_hand = Vec::new();
    let mut again = Vec::new();
    let mut attribute = Vec::new();
    for round in 0..ROUNDS {
        // The order turns, so that none is always first.
        let mut ways = [Way::ByHand, Way::ByHandAgain, Way::Attribute];
        ways.rotate_left(round as usize % 3);
        let mut seconds = [0.0; 3];
        for way in ways {
            seconds[way as usize] = batch(&client, way).await;
        }
        by_hand.push(seconds[0] / f64::from(CALLS) * 1e6);
        again.push(seconds[1] / seconds[0]);
        attribute.push(seconds[2] / seconds[0]);
    }
    println!(
        "by hand              {:6.2} µs a call",
        median(&mut by_hand)
    );
    println!("by hand, once more   {:6.3} of it", median(&mut again));
    println!("the attribute        {:6.3} of it", median(&mut attribute));
}
