//! [`BodySpan`]: the span of a body that runs under a lock.

use std::time::Duration;

use lock_store::{FencingToken, LockKey};
use tracing::field::Empty;
use tracing::span::Entered;
use tracing::{Span, field};

/// From before the first poll of a body to its end. Empty if nobody traces.
#[derive(Debug)]
pub(crate) struct BodySpan(Option<Box<Span>>);

/// What became of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    /// It ended under its lock.
    Ended,
    /// The lock was lost, and it was stopped.
    Lost,
    /// The lock was lost before it ended by itself.
    EndedLate,
    /// Its future was dropped.
    Dropped,
    /// It panicked.
    Panicked,
}

impl BodySpan {
    pub(crate) fn new(key: &LockKey, waited: Duration, token: Option<FencingToken>) -> Self {
        let span = tracing::info_span!(
            "lock",
            otel.kind = "internal",
            otel.status_code = Empty,
            error.r#type = Empty,
            lock.key = field::display(key.as_str().escape_debug()),
            lock.template = key.template(),
            // OpenTelemetry has no unsigned numbers, and would show a text.
            lock.waited_ms = i64::try_from(waited.as_millis()).unwrap_or(i64::MAX),
            lock.token = token.and_then(|token| i64::try_from(u64::from(token)).ok()),
            lock.outcome = Empty,
        );
        Self((!span.is_disabled()).then(|| Box::new(span)))
    }

    /// The body is polled until this is dropped.
    pub(crate) fn enter(&self) -> Option<Entered<'_>> {
        self.0.as_ref().map(|span| span.enter())
    }

    /// Records what became of the body, and ends the span.
    pub(crate) fn end(&mut self, outcome: Outcome) {
        let Some(span) = self.0.take() else { return };
        let (name, error) = match outcome {
            Outcome::Ended => ("ended", None),
            Outcome::Lost => ("lost", Some("lock_lost")),
            Outcome::EndedLate => ("ended_late", Some("lock_lost")),
            Outcome::Dropped => ("dropped", None),
            Outcome::Panicked => ("panicked", Some("panic")),
        };
        span.record("lock.outcome", name);
        if let Some(error) = error {
            span.record("otel.status_code", "ERROR");
            span.record("error.type", error);
        }
    }
}

impl Drop for BodySpan {
    fn drop(&mut self) {
        self.end(match std::thread::panicking() {
            true => Outcome::Panicked,
            false => Outcome::Dropped,
        });
    }
}
