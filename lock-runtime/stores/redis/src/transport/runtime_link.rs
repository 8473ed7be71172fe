//! Connections that are driven by the callers' own runtimes, beside the one of the client's thread.
//!
//! A command over the client's thread costs two wake-ups more: until that thread sends it, and
//! until it has passed the reply on. A runtime that drives a connection writes and reads it itself.
//! Its socket stays with the client's thread, which hears that there is something to read: nobody
//! can ask a runtime whether it has I/O, and to use it without is a panic. What must outlive a
//! caller still goes over the client's thread: renewals, and releases in the background.

use std::sync::{Arc, Weak};

use lock_store::timing::BACKOFF_MAX;
use lock_store::{Link, StoreError, StoreErrorKind};
use redis::Client;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::authentication::keep_authenticated;
use super::connected::Connected;
use super::connection::Connection;
use super::push::PushHandler;
use super::subscribe::Subscriptions;
use crate::context::ClientContext;
use crate::errors;
use crate::topology::address::name_of;
use crate::topology::dial::{Dialed, dial_for};
use crate::topology::hello::Hello;
use crate::topology::progress::Progress;
use crate::topology::server::is_pinned;

impl Connection {
    /// The link for a command of the caller's: that of its own runtime, if there is one. A request
    /// that is going to wait also takes one that is being made: it pays to hear of a grant there.
    pub(crate) fn link_here(self: &Arc<Self>, going_to_wait: bool) -> Link {
        let own = self.with_main(|main| self.runtime_link(main, going_to_wait));
        own.flatten().unwrap_or_else(|| self.link())
    }

    /// The link of the connection that the caller's runtime drives; if there is none, one is made
    /// for the next time.
    fn runtime_link(self: &Arc<Self>, main: &Connected, coming: bool) -> Option<Link> {
        // In a quorum every connection counts for itself.
        if !self.allows_runtimes {
            return None;
        }
        let caller = Handle::try_current().ok()?;
        // A runtime of one thread may be driven now and then only, and this one from elsewhere.
        if caller.runtime_flavor() == RuntimeFlavor::CurrentThread {
            return None;
        }
        let mut new = None;
        let make = || {
            // A name can lead elsewhere by now. What the redis crate drives, no other runtime can.
            let can_be_driven = is_pinned(&main.client) && main.driver.is_some();
            new = can_be_driven.then(|| self.next_link());
            new
        };
        let now = || self.context.clock.now();
        let link = self
            .runtimes
            .link_of(caller.id(), main.link, coming, now, make);
        if let Some(link) = new {
            let connection = Arc::downgrade(self);
            let leave = Leave { connection, link };
            let connect = connect(leave, caller, Arc::clone(&main.client));
            self.context.clock.spawn(connect);
        }
        link
    }
}

/// Keeps a connection authenticated, on the client's runtime.
struct LinkRenewal(AbortHandle);

impl LinkRenewal {
    fn of(made: &Dialed, context: &ClientContext, server: String) -> Option<Self> {
        let (connection, renew_at) = (made.connection.clone(), made.renew_at?);
        let (context, runtime) = (context.clone(), context.clock.handle().clone());
        let renewal = runtime.spawn(async move {
            // The client's own connection tries the rights.
            keep_authenticated(connection, &context, Some(renew_at), &server, None).await
        });
        Some(Self(renewal.abort_handle()))
    }
}

impl Drop for LinkRenewal {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Forgets the link when it is dropped: its runtime may end at any time.
struct Leave {
    connection: Weak<Connection>,
    link: Link,
}

/// Makes another connection of this client, on the client's thread. The caller's runtime drives it,
/// as long as it is good and that runtime runs.
async fn connect(own: Leave, caller: Handle, client: Arc<Client>) {
    let Some(connection) = own.connection.upgrade() else {
        return;
    };
    let (context, link) = (connection.context.clone(), own.link);
    drop(connection);
    let clock = &context.clock;
    let subscriptions = Subscriptions::new(&context, false);
    let handler = PushHandler {
        link,
        of_runtime: true,
        listener: context.listener.clone(),
        messages_are_hints: context.messages_are_hints,
        connection: own.connection.clone(),
        believes: None,
        subscriptions: Arc::clone(&subscriptions),
        // The client's own connection listens there.
        channels: None,
    };
    let by = clock.now() + context.timeouts.connect;
    let made = clock.by(by, dial_and_greet(&caller, &client, handler, &context));
    let made = made.await;
    let Some(connection) = own.connection.upgrade() else {
        return;
    };
    match made {
        Some(Ok(made)) => {
            tracing::debug!(
                link = link.0,
                "a runtime has its own connection to the lock store"
            );
            let (stay, until) = oneshot::channel();
            let renewal = LinkRenewal::of(&made, &context, name_of(client.get_connection_info()));
            let connected = Connected {
                link,
                connection: made.connection,
                driver: made.driver,
                since: clock.now(),
                client,
                counts_from: None,
                subscriptions,
                traffic: made.traffic,
            };
            connection.runtimes.made(link, connected, stay);
            drop(connection);
            caller.spawn(async move {
                let _ = until.await;
                drop((renewal, own));
            });
        }
        failed => {
            let error = failed.and_then(Result::err);
            tracing::debug!(
                link = link.0,
                error = error.map(tracing::field::display),
                "a runtime goes without a connection of its own for now"
            );
            connection.do_without(link, clock.now() + BACKOFF_MAX);
        }
    }
}

async fn dial_and_greet(
    caller: &Handle,
    client: &Client,
    handler: PushHandler,
    context: &ClientContext,
) -> Result<Dialed, StoreError> {
    let (config, progress) = (handler.config(), Progress::default());
    // It is another connection of this client.
    progress.replied();
    let dialed = dial_for(
        caller,
        client,
        None,
        &config,
        &context.access,
        context.asking(),
        &progress,
    );
    let mut made = dialed.await?;
    let hello = Hello::greet(&mut made.connection, &context.name).await;
    let hello = hello.map_err(|error| errors::store_error(&error))?;
    if hello.is_replica {
        let text = "the server is a replica by now";
        let error = StoreError::new(StoreErrorKind::ReadOnly, text);
        return Err(errors::advised(error));
    }
    Ok(made)
}

impl Drop for Leave {
    fn drop(&mut self) {
        let Some(connection) = self.connection.upgrade() else {
            return;
        };
        if connection.runtimes.remove(self.link) {
            connection.notify_lost(self.link);
        }
    }
}
