//! [`Reader`]: gives what a connection has read to those who await it.

use std::io;
use std::task::Waker;

use redis::{RedisError, Value};

use super::connection::Shared;
use super::decoder::{Decoder, Received};
use super::driver::ConnectionEvents;
use super::socket::Writer;

/// Of whoever reads: the connection's task, or a caller that has just written for several.
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

impl Reader {
    pub(super) fn new() -> Self {
        Self {
            decoder: Decoder::new(),
            has_read: false,
            is_left: false,
            failure: None,
            replies: Vec::new(),
            wakers: Vec::new(),
        }
    }

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
        shared: &Shared,
        events: Option<&dyn ConnectionEvents>,
    ) -> Result<(), RedisError> {
        if !std::mem::take(&mut self.is_left) {
            return Ok(());
        }
        match self.failure.take() {
            None => self.deliver(shared, events),
            Some(error) => Err(error),
        }
    }

    /// Delivers what was read, in the order in which the server has said it.
    pub(super) fn deliver(
        &mut self,
        shared: &Shared,
        events: Option<&dyn ConnectionEvents>,
    ) -> Result<(), RedisError> {
        let decoded = loop {
            match self.decoder.next() {
                Ok(Some(Received::Reply(value))) => self.replies.push(value),
                Ok(Some(Received::Push)) => {
                    self.deliver_replies(shared)?;
                    self.on_message(shared, events);
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.deliver_replies(shared).and(decoded)
    }

    /// Reads for a caller, once, and delivers the replies. Messages are left to the task, since who
    /// hears them may use a lock that the caller has.
    pub(super) fn read_replies(&mut self, writer: &Writer, shared: &Shared) {
        if self.is_left {
            return;
        }
        // What ends the connection, the task reads as well.
        let Ok(bytes @ 1..) = writer.read(self.room()) else {
            return;
        };
        self.add(bytes);
        let decoded = loop {
            if self.decoder.is_at_push() {
                self.is_left = true;
                break Ok(());
            }
            match self.decoder.next() {
                Ok(Some(Received::Reply(value))) => self.replies.push(value),
                Ok(_) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if let Err(error) = self.deliver_replies(shared).and(decoded) {
            (self.failure, self.is_left) = (Some(error), true);
        }
        if self.is_left {
            shared.task.wake();
        }
    }

    /// Gives the replies to those who await them.
    fn deliver_replies(&mut self, shared: &Shared) -> Result<(), RedisError> {
        let mut queue = shared.lock();
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
        self.wakers.drain(..).for_each(Waker::wake);
        match unasked {
            None => Ok(()),
            // A server that has too many clients says so before it is asked anything.
            Some((Value::ServerError(error), _)) => Err(error.into()),
            Some((_, is_awaited)) => {
                let text = match is_awaited {
                    true => "the reply does not fit the request; is there a proxy in front of it?",
                    false => "the server sends a reply that nobody has asked for",
                };
                Err(io::Error::new(io::ErrorKind::ConnectionAborted, text).into())
            }
        }
    }

    fn on_message(&mut self, shared: &Shared, events: Option<&dyn ConnectionEvents>) {
        let [word, channel, message] = self.decoder.message();
        let is_message = matches!(word, b"message" | b"smessage");
        if !is_message {
            let mut queue = shared.lock();
            let is_reply = queue.deliver_message(word, channel, &mut self.wakers);
            drop(queue);
            self.wakers.drain(..).for_each(Waker::wake);
            if is_reply {
                return;
            }
        }
        let Some(events) = events else {
            return;
        };
        match word {
            _ if is_message => events.on_message(channel, message),
            b"unsubscribe" | b"sunsubscribe" => events.on_unsubscribed(channel),
            _ => {}
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::{Arc, Mutex};
    use std::task::Wake;
    use std::time::Duration;

    use tokio::net::UnixStream;

    use super::super::command::Command;
    use super::super::connection::RespConnection;
    use super::super::socket::Socket;
    use super::*;

    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

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

    /// What a caller reads of these bytes, with two requests under way: how many replies it has
    /// delivered, whether it has woken the task, and what that then finds, and hears.
    fn read(bytes: &[u8]) -> (usize, bool, Result<usize, String>, Vec<String>) {
        let (mut server, client) = std::os::unix::net::UnixStream::pair().unwrap();
        client.set_nonblocking(true).unwrap();
        let Socket::Shared(_, writer) = Socket::from(UnixStream::from_std(client).unwrap()) else {
            panic!("callers write to it");
        };
        let connection = RespConnection::new(None, Duration::from_millis(500));
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
        let mut reader = shared.reader.lock();
        reader.read_replies(&writer, shared);
        let (by_caller, reads) = (delivered(), shared.lock().reads);
        assert_eq!(reads, 1);
        // Another caller leaves it as it is.
        reader.read_replies(&writer, shared);
        let left = reader.deliver_left(shared, Some(&heard));
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

    #[tokio::test]
    async fn what_a_caller_can_not_read_ends_the_connection_by_its_task() {
        let (by_caller, wakes, left, _) = read(b"+OK\r\nHTTP/1.1 400 Bad Request\r\n");
        assert_eq!((by_caller, wakes), (1, true));
        assert!(left.unwrap_err().contains("not in the Redis protocol"));
        let (by_caller, wakes, left, _) = read(b"+OK\r\n:1\r\n:2\r\n");
        assert_eq!((by_caller, wakes), (2, true));
        assert!(left.unwrap_err().contains("nobody has asked for"));
    }
}
