//! [`Probe`]: what a simulation sees of a hold.

use std::sync::Arc;
use std::time::Duration;

use lock_store::timing::trusted;
use lock_store::{Instant, Permits};

use crate::engine::hold::Hold;

/// A look at a hold from outside, which changes nothing and does not keep it.
#[derive(Clone, Debug)]
pub struct Probe(Arc<Hold>);

impl Probe {
    pub(crate) fn new(hold: &Arc<Hold>) -> Self {
        Self(Arc::clone(hold))
    }

    /// Whether its guard would say that the lock is held. Unlike the guard's own question, this
    /// does not make the engine notice that the deadline has passed.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        self.0.is_trusted()
    }

    /// What it is renewed by.
    #[must_use]
    pub fn lease(&self) -> Duration {
        self.0.lease
    }

    /// The earliest that the store can have confirmed it last.
    #[must_use]
    pub fn confirmed(&self) -> Instant {
        self.0.deadline() - trusted(self.0.lease)
    }

    /// How much of its key it has; `None` is all of it.
    #[must_use]
    pub fn permits(&self) -> Option<Permits> {
        self.0.permits()
    }
}
