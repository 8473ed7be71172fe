//! A decorator for any store: every operation goes through one place, where a test sees the command
//! and decides about it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lock_store::{
    Answer, Asked, Capabilities, Claim, ClientId, ClientMessage, Failure, Finished, Instant,
    LatchCall, Link, LockKey, Store, StoreError, StoreErrorKind, StoreFuture,
};

use crate::clock::sleep_until;

/// A test's decision about each command of a client: record, delay or fail it, drop its reply, or
/// answer something else.
pub trait Interceptor: fmt::Debug + Send + Sync + 'static {
    /// Called when the client sends the command. [`Request::send`] carries it out. Without that
    /// call, the interceptor itself makes the answer.
    fn intercept<'s>(
        &'s self,
        store: &'s dyn Store,
        request: Request,
        by: Instant,
    ) -> StoreFuture<'s, Reply>;

    /// The link that the client sees; `own` is the store's.
    fn link(&self, own: Link) -> Link {
        own
    }

    /// The link that the client sees for an acquire of this key; `own` is the store's.
    fn link_of(&self, _key: &LockKey, own: Link) -> Link {
        self.link(own)
    }

    /// What the store can do. Its own is `own`.
    fn capabilities(&self, own: Capabilities) -> Capabilities {
        own
    }

    /// Called when the client tells another one something.
    fn tell<'s>(
        &'s self,
        store: &'s dyn Store,
        to: ClientId,
        message: ClientMessage,
        by: Instant,
    ) -> Asked<'s, bool> {
        store.tell(to, message, by)
    }

    /// Called before the store itself creates what it needs.
    fn migrate(&self, _by: Instant) {}

    /// Called before the store itself finishes what it does.
    fn finish(&self, _by: Instant) {}

    /// Called before the store itself is closed.
    fn close(&self) {}

    /// True if the client can't be answered any more, although the store is not closed.
    fn is_closed(&self) -> bool {
        false
    }
}

/// The store with an interceptor for each of its commands.
pub fn decorated(store: Arc<dyn Store>, interceptor: Arc<impl Interceptor>) -> Arc<dyn Store> {
    Arc::new(Decorated { store, interceptor })
}

/// A failure of this kind, with [`Failure::unknown`].
#[must_use]
pub fn failure(kind: StoreErrorKind, unknown: Option<Link>) -> Failure {
    let error = StoreError::new(kind, "the test failed this command");
    Failure::new(error, unknown)
}

/// A command that is not answered in time.
pub fn silence<T>(by: Instant, unknown: Option<Link>) -> StoreFuture<'static, T> {
    Box::pin(async move {
        sleep_until(by).await;
        Err(failure(StoreErrorKind::Timeout, unknown))
    })
}

#[derive(Debug)]
struct Decorated<I> {
    store: Arc<dyn Store>,
    interceptor: Arc<I>,
}

