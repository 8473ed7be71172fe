//! [`Proof`]: makes sure that what a server says on its own comes over a connection.
//!
//! A proxy may take `SUBSCRIBE` and forward no message. So each connection publishes one to its own
//! client when it is up, and listens whether that comes. It costs nothing for a lock. Nodes of a
//! cluster are left out: they would send the message to each other.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use redis::Value;

use super::subscribe::Subscriptions;
use crate::config::Needs;
use crate::context::ClientContext;
use crate::errors;
use crate::resp::{Command, RespConnection};

/// What a client tells itself. No other version takes it for anything else.
const PROOF: &str = "1 proof";
/// How long its message may take after the server has said that it is published: it comes right
/// behind that word.
const COMES_WITHIN: Duration = Duration::from_millis(100);
/// How often it is sent.
const SENDS: u32 = 2;
/// After this time on a connection that is up, it is known whether messages come.
pub(crate) const KNOWN_WITHIN: Duration = Duration::from_millis(400);
/// The pause after a server that is loading, or is paused, has published nothing.
const AGAIN: Duration = Duration::from_millis(250);

/// What is wrong, and what to do, for people.
pub(crate) const DEAF: &str = "`SUBSCRIBE` is accepted and no message comes, as behind a proxy \
    that forwards replies only; so those who wait are not told of a release and ask each second, \
    and nobody can say who holds a lock: connect to the server itself, or by a proxy that forwards \
    all bytes of a connection";

/// A connection that is up, whose messages are waited for.
pub(super) struct Proof<'c> {
    pub(super) connection: &'c RespConnection,
    pub(super) subscriptions: &'c Subscriptions,
    pub(super) context: &'c ClientContext,
    pub(super) server: &'c str,
}

impl Proof<'_> {
    /// Tells the subscriptions whether messages come. Warns once, as `is_told` remembers.
    pub(super) async fn find(self, is_told: &mut bool) -> Infallible {
        let Needs::Locks(client) = self.context.needs else {
            return pending().await;
        };
        if self.subscriptions.are_known_to_be_heard() {
            return pending().await;
        }
        let (clock, connection) = (&self.context.clock, self.connection);
        let channel = self.context.namespace.own_channel(client);
        let mut publish = Command::new("PUBLISH");
        publish.arg(&channel).arg(PROOF);
        let mut sent = 0;
        while sent < SENDS {
            // It may not have been possible yet, and does nothing a second time.
            let subscribed = connection.subscribe("SUBSCRIBE", &channel, false, None);
            let published = match subscribed.await {
                Ok(()) => connection.query::<Value>(&publish).await,
                Err(error) => Err(error),
            };
            let pause = match published {
                Ok(_) => {
                    sent += 1;
                    COMES_WITHIN
                }
                Err(error) if errors::is_passing(&error) => AGAIN,
                // Whoever lacks a right is told so elsewhere.
                Err(_) => return pending().await,
            };
            let by = clock.now() + pause;
            if clock
                .by(by, self.subscriptions.until_heard())
                .await
                .is_some()
            {
                return pending().await;
            }
        }
        if !std::mem::replace(is_told, true) {
            tracing::warn!(server = %self.server, "the lock store: {DEAF}");
        }
        self.subscriptions.note_silence();
        pending().await
    }
}
