//! The ends of leases, of waits, and of what stays taken after a release.

use std::sync::Arc;

use super::carried::carry_out;
use super::engine::{Attempt, EngineHolds, OrderedEngine};
use super::own_requests::EndedRequest;
use crate::request::Acquire;

/// How that is deleted which is over.
pub trait EngineEnds: OrderedEngine {
    /// Deletes what is over at the servers, in a task, as often as it takes.
    fn bury(self: &Arc<Self>, ended: EndedRequest<Self::Child, Self::Details>);

    /// What is over by now, of what this client has.
    fn take_ended(&self) -> Vec<EndedRequest<Self::Child, Self::Details>> {
        self.own.lock().take_ended(self.clock.now())
    }
}

/// Ends what is over, until the client is closed.
pub(super) async fn end_in_time<E: EngineEnds>(me: Arc<E>) {
    while !me.connecting().is_closed() {
        let changed = me.ends.notified();
        let next = me.own.lock().next_end();
        match next {
            None => changed.await,
            Some(at) => {
                let _ = me.clock.by(at, changed).await;
            }
        }
        for ended in me.take_ended() {
            me.bury(ended);
        }
    }
}

/// Undoes an acquire, in a task, as often as it takes. The engine tries that until a lease would
/// have ended, but what it leaves here lasts for as long as the client does.
pub(super) fn keep_undoing<E: EngineHolds>(me: &Arc<E>, request: Acquire) {
    let (engine, owner) = (Arc::clone(me), request.claim.owner);
    let request = Arc::new(request);
    me.burials.undo(owner, move |by| {
        let (me, request) = (Arc::clone(&engine), Arc::clone(&request));
        async move {
            let progress = E::Progress::default();
            let abandon = async |live| me.abandon(&Attempt::new(&live, &progress), &request).await;
            me.connecting().is_closed() || carry_out(&*me, by, abandon).await.is_ok()
        }
    });
}
