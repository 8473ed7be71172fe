//! Connections that are driven by the callers' own runtimes, beside the one of the client's thread.
//!
//! A command over the client's thread costs two wake-ups more: until that thread sends it, and
//! until it has passed the reply on; so does the message of a grant. What must outlive a caller
//! still goes over the client's thread: renewals, and releases in the background.

use std::sync::{Arc, Weak};

use lock_store::timing::BACKOFF_MAX;
use lock_store::{Clock, Instant, Link, StoreError, StoreErrorKind};
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
use crate::topology::dial::{Dialed, dial};
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
            // A name can lead elsewhere by now.
            new = is_pinned(&main.client).then(|| self.next_link());
            new
        };
        let now = || self.context.clock.now();
        let link = self
            .runtimes
            .link_of(caller.id(), main.link, coming, now, make);
        if let Some(link) = new {
            let connection = Arc::downgrade(self);
            let leave = Leave { connection, link };
            caller.spawn(connect_and_stay(leave, Arc::clone(&main.client)));
        }
        link
    }
}

/// Keeps a connection authenticated, on the client's runtime: a caller's may have no timers.
struct Renewal(AbortHandle);

impl Renewal {
    fn of(made: &Dialed, context: &ClientContext, server: String) -> Option<Self> {
        let (connection, renew_at) = (made.connection.clone(), made.renew_at?);
        let (context, runtime) = (context.clone(), context.clock.handle().clone());
        let renewal = runtime.spawn(async move {
            keep_authenticated(connection, &context, Some(renew_at), &server).await
        });
        Some(Self(renewal.abort_handle()))
    }
}

impl Drop for Renewal {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Forgets the link when it is dropped: its runtime may end at any time.
struct Leave {
    connection: Weak<Connection>,
    link: Link,
}

/// Makes another connection of this client, and stays with it as long as it is good and the runtime
/// runs.
async fn connect_and_stay(own: Leave, client: Arc<Client>) {
    let Some(connection) = own.connection.upgrade() else {
        return;
    };
    let (context, link) = (connection.context.clone(), own.link);
    drop(connection);
    let clock = &context.clock;
    let subscriptions = Subscriptions::new(clock, false);
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
    let config = handler.config();
    let connect = async {
        let progress = Progress::default();
        // To another connection of this client.
        progress.replied();
        let mut made = dial(
            &client,
            None,
            &config,
            &context.access,
            context.asking(),
            &progress,
        )
        .await?;
        let hello = Hello::greet(&mut made.connection, &context.name).await;
        let hello = hello.map_err(|error| errors::store_error(&error))?;
        if hello.is_replica {
            let text = "the server is a replica by now";
            let error = StoreError::new(StoreErrorKind::ReadOnly, text);
            return Err(errors::advised(error));
        }
        Ok(made)
    };
    let by = clock.now() + context.timeouts.connect;
    let made = by_client(clock, by, connect).await;
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
            let renewal = Renewal::of(&made, &context, name_of(client.get_connection_info()));
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
            let _ = until.await;
            drop(renewal);
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

/// The future's output, or `None` at `by`, or when the client's thread ends before. A task of the
/// caller's runtime may outlive that thread, and to poll a timer of a runtime that has stopped is a
/// panic: so the timer stays in a task of the client, whose end is heard here.
async fn by_client<F: Future>(clock: &Clock, by: Instant, future: F) -> Option<F::Output> {
    let (timer, over) = oneshot::channel::<()>();
    let sleep = clock.clone();
    clock.spawn(async move {
        let mut timer = timer;
        let _ = sleep.by(by, timer.closed()).await;
    });
    tokio::select! {
        biased;
        output = future => Some(output),
        _ = over => None,
    }
}

impl Drop for Leave {
    fn drop(&mut self) {
        let Some(connection) = self.connection.upgrade() else {
            return;
        };
        let was_up = match std::thread::panicking() {
            // A runtime without the drivers of sockets and timers.
            true => connection.runtimes.rest_for_ever(self.link),
            false => connection.runtimes.remove(self.link),
        };
        if was_up {
            connection.tell_lost(self.link);
        }
    }
}
