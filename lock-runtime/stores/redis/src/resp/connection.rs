//! [`RespConnection`]: sends commands over one connection.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use lock_store::Mutex;
use redis::{FromRedisValue, RedisError, Value};

use super::command::Command;
use super::queue::{ReplyResult, RequestQueue};
use super::reader::SharedReader;
use super::socket::Writer;
use super::time_limits::Limits;

/// This many requests are not held up for others of the same thread: the server begins with them
/// while the thread's tasks go on.
const CHUNK: usize = 16;

/// One connection. Commands over it are carried out in the order in which they are sent, as far as
/// [`OpenSegment`](super::merging::OpenSegment) keeps it. It ends with its [`Driver`](super::Driver).
#[derive(Clone)]
pub(crate) struct RespConnection {
    pub(super) shared: Arc<Shared>,
}

/// What callers and the connection's task share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) queue: Mutex<RequestQueue>,
    pub(super) reader: SharedReader,
    /// The connection's task.
    pub(super) task: AtomicWaker,
}

impl fmt::Debug for RespConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RespConnection")
    }
}

impl RespConnection {
    pub(super) fn new(writer: Option<Writer>, command_timeout: Duration) -> Self {
        let queue = Mutex::new(RequestQueue::new(writer, command_timeout));
        let task = AtomicWaker::new();
        let reader = SharedReader::new();
        let shared = Arc::new(Shared {
            queue,
            reader,
            task,
        });
        Self { shared }
    }

    /// How often something was read so far.
    pub(crate) fn reads(&self) -> u64 {
        self.shared.lock().reads
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.shared.lock().ended().is_some()
    }

    /// Another connection is there in its place: who sends again need not wait for this one.
    pub(crate) fn replace(&self) {
        let wakers = self.shared.lock().replace();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Sends one command when it is polled.
    pub(crate) fn send<'c>(
        &'c self,
        command: &'c Command,
        asking: bool,
        limits: Option<&'c Limits>,
    ) -> PendingReply<'c> {
        PendingReply {
            shared: &self.shared,
            stage: Stage::Unsent {
                command,
                asking,
                limits,
            },
            writes: false,
        }
    }

    /// Sends a command without a time limit, and reads its reply.
    pub(crate) async fn query<T: FromRedisValue>(
        &self,
        command: &Command,
    ) -> Result<T, RedisError> {
        Ok(T::from_redis_value(self.send(command, false, None).await?)?)
    }

    /// Sends commands in one piece: nobody's command comes between them. Their replies; an error if
    /// one of them does not come. `asking` announces the first to the node of a cluster that is
    /// about to get the slot.
    pub(crate) async fn send_together(
        &self,
        commands: &[&Command],
        asking: bool,
        limits: Option<&Limits>,
    ) -> Result<Vec<ReplyResult>, RedisError> {
        let sent: Vec<PendingReply<'_>> = {
            let mut queue = self.shared.lock();
            if asking {
                queue.add_unawaited(&Command::new("ASKING"));
            }
            let mut pending = Vec::with_capacity(commands.len());
            for command in commands {
                let number = queue.add(command, None, limits);
                pending.push(PendingReply {
                    shared: &self.shared,
                    stage: Stage::Sent { number },
                    writes: false,
                });
            }
            self.shared.write(queue, limits);
            pending
        };
        let mut replies = Vec::with_capacity(sent.len());
        for reply in sent {
            let reply = reply.await;
            if let Err(error) = &reply
                && (error.is_io_error() || error.is_connection_dropped())
            {
                return Err(error.clone());
            }
            replies.push(reply);
        }
        Ok(replies)
    }

    /// Begins or ends to listen on a channel, by a command whose name the server answers with.
    pub(crate) async fn subscribe(
        &self,
        word: &'static str,
        channel: &str,
        asking: bool,
        limits: Option<Limits>,
    ) -> Result<(), RedisError> {
        let mut command = Command::new(word);
        command.arg(channel);
        let answered = match word {
            "SUBSCRIBE" => "subscribe",
            "SSUBSCRIBE" => "ssubscribe",
            "SUNSUBSCRIBE" => "sunsubscribe",
            _ => "unsubscribe",
        };
        let number = {
            let mut queue = self.shared.lock();
            if asking {
                queue.add_unawaited(&Command::new("ASKING"));
            }
            let number = queue.add(
                &command,
                Some((answered, channel.to_owned())),
                limits.as_ref(),
            );
            if answered == "sunsubscribe" {
                queue.add_ping_behind_end();
            }
            self.shared.write(queue, limits.as_ref());
            number
        };
        let reply = PendingReply {
            shared: &self.shared,
            stage: Stage::Sent { number },
            writes: false,
        };
        reply.await.map(drop)
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, RequestQueue> {
        self.queue.lock()
    }

    /// Reads in the task's place what has been answered, unless somebody else reads now.
    fn read_replies(&self) {
        let writer = self.lock().writer.clone();
        if let Some(writer) = writer {
            self.reader.read_replies(&writer, &self.queue, &self.task);
        }
    }

    /// Writes what is unsent, or has the task write it.
    pub(super) fn write<'q>(
        &'q self,
        mut queue: MutexGuard<'q, RequestQueue>,
        limits: Option<&Limits>,
    ) {
        let mut wakes = limits.is_some_and(|limits| queue.hurry_look(limits));
        loop {
            let Some(writer) = queue.writer.clone() else {
                // It may write for several, once.
                wakes |= !std::mem::replace(&mut queue.is_task_woken, true);
                break;
            };
            let Some(bytes) = queue.take_unsent() else {
                break;
            };
            drop(queue);
            let (written, result) = writer.write(&bytes);
            queue = self.lock();
            if queue.put_back(bytes, written) {
                continue;
            }
            wakes = true;
            match result {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => queue.is_full = true,
                Err(error) => {
                    let wakers = queue.end(error.into());
                    drop(queue);
                    wakers.into_iter().for_each(Waker::wake);
                    self.task.wake();
                    return;
                }
                Ok(()) => {}
            }
            break;
        }
        drop(queue);
        if wakes {
            self.task.wake();
        }
    }
}

