//! [`Connecting`]: whether a session has a connection, and what it tells its store.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use super::fault::{gone, silent};
use crate::clock::Clock;
use crate::error::StoreError;
use crate::instant::Instant;
use crate::link::Link;
use crate::timing::backoff;

/// A server that refuses for a reason that does not pass is asked less often.
const LATER: Duration = Duration::from_secs(2);

/// What a session tells its store.
#[derive(Debug)]
pub enum SessionNews {
    /// What was watched under this name has changed, or is gone, or may be.
    Changed(String),
    /// A connection is up. What was watched over the one before is not any more.
    Up,
    /// The session with this number is over, and all that hung on it.
    Over(i64, Link),
    /// The client is closed.
    Closed,
}

enum ConnectingState<L> {
    /// There was a connection, which ended with this error. No attempt has ended since.
    Lost(StoreError),
    /// After this many attempts that failed, the last with this error; none before the first.
    Down(u64, Option<StoreError>),
    Up(Arc<L>),
    Closed,
}

// Whatever a connection is.
impl<L> Clone for ConnectingState<L> {
    fn clone(&self) -> Self {
        match self {
            Self::Lost(error) => Self::Lost(error.clone()),
            Self::Down(failures, error) => Self::Down(*failures, error.clone()),
            Self::Up(live) => Self::Up(Arc::clone(live)),
            Self::Closed => Self::Closed,
        }
    }
}

/// A session's connections, of which there is one at a time.
pub struct Connecting<L> {
    clock: Clock,
    /// The URL's servers.
    server: String,
    /// Whether who has had a connection waits for more than one attempt: an election takes several.
    is_patient: bool,
    state: watch::Sender<ConnectingState<L>>,
    was_up: AtomicBool,
    reconnects: AtomicU64,
    links: AtomicU64,
}

impl<L> fmt::Debug for Connecting<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Connecting");
        debug.field("server", &self.server).finish_non_exhaustive()
    }
}

impl<L> Connecting<L> {
    /// Without a connection.
    #[must_use]
    pub fn new(clock: Clock, server: String, is_patient: bool) -> Self {
        Self {
            clock,
            server,
            is_patient,
            state: watch::Sender::new(ConnectingState::Down(0, None)),
            was_up: AtomicBool::new(false),
            reconnects: AtomicU64::new(0),
            links: AtomicU64::new(1),
        }
    }

    /// The client's clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The URL's servers, for people.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The link of the session that there is, or will be.
    pub fn link(&self) -> Link {
        Link(self.links.load(Ordering::Acquire))
    }

    /// The session is over. The link that it had.
    pub fn end_link(&self) -> Link {
        Link(self.links.fetch_add(1, Ordering::AcqRel))
    }

    /// How often there was another connection.
    pub fn reconnects(&self) -> u64 {
        self.reconnects.load(Ordering::Relaxed)
    }

    /// The connection, if there is one now.
    pub fn live_now(&self) -> Option<Arc<L>> {
        match &*self.state.borrow() {
            ConnectingState::Up(live) => Some(Arc::clone(live)),
            ConnectingState::Lost(_) | ConnectingState::Down(..) | ConnectingState::Closed => None,
        }
    }

    /// Whether there will be no more.
    pub fn is_closed(&self) -> bool {
        matches!(&*self.state.borrow(), ConnectingState::Closed)
    }

    /// The connection. If there is none, waits for the end of the next attempt to connect.
    ///
    /// # Errors
    /// When there is none by then, or the attempt has failed.
    pub async fn live(&self, by: Instant) -> Result<Arc<L>, StoreError> {
        let mut states = self.state.subscribe();
        let before = match &*states.borrow_and_update() {
            ConnectingState::Up(live) => return Ok(Arc::clone(live)),
            ConnectingState::Down(_, Some(error)) if !error.kind().is_transient() => {
                return Err(error.clone());
            }
            ConnectingState::Down(failures, _) => *failures,
            ConnectingState::Lost(_) => 0,
            ConnectingState::Closed => return Err(self.closed_error()),
        };
        let waits_on = self.is_patient && self.was_up.load(Ordering::Relaxed);
        let ended = states.wait_for(|state| match state {
            ConnectingState::Up(_) | ConnectingState::Closed => true,
            ConnectingState::Down(_, Some(error)) if !error.kind().is_transient() => true,
            ConnectingState::Down(failures, _) => *failures > before && !waits_on,
            ConnectingState::Lost(_) => false,
        });
        let state = match self.clock.by(by, ended).await {
            Some(Ok(state)) => state.clone(),
            Some(Err(_)) => ConnectingState::Closed,
            None => self.state.borrow().clone(),
        };
        match state {
            ConnectingState::Up(live) => Ok(live),
            ConnectingState::Down(_, Some(error)) => Err(error),
            ConnectingState::Down(_, None) => Err(silent(&self.server)),
            ConnectingState::Lost(error) => Err(error.of_lost_connection(&self.server)),
            ConnectingState::Closed => Err(self.closed_error()),
        }
    }

