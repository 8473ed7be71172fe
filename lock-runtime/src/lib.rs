//! A stand-in for the runtime, with the names that the macros expand to and no locking at all.
#![allow(missing_docs, clippy::manual_async_fn, reason = "a stand-in")]

#[cfg(feature = "macros")]
pub use lock_macros::{distributed_lock, lock_key};

/// Runs the examples of the attribute's page.
#[cfg(doctest)]
#[doc = include_str!("../../lock-macros/src/attribute.md")]
pub struct AttributePage;

use std::fmt;

#[derive(Clone, Debug)]
pub struct LockClient;

impl LockClient {
    pub fn in_memory() -> Self {
        Self
    }
    pub async fn scope<F: Future>(&self, body: F) -> F::Output {
        body.await
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LockKey(String);

impl LockKey {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for LockKey {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for LockKey {
    fn from(text: String) -> Self {
        Self(text)
    }
}

#[derive(Debug)]
pub struct Guard {
    key: LockKey,
}

impl Guard {
    pub fn key(&self) -> &LockKey {
        &self.key
    }
    pub fn is_held(&self) -> bool {
        true
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FencingToken(u64);

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Debug)]
#[non_exhaustive]
pub enum LockError {
    #[non_exhaustive]
    Busy { key: LockKey },
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("busy")
    }
}

impl std::error::Error for LockError {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLost {
    Cancel,
    Continue,
}

#[doc(hidden)]
pub mod __private {
    use super::*;
    use core::pin::Pin;
    use core::task::{Context, Poll};
    pub use core::time::Duration;
    use std::fmt::{Display, Write};

    #[derive(Debug)]
    pub struct Spec {
        pub lease: Option<Duration>,
        pub renew: Option<bool>,
        pub max_hold: Option<Duration>,
        pub wait: Option<Wait>,
        pub fair: bool,
        pub reentrant: bool,
        pub on_lost: OnLost,
        pub hold_at_least: Option<Duration>,
        pub fenced: bool,
    }

    impl Spec {
        pub const DEFAULT: Spec = Spec {
            lease: None,
            renew: None,
            max_hold: None,
            wait: None,
            fair: false,
            reentrant: true,
            on_lost: OnLost::Cancel,
            hold_at_least: None,
            fenced: false,
        };
    }

    #[derive(Debug)]
    pub enum Wait {
        For(Duration),
        Forever,
    }

    #[derive(Debug)]
    pub struct KeyWriter(String);

    impl KeyWriter {
        pub fn with_capacity(bytes: usize) -> Self {
            Self(String::with_capacity(bytes))
        }
        pub fn literal(&mut self, text: &'static str) {
            self.0.push_str(text);
        }
        pub fn value<T: Display + ?Sized>(&mut self, _placeholder: &'static str, value: &T) {
            let _ = write!(self.0, "{value}");
        }
        pub fn finish(self) -> LockKey {
            LockKey(self.0)
        }
    }

    pub fn acquire<'s>(
        _client: Option<LockClient>,
        key: LockKey,
        _spec: &'static Spec,
    ) -> impl Future<Output = Result<Guard, LockError>> + Send + 's {
        async move { Ok(Guard { key }) }
    }

    pub fn fencing_token(_guard: &Guard) -> Result<FencingToken, LockError> {
        Ok(FencingToken(1))
    }

    pin_project_lite::pin_project! {
        #[derive(Debug)]
        pub struct Run<'g, F> {
            guard: &'g Guard,
            #[pin]
            body: F,
        }
    }

    impl<F: Future> Future for Run<'_, F> {
        type Output = Result<F::Output, LockError>;
        fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
            self.project().body.poll(context).map(Ok)
        }
    }

    pub fn run<'g, F: Future>(guard: &'g Guard, body: F) -> Run<'g, F> {
        Run { guard, body }
    }

    #[diagnostic::on_unimplemented(
        message = "a function under `#[distributed_lock]` has to be able to return a `LockError`",
        label = "`LockError` can't become `{Self}`",
        note = "write `Result<_, E>` with `E: From<LockError>`, or give `on_error = |error| …`"
    )]
    pub trait FromLockError: Sized {
        fn from_lock(error: LockError) -> Self;
    }

    impl<T, E: From<LockError>> FromLockError for Result<T, E> {
        fn from_lock(error: LockError) -> Self {
            Err(error.into())
        }
    }

    #[diagnostic::on_unimplemented(
        message = "`on_busy = \"skip\"` needs a return type that can say \"skipped\"",
        label = "`{Self}` can't",
        note = "write `()`, `Option<_>`, `Result<(), _>` or `Result<Option<_>, _>`"
    )]
    pub trait Skippable: Sized {
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

    pub fn is_busy(error: &LockError) -> bool {
        matches!(error, LockError::Busy { .. })
    }
}
