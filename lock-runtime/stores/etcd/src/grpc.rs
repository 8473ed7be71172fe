//! gRPC over one HTTP/2 connection: calls with one reply, and streams.
//!
//! This is all of gRPC that etcd needs. A client crate (tonic) would hide what the
//! [trust](crate::trust) in a lease counts from, and over which connection an answer came, and it
//! brings 25 crates more.

use bytes::{BufMut, Bytes, BytesMut};
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use prost::Message;

/// A longer message is none of etcd's to this client.
const LONGEST: usize = 64 << 20;
/// Before each message: whether it is compressed, and its length.
const FRAME: usize = 5;

/// gRPC's numbers.
pub(crate) mod code {
    pub(crate) const NOT_FOUND: u32 = 5;
    pub(crate) const DENIED: u32 = 7;
    pub(crate) const EXHAUSTED: u32 = 8;
    pub(crate) const PRECONDITION: u32 = 9;
    pub(crate) const UNIMPLEMENTED: u32 = 12;
    pub(crate) const UNAVAILABLE: u32 = 14;
    pub(crate) const UNAUTHENTICATED: u32 = 16;
    /// Cancelled, unknown, out of time, aborted, internal, lost data.
    pub(crate) const UNCLEAR: [u32; 6] = [1, 2, 4, 10, 13, 15];
}

/// What the server says beside the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) code: u32,
    pub(crate) message: String,
}

#[derive(Clone, Debug)]
pub(crate) enum CallError {
    /// The connection has ended, or the call.
    Gone(String),
    Status(Status),
    /// It is not gRPC, or not etcd's.
    Unreadable,
}

/// A connection on which calls are made. Clones share it.
#[derive(Clone)]
pub(crate) struct Channel {
    send: SendRequest<Bytes>,
    /// `http://host:port`.
    base: String,
}

impl From<h2::Error> for CallError {
    fn from(error: h2::Error) -> Self {
        Self::Gone(error.to_string())
    }
}

impl Channel {
    pub(crate) fn new(send: SendRequest<Bytes>, base: String) -> Self {
        Self { send, base }
    }

    async fn open(
        &self,
        path: &str,
        token: Option<HeaderValue>,
    ) -> Result<(ResponseFuture, SendStream<Bytes>), CallError> {
        let mut request = Request::post(format!("{}{path}", self.base))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            // A member that has no leader ends streams, and refuses at once.
            .header("hasleader", "true")
            .body(())
            .map_err(|_| CallError::Unreadable)?;
        if let Some(token) = token {
            request.headers_mut().insert("token", token);
        }
        let mut send = self.send.clone().ready().await?;
        Ok(send.send_request(request, false)?)
    }

    /// A call with one reply.
    pub(crate) async fn unary<R: Message + Default>(
        &self,
        path: &str,
        token: Option<HeaderValue>,
        request: &impl Message,
    ) -> Result<R, CallError> {
        let (response, mut body) = self.open(path, token).await?;
        body.send_data(framed(request), true)?;
        let mut incoming = Incoming::new(response);
        let reply = incoming.next().await?;
        // The status comes after the message.
        match incoming.end().await {
            Ok(()) => Ok(reply),
            Err(error) => Err(error),
        }
    }

    /// A call with streams of messages in both directions.
    pub(crate) async fn stream(
        &self,
        path: &str,
        token: Option<HeaderValue>,
    ) -> Result<(Outgoing, Incoming), CallError> {
        let (response, body) = self.open(path, token).await?;
        Ok((Outgoing(body), Incoming::new(response)))
    }
}

fn framed(message: &impl Message) -> Bytes {
    let len = message.encoded_len();
    let mut bytes = BytesMut::with_capacity(FRAME + len);
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(len).unwrap_or(u32::MAX));
    bytes.put(message.encode_to_vec().as_slice());
    bytes.freeze()
}

/// What goes to the server.
pub(crate) struct Outgoing(SendStream<Bytes>);

impl Outgoing {
    pub(crate) fn send(&mut self, message: &impl Message) -> Result<(), CallError> {
        Ok(self.0.send_data(framed(message), false)?)
    }
}

