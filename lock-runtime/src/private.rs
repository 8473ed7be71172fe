//! What the attribute's expansion calls. Not for people: no name here is covered by semantic
//! versioning.

use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use pin_project_lite::pin_project;

use lock_store::{FencingToken, LockKey, Permits, StoreError, StoreErrorKind};

use crate::api::{Guard, Lock, Rate};
use crate::client::{self, LockClient};
use crate::error::LockError;
use crate::one_or_more::OneOrMore;

pub use crate::api::{GuardedBody, Slot, ThenRelease};
pub use crate::config::{Mode, Spec, Wait};
pub use lock_store::KeyWriter;

/// Takes the lock from the given client, or else from the scoped or the global one. Resolves under
/// the guard, or never: then the body is dropped, and the function returns the error.
pub async fn acquire<'s>(
    slot: &'s Slot,
    client: Option<LockClient>,
    key: LockKey,
    spec: &Spec,
) -> &'s Guard {
    let acquired = match request(client, OneOrMore::One(key), spec) {
        Ok(lock) => lock.acquire().await,
        Err(error) => Err(error),
    };
    slot.fill(acquired).await
}

/// Takes one of `permits` permits.
pub async fn acquire_permits<'s>(
    slot: &'s Slot,
    client: Option<LockClient>,
    key: LockKey,
    permits: u32,
    spec: &Spec,
) -> &'s Guard {
    let mode = Mode::Permits(Permits {
        count: 1,
        of: permits,
    });
    let acquired = match request(client, OneOrMore::One(key), spec) {
        Ok(lock) => lock.mode(mode).acquire().await,
        Err(error) => Err(error),
    };
    slot.fill(acquired).await
}

/// Takes several locks at once.
pub async fn acquire_all<'s, const N: usize>(
    slot: &'s Slot,
    client: Option<LockClient>,
    keys: [LockKey; N],
    spec: &Spec,
) -> &'s Guard {
    let acquired = match request(client, OneOrMore::Several(keys.into()), spec) {
        Ok(lock) => lock.acquire().await,
        Err(error) => Err(error),
    };
    slot.fill(acquired).await
}

fn request(
    client: Option<LockClient>,
    keys: OneOrMore<LockKey>,
    spec: &Spec,
) -> Result<Lock, LockError> {
    let client = client.map_or_else(client::current, Ok)?;
    let keys = keys.map(|key| client.key(key));
    Ok(Lock::new(client.engine(), keys, client.spec(*spec)))
}

/// Asks the rate limiter of the given client, or else of the scoped or the global one.
pub async fn pass(
    client: Option<LockClient>,
    key: LockKey,
    rate: Rate,
    wait: Duration,
) -> Result<(), LockError> {
    let client = client.map_or_else(client::current, Ok)?;
    client.rate_limiter(key, rate).wait(wait).acquire().await
}

/// The token of a fenced hold. A body without its token goes no further.
pub async fn fencing_token(slot: &Slot, guard: &Guard) -> FencingToken {
    match guard.fencing_token() {
        Some(token) => token,
        None => slot.refuse(no_token(guard)).await,
    }
}

/// The tokens of a fenced hold on several keys, as they were listed.
pub async fn fencing_tokens<const N: usize>(slot: &Slot, guard: &Guard) -> [FencingToken; N] {
    let tokens = guard.fencing_tokens().and_then(|all| all.try_into().ok());
    match tokens {
        Some(tokens) => tokens,
        None => slot.refuse(no_token(guard)).await,
    }
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

/// A body that takes the lock first, and what its call returns, after the release.
///
/// A value to `.await` and no call with arguments: the compiler then blames the user's own lines
/// for a wrong lifetime, and not the attribute's.
#[derive(Debug)]
pub struct Locked<'s, F, C> {
    /// Where the body puts the lock.
    pub slot: &'s Slot,
    /// What the user wrote.
    pub body: F,
    /// Makes of an error what the function returns.
    pub convert: C,
}

impl<'s, F: Future, C: Convert<F::Output>> IntoFuture for Locked<'s, F, C> {
    type Output = F::Output;
    type IntoFuture = ThenRelease<'s, Converted<'s, F, C>, F::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let (slot, body, convert) = (self.slot, self.body, self.convert);
        ThenRelease::new(slot, Converted::new(slot, body, convert))
    }
}

