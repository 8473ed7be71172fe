//! [`Reader`]: gives what a connection has read to those who await it.

use std::io;
use std::sync::{Mutex as StdMutex, MutexGuard};
use std::task::Waker;

use futures_util::task::AtomicWaker;
use lock_store::Mutex;
use redis::{RedisError, Value};

use super::decoder::{Decoder, Received};
use super::queue::RequestQueue;
use super::socket::Writer;
use crate::errors;
use crate::server_text::without_secrets;

/// What a connection has to say besides replies.
pub(crate) trait ConnectionEvents: Send + 'static {
    fn on_message(&self, channel: &[u8], message: &[u8]);
    /// The server ended the subscription of this channel on its own.
    fn on_unsubscribed(&self, channel: &[u8]);
    fn on_late(&self);
    /// The connection has ended, by itself.
    fn on_end(&self, error: &RedisError);
}

/// The [`Reader`] of whoever reads: the connection's task, or a caller that has just written for
/// several. Poisoned if a caller has panicked while it read: then replies may be lost.
#[derive(Debug)]
pub(super) struct SharedReader(StdMutex<Reader>);

/// What was read, as far as it is not delivered.
#[derive(Debug)]
pub(super) struct Reader {
    decoder: Decoder,
    /// Something was read that is not counted yet.
    has_read: bool,
    /// A caller has left a message to the task, or what ends the connection.
    is_left: bool,
    failure: Option<RedisError>,
    /// Between two uses these are empty.
    replies: Vec<Value>,
    wakers: Vec<Waker>,
}

impl SharedReader {
    pub(super) fn new() -> Self {
        Self(StdMutex::new(Reader {
            decoder: Decoder::new(),
            has_read: false,
            is_left: false,
            failure: None,
            replies: Vec::new(),
            wakers: Vec::new(),
        }))
    }

    /// For the task. It waits for a caller that reads now: for some microseconds, unless the system
    /// takes the processor from that one. To be woken by it takes a system call more each time.
    pub(super) fn lock(&self) -> Result<MutexGuard<'_, Reader>, RedisError> {
        let text = "a task panicked while it read from this connection";
        self.0.lock().map_err(|_| io::Error::other(text).into())
    }

    /// Reads for a caller what the server has answered by now, once. Messages are left to the task,
    /// since who hears them may use a lock that the caller has.
    pub(super) fn read_replies(
        &self,
        writer: &Writer,
        queue: &Mutex<RequestQueue>,
        task: &AtomicWaker,
    ) {
        let Ok(mut reader) = self.0.try_lock() else {
            return;
        };
        reader.read_replies(writer, queue);
        if reader.is_left {
            task.wake();
        }
        // Under the lock: else the task would read what comes next, and wake others from afar.
        reader.wakers.drain(..).for_each(Waker::wake);
    }
}

impl Reader {
    /// Where to read to.
    pub(super) fn room(&mut self) -> &mut [u8] {
        self.decoder.room()
    }

    /// `bytes` more were read.
    pub(super) fn add(&mut self, bytes: usize) {
        self.decoder.add(bytes);
        self.has_read = true;
    }

    /// Delivers what callers have left to the task.
    pub(super) fn deliver_left(
        &mut self,
        queue: &Mutex<RequestQueue>,
        events: Option<&dyn ConnectionEvents>,
    ) -> Result<(), RedisError> {
        if !std::mem::take(&mut self.is_left) {
            return Ok(());
        }
        match self.failure.take() {
            None => self.deliver(queue, events),
            Some(error) => Err(error),
        }
    }

    /// Delivers what was read, in the order in which the server has said it.
    pub(super) fn deliver(
        &mut self,
        queue: &Mutex<RequestQueue>,
        events: Option<&dyn ConnectionEvents>,
    ) -> Result<(), RedisError> {
        let decoded = self.decode(queue, events);
        self.wakers.drain(..).for_each(Waker::wake);
        decoded
    }

    fn decode(
        &mut self,
        queue: &Mutex<RequestQueue>,
        events: Option<&dyn ConnectionEvents>,
    ) -> Result<(), RedisError> {
        loop {
            match self.decoder.next() {
                Ok(Some(Received::Reply(value))) => self.replies.push(value),
                Ok(Some(Received::Push)) => {
                    self.deliver_replies(queue)?;
                    self.on_message(queue, events)?;
                }
                Ok(None) => return self.deliver_replies(queue),
                // After the replies before it.
                Err(error) => return self.deliver_replies(queue).and(Err(error)),
            }
        }
    }

    fn read_replies(&mut self, writer: &Writer, queue: &Mutex<RequestQueue>) {
        if self.is_left {
            return;
        }
        let mut read = match writer.read(self.room()) {
            // The task reads the end as well.
            Ok(0) => return,
            Ok(bytes) => {
                self.add(bytes);
                Ok(())
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => return,
                // It is told once.
                _ => Err(error.into()),
            },
        };
        while read.is_ok() {
            if self.decoder.is_at_push() {
                self.is_left = true;
                break;
            }
            match self.decoder.next() {
                Ok(Some(Received::Reply(value))) => self.replies.push(value),
                // Of a shape that none of ours has.
                Ok(Some(Received::Push)) => {}
                Ok(None) => break,
                Err(error) => read = Err(error),
            }
        }
        if let Err(error) = self.deliver_replies(queue).and(read) {
            (self.failure, self.is_left) = (Some(error), true);
        }
    }

