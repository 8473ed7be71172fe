//! Connections that are driven by the callers' own runtimes, beside the one of the client's thread.
//!
//! A command over that one sleeps twice more than it must: until the client's thread sends it, and until that has passed
//! the reply on; so does a grant of which a message tells. Whatever must outlive a caller goes over it all the same:
//! renewals, and releases in the background.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use lock_store::timing::BACKOFF_MAX;
use lock_store::{Clock, Link, StoreError, StoreErrorKind};
use tokio::runtime::{self, Handle, RuntimeFlavor};
use tokio::sync::{oneshot, watch};

use super::ear::Ear;
use super::{Channels, Connected, Connection};
use crate::errors;
use crate::target::{Hello, is_pinned};

/// How long a runtime is left without one after a command over it was not answered: it may not be driven.
pub(super) const REST_IF_SILENT: Duration = Duration::from_secs(30);

/// One for each runtime that has asked; there are few.
#[derive(Debug, Default)]
pub(super) struct Nearby {
    seats: Mutex<Vec<Seat>>,
}

#[derive(Debug)]
struct Seat {
    runtime: runtime::Id,
    /// Its own number, also while it is being made.
    link: Link,
    /// The connection of the client's thread beside which it was made: both lead to the same server.
    main: Link,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The sender is dropped when that has ended.
    Making(watch::Sender<()>),
    Up {
        connected: Connected,
        /// Ends the task that stays with it.
        _stay: oneshot::Sender<()>,
    },
    /// There is none before this time; or never.
    Resting(Option<Instant>),
}

/// A connection that a runtime drives itself.
pub(super) enum Found {
    /// It is being made; this ends with that.
    Making(watch::Receiver<()>),
    /// It is there, beside that one of the client's thread.
    Up(Connected, Link),
}

/// Takes its seat away when it is dropped: its runtime may end at any time.
struct Leaving {
    connection: Weak<Connection>,
    link: Link,
}

impl Nearby {
    fn seats(&self) -> MutexGuard<'_, Vec<Seat>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What there is of this number now, beside this connection of the client's thread.
    pub(super) fn find(&self, link: Link, main: Option<Link>) -> Option<Found> {
        let seats = self.seats();
        let seat = seats.iter().find(|seat| seat.link == link)?;
        match &seat.state {
            State::Making(making) => Some(Found::Making(making.subscribe())),
            State::Up { connected, .. } if Some(seat.main) == main => {
                Some(Found::Up(connected.clone(), seat.main))
            }
            State::Up { .. } | State::Resting(_) => None,
        }
    }

    /// Whether there is one of this number, beside this connection of the client's thread.
    pub(super) fn has(&self, link: Link, main: Link) -> bool {
        let up = |seat: &Seat| {
            seat.link == link && seat.main == main && matches!(seat.state, State::Up { .. })
        };
        self.seats().iter().any(up)
    }

    /// Gives up the number of a connection that is being made still. Who asked for it goes another way, and what is heard
    /// over that says nothing of a connection that comes later.
    pub(super) fn give_up(&self, link: Link, until: Instant) {
        self.change(link, |state| match state {
            State::Making(_) => Some(State::Resting(Some(until))),
            _ => None,
        });
    }

    /// Leaves a runtime without a connection. True if there was one until now.
    fn rest(&self, link: Link, until: Instant, now: Instant) -> bool {
        self.change(link, |state| {
            let until = match state {
                // One that does not last is not made again at once.
                State::Up { connected, .. } if now < connected.since + BACKOFF_MAX => {
                    until.max(now + BACKOFF_MAX)
                }
                State::Resting(Some(longer)) => until.max(*longer),
                _ => until,
            };
            Some(State::Resting(Some(until)))
        })
    }

    /// One that was given up while it was made stays given up.
    fn made(&self, link: Link, connected: Connected, stay: oneshot::Sender<()>) {
        let mut up = Some(State::Up {
            connected,
            _stay: stay,
        });
        self.change(link, |state| match state {
            State::Making(_) => up.take(),
            _ => None,
        });
    }

    /// True if there was a connection until now.
    fn change(&self, link: Link, to: impl FnOnce(&State) -> Option<State>) -> bool {
        let mut seats = self.seats();
        let Some(seat) = seats.iter_mut().find(|seat| seat.link == link) else {
            return false;
        };
        let Some(state) = to(&seat.state) else {
            return false;
        };
        let before = std::mem::replace(&mut seat.state, state);
        // Its driver ends with it, and who waits for it is woken, which is not done under the lock.
        drop(seats);
        matches!(before, State::Up { .. })
    }

    pub(super) fn clear(&self) {
        let seats = std::mem::take(&mut *self.seats());
        drop(seats);
    }
}