/// What comes from the server.
pub(crate) struct Incoming {
    response: Option<ResponseFuture>,
    body: Option<RecvStream>,
    unread: BytesMut,
}

impl Incoming {
    fn new(response: ResponseFuture) -> Self {
        Self {
            response: Some(response),
            body: None,
            unread: BytesMut::new(),
        }
    }

    async fn body(&mut self) -> Result<&mut RecvStream, CallError> {
        if let Some(response) = self.response.as_mut() {
            let response = response.await?;
            self.response = None;
            // A call that is refused has its status here.
            status_in(response.headers())?;
            if response.status() != StatusCode::OK {
                return Err(of_http(response.status()));
            }
            self.body = Some(response.into_body());
        }
        self.body.as_mut().ok_or(CallError::Unreadable)
    }

    /// The next message. An error at the end.
    ///
    /// # Cancel safety
    /// If the future is dropped, no message is lost.
    pub(crate) async fn next<R: Message + Default>(&mut self) -> Result<R, CallError> {
        loop {
            if let Some(message) = self.take()? {
                return R::decode(message).map_err(|_| CallError::Unreadable);
            }
            if !self.read().await? {
                self.status().await?;
                return Err(CallError::Gone("it ended the call".to_owned()));
            }
        }
    }

    /// A message that has come in whole.
    fn take(&mut self) -> Result<Option<Bytes>, CallError> {
        let Some(head) = self.unread.first_chunk::<FRAME>() else {
            return Ok(None);
        };
        let [compressed, len @ ..] = *head;
        let len = usize::try_from(u32::from_be_bytes(len)).unwrap_or(usize::MAX);
        if compressed != 0 || len > LONGEST {
            return Err(CallError::Unreadable);
        }
        if self.unread.len() < FRAME + len {
            return Ok(None);
        }
        let mut message = self.unread.split_to(FRAME + len);
        Ok(Some(message.split_off(FRAME).freeze()))
    }

    /// Reads more. False at the end.
    async fn read(&mut self) -> Result<bool, CallError> {
        let body = self.body().await?;
        match body.data().await {
            None => Ok(false),
            Some(data) => {
                let data = data?;
                // Without this, the server stops after 64 KiB.
                let _ = body.flow_control().release_capacity(data.len());
                self.unread.extend_from_slice(&data);
                Ok(true)
            }
        }
    }

    /// The status at the end of a call whose only message was read. More is none of etcd's, and
    /// nobody would end it.
    async fn end(&mut self) -> Result<(), CallError> {
        while self.unread.is_empty() {
            if !self.read().await? {
                return self.status().await;
            }
        }
        Err(CallError::Unreadable)
    }

    /// The status behind all messages.
    async fn status(&mut self) -> Result<(), CallError> {
        let trailers = self.body().await?.trailers().await?;
        trailers.map_or(Ok(()), |trailers| status_in(&trailers))
    }
}

/// What a status of HTTP alone is told as. No server of gRPC answers so, but what may stand before
/// it does: a proxy, or a load balancer.
pub(crate) const BY_HTTP: &str = "it answers with HTTP status ";

/// The meaning of such a status, as [gRPC has
/// it](https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md).
fn of_http(status: StatusCode) -> CallError {
    let code = match status {
        StatusCode::UNAUTHORIZED => code::UNAUTHENTICATED,
        StatusCode::FORBIDDEN => code::DENIED,
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => code::UNAVAILABLE,
        // Other servers of HTTP answer with these, above all.
        _ => return CallError::Unreadable,
    };
    CallError::Status(Status {
        code,
        message: format!("{BY_HTTP}{status}"),
    })
}

fn status_in(headers: &HeaderMap) -> Result<(), CallError> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(code) = text("grpc-status") else {
        return Ok(());
    };
    let code = code.parse().map_err(|_| CallError::Unreadable)?;
    if code == 0 {
        return Ok(());
    }
    let message = text("grpc-message").unwrap_or_default();
    let decoded = lock_store::percent_decoded(message);
    Err(CallError::Status(Status {
        code,
        message: decoded.unwrap_or_else(|| message.to_owned()),
    }))
}
