//! The patrol: takes from a waiter that nobody polls what others wait for.
//!
//! A future may stop being polled (an arm of a `select!`, a join that is held back) while it is the
//! first of its queue, or after it was given the lock. The client's own thread looks several times
//! a second as long as anybody waits. What it counts are its own looks, so a process that stood
//! still skips nobody when it goes on.

use std::sync::{Arc, Weak};

use lock_store::timing::QUEUE_TTL;
use lock_store::{Acquire, Claim, Queue};

use super::queues::LocalQueues;
use super::skipped::Skipped;
use crate::config::PATROL_EVERY;
use crate::engine::background::cleanup::{CleanupJob, PendingUndo};
use crate::engine::late_acquire::LateAcquire;
use crate::engine::timing;
use crate::engine::{Engine, sleep_unowned};

/// The task. Ends with the engine.
pub(in crate::engine) async fn patrol(engine: Weak<Engine>, local_queues: Arc<LocalQueues>) {
    loop {
        local_queues.patrol().await;
        loop {
            let Some(engine) = sleep_unowned(&engine, PATROL_EVERY).await else {
                return;
            };
            let Some(skipped) = local_queues.find_unpolled(engine.clock.now()) else {
                break;
            };
            for waiter in skipped {
                engine.skip(waiter);
            }
        }
    }
}

impl Engine {
    fn skip(&self, waiter: Skipped) {
        tracing::debug!(
            key = %waiter.key.shortened(),
            "a waiting task that is not polled is skipped"
        );
        let Skipped { key, request, had } = waiter;
        if let Some(handoff) = had.handoff {
            self.hand_off_or_end(handoff);
        }
        let Some(asked) = had.asked else { return };
        let now = self.clock.now();
        let (link, until) = (asked.link, self.late_until(now, request.lease));
        let claim = Claim::new(key.clone(), request.owner, request.permits);
        let mut undone = Acquire::new(claim, request.lease);
        undone.first_lease = timing::first_lease(request.lease);
        undone.wait = asked.wait;
        undone.tokens = asked.tokens;
        undone.queue = Queue::Join;
        self.cleanup.send(CleanupJob::Undo(PendingUndo {
            expires: until.max(now + QUEUE_TTL),
            holds_back: Some(self.local_queues.releasing(&key)),
            pending_outcome: had.is_unanswered.then_some(LateAcquire { link, until }),
            request: undone,
        }));
    }
}
