//! The business: to sell an item is to read, think and write.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use lock_runtime::{LockError, distributed_lock};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;

use crate::event::{Event, Moment};
use crate::inventory::{Inventory, InventoryError};

/// How long a sale thinks between reading the inventory and writing it: a payment, a fraud check.
const THINK: Duration = Duration::from_millis(10);

/// What stops the sale.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SaleError {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Inventory(#[from] InventoryError),
}

/// What a process sells from, and where it reports.
#[derive(Debug)]
pub(crate) struct Shop {
    inventory: Arc<Inventory>,
    events: UnboundedSender<Event>,
    /// For `--crash`: after this many buyers, the next one hangs inside.
    hang_after: Option<u32>,
    entered: AtomicU32,
}

/// Sells one item, if one is left. This line is the whole lock:
#[distributed_lock(key = "stock:<product_id>", lease = "2s", wait = "forever")]
async fn sell(shop: &Shop, product_id: u64, asked: Instant) -> Result<(), SaleError> {
    read_think_write(shop, asked).await
}

/// The same without that line.
async fn sell_without_lock(shop: &Shop, asked: Instant) -> Result<(), SaleError> {
    read_think_write(shop, asked).await
}

/// Right only if no other sale does the same at the same time.
async fn read_think_write(shop: &Shop, asked: Instant) -> Result<(), SaleError> {
    shop.let_in(asked).await;

    let left = shop.inventory.read().await?;
    if left == 0 {
        shop.report(Event::SoldOut);
        return Ok(());
    }
    tokio::time::sleep(THINK).await;
    shop.inventory.write(left - 1).await?;

    // Reported before the next buyer gets in, so that a killed process has reported all that it
    // sold.
    shop.report(Event::Sold);
    Ok(())
}

impl Shop {
    pub(crate) fn new(
        inventory: Arc<Inventory>,
        events: UnboundedSender<Event>,
        hang_after: Option<u32>,
    ) -> Self {
        Self {
            inventory,
            events,
            hang_after,
            entered: AtomicU32::new(0),
        }
    }

    /// Serves this many buyers, all at once, until each has an answer or something fails.
    pub(crate) async fn open(
        self,
        product_id: u64,
        buyers: u32,
        locked: bool,
    ) -> Result<(), SaleError> {
        let shop = Arc::new(self);
        let mut queue = JoinSet::new();
        for _ in 0..buyers {
            queue.spawn(Arc::clone(&shop).serve(product_id, locked));
        }
        while let Some(served) = queue.join_next().await {
            match served {
                Ok(served) => served?,
                Err(stopped) => std::panic::resume_unwind(stopped.into_panic()),
            }
        }
        Ok(())
    }

    async fn serve(self: Arc<Self>, product_id: u64, locked: bool) -> Result<(), SaleError> {
        let asked = Instant::now();
        let served = if locked {
            sell(&self, product_id, asked).await
        } else {
            sell_without_lock(&self, asked).await
        };
        match served {
            // This buyer gets no answer, and it is unknown whether the write was done. It is
            // counted, not hidden.
            Err(SaleError::Lock(LockError::Lost { .. })) => {
                self.report(Event::Interrupted);
                Ok(())
            }
            served => served,
        }
    }

    async fn let_in(&self, asked: Instant) {
        self.report(Event::Entered {
            waited: asked.elapsed(),
            at: Moment::now(),
        });
        if self.hang_after == Some(self.entered.fetch_add(1, Ordering::Relaxed)) {
            self.report(Event::Hanging);
            std::future::pending::<()>().await;
        }
    }

    fn report(&self, event: Event) {
        // There is no listener any more when an error ended the sale. That error is reported
        // elsewhere.
        let _ = self.events.send(event);
    }
}