/// Runs the body and stops it when the lock is lost. Does not release.
#[derive(Debug)]
pub struct StopWhenLost<'s, F, C> {
    /// Where the body puts the lock.
    pub slot: &'s Slot,
    /// What the user wrote.
    pub body: F,
    /// Makes of an error what the function returns.
    pub convert: C,
}

impl<'s, F: Future, C: Convert<F::Output>> IntoFuture for StopWhenLost<'s, F, C> {
    type Output = F::Output;
    type IntoFuture = Converted<'s, F, C>;

    fn into_future(self) -> Self::IntoFuture {
        Converted::new(self.slot, self.body, self.convert)
    }
}

/// Releases after the body, and what is around its [`StopWhenLost`], is gone.
#[derive(Debug)]
pub struct ReleaseAfter<'s, F> {
    /// Where the lock is.
    pub slot: &'s Slot,
    /// What the lock has to outlive.
    pub body: F,
}

impl<'s, F: Future> IntoFuture for ReleaseAfter<'s, F> {
    type Output = F::Output;
    type IntoFuture = ThenRelease<'s, F, F::Output>;

    fn into_future(self) -> Self::IntoFuture {
        ThenRelease::new(self.slot, self.body)
    }
}

pin_project! {
    /// Runs a body, and gives what the function returns.
    #[must_use = "futures do nothing unless polled"]
    #[derive(Debug)]
    pub struct Converted<'s, F, C> {
        #[pin]
        run: GuardedBody<'s, F>,
        convert: Option<C>,
    }
}

impl<'s, F, C> Converted<'s, F, C> {
    fn new(slot: &'s Slot, body: F, convert: C) -> Self {
        Self {
            run: GuardedBody::new(slot, body),
            convert: Some(convert),
        }
    }
}

impl<F: Future, C: Convert<F::Output>> Future for Converted<'_, F, C> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        match (ready!(this.run.poll(cx)), this.convert.take()) {
            (Ok(output), _) => Poll::Ready(output),
            (Err(error), Some(convert)) => Poll::Ready(convert.convert(error)),
            // Polled after it was ready.
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
        (self.call)(self.handler, error)
    }
}

/// What `on_busy = "skip"` returns of a busy lock.
#[derive(Debug)]
pub struct Skip<R, C> {
    /// The value that says it.
    pub skipped: fn() -> R,
    /// For every other error.
    pub convert: C,
}

impl<R, C: Convert<R>> Convert<R> for Skip<R, C> {
    fn convert(self, error: LockError) -> R {
        match error.is_busy() {
            true => (self.skipped)(),
            false => self.convert.convert(error),
        }
    }
}

/// A return type that can say why there was no lock.
#[diagnostic::on_unimplemented(
    message = "a function under `#[distributed_lock]` or `#[rate_limited]` must be able to return \
        a `LockError`",
    label = "this return type can't carry a `LockError`",
    note = "return `Result<T, E>` with `E: From<LockError>` (as `anyhow::Result<T>`), or give \
        `on_error = |error| …`, for `Result<T, String>` `on_error = |error| Err(error.to_string())`"
)]
pub trait FromLockError: Sized {
    /// The value that says it.
    fn from_lock(error: LockError) -> Self;
}

// Else the error is that a `String`, for example, is not made from a `LockError`, and `on_error`,
// which helps, is not named.
#[diagnostic::do_not_recommend]
impl<T, E: From<LockError>> FromLockError for Result<T, E> {
    fn from_lock(error: LockError) -> Self {
        Err(error.into())
    }
}

/// A return type that can say why there was no lock, where a busy one is no error.
#[diagnostic::on_unimplemented(
    message = "a function under `#[distributed_lock]` must be able to return a `LockError`, also \
        with `on_busy = \"skip\"`: a store that does not answer is no busy lock",
    label = "this return type can't carry a `LockError`",
    note = "return `Result<(), E>` or `Result<Option<T>, E>` with `E: From<LockError>`, or `()` to \
        have other errors logged, or give `on_error = |error| …`"
)]
pub trait FromOtherError: Sized {
    /// The value that says it.
    fn from_lock(error: LockError) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T, E: From<LockError>> FromOtherError for Result<T, E> {
    fn from_lock(error: LockError) -> Self {
        Err(error.into())
    }
}

impl FromOtherError for () {
    fn from_lock(error: LockError) {
        match error.is_lost() {
            true => tracing::error!(%error, "a job lost its lock: it ran, in part or to its end"),
            false => tracing::error!(%error, "a job did not run"),
        }
    }
}

/// A handler, and how to call it. Its bound is checked once, where it is written, so a wrong
/// handler is one error.
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
