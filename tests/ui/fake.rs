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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HoldAfter {
    Always,
    Success,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate(u32);

impl Rate {
    pub(crate) const fn at_most(tokens: u32, _time: std::time::Duration) -> Self {
        Self(tokens)
    }

    pub(crate) const fn per(tokens: u32, _time: std::time::Duration) -> Self {
        Self(tokens)
    }
}

pub(crate) mod __private {
    use super::*;
    use core::time::Duration;
    use std::fmt::{Display, Write};
    use std::future::{pending, poll_fn};
    use std::pin::Pin;
    use std::sync::{Mutex, OnceLock};
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
        pub(crate) hold_after: HoldAfter,
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
            hold_after: HoldAfter::Always,
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

    #[derive(Default)]
    pub(crate) struct Slot {
        guard: OnceLock<Guard>,
        refusal: Mutex<Option<LockError>>,
    }

    impl Slot {
        pub(crate) fn new() -> Self {
            Self::default()
        }

        async fn fill(&self, acquired: Result<Guard, LockError>) -> &Guard {
            match acquired {
                Ok(guard) => {
                    let guard = self.guard.get_or_init(|| guard);
                    let mut polled = false;
                    poll_fn(|_| match std::mem::replace(&mut polled, true) {
                        false => Poll::Pending,
                        true => Poll::Ready(()),
                    })
                    .await;
                    guard
                }
                Err(error) => self.refuse(error).await,
            }
        }

        async fn refuse<T>(&self, error: LockError) -> T {
            *self.refusal.lock().unwrap() = Some(error);
            pending().await
        }
    }

    pub(crate) async fn acquire<'s>(
        slot: &'s Slot,
        client: Option<LockClient>,
        key: LockKey,
        spec: &Spec,
    ) -> &'s Guard {
        let what = key.0.clone();
        slot.fill(ask(client, what, key, spec).await).await
    }

    pub(crate) async fn acquire_permits<'s>(
        slot: &'s Slot,
        client: Option<LockClient>,
        key: LockKey,
        permits: u32,
        spec: &Spec,
    ) -> &'s Guard {
        let what = format!("1 of {permits} permits of {}", key.0);
        slot.fill(ask(client, what, key, spec).await).await
    }

    pub(crate) async fn acquire_all<'s, const N: usize>(
        slot: &'s Slot,
        client: Option<LockClient>,
        keys: [LockKey; N],
        spec: &Spec,
    ) -> &'s Guard {
        let what = keys.each_ref().map(|key| key.0.as_str()).join(" and ");
        let key = keys.into_iter().next().unwrap();
        slot.fill(ask(client, what, key, spec).await).await
    }

    pub(crate) async fn pass(
        _client: Option<LockClient>,
        key: LockKey,
        rate: Rate,
        _wait: Duration,
    ) -> Result<(), LockError> {
        tokio::task::yield_now().await;
        note(format_args!("{} of {}", rate.0, key.0));
        Ok(())
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

    pub(crate) async fn fencing_token(slot: &Slot, _guard: &Guard) -> FencingToken {
        match NEXT.get() {
            Next::NoToken => slot.refuse(LockError::Unavailable).await,
            _ => FencingToken(7),
        }
    }

    pub(crate) async fn fencing_tokens<const N: usize>(
        slot: &Slot,
        guard: &Guard,
    ) -> [FencingToken; N] {
        let first = fencing_token(slot, guard).await.0;
        std::array::from_fn(|at| FencingToken(first + at as u64))
    }

    pub(crate) struct StopWhenLost<'s, F, C> {
        pub(crate) slot: &'s Slot,
        pub(crate) body: F,
        pub(crate) convert: C,
    }

    impl<'s, F: Future, C: Convert<F::Output>> IntoFuture for StopWhenLost<'s, F, C> {
        type Output = F::Output;
        type IntoFuture = Running<'s, F, C>;

        fn into_future(self) -> Self::IntoFuture {
            Running {
                slot: self.slot,
                body: Some(Box::pin(self.body)),
                convert: Some(self.convert),
            }
        }
    }

    pub(crate) struct Running<'s, F, C> {
        slot: &'s Slot,
        body: Option<Pin<Box<F>>>,
        convert: Option<C>,
    }

    impl<F, C> Unpin for Running<'_, F, C> {}

    impl<F: Future, C: Convert<F::Output>> Future for Running<'_, F, C> {
        type Output = F::Output;

        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
            loop {
                let was_granted = self.slot.guard.get().is_some();
                let refusal = self.slot.refusal.lock().unwrap().take();
                let is_lost = was_granted && NEXT.get() == Next::LostWhileRunning;
                if let Some(error) = refusal.or(is_lost.then_some(LockError::Lost)) {
                    self.body = None;
                    if is_lost {
                        note("lost");
                    }
                    let convert = self.convert.take().unwrap();
                    return Poll::Ready(convert.convert(error));
                }
                let polled = self.body.as_mut().unwrap().as_mut().poll(cx);
                if polled.is_ready() {
                    self.body = None;
                    return polled;
                }
                let is_granted = self.slot.guard.get().is_some();
                if is_granted == was_granted && self.slot.refusal.lock().unwrap().is_none() {
                    return Poll::Pending;
                }
            }
        }
    }

    pub(crate) struct ReleaseAfter<'s, F> {
        pub(crate) slot: &'s Slot,
        pub(crate) body: F,
    }

    impl<'s, F: Future> IntoFuture for ReleaseAfter<'s, F> {
        type Output = F::Output;
        type IntoFuture = Releasing<'s, F>;

        fn into_future(self) -> Self::IntoFuture {
            Releasing {
                slot: self.slot,
                body: Some(Box::pin(self.body)),
            }
        }
    }

    pub(crate) struct Releasing<'s, F> {
        slot: &'s Slot,
        body: Option<Pin<Box<F>>>,
    }

    impl<F> Unpin for Releasing<'_, F> {}

    impl<F: Future> Future for Releasing<'_, F> {
        type Output = F::Output;

        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
            let output = ready!(self.body.as_mut().unwrap().as_mut().poll(cx));
            self.body = None;
            if self.slot.guard.get().is_some() {
                note("release");
            }
            Poll::Ready(output)
        }
    }

    pub(crate) struct Locked<'s, F, C> {
        pub(crate) slot: &'s Slot,
        pub(crate) body: F,
        pub(crate) convert: C,
    }

    impl<'s, F: Future, C: Convert<F::Output>> IntoFuture for Locked<'s, F, C> {
        type Output = F::Output;
        type IntoFuture = Releasing<'s, Running<'s, F, C>>;

        fn into_future(self) -> Self::IntoFuture {
            let Self {
                slot,
                body,
                convert,
            } = self;
            let body = StopWhenLost {
                slot,
                body,
                convert,
            };
            ReleaseAfter {
                slot,
                body: body.into_future(),
            }
            .into_future()
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
            (self.1)(self.0, error)
        }
    }

    pub(crate) struct Skip<R, C> {
        pub(crate) skipped: fn() -> R,
        pub(crate) convert: C,
    }

    impl<R, C: Convert<R>> Convert<R> for Skip<R, C> {
        fn convert(self, error: LockError) -> R {
            match error {
                LockError::Busy => (self.skipped)(),
                error => self.convert.convert(error),
            }
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

    pub(crate) trait FromOtherError: Sized {
        fn from_lock(error: LockError) -> Self;
    }

    impl<T, E: From<LockError>> FromOtherError for Result<T, E> {
        fn from_lock(error: LockError) -> Self {
            Err(error.into())
        }
    }

    impl FromOtherError for () {
        fn from_lock(error: LockError) {
            note(format_args!("log {error:?}"));
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
}
