//! Whether a connection is dead or only slow.
//!
//! A firewall that forgets a quiet connection swallows what goes over it from then on, and says
//! nothing. So when an answer is late, the connection is asked for a sign of life, and at the same
//! time another one is made: if that is there first, the first is dead. A slow server, or a slow
//! way to it, answers first. The question is asked on the client's own thread: a caller that is not
//! polled, or waits for a processor, says nothing about its connection. Nothing is late that blocks
//! its connection and no other (`WAIT`).

use std::time::Duration;

use lock_store::StoreErrorKind;
use redis::Value;
use redis::aio::MultiplexedConnection;

use crate::errors;

/// An answer is late after this part of the command timeout.
const LATE: u32 = 4;
/// A connection that was only slow is doubted again after this time.
pub(super) const TRUSTED_FOR: Duration = Duration::from_secs(30);

/// After how long an answer is late.
pub(super) fn late(command_timeout: Duration) -> Duration {
    command_timeout / LATE
}

/// Waits for a sign of life, which never comes from a dead connection.
pub(super) async fn sign_of_life(over: &MultiplexedConnection) {
    let mut over = over.clone();
    let answer = redis::cmd("PING").query_async::<Value>(&mut over).await;
    // A refusal is one, too.
    if answer.is_err_and(|error| errors::kind(&error) == StoreErrorKind::Disconnected) {
        std::future::pending::<()>().await;
    }
}
