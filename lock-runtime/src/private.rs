//! What the attribute's expansion calls. Not for people: no name here is covered by semantic
//! versioning.

use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use pin_project_lite::pin_project;

use lock_store::{FencingToken, LockKey, Permits, StoreError, StoreErrorKind};

use crate::api::{Guard, Keys, Lock, Rate};
use crate::client::{self, LockClient};
use crate::error::LockError;

pub use crate::api::Run;
pub use crate::config::{Mode, Spec, Wait};
pub use lock_store::KeyWriter;

/// An argument on its way to the body, and never `Copy`.
///
/// A future keeps the place of a value that was copied on; of one that moved on it does not. So
/// this spares large `Copy` arguments a place.
#[derive(Debug)]
pub struct Argument<T>(T);

impl<T> Argument<T> {
    /// Keeps it.
    pub const fn new(argument: T) -> Self {
        Self(argument)
    }

    /// Hands it to the body.
    pub fn into_inner(self) -> T {
        self.0
    }
}

/// Takes the lock from the given client, or else from the scoped or the global one.
pub async fn acquire(
    client: Option<LockClient>,
    key: LockKey,
    spec: &Spec,
) -> Result<Guard, LockError> {
    request(client, Keys::One(key), spec)?.acquire().await
}

/// Takes one of so many permits.
pub async fn acquire_permits(
    client: Option<LockClient>,
    key: LockKey,
    permits: u32,
    spec: &Spec,
) -> Result<Guard, LockError> {
    let mode = Mode::Permits(Permits {
        count: 1,
        of: permits,
    });
    request(client, Keys::One(key), spec)?
        .mode(mode)
        .acquire()
        .await
}

/// Takes several locks at once.
pub async fn acquire_all<const N: usize>(
    client: Option<LockClient>,
    keys: [LockKey; N],
    spec: &Spec,
) -> Result<Guard, LockError> {
    request(client, Keys::Several(keys.into()), spec)?
        .acquire()
        .await
}

fn request(client: Option<LockClient>, keys: Keys, spec: &Spec) -> Result<Lock, LockError> {
    let client = match client {
        Some(client) => client,
        None => client::current()?,
    };
    let keys = match keys {
        Keys::One(key) => Keys::One(client.key(key)),
        Keys::Several(keys) => Keys::Several(keys.into_iter().map(|key| client.key(key)).collect()),
    };
    Ok(Lock::new(client.engine(), keys, client.spec(*spec)))
}

/// Asks the rate limiter of the given client, or else of the scoped or the global one.
pub async fn pass(
    client: Option<LockClient>,
    key: LockKey,
    rate: Rate,
    wait: Duration,
) -> Result<(), LockError> {
    let client = match client {
        Some(client) => client,
        None => client::current()?,
    };
    client.rate_limiter(key, rate).wait(wait).acquire().await
}

/// The token of a fenced hold.
pub fn fencing_token(guard: &Guard) -> Result<FencingToken, LockError> {
    guard.fencing_token().ok_or_else(|| no_token(guard))
}

/// The tokens of a fenced hold on several keys, as they were listed.
pub fn fencing_tokens<const N: usize>(guard: &Guard) -> Result<[FencingToken; N], LockError> {
    let tokens = guard.fencing_tokens().and_then(|all| all.try_into().ok());
    tokens.ok_or_else(|| no_token(guard))
}

fn no_token(guard: &Guard) -> LockError {
    LockError::Unavailable {
        key: Some(guard.key().clone()),
        source: StoreError::new(
            StoreErrorKind::Refused,
            "it granted the lock without a fencing token",
        ),
    }
}

/// The body under the guard, and what its call returns.
///
/// A value to `.await` and no call with arguments: the compiler then blames the user's own lines
/// for a wrong lifetime, and not the attribute's.
#[derive(Debug)]
pub struct Locked<'g, F, C> {
    /// Released behind the body.
    pub guard: &'g Guard,
    /// What the user wrote.
    pub body: F,
    /// Makes of an error what the function returns.
    pub convert: C,
}