    /// Gives the replies to those who await them, who are still to be woken.
    fn deliver_replies(&mut self, queue: &Mutex<RequestQueue>) -> Result<(), RedisError> {
        let mut queue = queue.lock();
        queue.reads += u64::from(std::mem::take(&mut self.has_read));
        let mut unasked = None;
        for reply in self.replies.drain(..) {
            let is_awaited = queue.under_way() > 0;
            if let Err(reply) = queue.deliver(reply, &mut self.wakers) {
                unasked = Some((reply, is_awaited));
                break;
            }
        }
        drop(queue);
        match unasked {
            None => Ok(()),
            // A server that has too many clients says so before it is asked anything.
            Some((Value::ServerError(error), false)) => Err(error.into()),
            // What is under way may have been carried out, whatever this says.
            Some((Value::ServerError(error), true)) => {
                let said = errors::text(&error.into());
                Err(out_of_order(
                    true,
                    &format!(" It is: {}", without_secrets(&said)),
                ))
            }
            Some((_, is_awaited)) => Err(out_of_order(is_awaited, "")),
        }
    }

    fn on_message(
        &mut self,
        queue: &Mutex<RequestQueue>,
        events: Option<&dyn ConnectionEvents>,
    ) -> Result<(), RedisError> {
        self.wakers.drain(..).for_each(Waker::wake);
        let [word, channel, message] = self.decoder.message();
        let is_message = matches!(word, b"message" | b"smessage");
        if !is_message {
            let mut queue = queue.lock();
            if queue.deliver_message(word, channel, &mut self.wakers) {
                return Ok(());
            }
            // No reply is its request's from here on.
            if matches!(word, b"subscribe" | b"ssubscribe") {
                return Err(out_of_order(queue.under_way() > 0, ""));
            }
        }
        let Some(events) = events else {
            return Ok(());
        };
        match word {
            _ if is_message => events.on_message(channel, message),
            b"unsubscribe" | b"sunsubscribe" => events.on_unsubscribed(channel),
            _ => {}
        }
        Ok(())
    }
}

