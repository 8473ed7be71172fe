//! [`Batched`]: requests of one client for one key, taken up together.
//!
//! A statement about a contended key locks its row until its commit. So one of a client is under
//! way at a time. The others wait for it, and then go as one statement: the row is locked once for
//! all of them, and committed once.

use std::sync::Arc;
use std::time::Duration;

use lock_store::{Answer, Failure, Instant, Replied};

use crate::errors::contended;
use crate::statement::LINK;
use crate::store::{PostgresStore, is_lately};
use crate::together::{LeftSeat, Together};

/// How soon after its time a statement has an end.
const ENDS_WITHIN: Duration = Duration::from_millis(50);

/// What can go together.
pub(crate) trait Batched: Sized + Send + 'static {
    type Reply: Send + 'static;

    /// The waiting requests of this kind.
    fn together(store: &PostgresStore) -> &Together<Self, Self::Reply>;

    /// Carries out requests for one key. The replies are in their order.
    fn carry_out(
        store: &PostgresStore,
        requests: Vec<Self>,
        by: Instant,
    ) -> impl Future<Output = Replied<Vec<Self::Reply>>> + Send;
}

impl PostgresStore {
    /// Carries out a request now, or with others when the one before has ended. A task does that:
    /// others wait for the end, and the caller may stop polling.
    pub(crate) async fn together<R: Batched>(
        &self,
        name: Vec<u8>,
        request: R,
        by: Instant,
    ) -> Replied<R::Reply> {
        let clock = &self.pool.clock;
        let mut place = R::together(self).join(&name, request, (clock.now(), by));
        if place.begins
            && let Some(store) = self.me.upgrade()
        {
            clock.spawn(carry_out_all::<R>(store, name.clone()));
        }
        let mut reply = clock.by(by, &mut place.replied).await;
        if reply.is_none()
            && let LeftSeat::Unsent(answered) = place.leave()
        {
            // Whoever waits for others learns from what they were told whether the server answers.
            let error = match answered.is_some_and(|at| is_lately(at, clock.now())) {
                true => contended(self.server()),
                false => self.silence(),
            };
            return Err(Failure::without_effect(error));
        }
        if reply.is_none() {
            // Its statement has as much time, and says more of the end.
            reply = clock.by(by + ENDS_WITHIN, &mut place.replied).await;
        }
        match reply {
            Some(Ok(reply)) => reply,
            _ => Err(Failure::unknown(self.silence(), LINK)),
        }
    }
}

/// Until nobody waits any more.
async fn carry_out_all<R: Batched>(store: Arc<PostgresStore>, name: Vec<u8>) {
    loop {
        let (mut requests, mut replies) = (Vec::new(), Vec::new());
        let mut by = store.pool.clock.now();
        for one in R::together(&store).next(&name) {
            by = by.max(one.by);
            requests.push(one.request);
            replies.push(one.reply);
        }
        if requests.is_empty() {
            return;
        }
        match R::carry_out(&store, requests, by).await {
            Ok(answer) => {
                for (reply, value) in replies.into_iter().zip(answer.value) {
                    let _ = reply.send(Ok(Answer::new(value, answer.link)));
                }
            }
            Err(failure) => {
                for reply in replies {
                    let _ = reply.send(Err(failure.clone()));
                }
            }
        }
    }
}
