//! What a server refuses for a while, although it answers.

use std::sync::Mutex;
use std::time::Duration;

use lock_runtime::{StoreError, StoreErrorKind};
use lock_store::Instant;
use lock_testkit_core::store_decorator::Request;

use crate::rng::Rng;
use crate::world::now;

/// Why a server refuses.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Refusal {
    /// There is no memory for commands that need some.
    OutOfMemory,
    /// No right to take, or to look at, this key.
    Key(&'static str),
    /// No right to this verb.
    Verb(&'static str),
    /// In a cluster: the keys of a slot lie in two places, so no single command can name several.
    HalfMoved,
}

/// What a server refuses, and until when.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<Vec<(Instant, Refusal)>>);

impl Refusal {
    /// Draws a refusal for lack of memory or of a right.
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        match rng.below(10) {
            0..5 => Self::OutOfMemory,
            5..8 => Self::Key(rng.pick(&["a", "b", "c", "rw", "sem", "latch"])),
            _ => Self::Verb(rng.pick(&["acquire", "acquire_all", "inspect", "renew", "fence"])),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OutOfMemory => "a server without memory",
            Self::Key(_) | Self::Verb(_) => "a right taken away",
            Self::HalfMoved => "half-moved slots",
        }
    }

    fn refusal(self, request: &Request) -> Option<StoreErrorKind> {
        let takes = matches!(
            request,
            Request::Acquire(_)
                | Request::AcquireAll(_)
                | Request::Fence(_)
                | Request::Rate(_)
                | Request::LatchSet(..)
                | Request::LatchCountDown(_)
                | Request::LatchWait(_)
        );
        let looks = matches!(request, Request::Inspect(_) | Request::LatchLook(_));
        match self {
            Self::OutOfMemory => takes.then_some(StoreErrorKind::OutOfMemory),
            Self::Key(key) => {
                let concerned = || request.keys().iter().any(|one| one.as_str() == key);
                ((takes || looks) && concerned()).then_some(StoreErrorKind::Denied)
            }
            Self::Verb(verb) => (request.method() == verb).then_some(StoreErrorKind::Denied),
            Self::HalfMoved => {
                let apart = match request {
                    Request::AcquireAll(requests) => requests.len() > 1,
                    Request::Renew(holds) => holds.len() > 1,
                    Request::Release(requests) => requests.len() > 1,
                    _ => false,
                };
                apart.then_some(StoreErrorKind::Loading)
            }
        }
    }
}

impl Refusals {
    pub(crate) fn begin(&self, refusal: Refusal, time: Duration) {
        self.0.lock().unwrap().push((now() + time, refusal));
    }

    pub(crate) fn end_all(&self) {
        self.0.lock().unwrap().clear();
    }

    /// Why the server does not carry this request out.
    pub(crate) fn refusal(&self, request: &Request) -> Option<StoreError> {
        let mut refusals = self.0.lock().unwrap();
        if refusals.is_empty() {
            return None;
        }
        refusals.retain(|(until, _)| *until > now());
        let mut kinds = refusals.iter().filter_map(|(_, one)| one.refusal(request));
        let kind = kinds.next()?;
        Some(StoreError::new(kind, "it refuses for a while"))
    }
}
