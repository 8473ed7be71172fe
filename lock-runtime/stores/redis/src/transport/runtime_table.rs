//! [`RuntimeTable`]: which of the callers' runtimes have a connection of their own.

use std::sync::Arc;

use lock_store::timing::BACKOFF_MAX;
use lock_store::{Instant, Link, Mutex};
use tokio::runtime;
use tokio::sync::{oneshot, watch};

use super::connected::Connected;

/// One entry for each runtime that has asked; there are few.
#[derive(Debug, Default)]
pub(super) struct RuntimeTable {
    links: Mutex<Vec<RuntimeLink>>,
}

#[derive(Debug)]
struct RuntimeLink {
    runtime: runtime::Id,
    /// Its own link, also while it is being made.
    link: Link,
    /// The connection of the client's thread beside which it was made: both lead to the same
    /// server.
    main: Link,
    state: RuntimeLinkState,
}

#[derive(Debug)]
enum RuntimeLinkState {
    /// The sender is dropped when the attempt has ended.
    Making(watch::Sender<()>),
    Up {
        connected: Arc<Connected>,
        /// Ends the task that stays with it.
        _stay: oneshot::Sender<()>,
    },
    /// There is none before this time.
    Resting(Instant),
}

/// A connection that a runtime drives itself.
pub(super) enum Found {
    /// It is being made; this ends with the attempt.
    Making(watch::Receiver<()>),
    /// It is up, beside this link of the client's thread.
    Up(Arc<Connected>, Link),
}

impl RuntimeTable {
    /// The connection of this link, only beside the connection that it was made for: another one
    /// may lead to another server.
    pub(super) fn find(&self, link: Link, main: Option<Link>) -> Option<Found> {
        let links = self.links.lock();
        let entry = links.iter().find(|entry| entry.link == link)?;
        match &entry.state {
            RuntimeLinkState::Making(making) => Some(Found::Making(making.subscribe())),
            RuntimeLinkState::Up { connected, .. } if Some(entry.main) == main => {
                Some(Found::Up(Arc::clone(connected), entry.main))
            }
            RuntimeLinkState::Up { .. } | RuntimeLinkState::Resting(_) => None,
        }
    }

    /// Whether this link is up, beside this link of the client's thread.
    pub(super) fn has(&self, link: Link, main: Link) -> bool {
        self.links.lock().iter().any(|entry| {
            let is_up = matches!(entry.state, RuntimeLinkState::Up { .. });
            entry.link == link && entry.main == main && is_up
        })
    }

    /// The link that a runtime has beside this link of the client's thread; with `coming`, also one
    /// that is being made. If it has none, and may have one, `make` gets a number for a new one.
    pub(super) fn link_of(
        &self,
        runtime: runtime::Id,
        main: Link,
        coming: bool,
        now: impl FnOnce() -> Instant,
        make: impl FnOnce() -> Option<Link>,
    ) -> Option<Link> {
        let mut links = self.links.lock();
        let at = links.iter().position(|entry| entry.runtime == runtime);
        if let Some(entry) = at.map(|at| &links[at])
            && entry.main == main
        {
            match &entry.state {
                RuntimeLinkState::Up { .. } => return Some(entry.link),
                RuntimeLinkState::Making(_) => return coming.then_some(entry.link),
                RuntimeLinkState::Resting(until) if now() < *until => return None,
                RuntimeLinkState::Resting(_) => {}
            }
        }
        let link = make()?;
        let entry = RuntimeLink {
            runtime,
            link,
            main,
            state: RuntimeLinkState::Making(watch::Sender::new(())),
        };
        let before = match at {
            Some(at) => Some(std::mem::replace(&mut links[at], entry)),
            None => {
                links.push(entry);
                None
            }
        };
        drop(links);
        drop(before);
        coming.then_some(link)
    }

    /// Puts a new connection in use. One that was given up while it was made stays given up.
    pub(super) fn made(&self, link: Link, connected: Connected, stay: oneshot::Sender<()>) {
        let mut up = Some(RuntimeLinkState::Up {
            connected: Arc::new(connected),
            _stay: stay,
        });
        self.change(link, |state| match state {
            RuntimeLinkState::Making(_) => up.take(),
            _ => None,
        });
    }

    /// Gives up the link of a connection that is still being made. The request that asked for it
    /// goes another way, and what is heard over that way says nothing about a connection that comes
    /// later.
    pub(super) fn give_up(&self, link: Link, until: Instant) {
        self.change(link, |state| match state {
            RuntimeLinkState::Making(_) => Some(RuntimeLinkState::Resting(until)),
            _ => None,
        });
    }

    /// Leaves a runtime without a connection. True if there was one until now.
    pub(super) fn rest(&self, link: Link, until: Instant, now: Instant) -> bool {
        self.change(link, |state| {
            let until = match state {
                // One that does not last is not made again at once.
                RuntimeLinkState::Up { connected, .. } if now < connected.since + BACKOFF_MAX => {
                    until.max(now + BACKOFF_MAX)
                }
                RuntimeLinkState::Resting(longer) => until.max(*longer),
                _ => until,
            };
            Some(RuntimeLinkState::Resting(until))
        })
    }

    /// True if there was a connection until now.
    fn change(
        &self,
        link: Link,
        to: impl FnOnce(&RuntimeLinkState) -> Option<RuntimeLinkState>,
    ) -> bool {
        let mut links = self.links.lock();
        let Some(entry) = links.iter_mut().find(|entry| entry.link == link) else {
            return false;
        };
        let Some(state) = to(&entry.state) else {
            return false;
        };
        let before = std::mem::replace(&mut entry.state, state);
        // Its driver ends with it and wakes tasks, which is not done under the lock.
        drop(links);
        matches!(before, RuntimeLinkState::Up { .. })
    }

    /// Forgets a link, unless it rests: then the entry tells for how long. True if there was a
    /// connection until now.
    pub(super) fn remove(&self, link: Link) -> bool {
        let mut links = self.links.lock();
        let rests = |entry: &RuntimeLink| matches!(entry.state, RuntimeLinkState::Resting(_));
        let mut entries = links.iter();
        let at = entries.position(|entry| entry.link == link && !rests(entry));
        let entry = at.map(|at| links.swap_remove(at));
        drop(links);
        let state = entry.map(|entry| entry.state);
        matches!(state, Some(RuntimeLinkState::Up { .. }))
    }

    /// Closes all connections but those beside this one of the client's thread. Their runtimes may
    /// never use the client again.
    pub(super) fn keep_beside(&self, main: Option<Link>) {
        let mut links = self.links.lock();
        let others = links.extract_if(.., |entry| Some(entry.main) != main);
        let others: Vec<RuntimeLink> = others.collect();
        drop(links);
        drop(others);
    }
}
