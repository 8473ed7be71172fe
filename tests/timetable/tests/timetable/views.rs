//! What a store keeps for the namespace of a view, and until when.

use std::sync::{Arc, Mutex};

use lock_runtime::LockClient;
use lock_store::memory::MemoryStore;
use lock_store::{Instant, Namespace, SimulatedStop, Store, StoreFuture};
use lock_testkit_core::runtime_now;
use tokio::runtime::{Builder, Handle};

use crate::recording_store::ms;

/// A store that keeps something for the namespace `acme` as long as it is in use.
#[derive(Debug)]
struct Keeps {
    store: Arc<dyn Store>,
    looks: Arc<Looks>,
}

/// When it was asked to give up what is not in use, and whether that was in use.
#[derive(Debug)]
struct Looks {
    began: Instant,
    looks: Mutex<Vec<(u128, bool)>>,
}

impl Looks {
    /// Those since the last call.
    fn take(&self) -> Vec<(u128, bool)> {
        std::mem::take(&mut *self.looks.lock().unwrap())
    }
}

macro_rules! forwarded {
    ($($method:ident($($argument:ident: $type:ty),*) -> $Name:ident($reply:ty);)*) => {
        impl Store for Keeps {
            $(fn $method(&self, $($argument: $type,)* by: Instant) -> StoreFuture<'_, $reply> {
                self.store.$method($($argument,)* by)
            })*
            lock_store::delegate! {
                capabilities owner_of foreign_name foreign_lock tell await_connection migrate
                is_connected log_findings servers link link_of finish close is_closed
            }
            fn forget_unused_views(&self, has_any: &dyn Fn(&Namespace) -> bool) -> bool {
                let is_used = has_any(&Namespace::new("acme").unwrap());
                let since = runtime_now().saturating_duration_since(self.looks.began);
                self.looks.looks.lock().unwrap().push((since.as_millis(), is_used));
                is_used
            }
        }
    };
}

lock_store::operations!(forwarded);

/// Else a subscription is given up that a hold or a request still needs, or is never given up.
#[test]
fn what_a_store_keeps_for_a_view_is_given_up_when_the_view_has_nothing() {
    let mut runtime = Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let memory = MemoryStore::new();
        let client = |id, looks: &Arc<Looks>| {
            let (looks, memory) = (Arc::clone(looks), memory.clone());
            let builder = LockClient::builder().store(move |context| {
                let (store, looks) = (memory.connect(context), Arc::clone(&looks));
                Ok(Arc::new(Keeps { store, looks }))
            });
            builder
                .simulated(Handle::current(), id, SimulatedStop::default())
                .connect()
        };
        let looks = || {
            Arc::new(Looks {
                began: runtime_now(),
                looks: Mutex::default(),
            })
        };
        let (looks, others) = (looks(), looks());
        let other = client(8, &others).await.unwrap();
        let client = client(7, &looks).await.unwrap();
        let view = client.namespaced("acme");

        // The client's own namespace is none of a view.
        drop(client.lock("k").acquire().await.unwrap());
        ms(10_000).await;
        assert_eq!(looks.take(), []);

        let exclusive = view.lock("k").acquire().await.unwrap();
        ms(3000).await;
        assert_eq!(looks.take(), [(12_000, true)]);
        drop(exclusive);
        ms(2000).await;
        assert_eq!(looks.take(), [(14_000, false)]);
        // Nothing is left to give up.
        ms(10_000).await;
        assert_eq!(looks.take(), []);

        let permit = view.semaphore("s", 2).permit().acquire().await.unwrap();
        ms(3000).await;
        assert_eq!(looks.take(), [(27_000, true)]);
        drop(permit);
        ms(2000).await;
        assert_eq!(looks.take(), [(29_000, false)]);

        let held = other.namespaced("acme").lock("k").acquire().await.unwrap();
        let request = view.lock("k").wait_forever();
        let request = tokio::spawn(async move { request.acquire().await });
        ms(3000).await;
        assert_eq!(looks.take(), [(32_000, true)]);
        request.abort();
        ms(2000).await;
        assert_eq!(looks.take(), [(34_000, false)]);
        drop(held);

        let latch = view.latch("l");
        let waits = tokio::spawn(async move { latch.wait_forever().await });
        drop(view.lock("k").acquire().await.unwrap());
        ms(3000).await;
        assert_eq!(looks.take(), [(37_000, true)]);
        waits.abort();
        ms(2000).await;
        assert_eq!(looks.take(), [(39_000, false)]);
    });
}