    fn closed_error(&self) -> StoreError {
        gone(&self.server, "the client is closed")
    }

    /// There are no more connections. The one that there was.
    pub fn close(&self) -> Option<Arc<L>> {
        match self.state.send_replace(ConnectingState::Closed) {
            ConnectingState::Up(live) => Some(live),
            ConnectingState::Lost(_) | ConnectingState::Down(..) | ConnectingState::Closed => None,
        }
    }

    /// The result, unless it is closed before.
    pub async fn until_closed<T>(&self, attempt: impl Future<Output = T>) -> Option<T> {
        let mut states = self.state.subscribe();
        let closed = states.wait_for(|state| matches!(state, ConnectingState::Closed));
        let (mut attempt, mut closed) = (std::pin::pin!(attempt), std::pin::pin!(closed));
        std::future::poll_fn(|cx| {
            if closed.as_mut().poll(cx).is_ready() {
                return std::task::Poll::Ready(None);
            }
            attempt.as_mut().poll(cx).map(Some)
        })
        .await
    }

    /// A connection is up. False: it is closed.
    pub fn come_up(&self, live: &Arc<L>) -> bool {
        if self.was_up.swap(true, Ordering::Relaxed) {
            self.reconnects.fetch_add(1, Ordering::Relaxed);
        }
        self.change(|_| ConnectingState::Up(Arc::clone(live)))
    }

    /// The connection has ended, with this error.
    pub fn go_down(&self, error: &StoreError) {
        self.change(|_| ConnectingState::Lost(error.clone()));
    }

    /// An attempt has failed, after others. Waits for the time of the next one.
    pub async fn fail(&self, failures: u32, error: StoreError) {
        let pause = match error.kind().is_transient() {
            true => backoff(failures),
            false => LATER,
        };
        self.change(|state| {
            let failures = match state {
                ConnectingState::Down(failures, _) => *failures,
                ConnectingState::Up(_) | ConnectingState::Lost(_) | ConnectingState::Closed => 0,
            };
            ConnectingState::Down(failures + 1, Some(error))
        });
        let paused = self.clock.sleep_until(self.clock.now() + pause);
        let _ = self.until_closed(paused).await;
    }

    /// False: it is closed, and stays so.
    fn change(&self, next: impl FnOnce(&ConnectingState<L>) -> ConnectingState<L>) -> bool {
        self.state.send_if_modified(|state| {
            let is_open = !matches!(state, ConnectingState::Closed);
            if is_open {
                *state = next(state);
            }
            is_open
        })
    }
}

#[cfg(all(test, feature = "test-util"))]
mod tests {
    use tokio::runtime::Handle;

    use super::*;
    use crate::error::StoreErrorKind;

    #[tokio::test(start_paused = true)]
    async fn who_gets_no_connection_learns_why_the_one_before_was_lost() {
        let clock = Clock::simulated(Handle::current());
        let connecting = Connecting::new(clock.clone(), "a,b".to_owned(), false);
        let soon = || clock.now() + Duration::from_millis(1);
        let said = async || connecting.live(soon()).await.map(drop).unwrap_err();
        assert!(said().await.to_string().contains("stands still"));
        assert!(connecting.come_up(&Arc::new(())));
        connecting.go_down(&gone("b", "reset"));
        let error = said().await;
        assert_eq!(error.kind(), StoreErrorKind::Timeout);
        let wanted = "the one before was lost: b: reset";
        assert!(error.detail().ends_with(wanted), "{error}");
        // An attempt that has ended knows better.
        connecting.fail(1, gone("a", "refused")).await;
        let error = said().await;
        assert_eq!(error.detail(), "a: refused");
    }
}
