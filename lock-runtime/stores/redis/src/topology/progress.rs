//! [`Progress`]: how far attempts to connect to one server have come.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// What an attempt to connect is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Step {
    /// The server's address, and an accepted connection.
    Reaching,
    /// The provider of the credentials.
    Credentials,
    /// The server's part of the TLS handshake.
    Handshake,
    /// The first reply, without TLS.
    Greeting,
    /// The first reply, over TLS.
    GreetingOverTls,
}

/// The progress of attempts, for callers that can't wait for their end.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    step: AtomicU8,
    replied: AtomicBool,
}

impl Progress {
    pub(crate) fn at(&self, step: Step) {
        self.step.store(step as u8, Ordering::Relaxed);
    }

    pub(crate) fn step(&self) -> Step {
        use Step::{Credentials, Greeting, GreetingOverTls, Handshake, Reaching};
        let step = self.step.load(Ordering::Relaxed);
        let steps = [Credentials, Handshake, Greeting, GreetingOverTls];
        let found = steps.into_iter().find(|one| *one as u8 == step);
        found.unwrap_or(Reaching)
    }

    /// The server has replied, so both sides agree about TLS.
    pub(crate) fn replied(&self) {
        self.replied.store(true, Ordering::Relaxed);
    }

    /// True if the server ever replied.
    pub(crate) fn has_replied(&self) -> bool {
        self.replied.load(Ordering::Relaxed)
    }
}
