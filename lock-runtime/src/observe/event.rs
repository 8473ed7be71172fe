//! [`Event`]: what happens to the locks of a client.

use std::time::Duration;

use lock_store::{LockKey, Permits, StoreError};

use crate::error::{LockError, LostReason};

/// Something that happened to a client or to one of its requests; see
/// [`Observer`](crate::observe::Observer).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Event<'e> {
    /// The [name](crate::LockClientBuilder::name) of the client.
    pub client: &'e str,
    /// Which lock it is about. `None` for what concerns the client as a whole.
    pub lock: Option<Subject<'e>>,
    /// What happened.
    pub what: What<'e>,
    /// At the end of a request: whether it was [`Queued`](What::Queued) before.
    pub was_queued: bool,
}

impl<'e> Event<'e> {
    pub(crate) fn new(client: &'e str, lock: Option<Subject<'e>>, what: What<'e>) -> Self {
        Self {
            client,
            lock,
            what,
            was_queued: false,
        }
    }
}

/// Which lock an event is about.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Subject<'e> {
    /// What is locked. Of several keys, the first in their order.
    pub key: &'e LockKey,
    /// How many more keys are locked with it.
    pub more_keys: usize,
    /// The kind of lock.
    pub kind: LockKind,
}

impl<'e> Subject<'e> {
    pub(crate) fn new(key: &'e LockKey, more_keys: usize, kind: LockKind) -> Self {
        Self {
            key,
            more_keys,
            kind,
        }
    }

    /// The key's [template](LockKey::template), such as `stock:<product_id>`: what all keys of its
    /// kind are called. `None` for a key from a string without a
    /// [label](crate::Lock::label).
    #[must_use]
    pub fn template(&self) -> Option<&'static str> {
        self.key.template()
    }
}

lock_store::named! {
    "Its name in metrics and traces",
    /// A kind of lock.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum LockKind {
        /// One holder.
        Exclusive = "exclusive",
        /// The reading side of a read-write lock.
        Read = "read",
        /// The writing side of a read-write lock.
        Write = "write",
        /// Permits of a semaphore.
        Semaphore = "semaphore",
    }
}

impl LockKind {
    pub(crate) fn of(permits: Option<Permits>) -> Self {
        match permits {
            None => Self::Exclusive,
            Some(Permits::READ) => Self::Read,
            Some(Permits::WRITE) => Self::Write,
            Some(_) => Self::Semaphore,
        }
    }
}

