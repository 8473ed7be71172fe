//! [`Progress`]: how far attempts to connect to one server have come, and who named its address.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use lock_store::Mutex;

use super::address::ServerAddress;

/// What an attempt to connect is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ConnectStep {
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

/// Who announced an address that is in no URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnnouncedBy {
    Sentinels,
    ClusterMap,
}

/// An address that others announced, and where it leads from here.
#[derive(Clone, Debug)]
pub(crate) struct AnnouncedAddress {
    pub(crate) by: AnnouncedBy,
    pub(crate) announced: ServerAddress,
    pub(crate) reachable: ServerAddress,
}

/// The progress of attempts, for callers that can't wait for their end.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    step: AtomicU8,
    replied: AtomicBool,
    announced: Mutex<Option<AnnouncedAddress>>,
    /// For an attempt at one of several addresses: all of them together.
    whole: Option<Arc<Progress>>,
}

impl Progress {
    /// The progress of an attempt at one of several addresses.
    pub(super) fn of_one(whole: &Arc<Self>) -> Self {
        Self {
            announced: Mutex::new(whole.announced()),
            whole: Some(Arc::clone(whole)),
            ..Self::default()
        }
    }

    pub(crate) fn at(&self, step: ConnectStep) {
        self.step.store(step as u8, Ordering::Relaxed);
        if let Some(whole) = &self.whole {
            whole.at(step);
        }
    }

    pub(crate) fn step(&self) -> ConnectStep {
        use ConnectStep::{Credentials, Greeting, GreetingOverTls, Handshake, Reaching};
        let step = self.step.load(Ordering::Relaxed);
        let steps = [Credentials, Handshake, Greeting, GreetingOverTls];
        let found = steps.into_iter().find(|one| *one as u8 == step);
        found.unwrap_or(Reaching)
    }

    /// The address to connect to is not one of the URL's.
    pub(crate) fn note_announced(&self, announced: Option<AnnouncedAddress>) {
        *self.announced.lock() = announced;
    }

    /// The address to connect to, if others announced it.
    pub(crate) fn announced(&self) -> Option<AnnouncedAddress> {
        self.announced.lock().clone()
    }

    /// The server has replied, so both sides agree about TLS.
    pub(crate) fn note_reply(&self) {
        self.replied.store(true, Ordering::Relaxed);
        if let Some(whole) = &self.whole {
            whole.note_reply();
        }
    }

    /// True if the server ever replied.
    pub(crate) fn has_replied(&self) -> bool {
        let whole = self.whole.as_ref();
        self.replied.load(Ordering::Relaxed) || whole.is_some_and(|whole| whole.has_replied())
    }
}