/// Whose reply is whose is not known any more.
fn out_of_order(is_awaited: bool, said: &str) -> RedisError {
    let text = match is_awaited {
        true => "the reply does not fit the request; is there a proxy in front of it?",
        false => "the server sends a reply that nobody has asked for",
    };
    io::Error::new(io::ErrorKind::ConnectionAborted, format!("{text}{said}")).into()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::Arc;
    use std::task::Wake;
    use std::time::Duration;

    use tokio::net::UnixStream;

    use super::super::command::Command;
    use super::super::connection::RespConnection;
    use super::super::socket::Socket;
    use super::*;

    #[derive(Default)]
    struct Heard(StdMutex<Vec<String>>);

    impl Heard {
        fn take(&self) -> Vec<String> {
            std::mem::take(&mut self.0.lock().unwrap())
        }
    }

    impl ConnectionEvents for Arc<Heard> {
        fn on_message(&self, _: &[u8], message: &[u8]) {
            let message = String::from_utf8_lossy(message).into_owned();
            self.0.lock().unwrap().push(message);
        }
        fn on_unsubscribed(&self, _: &[u8]) {}
        fn on_late(&self) {}
        fn on_end(&self, _: &RedisError) {}
    }

    impl Wake for Heard {
        fn wake(self: Arc<Self>) {
            self.0.lock().unwrap().push("wake".to_owned());
        }
    }

    fn connection() -> (std::os::unix::net::UnixStream, Writer, RespConnection) {
        let (server, client) = std::os::unix::net::UnixStream::pair().unwrap();
        client.set_nonblocking(true).unwrap();
        let Socket::Shared(_, writer) = Socket::from(UnixStream::from_std(client).unwrap()) else {
            panic!("callers write to it");
        };
        let connection = RespConnection::new(None, Duration::from_millis(500));
        (server, writer, connection)
    }

    /// What a caller reads of these bytes, with two requests under way: how many replies it has
    /// delivered, whether it has woken the task, and what that then finds, and hears.
    fn read(bytes: &[u8]) -> (usize, bool, Result<usize, String>, Vec<String>) {
        let (mut server, writer, connection) = connection();
        let shared = &*connection.shared;
        let (woken, heard) = (Arc::new(Heard::default()), Arc::new(Heard::default()));
        shared.task.register(&Waker::from(Arc::clone(&woken)));
        let ping = Command::new("PING");
        let mut awaited: Vec<usize> = {
            let mut queue = shared.lock();
            (0..2).map(|_| queue.add(&ping, None, None)).collect()
        };
        let mut delivered = || {
            let before = awaited.len();
            let mut queue = shared.lock();
            awaited.retain(|number| queue.poll(*number, Waker::noop()).is_none());
            before - awaited.len()
        };
        server.write_all(bytes).unwrap();
        let read_replies = || {
            let (reader, queue) = (&shared.reader, &shared.queue);
            reader.read_replies(&writer, queue, &shared.task);
        };
        read_replies();
        let (by_caller, reads) = (delivered(), shared.lock().reads);
        assert_eq!(reads, 1);
        // Another caller leaves it as it is.
        read_replies();
        let mut reader = shared.reader.lock().unwrap();
        let left = reader.deliver_left(&shared.queue, Some(&heard));
        let left = left.map_err(|error| error.to_string());
        let left = left.map(|()| delivered());
        assert_eq!(shared.lock().reads, 1);
        (by_caller, !woken.take().is_empty(), left, heard.take())
    }

    const MESSAGE: &[u8] = b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nm1\r\n";

    #[tokio::test]
    async fn a_caller_delivers_replies_up_to_a_message() {
        assert_eq!(read(b"+OK\r\n:1\r\n"), (2, false, Ok(0), vec![]));
        assert_eq!(read(b"+OK\r\n:1"), (1, false, Ok(0), vec![]));
        let message = vec!["m1".to_owned()];
        let between = [b"+OK\r\n", MESSAGE, b":1\r\n"].concat();
        assert_eq!(read(&between), (1, true, Ok(1), message.clone()));
        let first = [MESSAGE, b"+OK\r\n:1\r\n"].concat();
        assert_eq!(read(&first), (0, true, Ok(2), message));
        // The task reads the rest of it.
        assert_eq!(read(&between[..20]), (1, true, Ok(0), vec![]));
    }

    /// Whoever awaits a reply is woken by it before a message that came behind it is heard.
    #[tokio::test]
    async fn replies_and_messages_are_told_in_the_order_in_which_they_came() {
        let told = |bytes: &[u8]| {
            let (_server, _writer, connection) = connection();
            let (shared, heard) = (&connection.shared, Arc::new(Heard::default()));
            {
                let mut queue = shared.lock();
                let subscribed = Some(("subscribe", "c".to_owned()));
                for message in [None, subscribed] {
                    let number = queue.add(&Command::new("X"), message, None);
                    let waker = Waker::from(Arc::clone(&heard));
                    assert!(queue.poll(number, &waker).is_none());
                }
            }
            let mut reader = shared.reader.lock().unwrap();
            reader.deliver(&shared.queue, Some(&heard)).unwrap();
            assert_eq!(connection.reads(), 0);
            reader.room()[..bytes.len()].copy_from_slice(bytes);
            reader.add(bytes.len());
            reader.deliver(&shared.queue, Some(&heard)).unwrap();
            assert_eq!(connection.reads(), 1);
            heard.take()
        };
        const SUBSCRIBED: &[u8] = b">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n";
        assert_eq!(told(b"+OK\r\n"), ["wake"]);
        assert_eq!(told(&[b"+OK\r\n", MESSAGE].concat()), ["wake", "m1"]);
        assert_eq!(told(&[MESSAGE, b"+OK\r\n"].concat()), ["m1", "wake"]);
        let all = [b"+OK\r\n", SUBSCRIBED, MESSAGE].concat();
        assert_eq!(told(&all), ["wake", "wake", "m1"]);
    }

    #[tokio::test]
    async fn what_a_caller_can_not_read_ends_the_connection_by_its_task() {
        let (by_caller, wakes, left, _) = read(b"+OK\r\nHTTP/1.1 400 Bad Request\r\n");
        assert_eq!((by_caller, wakes), (1, true));
        assert!(left.unwrap_err().contains("not in the Redis protocol"));
        let (by_caller, wakes, left, _) = read(b"+OK\r\n:1\r\n:2\r\n");
        assert_eq!((by_caller, wakes), (2, true));
        assert!(left.unwrap_err().contains("nobody has asked for"));
    }

    /// Whoever sent what it confirms expects a reply, which would be the next one's.
    #[tokio::test]
    async fn a_confirmation_that_is_not_awaited_there_ends_the_connection() {
        for word in ["subscribe", "ssubscribe"] {
            let length = word.len();
            let said = format!("+OK\r\n>3\r\n${length}\r\n{word}\r\n$1\r\nc\r\n:1\r\n:1\r\n");
            let (by_caller, wakes, left, _) = read(said.as_bytes());
            assert_eq!((by_caller, wakes), (1, true));
            assert!(left.unwrap_err().contains("does not fit"));
        }
        let ended = b"+OK\r\n>3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:1\r\n:1\r\n";
        assert_eq!(read(ended), (1, true, Ok(1), vec![]));
    }

    #[test]
    fn a_panic_while_a_caller_reads_ends_the_connection() {
        let reader = SharedReader::new();
        let read = std::panic::AssertUnwindSafe(|| {
            let _reads = reader.lock();
            panic!("while it reads");
        });
        assert!(std::panic::catch_unwind(read).is_err());
        assert!(reader.lock().unwrap_err().to_string().contains("panicked"));
    }
}