/// What happened.
///
/// A request begins with [`Asked`](Self::Asked), and ends with exactly one of
/// [`Granted`](Self::Granted), [`Busy`](Self::Busy), [`Unavailable`](Self::Unavailable),
/// [`Refused`](Self::Refused) and [`Cancelled`](Self::Cancelled). A hold that was granted, and not
/// nested, ends with exactly one of [`Lost`](Self::Lost) and [`Released`](Self::Released).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum What<'e> {
    /// A request begins.
    Asked,
    /// It has to wait: the lock is taken, or other requests of this process are before it. Once a
    /// request, at most.
    Queued,
    /// It has its lock.
    #[non_exhaustive]
    Granted {
        /// Since it was asked for.
        waited: Duration,
        /// Whom it came from.
        how: GrantedBy,
    },
    /// It ended with [`LockError::Busy`].
    #[non_exhaustive]
    Busy {
        /// Since it was asked for.
        waited: Duration,
    },
    /// It ended with [`LockError::Unavailable`].
    #[non_exhaustive]
    Unavailable {
        /// Since it was asked for.
        waited: Duration,
        /// What the store said, or why it said nothing.
        error: &'e StoreError,
    },
    /// It ended with another error.
    #[non_exhaustive]
    Refused {
        /// Since it was asked for.
        waited: Duration,
        /// What is wrong.
        error: &'e LockError,
    },
    /// Its future was dropped before it ended.
    #[non_exhaustive]
    Cancelled {
        /// Since it was asked for.
        waited: Duration,
    },
    /// A hold was lost.
    #[non_exhaustive]
    Lost {
        /// Why.
        reason: LostReason,
        /// Since it was granted.
        held: Duration,
    },
    /// A hold ended with its guard. If the release fails, or finds the hold gone, in the
    /// background, that is counted in
    /// [`release_failures`](crate::observe::Stats::release_failures).
    #[non_exhaustive]
    Released {
        /// Since it was granted.
        held: Duration,
    },
    /// A hold was renewed.
    #[non_exhaustive]
    Renewed {
        /// How long after the first try, because tries failed. Zero if the first was answered.
        late: Duration,
    },
    /// A [`lead`](crate::Lock::lead) was called: from now on this process stands for the lock.
    Candidate,
    /// A [`lead`](crate::Lock::lead) has the lock, and its body begins.
    TermBegan,
    /// That body has ended, or was stopped.
    #[non_exhaustive]
    TermEnded {
        /// Since it began.
        lasted: Duration,
        /// How it ended.
        how: TermEnd,
    },
    /// The background has one more thing to do: to release a dropped guard, or to undo what a
    /// request may have left in the store.
    #[non_exhaustive]
    Undoing {
        /// How many undos and releases are under way in the background, with this one.
        pending: usize,
    },
    /// One of them is done, or its lease is over.
    #[non_exhaustive]
    Undone {
        /// How many undos and releases are still under way in the background.
        pending: usize,
    },
    /// A command to the store has ended: it was answered, or given up. Not told of a command whose
    /// request was dropped.
    #[non_exhaustive]
    Command {
        /// What the store was asked.
        verb: Verb,
        /// Until then.
        took: Duration,
        /// `None` if it was answered.
        error: Option<&'e StoreError>,
    },
    /// The client was made. From now on it connects.
    Started,
    /// A client of [`connect_lazy`](crate::LockClientBuilder::connect_lazy) can't reach the store
    /// yet, and goes on trying. Once, at most.
    #[non_exhaustive]
    Unreachable {
        /// Why.
        error: &'e StoreError,
    },
    /// A connection to a server is there, at first or again.
    #[non_exhaustive]
    Connected {
        /// `host:port`, or the path of a socket.
        server: &'e str,
    },
    /// A connection to a server is gone. Another is made, unless the client was shut down.
    #[non_exhaustive]
    Disconnected {
        /// `host:port`, or the path of a socket.
        server: &'e str,
        /// Why.
        error: &'e StoreError,
    },
}

lock_store::named! {
    "Its name in metrics and traces",
    /// How a term of a [`lead`](crate::Lock::lead) ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum TermEnd {
        /// Its body returned, and no other term follows.
        Returned = "returned",
        /// The lock was lost.
        Lost = "lost",
        /// The future of `lead` was dropped, or the body panicked.
        Dropped = "dropped",
    }
}

lock_store::named! {
    "Its name in metrics and traces",
    /// Whom a request has its lock from.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum GrantedBy {
        /// The store's reply to a command of its own. Of several keys, always.
        Store = "store",
        /// The release of another client, by the store's message.
        HandedOver = "handed_over",
        /// Another task of this process, without the store.
        HandedOff = "handed_off",
        /// The hold of its own call chain.
        Nested = "nested",
    }
}

lock_store::named! {
    "Its name in metrics and traces",
    /// A command of the client to the store. One may be several commands to several servers, or be
    /// a part of one: Redis gets those of some locks together.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Verb {
        /// Takes a lock, or a place in its queue.
        Acquire = "acquire",
        /// Takes several locks at once.
        AcquireAll = "acquire_all",
        /// Prolongs holds.
        Renew = "renew",
        /// Ends holds.
        Release = "release",
        /// Undoes what a request may have left.
        Undo = "undo",
        /// Gives a hold a fencing token.
        Fence = "fence",
        /// Makes a writer a reader.
        Downgrade = "downgrade",
        /// Asks who has a lock.
        Inspect = "inspect",
        /// Takes a lock away from its holder.
        ForceRelease = "force_release",
        /// Asks a rate limiter.
        Rate = "rate",
        /// Sets, counts or looks at a latch.
        Latch = "latch",
        /// Asks for a sign of life.
        Ping = "ping",
    }
}