impl Connection {
    /// The number of the connection that the caller's runtime drives; if there is none, one is made for the next time.
    /// With `coming`, also of one that is being made.
    pub(super) fn near(self: &Arc<Self>, main: &Connected, coming: bool) -> Option<Link> {
        // In a quorum every connection counts for itself.
        if !self.allows_near {
            return None;
        }
        let caller = Handle::try_current().ok()?;
        // A runtime of one thread may be driven now and then only, and this one from elsewhere.
        if caller.runtime_flavor() == RuntimeFlavor::CurrentThread {
            return None;
        }
        let runtime = caller.id();
        let mut seats = self.nearby.seats();
        let place = seats.iter().position(|seat| seat.runtime == runtime);
        if let Some(seat) = place.map(|at| &seats[at])
            && seat.main == main.link
        {
            match &seat.state {
                State::Up { .. } => return Some(seat.link),
                State::Making(_) => return coming.then_some(seat.link),
                State::Resting(None) => return None,
                State::Resting(Some(until)) if self.clock.now() < *until => return None,
                State::Resting(Some(_)) => {}
            }
        }
        // A name can lead elsewhere by now.
        if !is_pinned(&main.client) {
            return None;
        }
        let link = self.next_link();
        let seat = Seat {
            runtime,
            link,
            main: main.link,
            state: State::Making(watch::Sender::new(())),
        };
        let before = match place {
            Some(at) => Some(std::mem::replace(&mut seats[at], seat)),
            None => {
                seats.push(seat);
                None
            }
        };
        drop(seats);
        drop(before);
        caller.spawn(stay(
            Leaving {
                connection: Arc::downgrade(self),
                link,
            },
            main.clone(),
        ));
        coming.then_some(link)
    }

    /// Leaves a runtime without one until then. Who waits to hear something over it looks again.
    pub(super) fn do_without(&self, link: Link, until: Instant) {
        if self.nearby.rest(link, until, self.clock.now()) {
            self.tell_lost(link);
        }
    }

    fn tell_lost(&self, link: Link) {
        if let Some(listener) = self.listener.upgrade() {
            listener.lost(link);
        }
    }
}

/// Waits until a connection is made, or given up. `None` if that takes too long.
pub(super) async fn made(
    mut making: watch::Receiver<()>,
    by: Instant,
    clock: &Clock,
) -> Option<()> {
    clock.by(by, making.changed()).await.map(drop)
}

/// Makes a connection beside `main`, and stays with it as long as it is good and the runtime runs.
async fn stay(seat: Leaving, main: Connected) {
    let Some(connection) = seat.connection.upgrade() else {
        return;
    };
    let (clock, connect_timeout) = (connection.clock.clone(), connection.connect_timeout);
    let (link, channels) = (seat.link, Channels::new(&clock));
    let ear = Ear {
        link,
        near: true,
        listener: connection.listener.clone(),
        connection: seat.connection.clone(),
        membership: None,
        channels: Arc::clone(&channels),
    };
    drop(connection);
    let config = ear.config();
    let client = Arc::clone(&main.client);
    let connect = async {
        let made = client.get_multiplexed_async_connection_with_config(&config);
        let mut made = made.await.map_err(|error| errors::store_error(&error))?;
        let hello = Hello::of(&mut made).await;
        let hello = hello.map_err(|error| errors::store_error(&error))?;
        if hello.is_replica() {
            let text = "the server is a replica by now";
            return Err(StoreError::new(StoreErrorKind::ReadOnly, text));
        }
        Ok(made)
    };
    let made = clock.by(clock.now() + connect_timeout, connect).await;
    let Some(connection) = seat.connection.upgrade() else {
        return;
    };
    match made {
        Some(Ok(made)) => {
            tracing::debug!(
                link = link.0,
                "a runtime has its own connection to the lock store"
            );
            let (stay, until) = oneshot::channel();
            let connected = Connected {
                link,
                connection: made,
                since: connection.clock.now(),
                client,
                sharded: false,
                counts_from: main.counts_from,
                channels,
            };
            connection.nearby.made(link, connected, stay);
            drop(connection);
            let _ = until.await;
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

impl Drop for Leaving {
    fn drop(&mut self) {
        let Some(connection) = self.connection.upgrade() else {
            return;
        };
        if std::thread::panicking() {
            // A runtime without the drivers of sockets and timers.
            let never = |_: &State| Some(State::Resting(None));
            if connection.nearby.change(self.link, never) {
                connection.tell_lost(self.link);
            }
            return;
        }
        let mut seats = connection.nearby.seats();
        // One that rests tells for how long.
        let at = seats
            .iter()
            .position(|seat| seat.link == self.link && !matches!(seat.state, State::Resting(_)));
        let seat = at.map(|at| seats.swap_remove(at));
        drop(seats);
        if let Some(State::Up { .. }) = seat.map(|seat| seat.state) {
            connection.tell_lost(self.link);
        }
    }
}
