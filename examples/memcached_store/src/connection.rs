//! [`Connection`]: one connection at a time, and a task that sends one command after the other.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use lock_store::timing::{Timeouts, backoff};
use lock_store::{Clock, Failure, Instant, Link, Listener, StoreError, StoreErrorKind};
use tokio::io::{AsyncWriteExt, BufStream};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};

use crate::protocol::{Reply, read};

/// A command, and where its reply goes.
struct Job {
    command: String,
    /// The one connection that it may go over.
    only: Option<Link>,
    reply: oneshot::Sender<Result<(Reply, Link), Failure>>,
}

/// The way to the task. The task ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    jobs: mpsc::UnboundedSender<Job>,
    state: Arc<State>,
    clock: Clock,
}

/// What the task and those who ask share.
#[derive(Debug)]
struct State {
    address: String,
    /// The number of connections that were made: the link of the newest.
    made: AtomicU64,
    is_up: AtomicBool,
    is_closed: AtomicBool,
}

/// The task's side.
struct Worker {
    state: Arc<State>,
    clock: Clock,
    timeouts: Timeouts,
    listener: Weak<dyn Listener>,
    stream: Option<BufStream<TcpStream>>,
    /// How many attempts to connect have failed in a row, and when to try again.
    failures: u32,
    again: Option<(Instant, StoreError)>,
}

impl Connection {
    pub(crate) fn new(
        address: &str,
        clock: Clock,
        timeouts: Timeouts,
        listener: Weak<dyn Listener>,
    ) -> Self {
        let state = Arc::new(State {
            address: address.to_owned(),
            made: AtomicU64::new(0),
            is_up: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
        });
        let (jobs, todo) = mpsc::unbounded_channel();
        let worker = Worker {
            state: Arc::clone(&state),
            clock: clock.clone(),
            timeouts,
            listener,
            stream: None,
            failures: 0,
            again: None,
        };
        clock.spawn(worker.run(todo));
        Self { jobs, state, clock }
    }

    pub(crate) fn address(&self) -> &str {
        &self.state.address
    }

    /// The link of the newest connection. Commands go over it, or over a later one.
    pub(crate) fn link(&self) -> Link {
        Link(self.state.made.load(Ordering::Acquire))
    }

    pub(crate) fn is_up(&self) -> bool {
        self.state.is_up.load(Ordering::Acquire)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.is_closed.load(Ordering::Acquire)
    }

    pub(crate) fn close(&self) {
        self.state.is_closed.store(true, Ordering::Release);
    }

    /// Sends one command and waits for its reply. If the caller stops waiting before the command is
    /// sent, it is not sent. `only` is the one connection that it may go over.
    pub(crate) async fn ask(
        &self,
        command: String,
        only: Option<Link>,
        by: Instant,
    ) -> Result<(Reply, Link), Failure> {
        let (reply, answer) = oneshot::channel();
        let link = self.link();
        let closed = || error(StoreErrorKind::Refused, "it was closed").of(self.address());
        let job = Job {
            command,
            only,
            reply,
        };
        if self.is_closed() || self.jobs.send(job).is_err() {
            return Err(Failure::without_effect(closed()));
        }
        match self.clock.by(by, answer).await {
            Some(Ok(answer)) => answer,
            // The task has ended, with the runtime: perhaps in the middle of this command.
            Some(Err(_)) => Err(Failure::unknown(closed(), Link::SEVERAL)),
            // The link of a connection that may be made meanwhile is not known.
            None => {
                let late = error(StoreErrorKind::Timeout, "the command was not answered");
                let over = if link == self.link() {
                    link
                } else {
                    Link::SEVERAL
                };
                Err(Failure::unknown(late.of(self.address()), over))
            }
        }
    }
}

