//! The stream of a connection that keeps the client's leases alive.

use std::convert::Infallible;
use std::time::Duration;

use lock_store::ordered::{gone, silent};
use lock_store::{Clock, StoreError};

use crate::connection::Live;
use crate::errors::error_of;
use crate::leases::ClientLeases;
use crate::wire::{LeaseId, LeaseReply, path};

/// Keeps the leases alive, until the connection ends.
pub(crate) async fn keep_alive(
    live: &Live,
    leases: &ClientLeases,
    clock: &Clock,
    session: Duration,
) -> Result<Infallible, StoreError> {
    let server = &live.server;
    let opened = live.channel.stream(path::KEEP_ALIVE, live.identity.token());
    let failed = |error| error_of(error, server);
    let (mut outgoing, mut incoming) = opened.await.map_err(failed)?;
    let pause = pause_of(session);
    let silence = (session / 2).clamp(Duration::from_secs(1), Duration::from_millis(2_500));
    let mut beats_at = clock.now();
    loop {
        let reply = clock.by(beats_at, incoming.next::<LeaseReply>()).await;
        let now = clock.now();
        match reply.transpose().map_err(failed)? {
            Some(reply) if reply.seconds > 0 => {
                let term = reply.header.map_or(0, |header| header.raft_term);
                leases.answer(reply.id, now, term);
            }
            Some(reply) => {
                leases.remove(reply.id);
                if reply.id == live.epoch.lease {
                    return Err(gone(server, "the client's session is over"));
                }
            }
            None => {
                if leases.first_asked().is_some_and(|at| now - at > silence) {
                    return Err(silent(server));
                }
                for id in leases.ask(now) {
                    outgoing.send(&LeaseId { id }).map_err(failed)?;
                }
                beats_at = now + pause;
            }
        }
    }
}

/// The time between two keep-alives.
pub(crate) fn pause_of(session: Duration) -> Duration {
    (session / 5).min(Duration::from_secs(2))
}