/// The reply to a command. Dropped before it is there, the command is carried out all the same if
/// it was polled.
#[derive(Debug)]
pub(crate) struct PendingReply<'c> {
    shared: &'c Arc<Shared>,
    stage: Stage<'c>,
    /// Whether others of this thread have left it to this one to write.
    writes: bool,
}

#[derive(Debug)]
enum Stage<'c> {
    Unsent {
        command: &'c Command,
        asking: bool,
        limits: Option<&'c Limits>,
    },
    Sent {
        number: usize,
    },
    Done,
}

impl Future for PendingReply<'_> {
    type Output = ReplyResult;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<ReplyResult> {
        let this = &mut *self;
        let mut queue = this.shared.lock();
        match this.stage {
            Stage::Unsent {
                command,
                asking,
                limits,
            } => {
                if let Some(error) = queue.ended() {
                    return Poll::Ready(Err(error.clone()));
                }
                let is_shared = queue.under_way() > 0;
                // It closes the segment. In a cluster nothing is merged, so this command is next.
                if asking {
                    queue.add_unawaited(&Command::new("ASKING"));
                }
                let number = queue.add(command, None, limits);
                this.stage = Stage::Sent { number };
                if let Some(outcome) = queue.poll(number, cx.waker()) {
                    this.stage = Stage::Done;
                    return Poll::Ready(outcome.and_then(Value::extract_error));
                }
                // The tasks that are ready now add their requests before this one writes.
                if is_shared && queue.writer.is_some() && queue.unsent < CHUNK {
                    let here = this_thread();
                    if queue.gathers != Some(here) {
                        queue.gathers = Some(here);
                        this.writes = true;
                        cx.waker().wake_by_ref();
                    }
                    let wakes = limits.is_some_and(|limits| queue.hurry_look(limits));
                    drop(queue);
                    if wakes {
                        this.shared.task.wake();
                    }
                    return Poll::Pending;
                }
                this.shared.write(queue, limits);
                if is_shared {
                    this.shared.read_replies();
                }
                Poll::Pending
            }
            Stage::Sent { number } => {
                let outcome = queue.poll(number, cx.waker());
                if std::mem::take(&mut this.writes) {
                    this.shared.write(queue, None);
                    this.shared.read_replies();
                }
                match outcome {
                    Some(outcome) => {
                        this.stage = Stage::Done;
                        Poll::Ready(outcome.and_then(Value::extract_error))
                    }
                    None => Poll::Pending,
                }
            }
            Stage::Done => Poll::Pending,
        }
    }
}

