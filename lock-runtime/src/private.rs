//! What the attribute's expansion calls. Not for people: no name here is covered by semantic versioning.

pub use core::time::Duration;

pub use crate::config::{Spec, Wait};
pub use crate::key::KeyWriter;
pub use crate::run::Run;

use crate::client::{self, LockClient};
use crate::error::{LockError, StoreError, StoreErrorKind};
use crate::guard::Guard;
use crate::key::LockKey;
use crate::request::Lock;
use crate::sync::Rate;
use crate::token::FencingToken;

/// An argument on its way to the body, and never `Copy`.
///
/// A future keeps the place of a value that was copied on; of one that moved on it does not. So this spares large
/// `Copy` arguments a place.
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
    spec: &'static Spec,
) -> Result<Guard, LockError> {
    let client = match client {
        Some(client) => client,
        None => client::current()?,
    };
    Lock::with_spec(client, key, spec).acquire().await
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
    guard.fencing_token().ok_or_else(|| LockError::Unavailable {
        key: Some(guard.key().clone()),
        source: StoreError::new(
            StoreErrorKind::Refused,
            "it granted the lock without a fencing token",
        ),
    })
}

/// Runs the body under the guard, and releases.
pub fn run<F: Future>(guard: &Guard, body: F) -> Run<'_, F> {
    guard.run(body)
}

/// Whether `on_busy = "skip"` skips.
pub fn is_busy(error: &LockError) -> bool {
    error.is_busy()
}

/// A return type that can say why there was no lock.
#[diagnostic::on_unimplemented(
    message = "a function under `#[distributed_lock]` or `#[rate_limited]` must be able to return a `LockError`",
    label = "this return type can't carry a `LockError`",
    note = "return `Result<T, E>` with `E: From<LockError>` (as `anyhow::Result<T>`), or give `on_error = |error| …`"
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
