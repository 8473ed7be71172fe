//! The first connection of a client that did not wait for it.

use std::sync::Arc;

use lock_store::timing::{BACKOFF_MAX, Timeouts};
use lock_store::{Clock, Store};

use crate::observe::{Events, What};

/// Says once that the store can't be reached, and once that it can, after that. Ends then, or when
/// the store is closed.
pub(super) async fn report(
    store: Arc<dyn Store>,
    clock: Clock,
    timeouts: Timeouts,
    events: Events,
) {
    let began = clock.now();
    let mut is_told = false;
    while !store.is_closed() {
        match store.await_connection(clock.now() + timeouts.connect).await {
            Ok(()) if is_told => {
                let after = clock.now().saturating_duration_since(began);
                tracing::info!(?after, "the lock store can be reached now");
                return;
            }
            Ok(()) => return,
            Err(error) if !is_told && !store.is_closed() => {
                is_told = true;
                tracing::warn!(
                    %error,
                    "the lock store can't be reached yet; no lock is given until it can"
                );
                events.record_later(None, move |recorder| {
                    recorder.record(What::Unreachable { error: &error });
                });
            }
            Err(_) => {}
        }
        clock.sleep_until(clock.now() + BACKOFF_MAX).await;
    }
}
