//! A runtime that records what it is asked to do, for `crate = crate::fake`. It shows what the
//! attribute itself does, event by event, without a lock.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "only what the expansion names is used"
)]

use std::cell::{Cell, RefCell};
use std::fmt;

thread_local! {
    static EVENTS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static NEXT: Cell<Next> = const { Cell::new(Next::Granted) };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Granted,
    Busy,
    Unavailable,
    LostWhileRunning,
    NoToken,
}

pub(crate) fn note(event: impl fmt::Display) {
    EVENTS.with_borrow_mut(|events| events.push(event.to_string()));
}

/// Runs `body` with that outcome. Returns its result and the events.
pub(crate) fn run<T>(next: Next, body: impl Future<Output = T>) -> (T, Vec<String>) {
    EVENTS.take();
    NEXT.set(next);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let value = runtime.block_on(body);
    (value, EVENTS.take())
}

/// A value that records its drop.
#[derive(Debug)]
pub(crate) struct Noted(pub(crate) &'static str);

impl Drop for Noted {
    fn drop(&mut self) {
        note(format_args!("drop {}", self.0));
    }
}

impl fmt::Display for Noted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        note(format_args!("display {}", self.0));
        f.write_str(self.0)
    }
}

#[derive(Debug)]
pub(crate) struct LockClient(pub(crate) &'static str);

impl Clone for LockClient {
    fn clone(&self) -> Self {
        note(format_args!("clone client {}", self.0));
        Self(self.0)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LockKey(String);

impl From<&str> for LockKey {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

#[derive(Debug)]
pub(crate) struct Guard {
    pub(crate) key: LockKey,
}

impl Drop for Guard {
    fn drop(&mut self) {
        note("drop guard");
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FencingToken(pub(crate) u64);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LockError {
    Busy,
    Lost,
    Unavailable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnLost {
    Cancel,
    Continue,
}

pub(crate) mod __private {
    use super::*;
    use core::time::Duration;
    use std::fmt::{Display, Write};
    use std::pin::Pin;
    use std::task::{Context, Poll, ready};

    #[derive(Debug)]
    pub(crate) struct Spec {
        pub(crate) lease: Option<Duration>,
        pub(crate) renew: Option<bool>,
        pub(crate) max_hold: Option<Duration>,
        pub(crate) wait: Option<Wait>,
        pub(crate) mode: Mode,
        pub(crate) fair: bool,
        pub(crate) reentrant: bool,
        pub(crate) on_lost: OnLost,
        pub(crate) hold_at_least: Option<Duration>,
        pub(crate) fenced: bool,
    }

    impl Spec {
        pub(crate) const DEFAULT: Spec = Spec {
            lease: None,
            renew: None,
            max_hold: None,
            wait: None,
            mode: Mode::Exclusive,
            fair: false,
            reentrant: true,
            on_lost: OnLost::Cancel,
            hold_at_least: None,
            fenced: false,
        };
    }

    #[derive(Debug)]
    pub(crate) enum Mode {
        Exclusive,
        Read,
        Write,
    }

    #[derive(Debug)]
    pub(crate) enum Wait {
        For(Duration),
        Forever,
    }

    pub(crate) struct KeyWriter(String);

    impl KeyWriter {
        pub(crate) fn new(_template: &str, bytes: usize) -> Self {
            Self(String::with_capacity(bytes))
        }
        pub(crate) fn literal(&mut self, text: &'static str) {
            self.0.push_str(text);
        }
        pub(crate) fn value<T: Display + ?Sized>(&mut self, placeholder: &'static str, value: &T) {
            write!(self.0, "[{placeholder}={value}]").unwrap();
        }
        pub(crate) fn display<T: Display + ?Sized>(
            &mut self,
            placeholder: &'static str,
            value: &T,
        ) {
            self.value(placeholder, value);
        }
        pub(crate) fn finish(self) -> LockKey {
            LockKey(self.0)
        }
    }

    pub(crate) struct Argument<T>(T);

    impl<T> Argument<T> {
        pub(crate) fn new(argument: T) -> Self {
            Self(argument)
        }
        pub(crate) fn into_inner(self) -> T {
            self.0
        }
    }

    pub(crate) async fn acquire(
        client: Option<LockClient>,
        key: LockKey,
        spec: &Spec,
    ) -> Result<Guard, LockError> {
        let what = key.0.clone();
        ask(client, what, key, spec).await
    }

    pub(crate) async fn acquire_permits(
        client: Option<LockClient>,
        key: LockKey,
        permits: u32,
        spec: &Spec,
    ) -> Result<Guard, LockError> {
        let what = format!("1 of {permits} permits of {}", key.0);
        ask(client, what, key, spec).await
    }

    pub(crate) async fn acquire_all<const N: usize>(
        client: Option<LockClient>,
        keys: [LockKey; N],
        spec: &Spec,
    ) -> Result<Guard, LockError> {
        let what = keys.each_ref().map(|key| key.0.as_str()).join(" and ");
        let key = keys.into_iter().next().unwrap();
        ask(client, what, key, spec).await
    }

    async fn ask(
        client: Option<LockClient>,
        what: String,
        key: LockKey,
        spec: &Spec,
    ) -> Result<Guard, LockError> {
        tokio::task::yield_now().await;
        let client = client.map_or("global", |client| client.0);
        let defaults = format!("{:?}", Spec::DEFAULT);
        let options = format!("{spec:?}");
        note(format_args!("acquire {what} from {client}"));
        if options != defaults {
            note(options);
        }
        match NEXT.get() {
            Next::Busy => Err(LockError::Busy),
            Next::Unavailable => Err(LockError::Unavailable),
            Next::Granted | Next::LostWhileRunning | Next::NoToken => Ok(Guard { key }),
        }
    }

    pub(crate) fn fencing_token(_guard: &Guard) -> Result<FencingToken, LockError> {
        match NEXT.get() {
            Next::NoToken => Err(LockError::Unavailable),
            _ => Ok(FencingToken(7)),
        }
    }

    pub(crate) fn fencing_tokens<const N: usize>(
        guard: &Guard,
    ) -> Result<[FencingToken; N], LockError> {
        let first = fencing_token(guard)?.0;
        Ok(std::array::from_fn(|at| FencingToken(first + at as u64)))
    }

    pub(crate) struct Locked<'g, F, C> {
        pub(crate) guard: &'g Guard,
        pub(crate) body: F,
        pub(crate) convert: C,
    }

    impl<F: Future, C: Convert<F::Output>> IntoFuture for Locked<'_, F, C> {
        type Output = F::Output;
        type IntoFuture = Running<F, C>;

        fn into_future(self) -> Self::IntoFuture {
            Running {
                body: Some(Box::pin(self.body)),
                convert: Some(self.convert),
            }
        }
    }

    pub(crate) struct Running<F, C> {
        body: Option<Pin<Box<F>>>,
        convert: Option<C>,
    }

    impl<F, C> Unpin for Running<F, C> {}

    impl<F: Future, C: Convert<F::Output>> Future for Running<F, C> {
        type Output = F::Output;

        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
            if NEXT.get() == Next::LostWhileRunning {
                self.body = None;
                note("lost");
                let convert = self.convert.take().unwrap();
                return Poll::Ready(convert.convert(LockError::Lost));
            }
            let output = ready!(self.body.as_mut().unwrap().as_mut().poll(cx));
            self.body = None;
            note("release");
            Poll::Ready(output)
        }
    }

    pub(crate) trait Convert<R> {
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

    pub(crate) trait FromLockError: Sized {
        fn from_lock(error: LockError) -> Self;
    }

    impl<T, E: From<LockError>> FromLockError for Result<T, E> {
        fn from_lock(error: LockError) -> Self {
            Err(error.into())
        }
    }

    pub(crate) struct OnError<F, R>(F, fn(F, LockError) -> R);

    pub(crate) fn on_error<R, F: FnOnce(LockError) -> R>(
        _: std::marker::PhantomData<R>,
        handler: F,
    ) -> OnError<F, R> {
        OnError(handler, |handler, error| handler(error))
    }

    impl<F, R> OnError<F, R> {
        pub(crate) fn call(self, error: LockError) -> R {
            (self.1)(self.0, error)
        }
    }

    pub(crate) trait Skippable: Sized {
        fn skipped() -> Self;
    }

    impl<E> Skippable for Result<(), E> {
        fn skipped() -> Self {
            Ok(())
        }
    }

    impl Skippable for () {
        fn skipped() -> Self {}
    }

    pub(crate) fn is_busy(error: &LockError) -> bool {
        *error == LockError::Busy
    }
}