impl Worker {
    async fn run(mut self, mut jobs: mpsc::UnboundedReceiver<Job>) {
        while let Some(Job {
            command,
            only,
            reply,
        }) = jobs.recv().await
        {
            if reply.is_closed() {
                continue;
            }
            let answer = self.carry_out(&command, only).await;
            let _ = reply.send(answer);
            if self.state.is_closed.load(Ordering::Acquire) && jobs.is_empty() {
                self.hang_up(None);
            }
        }
    }

    async fn carry_out(
        &mut self,
        command: &str,
        only: Option<Link>,
    ) -> Result<(Reply, Link), Failure> {
        self.connect().await.map_err(Failure::without_effect)?;
        let link = Link(self.state.made.load(Ordering::Acquire));
        if only.is_some_and(|only| only != link) {
            let text = "the connection was lost between a question and the change that needs it";
            let error = error(StoreErrorKind::Disconnected, text).of(&self.state.address);
            return Err(Failure::without_effect(error));
        }
        let Some(stream) = &mut self.stream else {
            let text = "the connection was closed";
            let error = error(StoreErrorKind::Disconnected, text).of(&self.state.address);
            return Err(Failure::without_effect(error));
        };
        let exchange = async {
            stream.write_all(command.as_bytes()).await?;
            stream.flush().await?;
            read(stream).await
        };
        // Longer than those who ask wait, so that each of them gets an answer of its own.
        let by = self.clock.now() + 2 * self.timeouts.command;
        let failed = match self.clock.by(by, exchange).await {
            Some(Ok(Reply::Refused(why))) => {
                let kind = match why.contains("out of memory") {
                    true => StoreErrorKind::OutOfMemory,
                    false => StoreErrorKind::Refused,
                };
                let error = error(kind, &why).of(&self.state.address);
                return Err(Failure::without_effect(error));
            }
            Some(Ok(reply)) => return Ok((reply, link)),
            Some(Err(failed)) => error(StoreErrorKind::Disconnected, &failed.to_string()),
            None => error(StoreErrorKind::Timeout, "the command was not answered"),
        };
        // What comes over this connection later belongs to no command.
        let failed = failed.of(&self.state.address);
        self.hang_up(Some(&failed));
        Err(Failure::unknown(failed, link))
    }

    async fn connect(&mut self) -> Result<(), StoreError> {
        if self.stream.is_some() {
            return Ok(());
        }
        let now = self.clock.now();
        if let Some((again, failed)) = &self.again
            && now < *again
        {
            return Err(failed.clone());
        }
        let connect = TcpStream::connect(self.state.address.clone());
        let connected = self.clock.by(now + self.timeouts.connect, connect).await;
        let stream = match connected {
            Some(stream) => stream.and_then(|stream| stream.set_nodelay(true).map(|()| stream)),
            None => Err(io::Error::from(io::ErrorKind::TimedOut)),
        };
        match stream {
            Ok(stream) => {
                self.stream = Some(BufStream::new(stream));
                (self.failures, self.again) = (0, None);
                self.state.made.fetch_add(1, Ordering::AcqRel);
                self.state.is_up.store(true, Ordering::Release);
                if let Some(listener) = self.listener.upgrade() {
                    listener.on_connected(&self.state.address);
                }
                Ok(())
            }
            Err(failed) => {
                let failed = error(StoreErrorKind::Disconnected, &failed.to_string());
                let failed = failed.of(&self.state.address);
                self.failures += 1;
                let pause = backoff(self.failures).min(Duration::from_millis(500));
                self.again = Some((self.clock.now() + pause, failed.clone()));
                Err(failed)
            }
        }
    }

    fn hang_up(&mut self, why: Option<&StoreError>) {
        self.stream = None;
        self.state.is_up.store(false, Ordering::Release);
        if let (Some(why), Some(listener)) = (why, self.listener.upgrade()) {
            listener.on_disconnected(&self.state.address, why);
        }
    }
}

fn error(kind: StoreErrorKind, text: &str) -> StoreError {
    StoreError::new(kind, text)
}
