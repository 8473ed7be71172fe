//! The patrol: takes back a handoff whose waiter nobody polls, and gives the next one its chance.

use std::sync::{Arc, Weak};

use super::queues::LocalQueues;
use crate::config::TAKEN_WITHIN;
use crate::engine::Engine;

/// The task. Ends with the engine.
pub(in crate::engine) async fn patrol(engine: Weak<Engine>, local_queues: Arc<LocalQueues>) {
    loop {
        local_queues.passing().await;
        loop {
            let Some(clock) = engine.upgrade().map(|engine| engine.clock.clone()) else {
                return;
            };
            clock.sleep_until(clock.now() + TAKEN_WITHIN).await;
            let Some(engine) = engine.upgrade() else {
                return;
            };
            let Some(handoffs) = local_queues.not_taken(clock.now() - TAKEN_WITHIN) else {
                break;
            };
            for handoff in handoffs {
                tracing::debug!(
                    key = %handoff.key().shortened(),
                    "a waiting task that is not polled is passed over"
                );
                engine.pass_back(handoff);
            }
        }
    }
}
