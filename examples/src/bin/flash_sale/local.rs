//! The sale in one process: tasks as buyers, and the lock store in memory.

use std::sync::Arc;
use std::time::Instant;

use lock_runtime::LockClient;
use tokio::sync::mpsc;

use crate::Failure;
use crate::args::Args;
use crate::inventory::Inventory;
use crate::report::{Progress, Sale, Tally};
use crate::shop::Shop;

const PRODUCT_ID: u64 = 42;

pub(crate) async fn run(args: &Args) -> Result<Sale, Failure> {
    let locked = !args.no_lock;
    if locked {
        LockClient::in_memory().install()?;
    }
    let progress = Progress::start(args, "in this process");
    let (told, mut events) = mpsc::unbounded_channel();
    let inventory = Arc::new(Inventory::in_memory(args.items));
    let shop = Shop::new(Arc::clone(&inventory), told, None);

    let started = Instant::now();
    let selling = tokio::spawn(shop.open(PRODUCT_ID, args.buyers, locked));
    let mut tally = Tally::default();
    while let Some(event) = events.recv().await {
        tally.count(event);
        progress.show(&tally);
    }
    match selling.await {
        Ok(sold) => sold?,
        Err(stopped) => std::panic::resume_unwind(stopped.into_panic()),
    }
    let duration = started.elapsed();
    progress.finish();
    Ok(Sale {
        buyers: args.buyers,
        items: args.items,
        locked,
        tally,
        left: inventory.read().await?,
        duration,
        unfinished: 0,
    })
}
