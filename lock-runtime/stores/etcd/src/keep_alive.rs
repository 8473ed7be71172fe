//! The stream of a connection that keeps the client's leases alive.

use std::time::Duration;

use lock_store::ordered::{gone, silent};
use lock_store::{Clock, StoreError};

use crate::connection::Live;
use crate::dial::error_of;
use crate::leases::ClientLeases;
use crate::wire::{LeaseId, LeaseReply, path};

/// Keeps the leases alive, until the connection ends.
pub(crate) async fn keep_alive(
    live: &Live,
    leases: &ClientLeases,
    clock: &Clock,
    session: Duration,
) -> StoreError {
    let server = &live.server;
    let opened = live.channel.stream(path::KEEP_ALIVE, live.identity.token());
    let (mut outgoing, mut incoming) = match opened.await {
        Ok(streams) => streams,
        Err(error) => return error_of(error, server),
    };
    let pause = pause_of(session);
    let silence = (session / 2).clamp(Duration::from_secs(1), Duration::from_millis(2_500));
    let mut beats_at = clock.now();
    loop {
        let reply = clock.by(beats_at, incoming.next::<LeaseReply>()).await;
        let now = clock.now();
        match reply {
            Some(Ok(reply)) if reply.seconds > 0 => {
                let term = reply.header.map_or(0, |header| header.raft_term);
                leases.answer(reply.id, now, term);
            }
            Some(Ok(reply)) => {
                leases.remove(reply.id);
                if reply.id == live.epoch.lease {
                    return gone(server, "the client's session is over");
                }
            }
            Some(Err(error)) => return error_of(error, server),
            None => {
                if leases.first_asked().is_some_and(|at| now - at > silence) {
                    return silent(server);
                }
                for id in leases.ask(now) {
                    if let Err(error) = outgoing.send(&LeaseId { id }) {
                        return error_of(error, server);
                    }
                }
                beats_at = now + pause;
            }
        }
    }
}

/// The time between two keep-alives.
fn pause_of(session: Duration) -> Duration {
    (session / 5).min(Duration::from_secs(2))
}