impl<'g, F: Future, C: Convert<F::Output>> IntoFuture for Locked<'g, F, C> {
    type Output = F::Output;
    type IntoFuture = Converted<'g, F, C>;

    fn into_future(self) -> Self::IntoFuture {
        Converted {
            run: Run::new(self.guard, self.body),
            convert: Some(self.convert),
        }
    }
}

pin_project! {
    /// Runs a body under its guard, and gives what the function returns.
    #[must_use = "futures do nothing unless polled"]
    #[derive(Debug)]
    pub struct Converted<'g, F: Future, C> {
        #[pin]
        run: Run<'g, F>,
        convert: Option<C>,
    }
}

impl<F: Future, C: Convert<F::Output>> Future for Converted<'_, F, C> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        match (ready!(this.run.poll(cx)), this.convert.take()) {
            (Ok(output), _) => Poll::Ready(output),
            (Err(error), Some(convert)) => Poll::Ready(convert.convert(error)),
            // Polled after it was ready, which the contract of futures leaves open.
            (Err(_), None) => Poll::Pending,
        }
    }
}

/// Makes of an error what the function returns.
pub trait Convert<R> {
    /// The value that says it.
    fn convert(self, error: LockError) -> R;
}

impl<R> Convert<R> for fn(LockError) -> R {
    fn convert(self, error: LockError) -> R {
        self(error)
    }
}

impl<F, R> Convert<R> for OnError<F, R> {
    fn convert(self, error: LockError) -> R {
        self.call(error)
    }
}

/// Whether `on_busy = "skip"` skips.
pub fn is_busy(error: &LockError) -> bool {
    error.is_busy()
}

/// A return type that can say why there was no lock.
#[diagnostic::on_unimplemented(
    message = "a function under `#[distributed_lock]` or `#[rate_limited]` must be able to return \
        a `LockError`",
    label = "this return type can't carry a `LockError`",
    note = "return `Result<T, E>` with `E: From<LockError>` (as `anyhow::Result<T>`), or give \
        `on_error = |error| …`"
)]
pub trait FromLockError: Sized {
    /// The value that says it.
    fn from_lock(error: LockError) -> Self;
}

impl<T, E: From<LockError>> FromLockError for Result<T, E> {
    fn from_lock(error: LockError) -> Self {
        Err(error.into())
    }
}

/// A handler that is known to be callable: calling it needs no bound, so that one that is not is
/// one error, where it is written.
#[derive(Debug)]
pub struct OnError<F, R> {
    handler: F,
    call: fn(F, LockError) -> R,
}

/// The bound tells a closure its types, of which the return type is known.
pub fn on_error<R, F: FnOnce(LockError) -> R>(_: PhantomData<R>, handler: F) -> OnError<F, R> {
    OnError {
        handler,
        call: |handler, error| handler(error),
    }
}

impl<F, R> OnError<F, R> {
    /// The value that says it.
    pub fn call(self, error: LockError) -> R {
        (self.call)(self.handler, error)
    }
}

/// A return type that can say that the body was skipped.
#[diagnostic::on_unimplemented(
    message = "`on_busy = \"skip\"` needs a return type that can say that the body was skipped",
    label = "this return type can't",
    note = "return `()`, `Option<T>`, `Result<(), E>` or `Result<Option<T>, E>`"
)]
pub trait Skippable: Sized {
    /// The value that says it.
    fn skipped() -> Self;
}

impl Skippable for () {
    fn skipped() -> Self {}
}

impl<T> Skippable for Option<T> {
    fn skipped() -> Self {
        None
    }
}

impl<E> Skippable for Result<(), E> {
    fn skipped() -> Self {
        Ok(())
    }
}

impl<T, E> Skippable for Result<Option<T>, E> {
    fn skipped() -> Self {
        Ok(None)
    }
}
