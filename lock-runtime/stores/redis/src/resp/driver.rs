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
/// More bytes than a reply may have (16 MiB), and than are kept for a connection by the system (up
/// to 32 MiB, `tcp_rmem`) and Redis (32 MiB, `client-output-buffer-limit pubsub`).
const KEPT: usize = if cfg!(test) { 1 << 12 } else { 64 << 20 };
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
        in_a_row: 0,
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
    /// The bytes that were read since there was nothing to read, or since the last look.
    in_a_row: usize,
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
        let has_read = self.read(cx)?;
        // What has come is read before anybody's time is over.
        if has_read {
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

    /// Reads what comes. Whether that is all, or more than had come when it began to be read.
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
                Poll::Pending => {
                    self.in_a_row = 0;
                    return Ok(true);
                }
                Poll::Ready(()) => room.filled().len(),
            };
            if bytes == 0 {
                let text = "the server closed the connection";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text).into());
            }
            self.in_a_row = self.in_a_row.saturating_add(bytes);
            reader.add(bytes);
            reader.deliver(queue, self.events.as_deref())?;
        }
        cx.waker().wake_by_ref();
        let is_much = self.in_a_row > KEPT;
        if is_much {
            self.in_a_row = 0;
        }
        Ok(is_much)
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

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Mutex as StdMutex;
    use std::task::{Wake, Waker};

    use redis::Value;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufStream, DuplexStream, duplex};
    use tokio::runtime::Handle;
    use tokio::time::timeout;

    use super::super::command::Command;
    use super::super::connection::PendingReply;
    use super::super::time_limits::Limits;
    use super::*;

    /// What was told, in this order.
    #[derive(Default)]
    struct Heard(StdMutex<Vec<String>>);

    impl Heard {
        fn add(&self, what: String) {
            let mut heard = self
                .0
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            heard.push(what);
        }

        fn all(&self) -> Vec<String> {
            let heard = self
                .0
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            heard.clone()
        }
    }

    impl ConnectionEvents for Arc<Heard> {
        fn on_message(&self, _: &[u8], message: &[u8]) {
            self.add(String::from_utf8_lossy(message).into_owned());
        }
        fn on_unsubscribed(&self, channel: &[u8]) {
            self.add(format!("no {}", String::from_utf8_lossy(channel)));
        }
        fn on_late(&self) {
            self.add("late".to_owned());
        }
        fn on_end(&self, error: &RedisError) {
            self.add(error.to_string());
        }
    }

    impl Wake for Heard {
        fn wake(self: Arc<Self>) {
            self.add("wake".to_owned());
        }
    }

    const TIMEOUT: Duration = Duration::from_millis(400);

    /// A connection whose task writes into a buffer, over a stream that takes this many bytes.
    fn connected(room: usize) -> (DuplexStream, RespConnection, Driver, Arc<Heard>, Clock) {
        let (server, client) = duplex(room);
        let (clock, heard) = (
            Clock::simulated(Handle::current()),
            Arc::new(Heard::default()),
        );
        let socket = Socket::Owned(Box::new(BufStream::with_capacity(8, 8, client)));
        let events = Some(Box::new(Arc::clone(&heard)) as Box<dyn ConnectionEvents>);
        let (connection, driver) = start(socket, &clock, TIMEOUT, events);
        (server, connection, driver, heard, clock)
    }

    async fn read(server: &mut DuplexStream, bytes: usize) -> String {
        let mut read = vec![0; bytes];
        let read_all = server.read_exact(&mut read);
        let all = timeout(Duration::from_secs(60), read_all).await;
        assert!(all.is_ok_and(|all| all.is_ok()), "it was not written");
        String::from_utf8_lossy(&read).into_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_sent_goes_out_whole_and_at_once_and_its_reply_comes_back() {
        let (mut server, connection, _driver, heard, _) = connected(16);
        let text = "0123456789".repeat(10);
        let mut long = Command::new("SET");
        long.arg(&text);
        let ping = Command::new("PING");
        for _ in 0..2 {
            let serve = async {
                let sent = read(&mut server, 121).await + &read(&mut server, 14).await;
                assert_eq!(sent.matches(&text).count(), 1, "{sent}");
                assert!(sent.ends_with("*1\r\n$4\r\nPING\r\n"), "{sent}");
                server.write_all(b":1\r\n+PONG\r\n").await
            };
            let replies = async {
                let both = tokio::join!(
                    connection.send(&long, false, None),
                    connection.send(&ping, false, None)
                );
                (both.0.is_ok(), both.1.is_ok())
            };
            let (served, replies) = tokio::join!(serve, replies);
            assert!(served.is_ok());
            assert_eq!(replies, (true, true));
        }
        assert_eq!(heard.all(), Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_connection_is_told_to_all_who_wait_and_then_to_its_owner() {
        let (server, connection, _driver, heard, _) = connected(16);
        let ping = Command::new("PING");
        let mut reply = Box::pin(connection.send(&ping, false, None));
        let waker = Waker::from(Arc::clone(&heard));
        let polled = reply.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        drop(server);
        while heard.all().len() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let told = heard.all();
        assert_eq!((told.len(), &*told[0]), (2, "wake"), "{told:?}");
        // Its own reason, and not that nobody needs it any more.
        let error = reply.await.map_err(|error| error.to_string());
        assert_eq!(error.as_ref().err(), Some(&told[1]));
        assert!(!told[1].contains("was closed"), "{told:?}");
        assert!(connection.send(&ping, false, None).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_a_connection_that_is_dropped_learns_that_it_was_closed() {
        let (_server, connection, driver, heard, _) = connected(16);
        let ping = Command::new("PING");
        let waits = async { connection.send(&ping, false, None).await };
        let drops = async {
            tokio::task::yield_now().await;
            drop(driver);
        };
        let (reply, ()) = tokio::join!(timeout(TIMEOUT, waits), drops);
        let error = reply.map(|reply| reply.err().map(|error| error.to_string()));
        assert!(matches!(error, Ok(Some(text)) if text.contains("was closed")));
        assert_eq!(heard.all(), Vec::<String>::new());
    }

    /// Says the same for ever, and takes everything.
    struct Endless(Vec<u8>);

    impl AsyncRead for Endless {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            room: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            while room.remaining() >= self.0.len() {
                room.put_slice(&self.0);
            }
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn messages_that_never_end_keep_no_request_beyond_its_time() {
        let message = format!(">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$999\r\n{:999}\r\n", "m");
        let messages = Endless(message.into_bytes());
        let socket = tokio::io::join(messages, tokio::io::sink());
        let (clock, socket) = (
            Clock::new(Handle::current()),
            Socket::Owned(Box::new(socket)),
        );
        let (connection, _driver) = start(socket, &clock, TIMEOUT, None);
        let limits = Limits {
            by: clock.now() + TIMEOUT,
            late: clock.now() + TIMEOUT,
            patience: clock.now() + TIMEOUT,
            is_repeated: false,
        };
        let ping = Command::new("PING");
        let reply = connection.send(&ping, false, Some(&limits));
        let reply = timeout(Duration::from_secs(60), reply).await;
        assert!(reply.is_ok_and(|reply| reply.is_err_and(|error| error.is_timeout())));
    }

    #[tokio::test(start_paused = true)]
    async fn each_request_is_late_and_over_in_its_own_time() {
        let (_server, connection, _driver, heard, clock) = connected(1024);
        let begin = clock.now();
        let after = |millis: u64| Duration::from_millis(millis);
        let ping = Command::new("PING");
        let over = async |sent: u64, late: u64, by: u64| {
            tokio::time::sleep(after(sent)).await;
            let limits = Limits {
                by: begin + after(by),
                late: begin + after(late),
                // As long as the server says something.
                patience: begin + after(by + 1000),
                is_repeated: false,
            };
            let reply = connection.send(&ping, false, Some(&limits)).await;
            assert!(reply.is_err_and(|error| error.is_timeout()));
            (clock.now() - begin).as_millis()
        };
        // The second is to be looked at before the first. The third is never late.
        let all = async { tokio::join!(over(0, 200, 400), over(10, 100, 300), over(0, 350, 350)) };
        let early = async {
            tokio::time::sleep(after(150)).await;
            heard.all()
        };
        let (times, early) = tokio::join!(timeout(4 * TIMEOUT, all), early);
        assert_eq!(early, ["late"]);
        assert_eq!(heard.all(), ["late", "late"]);
        let Ok((one, two, three)) = times else {
            panic!("they are not over");
        };
        for (time, due) in [(one, 400), (two, 300), (three, 350)] {
            assert!((due..due + 5).contains(&time), "{time} instead of {due}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn messages_are_heard_while_nothing_was_asked() {
        let (mut server, _connection, _driver, heard, _) = connected(1024);
        let messages = b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nm1\r\n\
            >3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n";
        assert!(server.write_all(messages).await.is_ok());
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(heard.all(), ["m1", "no c"]);
    }

    /// Callers write to it, and the task what they can't.
    #[cfg(unix)]
    #[tokio::test]
    async fn what_a_full_socket_did_not_take_is_written_when_it_does() {
        let (client, mut server) = tokio::net::UnixStream::pair().unwrap();
        let clock = Clock::new(Handle::current());
        let (connection, _driver) = start(client.into(), &clock, TIMEOUT, None);
        let mut long = Command::new("SET");
        long.arg("x".repeat(100_000));
        let serve = async {
            let mut rest = vec![0; 40 * 100_000];
            // As much as it takes, and the rest later.
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert!(connection.shared.lock().is_full);
            server.read_exact(&mut rest).await.unwrap();
            server.write_all(b"+OK\r\n".repeat(40).as_slice()).await
        };
        let replies = async {
            let all = (0..40).map(|_| connection.send(&long, false, None));
            futures_util::future::join_all(all).await
        };
        let limit = Duration::from_secs(60);
        let both = async { tokio::join!(serve, replies) };
        let (served, replies) = timeout(limit, both).await.unwrap();
        served.unwrap();
        assert!(replies.iter().all(Result::is_ok));
    }

    /// A caller reads replies, and leaves a message to the task.
    #[cfg(unix)]
    #[tokio::test]
    async fn a_message_that_a_caller_has_read_is_heard_at_once() {
        let (client, mut server) = tokio::net::UnixStream::pair().unwrap();
        let (clock, heard) = (Clock::new(Handle::current()), Arc::new(Heard::default()));
        let events = Some(Box::new(Arc::clone(&heard)) as Box<dyn ConnectionEvents>);
        let (connection, _driver) = start(client.into(), &clock, TIMEOUT, events);
        let ping = Command::new("PING");
        let mut cx = Context::from_waker(Waker::noop());
        let mut replies = [(); 2].map(|()| Box::pin(connection.send(&ping, false, None)));
        // The first writes, the second gathers.
        let is_ready = |reply: &mut Pin<Box<PendingReply<'_>>>, cx: &mut Context<'_>| {
            Future::poll(reply.as_mut(), cx).is_ready()
        };
        while connection.shared.lock().has_unsent() || connection.shared.lock().under_way() == 0 {
            assert!(!is_ready(&mut replies[0], &mut cx));
            tokio::task::yield_now().await;
        }
        assert!(!is_ready(&mut replies[1], &mut cx));
        let said = b"+OK\r\n>3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nm1\r\n";
        server.write_all(said).await.unwrap();
        assert_eq!(heard.all(), Vec::<String>::new());
        assert!(!is_ready(&mut replies[1], &mut cx));
        assert!(is_ready(&mut replies[0], &mut cx));
        assert_eq!(heard.all(), Vec::<String>::new());
        // Nothing more comes.
        let hears = async {
            while heard.all().is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(Duration::from_secs(20), hears).await.unwrap();
        assert_eq!(heard.all(), ["m1"]);
    }

    /// Gives one byte at a time, and then nothing more.
    struct OneByOne(std::vec::IntoIter<u8>);

    impl AsyncRead for OneByOne {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            room: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            match self.0.next() {
                None => Poll::Pending,
                Some(byte) => {
                    room.put_slice(&[byte]);
                    Poll::Ready(Ok(()))
                }
            }
        }
    }

    impl AsyncWrite for OneByOne {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// A request is not over as long as what was said of it is still to be read.
    #[tokio::test(start_paused = true)]
    async fn much_that_has_come_is_read_in_turns_and_before_anybodys_time_is_over() {
        let message = b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nm1\r\n";
        let said = [&message[..], b"+PONG\r\n", message].concat();
        assert!(said.len() > 4 * READS);
        let (clock, heard) = (
            Clock::simulated(Handle::current()),
            Arc::new(Heard::default()),
        );
        let events = Some(Box::new(Arc::clone(&heard)) as Box<dyn ConnectionEvents>);
        let socket = Socket::Owned(Box::new(OneByOne(said.into_iter())));
        let (connection, _driver) = start(socket, &clock, TIMEOUT, events);
        let limits = Limits {
            by: clock.now(),
            late: clock.now(),
            patience: clock.now(),
            is_repeated: false,
        };
        let ping = Command::new("PING");
        let reply = connection.send(&ping, false, Some(&limits)).await;
        assert!(reply.is_ok(), "{reply:?}");
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(heard.all(), ["m1", "m1"]);
    }

    /// What else is under way may have been carried out.
    #[tokio::test(start_paused = true)]
    async fn a_refusal_that_is_nobodys_says_nothing_of_other_requests() {
        let (mut server, connection, _driver, _, _) = connected(512);
        let ended = connection.subscribe("SUNSUBSCRIBE", "c", false, None);
        let set = Command::new("SET");
        let set = connection.send(&set, false, None);
        let serve = async {
            // Of the `PING` behind it.
            let said = b">3\r\n$12\r\nsunsubscribe\r\n$1\r\nc\r\n:0\r\n\
                -NOPERM User u has no permissions to run the 'ping' command\r\n+OK\r\n";
            tokio::time::sleep(Duration::from_millis(1)).await;
            server.write_all(said).await
        };
        let (_, set, served) = tokio::join!(ended, set, serve);
        assert!(served.is_ok());
        let error = set.err();
        let may_have_acted = error.as_ref().map(crate::errors::may_have_acted);
        assert_eq!(may_have_acted, Some(true));
        let said = error.map_or_else(String::new, |error| error.to_string());
        assert!(
            said.contains("no permissions") && said.contains("does not fit"),
            "{said}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_subscription_that_nobody_asked_for_ends_the_connection() {
        let (mut server, _connection, _driver, heard, _) = connected(512);
        let said = b">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n";
        assert!(server.write_all(said).await.is_ok());
        tokio::time::sleep(Duration::from_millis(1)).await;
        let told = heard.all();
        assert!(
            told.len() == 1 && told[0].contains("nobody has asked"),
            "{told:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn commands_in_one_piece_have_a_reply_each() {
        let (mut server, connection, _driver, _, _) = connected(512);
        let ping = Command::new("PING");
        let serve = async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            server.write_all(b"+A\r\n+B\r\n").await
        };
        let both = [&ping, &ping];
        let (replies, served) = tokio::join!(connection.send_together(&both, false, None), serve);
        assert!(served.is_ok());
        let replies = replies.map(|all| all.into_iter().map(Result::ok).collect::<Vec<_>>());
        let simple = |text: &str| Some(Value::SimpleString(text.to_owned()));
        assert_eq!(replies.ok(), Some(vec![simple("A"), simple("B")]));
    }

    #[tokio::test(start_paused = true)]
    async fn who_sends_again_is_woken_when_another_connection_is_there() {
        let (_server, connection, _driver, heard, clock) = connected(512);
        let by = clock.now() + TIMEOUT;
        let limits = Limits {
            by,
            late: by,
            patience: by,
            is_repeated: true,
        };
        let ping = Command::new("PING");
        let mut reply = Box::pin(connection.send(&ping, false, Some(&limits)));
        let waker = Waker::from(Arc::clone(&heard));
        let polled = reply.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        connection.replace();
        assert_eq!(heard.all(), ["wake"]);
        assert!(reply.await.is_err());
    }

    /// What a stream gives next.
    enum Step {
        Byte(u8),
        /// Time passes.
        Pass(Duration),
        Nothing,
    }

    struct Steps(std::vec::IntoIter<Step>);

    impl AsyncRead for Steps {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            room: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            loop {
                match self.0.next() {
                    Some(Step::Byte(byte)) => {
                        room.put_slice(&[byte]);
                        return Poll::Ready(Ok(()));
                    }
                    Some(Step::Pass(time)) => {
                        let _ = pin!(tokio::time::advance(time)).poll(cx);
                    }
                    Some(Step::Nothing) => {
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    None => return Poll::Pending,
                }
            }
        }
    }

    /// So many bytes of messages.
    fn messages(bytes: usize) -> Vec<Step> {
        let message = b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nm1\r\n";
        assert!(message.len() == 2 * READS && bytes.is_multiple_of(message.len()));
        let all = message.iter().copied().cycle().take(bytes);
        all.map(Step::Byte).collect()
    }

    /// Whether a request has its reply, which comes behind this, if its time is this long.
    async fn is_answered_behind(mut steps: Vec<Step>, time: Duration) -> bool {
        steps.extend(b"+PONG\r\n".iter().copied().map(Step::Byte));
        let clock = Clock::simulated(Handle::current());
        let stream = tokio::io::join(Steps(steps.into_iter()), tokio::io::sink());
        let socket = Socket::Owned(Box::new(stream));
        let (connection, _driver) = start(socket, &clock, TIMEOUT, None);
        let by = clock.now() + time;
        let limits = Limits {
            by,
            late: by,
            patience: by,
            is_repeated: false,
        };
        let ping = Command::new("PING");
        connection.send(&ping, false, Some(&limits)).await.is_ok()
    }

    /// Of a stream that never ends, no more than a connection may have kept comes before that.
    #[tokio::test(start_paused = true)]
    async fn what_can_have_come_before_is_read_before_anybodys_time_is_over() {
        let over = || vec![Step::Pass(2 * TIMEOUT)];
        let now = Duration::ZERO;
        assert!(is_answered_behind(messages(KEPT), now).await);
        assert!(!is_answered_behind(messages(2 * KEPT), now).await);
        // It is counted anew, after time limits were looked at, and when nothing more had come.
        let much = messages(KEPT + 2 * READS);
        let again = much.into_iter().chain(over()).chain(messages(KEPT / 2));
        assert!(is_answered_behind(again.collect(), TIMEOUT).await);
        let pause = [Step::Nothing].into_iter().chain(over());
        let again = messages(KEPT / 2).into_iter().chain(pause);
        let again = again.chain(messages(KEPT / 2 + 2 * READS));
        assert!(is_answered_behind(again.collect(), TIMEOUT).await);
    }
}
