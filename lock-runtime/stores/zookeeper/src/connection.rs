//! One connection that is up: requests and their replies in order, heartbeats, and events.
//!
//! Why not the crate `zookeeper-client`: it brings a hundred crates, with a reactor and a thread of
//! its own beside tokio, and it hides what the [trust](crate::trust) in a session counts from: when
//! a request was sent, and over which connection its answer came.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lock_store::ordered::{LiveConnection, gone, silent};
use lock_store::{Clock, Instant, Link, Mutex, StoreError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};

use crate::errors::{Fault, code, of_code};
use crate::transport::{ReadHalf, WriteHalf};
use crate::trust::SharedTrust;
use crate::wire::{self, MultiPart, NodeRequest, ReplyHeader, Stat};

/// A longer message is none of ZooKeeper's, whose limit is 1 MB unless it was raised.
const LONGEST: usize = 64 << 20;
/// What the refusal of a server begins with that was expecting TLS. As a length, it is longer.
const TLS_ALERT: [u8; 2] = [0x15, 0x03];
/// A session's timeout has this many heartbeats, so that the trust in it hardly ends sooner.
const BEATS: u32 = 10;
/// The longest pause between them, so that a server is missed soon.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A reply without an error.
#[derive(Clone, Debug)]
pub(crate) struct NodeReply(Vec<u8>);

impl NodeReply {
    /// What the request's reader makes of it.
    pub(crate) fn read<T>(&self, read: impl Fn(&[u8]) -> Option<T>) -> Result<T, Fault> {
        let body = self.0.get(wire::HEADER..).unwrap_or_default();
        read(body).ok_or(Fault::Unreadable)
    }

    /// What a transaction has done. A refusal is that of its part that was refused.
    pub(crate) fn parts(&self) -> Result<Vec<MultiPart>, Fault> {
        self.read(wire::parts)?.map_err(Fault::Refused)
    }
}

type ReplySender = oneshot::Sender<Result<NodeReply, Fault>>;

/// A request on its way to the connection.
#[derive(Debug)]
pub(crate) struct NodeCall {
    request: NodeRequest,
    replied: ReplySender,
}

/// A connection that is up, as those see it who use it.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) calls: mpsc::UnboundedSender<NodeCall>,
    pub(crate) session: i64,
    /// One for each session: a server that takes a session over carries out nothing more that came
    /// over its connections before.
    pub(crate) link: Link,
    pub(crate) server: String,
    pub(crate) since: Instant,
    /// As this server has granted it.
    pub(crate) timeout: Duration,
    pub(crate) trust: SharedTrust,
    /// Something was written for somebody.
    pub(crate) has_written: AtomicBool,
}

/// A request that was sent. It is carried out after those that were sent before, whether or not
/// somebody waits for the reply.
#[derive(Debug)]
pub(crate) struct SentRequest {
    reply: oneshot::Receiver<Result<NodeReply, Fault>>,
    server: String,
}

impl SentRequest {
    pub(crate) async fn reply(self) -> Result<NodeReply, Fault> {
        let closed = || Fault::Lost(gone(&self.server, "the connection was closed"));
        self.reply.await.unwrap_or_else(|_| Err(closed()))
    }
}

impl Live {
    pub(crate) fn send(&self, request: NodeRequest) -> SentRequest {
        let (replied, reply) = oneshot::channel();
        // Without the other end, the call is dropped, and its reply with it.
        let _ = self.calls.send(NodeCall { request, replied });
        SentRequest {
            reply,
            server: self.server.clone(),
        }
    }

    /// Whether it has carried out what somebody asked for, or has lasted for a heartbeat by now.
    pub(crate) fn was_of_use(&self, now: Instant) -> bool {
        self.has_written.load(Ordering::Relaxed) || now >= self.since + self.pause()
    }

    /// The time between two heartbeats.
    fn pause(&self) -> Duration {
        (self.trust.lock().timeout() / BEATS).min(LONGEST_PAUSE)
    }

