//! The embedded store, which keeps its queue and its holders so that many are quick to find, and
//! the rules over plain lists.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use lock_store::memory::MemoryStore;
use lock_store::{ClientId, Clock, Listener, Store};
use lock_testkit_core::drift::{Ages, compare_with_rules};
use lock_testkit_core::{Asks, context};
use tokio::runtime::{Builder, Runtime};

struct Aged {
    store: MemoryStore,
    paused: Runtime,
}

impl Ages for Aged {
    fn store(&self, id: ClientId, listener: &Arc<dyn Listener>, _: Clock) -> Arc<dyn Store> {
        let clock = Clock::simulated(self.paused.handle().clone());
        self.store.connect(context("lock", id, listener, clock))
    }

    fn tick(&self) -> u64 {
        1100
    }

    fn age(&self, millis: i64) -> Asks<'_, ()> {
        let millis = millis.try_into().unwrap();
        let advance = async || tokio::time::advance(Duration::from_millis(millis)).await;
        // A runtime can't run inside of another.
        thread::scope(|scope| {
            scope
                .spawn(|| self.paused.block_on(advance()))
                .join()
                .unwrap()
        });
        Box::pin(async {})
    }

    fn forgets_when_asked(&self) -> bool {
        false
    }

    fn remembers_suspensions(&self) -> bool {
        true
    }
}

#[test]
fn the_embedded_store_gives_the_replies_of_the_rules() {
    compare_with_rules(50_000, async || {
        let mut paused = Builder::new_current_thread();
        Aged {
            store: MemoryStore::new(),
            paused: paused.enable_all().start_paused(true).build().unwrap(),
        }
    });
}