impl Drop for PendingReply<'_> {
    fn drop(&mut self) {
        if let Stage::Sent { number } = self.stage {
            let mut queue = self.shared.lock();
            queue.forget(number);
            if self.writes {
                self.shared.write(queue, None);
            }
        }
    }
}

/// Tells this thread from others.
fn this_thread() -> usize {
    thread_local! {
        static HERE: u8 = const { 0 };
    }
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream as Server;
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;
    use std::thread;

    use lock_store::Instant;
    use tokio::net::UnixStream;

    use super::super::socket::Socket;
    use super::*;

    /// How often it was woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Woken {
        fn take(&self) -> usize {
            self.0.swap(0, Ordering::Relaxed)
        }
    }

    /// A connection to which callers write, and its other end.
    async fn connected() -> (Server, RespConnection) {
        let (server, client) = Server::pair().unwrap();
        server.set_nonblocking(true).unwrap();
        client.set_nonblocking(true).unwrap();
        let Socket::Shared(_, writer) = Socket::from(UnixStream::from_std(client).unwrap()) else {
            panic!("callers write to it");
        };
        let is_ready = std::future::poll_fn(|cx| writer.poll_ready(cx)).await;
        is_ready.unwrap();
        let connection = RespConnection::new(Some(writer), Duration::from_millis(500));
        (server, connection)
    }

    /// How many commands were written since the last question.
    fn written(server: &mut Server) -> usize {
        let mut bytes = [0; 4096];
        let read = server.read(&mut bytes).unwrap_or(0);
        bytes[..read].iter().filter(|byte| **byte == b'*').count()
    }

    /// The first finds nothing under way. The others gather, until there are enough of them.
    #[tokio::test]
    async fn who_gathers_writes_when_there_is_enough() {
        let (mut server, connection) = connected().await;
        let ping = Command::new("PING");
        let mut cx = Context::from_waker(Waker::noop());
        let mut sent = Vec::new();
        for number in 0..=2 * CHUNK {
            let mut reply = Box::pin(connection.send(&ping, false, None));
            assert!(reply.as_mut().poll(&mut cx).is_pending());
            sent.push(reply);
            let expected = match number {
                0 => 1,
                _ if number % CHUNK == 0 => CHUNK,
                _ => 0,
            };
            assert_eq!(written(&mut server), expected, "{number}");
        }
        let mut last = pin!(connection.send(&ping, false, None));
        for expected in [0, 1] {
            assert!(last.as_mut().poll(&mut cx).is_pending());
            assert_eq!(written(&mut server), expected);
        }
    }

    /// One of a thread wakes itself, writes for the others, and reads what has come by then.
    #[tokio::test]
    async fn one_of_those_who_gather_writes_and_reads_for_all() {
        let (mut server, connection) = connected().await;
        let (ping, woken) = (Command::new("PING"), Arc::new(Woken::default()));
        let waker = Waker::from(Arc::clone(&woken));
        let mut cx = Context::from_waker(&waker);
        let mut replies = [(); 3].map(|()| Box::pin(connection.send(&ping, false, None)));
        for (reply, expected) in replies.iter_mut().zip([(1, 0), (0, 1), (0, 0)]) {
            assert!(reply.as_mut().poll(&mut cx).is_pending());
            assert_eq!((written(&mut server), woken.take()), expected);
        }
        server.write_all(b"+PONG\r\n").unwrap();
        // Who does not write for all changes nothing.
        assert!(replies[2].as_mut().poll(&mut cx).is_pending());
        assert!(replies[0].as_mut().poll(&mut cx).is_pending());
        assert_eq!(written(&mut server), 0);
        assert!(replies[1].as_mut().poll(&mut cx).is_pending());
        assert_eq!((written(&mut server), woken.take()), (2, 1));
        assert!(replies[0].as_mut().poll(&mut cx).is_ready());
        // It has written for all, once.
        server.write_all(b"+PONG\r\n+PONG\r\n").unwrap();
        assert!(replies[1].as_mut().poll(&mut cx).is_pending());
    }

    #[tokio::test]
    async fn who_fills_a_chunk_reads_as_well() {
        let (mut server, connection) = connected().await;
        let ping = Command::new("PING");
        let mut cx = Context::from_waker(Waker::noop());
        let mut replies: Vec<_> = (0..=CHUNK)
            .map(|_| Box::pin(connection.send(&ping, false, None)))
            .collect();
        for reply in &mut replies {
            let is_first_written = written(&mut server) == 1;
            if is_first_written {
                server.write_all(b"+PONG\r\n").unwrap();
            }
            assert!(reply.as_mut().poll(&mut cx).is_pending());
        }
        assert!(replies[0].as_mut().poll(&mut cx).is_ready());
        assert!(replies[1].as_mut().poll(&mut cx).is_pending());
    }

    #[tokio::test]
    async fn what_was_gathered_is_written_if_the_one_who_would_write_is_dropped() {
        let (mut server, connection) = connected().await;
        let ping = Command::new("PING");
        let mut cx = Context::from_waker(Waker::noop());
        let mut replies = [(); 3].map(|()| Some(Box::pin(connection.send(&ping, false, None))));
        for reply in replies.iter_mut().flatten() {
            assert!(reply.as_mut().poll(&mut cx).is_pending());
        }
        assert_eq!(written(&mut server), 1);
        replies[2] = None;
        assert_eq!(written(&mut server), 0);
        replies[1] = None;
        assert_eq!(written(&mut server), 2);
        // The replies are still to come. Then the numbers are free.
        let mut queue = connection.shared.lock();
        assert_eq!(queue.under_way(), 3);
        assert_eq!(queue.add(&ping, None, None), 3);
        for _ in 0..3 {
            assert!(queue.deliver(redis::Value::Okay, &mut Vec::new()).is_ok());
        }
        let mut again = [(); 2].map(|()| queue.add(&ping, None, None));
        again.sort_unstable();
        assert_eq!(again, [1, 2]);
    }

    /// The task looks at requests in time: it is woken if it would sleep too long.
    #[tokio::test]
    async fn the_task_is_woken_for_a_time_limit_that_it_does_not_know() {
        let (mut server, connection) = connected().await;
        let (ping, woken) = (Command::new("PING"), Arc::new(Woken::default()));
        let (task, mut cx) = (&connection.shared.task, Context::from_waker(Waker::noop()));
        let limits = |late: i64| Limits {
            by: Instant::from_nanos(100),
            late: Instant::from_nanos(late),
            patience: Instant::from_nanos(100),
            is_repeated: false,
        };
        let (early, late) = (limits(10), limits(20));
        let mut replies = Vec::new();
        // The first writes, and the others gather.
        for (limits, wakes) in [
            (None, 0),
            (Some(&late), 1),
            (Some(&late), 0),
            (Some(&early), 1),
            (None, 0),
        ] {
            task.register(&Waker::from(Arc::clone(&woken)));
            let mut reply = Box::pin(connection.send(&ping, false, limits));
            assert!(reply.as_mut().poll(&mut cx).is_pending());
            replies.push(reply);
            assert_eq!(woken.take(), wakes, "{limits:?}");
        }
        assert_eq!(written(&mut server), 1);
    }

    /// Where the task writes, it is woken once for all that is unsent.
    #[tokio::test]
    async fn a_task_that_writes_is_woken_once_until_it_has_written() {
        let connection = RespConnection::new(None, Duration::from_millis(500));
        let (ping, woken) = (Command::new("PING"), Arc::new(Woken::default()));
        let (task, mut cx) = (&connection.shared.task, Context::from_waker(Waker::noop()));
        let mut replies = Vec::new();
        for wakes in [1, 0, 1] {
            task.register(&Waker::from(Arc::clone(&woken)));
            let mut reply = Box::pin(connection.send(&ping, false, None));
            assert!(reply.as_mut().poll(&mut cx).is_pending());
            replies.push(reply);
            assert_eq!(woken.take(), wakes);
            if wakes == 0 {
                connection.shared.lock().is_task_woken = false;
            }
        }
    }

    /// The bytes of a command that begins with `ASKING` are those of two.
    #[tokio::test]
    async fn what_is_written_is_the_command_and_what_it_needs() {
        let (mut server, connection) = connected().await;
        let (ping, mut cx) = (Command::new("PING"), Context::from_waker(Waker::noop()));
        let mut query = pin!(connection.query::<()>(&ping));
        assert!(query.as_mut().poll(&mut cx).is_pending());
        assert_eq!(written(&mut server), 1);
        let both = [&ping, &ping];
        for (asking, commands) in [(false, 2), (true, 3)] {
            let mut together = pin!(connection.send_together(&both, asking, None));
            assert!(together.as_mut().poll(&mut cx).is_pending());
            assert_eq!(written(&mut server), commands);
        }
        for (word, asking, commands) in [
            ("SUBSCRIBE", false, 1),
            ("SSUBSCRIBE", true, 2),
            ("UNSUBSCRIBE", false, 1),
            // And the `PING` behind it.
            ("SUNSUBSCRIBE", false, 2),
            ("SUNSUBSCRIBE", true, 3),
        ] {
            let mut subscribed = pin!(connection.subscribe(word, "c", asking, None));
            assert!(subscribed.as_mut().poll(&mut cx).is_pending());
            assert_eq!(written(&mut server), commands, "{word}");
        }
    }

    /// Which of them were carried out is not known.
    #[tokio::test]
    async fn commands_in_one_piece_fail_together_if_a_reply_does_not_come() {
        let (ping, mut cx) = (Command::new("PING"), Context::from_waker(Waker::noop()));
        for kind in [io::ErrorKind::TimedOut, io::ErrorKind::UnexpectedEof] {
            let (_server, connection) = connected().await;
            let commands = [&ping, &ping];
            let mut together = Box::pin(connection.send_together(&commands, false, None));
            assert!(together.as_mut().poll(&mut cx).is_pending());
            let mut queue = connection.shared.lock();
            let mut wakers = Vec::new();
            // A refusal is a reply.
            let refused = redis::parse_redis_value(b"-OOM\r\n").unwrap();
            queue.deliver(refused, &mut wakers).unwrap();
            let _ = queue.end(io::Error::from(kind).into());
            assert!(queue.writer.is_none());
            drop(queue);
            let Poll::Ready(Err(error)) = together.as_mut().poll(&mut cx) else {
                panic!("{kind}: it has ended");
            };
            assert!(error.is_io_error());
        }
    }

    /// The task waits until the socket takes more.
    #[tokio::test]
    async fn what_a_full_socket_does_not_take_is_left_to_the_task() {
        let (_server, connection) = connected().await;
        let (mut long, woken) = (Command::new("SET"), Arc::new(Woken::default()));
        long.arg("x".repeat(100_000));
        let mut cx = Context::from_waker(Waker::noop());
        let shared = &connection.shared;
        let mut replies = Vec::new();
        while woken.take() == 0 {
            shared.task.register(&Waker::from(Arc::clone(&woken)));
            assert!(!shared.lock().is_full && replies.len() < 1000);
            for _ in 0..2 {
                let mut reply = Box::pin(connection.send(&long, false, None));
                assert!(reply.as_mut().poll(&mut cx).is_pending());
                // The first of a thread gathers, and then writes.
                assert!(reply.as_mut().poll(&mut cx).is_pending());
                replies.push(reply);
            }
        }
        assert!(shared.lock().is_full && shared.lock().has_unsent());
        assert!(shared.lock().ended().is_none());
    }

    #[tokio::test]
    async fn a_socket_that_can_not_be_written_ends_the_connection_for_all() {
        let (server, connection) = connected().await;
        let (ping, woken) = (Command::new("PING"), Arc::new(Woken::default()));
        let (waiting, waker) = (Arc::new(Woken::default()), Waker::noop());
        let first_waker = Waker::from(Arc::clone(&waiting));
        let mut first = Box::pin(connection.send(&ping, false, None));
        let polled = first.as_mut().poll(&mut Context::from_waker(&first_waker));
        assert!(polled.is_pending());
        drop(server);
        let task = &connection.shared.task;
        task.register(&Waker::from(Arc::clone(&woken)));
        let mut second = Box::pin(connection.send(&ping, false, None));
        let mut cx = Context::from_waker(waker);
        assert!(second.as_mut().poll(&mut cx).is_pending());
        let _ = second.as_mut().poll(&mut cx);
        assert_eq!((woken.take(), waiting.take()), (1, 1));
        for mut reply in [first, second] {
            let polled = reply.as_mut().poll(&mut cx);
            assert!(matches!(polled, Poll::Ready(Err(error)) if error.is_io_error()));
        }
    }

    /// Who did not leave it to others to write leaves alone what others gather.
    #[tokio::test]
    async fn what_others_gather_is_written_by_one_of_them() {
        let (mut server, connection) = connected().await;
        let (ping, mut cx) = (Command::new("PING"), Context::from_waker(Waker::noop()));
        let both = [&ping, &ping];
        let mut together = Box::pin(connection.send_together(&both, false, None));
        let mut subscribed = Box::pin(connection.subscribe("SUBSCRIBE", "c", false, None));
        assert!(together.as_mut().poll(&mut cx).is_pending());
        assert!(subscribed.as_mut().poll(&mut cx).is_pending());
        assert_eq!(written(&mut server), 3);
        let mut gathers = Box::pin(connection.send(&ping, false, None));
        assert!(gathers.as_mut().poll(&mut cx).is_pending());
        assert!(together.as_mut().poll(&mut cx).is_pending());
        assert!(subscribed.as_mut().poll(&mut cx).is_pending());
        drop((together, subscribed));
        assert_eq!(written(&mut server), 0);
        assert!(gathers.as_mut().poll(&mut cx).is_pending());
        assert_eq!(written(&mut server), 1);
    }

    /// Looks whether others get the connection's lock while it wakes the task.
    struct IsFree(Arc<Shared>, AtomicUsize);

    impl Wake for IsFree {
        fn wake(self: Arc<Self>) {
            let (told, is_free) = std::sync::mpsc::channel();
            let shared = Arc::clone(&self.0);
            thread::spawn(move || {
                drop(shared.lock());
                told.send(())
            });
            if is_free.recv_timeout(Duration::from_secs(20)).is_ok() {
                self.1.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// A task that is woken needs the lock at once.
    #[tokio::test]
    async fn nobody_is_woken_under_the_lock() {
        let ping = Command::new("PING");
        let limits = Limits {
            by: Instant::from_nanos(100),
            late: Instant::from_nanos(100),
            patience: Instant::from_nanos(100),
            is_repeated: false,
        };
        let mut cx = Context::from_waker(Waker::noop());
        let (server, connection) = connected().await;
        let shared = &connection.shared;
        let is_free = Arc::new(IsFree(Arc::clone(shared), AtomicUsize::new(0)));
        let register = || shared.task.register(&Waker::from(Arc::clone(&is_free)));
        let times = |is_free: &IsFree| is_free.1.load(Ordering::Relaxed);
        // By the first who writes, and by one who gathers.
        for (limits, wakes) in [(Some(&limits), 1), (None, 1)] {
            register();
            let mut reply = Box::pin(connection.send(&ping, false, limits));
            assert!(reply.as_mut().poll(&mut cx).is_pending());
            assert_eq!(times(&is_free), wakes);
        }
        connection.shared.lock().next_look = None;
        register();
        let mut reply = Box::pin(connection.send(&ping, false, Some(&limits)));
        assert!(reply.as_mut().poll(&mut cx).is_pending());
        assert_eq!(times(&is_free), 2);
        // By one who can't write.
        drop(server);
        register();
        shared.write(shared.lock(), None);
        assert_eq!(times(&is_free), 3);
    }

    /// It is refused at once, and its number is free once.
    #[tokio::test]
    async fn a_request_that_is_refused_at_once_has_no_place_on_the_connection() {
        let (_server, connection) = connected().await;
        let (ping, mut cx) = (Command::new("PING"), Context::from_waker(Waker::noop()));
        let limits = Limits {
            by: Instant::from_nanos(100),
            late: Instant::from_nanos(100),
            patience: Instant::from_nanos(100),
            is_repeated: true,
        };
        connection.replace();
        let mut refused = Box::pin(connection.send(&ping, false, Some(&limits)));
        let polled = refused.as_mut().poll(&mut cx);
        assert!(matches!(polled, Poll::Ready(Err(error)) if error.is_timeout()));
        assert!(refused.as_mut().poll(&mut cx).is_pending());
        let deliver = || {
            let mut queue = connection.shared.lock();
            queue.deliver(redis::Value::Okay, &mut Vec::new())
        };
        assert!(deliver().is_ok());
        let next = connection.shared.lock().add(&ping, None, None);
        // It has nothing to do with the one that has its number now.
        drop(refused);
        assert!(deliver().is_ok());
        let mut queue = connection.shared.lock();
        assert!(queue.poll(next, Waker::noop()).is_some());
        assert_ne!(queue.add(&ping, None, None), queue.add(&ping, None, None));
    }

    #[test]
    fn threads_are_told_apart() {
        let other = thread::spawn(this_thread).join().unwrap();
        assert_ne!(this_thread(), other);
        assert_eq!(this_thread(), this_thread());
    }
}