    /// What a reply to [`wire::exists`] says of a child, if it is there and of this session.
    pub(crate) fn own_stat(&self, reply: Result<NodeReply, Fault>) -> Result<Option<Stat>, Fault> {
        match reply {
            Ok(reply) => {
                let stat = reply.read(wire::only_stat)?;
                Ok((stat.owner == self.session).then_some(stat))
            }
            Err(Fault::Refused(code::NO_NODE)) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Until when no server can have ended the session.
    pub(crate) fn trusted_until(&self) -> Instant {
        self.trust.lock().until()
    }

    /// The same, if a hold may go on for longer here. That may have been allowed by an earlier
    /// request, when the session had more time: so the lease of this one does not count alone.
    pub(crate) fn trusted_before(&self, ends: Option<Instant>) -> Option<Instant> {
        let until = self.trusted_until();
        ends.is_some_and(|ends| until < ends).then_some(until)
    }
}

impl LiveConnection for Live {
    fn link(&self) -> Link {
        self.link
    }

    fn server(&self) -> &str {
        &self.server
    }

    fn since(&self) -> Instant {
        self.since
    }
}

/// A request that waits for its reply.
struct Pending {
    number: i32,
    sent: Instant,
    is_write: bool,
    /// `None`: a heartbeat.
    replied: Option<ReplySender>,
}

/// The connection's own end.
pub(crate) struct Connection<'c> {
    pub(crate) live: &'c Live,
    pub(crate) clock: &'c Clock,
    pub(crate) on_event: &'c (dyn Fn(String) + Send + Sync),
    /// Notes the last transaction that the server has carried out.
    pub(crate) on_zxid: &'c (dyn Fn(i64) + Send + Sync),
    /// Whether the client has something that hangs on the trust in the session.
    pub(crate) needs_trust: &'c (dyn Fn() -> bool + Send + Sync),
    pending: Mutex<VecDeque<Pending>>,
}

impl<'c> Connection<'c> {
    pub(crate) fn new(
        live: &'c Live,
        clock: &'c Clock,
        on_event: &'c (dyn Fn(String) + Send + Sync),
        on_zxid: &'c (dyn Fn(i64) + Send + Sync),
        needs_trust: &'c (dyn Fn() -> bool + Send + Sync),
    ) -> Self {
        Self {
            live,
            clock,
            on_event,
            on_zxid,
            needs_trust,
            pending: Mutex::default(),
        }
    }

    /// Carries requests and replies until the connection ends. Then nobody's reply has come.
    pub(crate) async fn run_until_lost(
        &self,
        read: ReadHalf,
        write: WriteHalf,
        calls: &mut mpsc::UnboundedReceiver<NodeCall>,
    ) -> StoreError {
        tokio::select! {
            error = self.write(write, calls) => error,
            error = self.read(read) => error,
        }
    }

    /// Fails what waits for a reply.
    pub(crate) fn fail(&self, error: &StoreError) {
        self.answer_all(&Fault::Lost(error.clone()));
    }

    fn answer_all(&self, fault: &Fault) {
        let pending = std::mem::take(&mut *self.pending.lock());
        for replied in pending.into_iter().filter_map(|call| call.replied) {
            let _ = replied.send(Err(fault.clone()));
        }
    }

    async fn write(
        &self,
        mut write: WriteHalf,
        calls: &mut mpsc::UnboundedReceiver<NodeCall>,
    ) -> StoreError {
        let pause = self.live.pause();
        let mut beats_at = self.clock.now();
        let mut number = 0;
        let mut is_first = true;
        let mut bytes = Vec::new();
        loop {
            let call = tokio::select! {
                biased;
                () = self.clock.sleep_until(beats_at) => None,
                call = calls.recv() => match call {
                    Some(call) => Some(call),
                    None => return gone(&self.live.server, "it is closed"),
                },
            };
            let sent = self.clock.now();
            let mut push = |request: &NodeRequest, replied: Option<ReplySender>| {
                // Below zero are the protocol's own.
                number = (number + 1) & i32::MAX;
                bytes.extend(wire::framed(number, request));
                let is_write = request.verb.is_write();
                self.pending.lock().push_back(Pending {
                    number,
                    sent,
                    is_write,
                    replied,
                });
            };
            match call {
                Some(call) => push(&call.request, Some(call.replied)),
                None => {
                    // The first: what a session was taken over for is trusted with its reply.
                    let proves = std::mem::take(&mut is_first) || (self.needs_trust)();
                    match proves {
                        true => push(&wire::empty_write(), None),
                        false => push(&wire::sync(), None),
                    }
                    beats_at = sent + pause;
                }
            }
            while let Ok(call) = calls.try_recv() {
                push(&call.request, Some(call.replied));
            }
            let written = async {
                write.write_all(&bytes).await?;
                write.flush().await
            };
            if let Err(error) = written.await {
                return gone(&self.live.server, &error.to_string());
            }
            bytes.clear();
        }
    }