/// The operations: a method of [`Store`], its arguments, and the type of the reply.
macro_rules! verbs {
    ($($method:ident($($argument:ident: $type:ty),*) -> $Verb:ident($reply:ty);)*) => {
        /// A command of the store contract.
        #[derive(Clone, Debug)]
        pub enum Request {
            $(#[doc = concat!("[`Store::", stringify!($method), "`]")] $Verb($($type),*),)*
        }

        /// The reply to the [`Request`] of the same name.
        #[derive(Clone)]
        pub enum Reply {
            $(#[doc = concat!("To [`Store::", stringify!($method), "`].")] $Verb($reply),)*
        }

        impl Request {
            /// Sends it to this store.
            pub fn send(self, store: &dyn Store, by: Instant) -> StoreFuture<'_, Reply> {
                match self {
                    $(Self::$Verb($($argument),*) => {
                        let reply = store.$method($($argument,)* by);
                        Box::pin(async move { Ok(reply.await?.map(Reply::$Verb)) })
                    })*
                }
            }

            /// The name of the method.
            #[must_use]
            pub fn method(&self) -> &'static str {
                match self {
                    $(Self::$Verb(..) => stringify!($method),)*
                }
            }
        }

        impl Reply {
            /// The name of the method that this replies to.
            #[must_use]
            pub fn method(&self) -> &'static str {
                match self {
                    $(Self::$Verb(_) => stringify!($method),)*
                }
            }
        }

        /// Prints what the store's own types print.
        impl fmt::Debug for Reply {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$Verb(reply) => reply.fmt(f),)*
                }
            }
        }

        impl<I: Interceptor> Store for Decorated<I> {
            $(fn $method(&self, $($argument: $type,)* by: Instant) -> StoreFuture<'_, $reply> {
                let request = Request::$Verb($($argument),*);
                let reply = self.interceptor.intercept(&*self.store, request, by);
                Box::pin(async move {
                    let Answer { value, link, .. } = reply.await?;
                    match value {
                        Reply::$Verb(value) => Ok(Answer::new(value, link)),
                        other => {
                            panic!("{} gets a reply to {}", stringify!($method), other.method())
                        }
                    }
                })
            })*

            fn capabilities(&self) -> Capabilities {
                self.interceptor.capabilities(self.store.capabilities())
            }
            fn tell(&self, to: ClientId, message: ClientMessage, by: Instant) -> Asked<'_, bool> {
                self.interceptor.tell(&*self.store, to, message, by)
            }
            fn migrate(&self, by: Instant) -> Asked<'_, ()> {
                self.interceptor.migrate(by);
                self.store.migrate(by)
            }
            lock_store::delegate! {
                owner_of foreign_name foreign_lock forget_unused_views await_connection is_connected
                log_findings servers
            }
            fn link(&self) -> Link {
                self.interceptor.link(self.store.link())
            }
            fn link_of(&self, key: &LockKey) -> Link {
                self.interceptor.link_of(key, self.store.link_of(key))
            }
            fn finish(&self, by: Instant) -> Finished<'_> {
                self.interceptor.finish(by);
                self.store.finish(by)
            }
            fn close(&self) {
                self.interceptor.close();
                self.store.close();
            }
            fn is_closed(&self) -> bool {
                self.interceptor.is_closed() || self.store.is_closed()
            }
        }
    };
}

lock_store::operations!(verbs);

impl Request {
    /// The name of the method, without the prefix of latches.
    #[must_use]
    pub fn verb(&self) -> &'static str {
        let method = self.method();
        method.strip_prefix("latch_").unwrap_or(method)
    }

    /// The call on a latch, or the place among its waiters.
    #[must_use]
    pub fn latch_call(&self) -> Option<&LatchCall> {
        match self {
            Self::LatchSet(call, ..) | Self::LatchCountDown(call) => Some(call),
            Self::LatchWait(place) | Self::LatchLeave(place) => Some(place),
            _ => None,
        }
    }

    /// The claims in it, for holds that exist or are wanted.
    pub fn claims(&self) -> Box<dyn Iterator<Item = &Claim> + '_> {
        match self {
            Self::Acquire(request) | Self::Abandon(request) => {
                Box::new(std::iter::once(&request.claim))
            }
            Self::AcquireAll(requests) => Box::new(requests.iter().map(|request| &request.claim)),
            Self::Renew(holds) => Box::new(holds.iter().map(|hold| &hold.claim)),
            Self::Release(requests) => Box::new(requests.iter().map(|request| &request.claim)),
            Self::Fence(claim) | Self::Shrink(claim, _) => Box::new(std::iter::once(claim)),
            _ => Box::new(std::iter::empty()),
        }
    }

    /// The keys in it.
    #[must_use]
    pub fn keys(&self) -> Vec<&LockKey> {
        match self {
            Self::Inspect(key)
            | Self::Holders(key)
            | Self::ForceRelease(key)
            | Self::LatchLook(key) => vec![key],
            Self::Rate(request) => vec![&request.key],
            _ => match self.latch_call() {
                Some(call) => vec![&call.key],
                None => self.claims().map(|claim| &claim.key).collect(),
            },
        }
    }

    /// The shortest lease in it.
    #[must_use]
    pub fn lease(&self) -> Option<Duration> {
        match self {
            Self::Acquire(request) => Some(request.lease),
            Self::AcquireAll(requests) => requests.iter().map(|request| request.lease).min(),
            Self::Renew(holds) => holds.iter().map(|hold| hold.lease).min(),
            _ => None,
        }
    }
}
