//! [`Driver`]: the task of a connection, on the client's own runtime.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use lock_store::{Clock, Instant};
use redis::RedisError;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::AbortHandle;
use tokio::time::Sleep;

use super::connection::{RespConnection, Shared};
use super::reader::ConnectionEvents;
use super::socket::{Duplex, Socket};

/// After this many reads in a row, other tasks have their turn.
const READS: usize = 16;
/// A task that is woken later than this is in a process that is slow itself.
const SLACK: Duration = Duration::from_millis(10);

/// Ends a connection when it is dropped, even if something is still unsent.
#[derive(Debug)]
pub(crate) struct Driver(AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts a connection over this socket.
pub(crate) fn start(
    socket: Socket,
    clock: &Clock,
    command_timeout: Duration,
    events: Option<Box<dyn ConnectionEvents>>,
) -> (RespConnection, Driver) {
    let (io, writer) = match socket {
        Socket::Shared(reader, writer) => (Io::Reader(reader), Some(writer)),
        Socket::Owned(stream) => (Io::Both(stream), None),
    };
    let connection = RespConnection::new(writer, command_timeout);
    let task = Task {
        shared: Arc::clone(&connection.shared),
        io,
        unsent: Unsent::default(),
        clock: clock.clone(),
        alarm: None,
        events,
    };
    let driver = Driver(clock.handle().spawn(task).abort_handle());
    (connection, driver)
}

/// Where it reads.
enum Io {
    Reader(Box<dyn AsyncRead + Send + Unpin>),
    Both(Box<dyn Duplex>),
}

/// What the task itself writes.
#[derive(Default)]
struct Unsent {
    bytes: Vec<u8>,
    written: usize,
    is_taken: bool,
    /// Whether ready tasks had their turn since it was woken to write.
    has_waited: bool,
}

struct Task {
    shared: Arc<Shared>,
    io: Io,
    unsent: Unsent,
    clock: Clock,
    /// When the requests are looked at next.
    alarm: Option<(Instant, Pin<Box<Sleep>>)>,
    events: Option<Box<dyn ConnectionEvents>>,
}

impl Future for Task {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        this.shared.task.register(cx.waker());
        let ended = match this.work(cx) {
            Ok(()) => return Poll::Pending,
            Err(error) => error,
        };
        this.end(ended.clone());
        if let Some(events) = &this.events {
            events.on_end(&ended);
        }
        Poll::Ready(())
    }
}

impl Task {
    fn work(&mut self, cx: &mut Context<'_>) -> Result<(), RedisError> {
        self.write(cx)?;
        let is_drained = self.read(cx)?;
        // What has come is read before anybody's time is over.
        if is_drained {
            self.check_deadlines(cx);
        }
        Ok(())
    }

    /// Writes what callers can't.
    fn write(&mut self, cx: &mut Context<'_>) -> Result<(), RedisError> {
        let mut queue = self.shared.lock();
        if let Some(error) = queue.ended() {
            return Err(error.clone());
        }
        let Io::Both(stream) = &mut self.io else {
            if queue.is_full
                && let Some(writer) = queue.writer.clone()
            {
                drop(queue);
                if writer.poll_ready(cx)?.is_pending() {
                    return Ok(());
                }
                queue = self.shared.lock();
                queue.is_full = false;
                self.shared.write(queue, None);
            }
            return Ok(());
        };
        let unsent = &mut self.unsent;
        loop {
            if !unsent.is_taken {
                if !queue.has_unsent() {
                    queue.is_task_woken = false;
                    unsent.has_waited = false;
                    drop(queue);
                    // What TLS keeps back goes out.
                    let _ = Pin::new(stream).poll_flush(cx)?;
                    return Ok(());
                }
                // Ready tasks add their requests before.
                if queue.under_way() > 1 && !unsent.has_waited {
                    unsent.has_waited = true;
                    cx.waker().wake_by_ref();
                    return Ok(());
                }
                let Some(bytes) = queue.take_unsent() else {
                    return Ok(());
                };
                (unsent.bytes, unsent.written, unsent.is_taken) = (bytes, 0, true);
            }
            drop(queue);
            while unsent.written < unsent.bytes.len() {
                let rest = &unsent.bytes[unsent.written..];
                match Pin::new(&mut *stream).poll_write(cx, rest)? {
                    Poll::Ready(0) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
                    Poll::Ready(bytes) => unsent.written += bytes,
                    Poll::Pending => return Ok(()),
                }
            }
            queue = self.shared.lock();
            unsent.is_taken = false;
            queue.put_back(std::mem::take(&mut unsent.bytes), unsent.written);
        }
    }

    /// Reads what has come. Whether that is all.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<bool, RedisError> {
        for _ in 0..READS {
            let mut reader = self.shared.reader.lock()?;
            let queue = &self.shared.queue;
            reader.deliver_left(queue, self.events.as_deref())?;
            let mut room = ReadBuf::new(reader.room());
            let polled = match &mut self.io {
                Io::Reader(stream) => Pin::new(stream).poll_read(cx, &mut room),
                Io::Both(stream) => Pin::new(stream).poll_read(cx, &mut room),
            };
            let bytes = match polled? {
                Poll::Pending => return Ok(true),
                Poll::Ready(()) => room.filled().len(),
            };
            if bytes == 0 {
                let text = "the server closed the connection";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text).into());
            }
            reader.add(bytes);
            reader.deliver(queue, self.events.as_deref())?;
        }
        cx.waker().wake_by_ref();
        Ok(false)
    }

    /// Looks at the requests when it is time to.
    fn check_deadlines(&mut self, cx: &mut Context<'_>) {
        loop {
            let Some(next) = self.shared.lock().next_look else {
                self.alarm = None;
                return;
            };
            let clock = &self.clock;
            let (at, alarm) = self
                .alarm
                .get_or_insert_with(|| (next, Box::pin(clock.sleep_until(next))));
            if *at > next {
                (*at, *alarm) = (next, Box::pin(clock.sleep_until(next)));
            }
            if alarm.as_mut().poll(cx).is_pending() {
                return;
            }
            let (now, due) = (clock.now(), *at);
            self.alarm = None;
            if now < next {
                continue;
            }
            let mut queue = self.shared.lock();
            let overdue = queue.check_deadlines(now, now > due + SLACK);
            // What a caller left unsent: its runtime may be blocked.
            match queue.has_unsent() {
                true => self.shared.write(queue, None),
                false => drop(queue),
            }
            overdue.wakers.into_iter().for_each(Waker::wake);
            if overdue.doubts
                && let Some(events) = &self.events
            {
                events.on_late();
            }
        }
    }

    fn end(&self, error: RedisError) {
        let wakers = self.shared.lock().end(error);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let text = "the connection was closed";
        self.end(io::Error::new(io::ErrorKind::NotConnected, text).into());
    }
}