    async fn read(&self, read: ReadHalf) -> StoreError {
        let mut read = tokio::io::BufReader::with_capacity(16 << 10, read);
        // Heartbeats are answered.
        let silence = self.live.pause() * BEATS / 3;
        loop {
            let by = self.clock.now() + silence;
            let message = match self.clock.by(by, message(&mut read)).await {
                None => return silent(&self.live.server),
                Some(Err(error)) => return gone(&self.live.server, &error.to_string()),
                Some(Ok(message)) => message,
            };
            if let Err(error) = self.on_message(message) {
                return error;
            }
        }
    }

    fn on_message(&self, message: Vec<u8>) -> Result<(), StoreError> {
        let server = &self.live.server;
        let strange = || gone(server, "it does not speak ZooKeeper's protocol");
        let ReplyHeader {
            number,
            zxid,
            error,
        } = wire::header(&message).ok_or_else(strange)?;
        if number == wire::EVENT {
            let body = message.get(wire::HEADER..).unwrap_or_default();
            let path = wire::event(body).ok_or_else(strange)?;
            // One without a path is about the session.
            if !path.is_empty() {
                (self.on_event)(path);
            }
            return Ok(());
        }
        if matches!(error, code::UNIMPLEMENTED | code::NO_LOGIN) {
            // Before it answers what came earlier, and then it closes the connection: what is
            // pending would be asked again in vain, and cut off by the next request of this kind.
            self.answer_all(&Fault::Refused(error));
            return Err(of_code(error, server));
        }
        if zxid > 0 {
            (self.on_zxid)(zxid);
        }
        let pending = self.pending.lock().pop_front();
        let pending = pending.filter(|pending| pending.number == number);
        let Pending {
            sent,
            is_write,
            replied,
            ..
        } = pending.ok_or_else(strange)?;
        match error {
            0 => {
                let mut trust = self.live.trust.lock();
                if is_write {
                    trust.prove(sent);
                    if replied.is_some() {
                        self.live.has_written.store(true, Ordering::Relaxed);
                    }
                }
                trust.answer(sent, self.clock.now());
            }
            // What is pending fails with the connection, this as well.
            code::EXPIRED | code::MOVED => {
                let error = gone(server, "the session is over, or is elsewhere");
                replied.map(|replied| replied.send(Err(Fault::Lost(error))));
                return Err(gone(
                    server,
                    "the session is over, or was taken over by another server",
                ));
            }
            _ => {}
        }
        if let Some(replied) = replied {
            let _ = replied.send(match error {
                0 => Ok(NodeReply(message)),
                code => Err(Fault::Refused(code)),
            });
        }
        Ok(())
    }
}

/// Reads one message.
pub(crate) async fn message(
    read: &mut (impl tokio::io::AsyncRead + Unpin),
) -> std::io::Result<Vec<u8>> {
    let len = read.read_i32().await?;
    if len.to_be_bytes().starts_with(&TLS_ALERT) {
        return Err(std::io::Error::other(
            "it expects TLS on this port: write `tls=on` in the URL, or use its `clientPort`",
        ));
    }
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    if len > LONGEST {
        return Err(std::io::Error::other(
            "it does not speak ZooKeeper's protocol",
        ));
    }
    let mut message = vec![0; len];
    read.read_exact(&mut message).await?;
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_alert_of_tls_is_told_as_such_and_other_words_as_strange() {
        for (bytes, says) in [
            (&[0x15, 3, 3, 0, 2, 2, 80][..], "`tls=on`"),
            (b"HTTP/1.1 400 Bad Request", "ZooKeeper's protocol"),
            (&[0xff; 8], "ZooKeeper's protocol"),
        ] {
            let mut read = bytes;
            let error = message(&mut read).await.unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        }
        assert_eq!(message(&mut &[0, 0, 0, 1, 7][..]).await.unwrap(), [7]);
    }
}
