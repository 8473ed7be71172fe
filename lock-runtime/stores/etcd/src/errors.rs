//! What etcd's errors mean to a client.

use lock_store::StoreErrorKind::{
    Denied, Disconnected, Loading, Misconfigured, OutOfMemory, ReadOnly, Refused,
};
use lock_store::ordered::{OperationFault, gone};
use lock_store::{StoreError, escaped};

use crate::grpc::{BY_HTTP, CallError, Status, code};

// What to do about each.
const RIGHTS: &str = "allow the user's role to read and write all keys below the URL's path, as \
                      for `etcd://host/locks`: `etcdctl role grant-permission ROLE --prefix=true \
                      readwrite locks/`";
const NO_USER: &str = "the servers have users (`etcdctl auth enable`); give the URL one, as in \
                       `etcd://user:password@host`";
const NO_AUTH: &str = "leave user and password out of the URL, or switch users on with `etcdctl \
                       auth enable`";
const LOGIN: &str = "check user and password in the URL (`etcdctl user list`)";
const VERSION: &str = "use etcd 3.4 or later on all members";
const ROOM: &str = "free some: `etcdctl compact`, `etcdctl defrag` and then `etcdctl alarm \
                    disarm`; and set `--auto-compaction-retention`";
const CUT_OFF: &str = "it may have no majority of its cluster: see `etcdctl endpoint status` for \
                       all members";

const BETWEEN: &str = "a proxy or load balancer before the servers answers so, and not etcd: see \
                       its log, and whether it reaches them over HTTP/2";

/// Why a request failed. What was lost with its connection is not carried out any more once the
/// next one is up.
pub(crate) type Fault = OperationFault<Status>;

impl Status {
    /// It may have been carried out, or may yet be.
    pub(crate) fn is_unclear(&self) -> bool {
        self.is_unavailable() || code::UNCLEAR.contains(&self.code)
    }

    /// The same, or it was carried out although it was refused: a member whose space ends with a
    /// transaction, or with the grant of a lease, says so of that one.
    pub(crate) fn may_be_carried_out(&self) -> bool {
        self.is_unclear() || self.code == code::EXHAUSTED
    }

    /// It serves nobody now, or what stands before it does not reach it.
    pub(crate) fn is_unavailable(&self) -> bool {
        self.code == code::UNAVAILABLE
    }

    /// The token of the user is not known any more, or was made before roles were changed.
    pub(crate) fn wants_login(&self) -> bool {
        self.code == code::UNAUTHENTICATED
            || self.message.contains("revision of auth store is old")
            || self.message.contains("invalid auth token")
    }

    /// Who asks may not know, or is not known.
    pub(crate) fn is_about_rights(&self) -> bool {
        self.code == code::DENIED
            || self.wants_login()
            || self.message.contains("user name is empty")
    }

    pub(crate) fn is_lease_there(&self) -> bool {
        self.code == code::PRECONDITION && self.message.contains("lease already exists")
    }

    pub(crate) fn is_lease_gone(&self) -> bool {
        self.code == code::NOT_FOUND && self.message.contains("lease not found")
    }
}

/// The error for the user.
pub(crate) fn of_status(status: &Status, server: &str) -> StoreError {
    let message = escaped(&status.message);
    let says = |what: &str| message.contains(what);
    let (kind, advice) = match status.code {
        code::UNAVAILABLE if says(BY_HTTP) => (Disconnected, Some(BETWEEN)),
        _ if says(BY_HTTP) => (Denied, Some(BETWEEN)),
        _ if says("authentication is not enabled") => (Misconfigured, Some(NO_AUTH)),
        _ if says("authentication failed") => (Denied, Some(LOGIN)),
        _ if says("user name is empty") => (Denied, Some(NO_USER)),
        code::DENIED => (Denied, Some(RIGHTS)),
        code::UNAUTHENTICATED => (Denied, Some(LOGIN)),
        code::EXHAUSTED if says("space exceeded") => (OutOfMemory, Some(ROOM)),
        code::EXHAUSTED => (Loading, None),
        code::UNIMPLEMENTED => (Misconfigured, Some(VERSION)),
        code::UNAVAILABLE => (ReadOnly, Some(CUT_OFF)),
        _ => (Refused, None),
    };
    let error = StoreError::new(kind, format!("{server}: {message}"));
    error.advise(advice)
}

pub(crate) fn error_of(error: CallError, server: &str) -> StoreError {
    match error {
        CallError::Gone(why) => gone(server, &why),
        CallError::Status(status) => of_status(&status, server),
        CallError::Unreadable => strange(server),
    }
}

/// Its answer is none of etcd's.
pub(crate) fn strange(server: &str) -> StoreError {
    let text = format!("{server}: it does not speak etcd's protocol");
    StoreError::new(Misconfigured, text)
        .advise("check host and port: etcd's clients use port 2379, and `tls=on` if it has TLS")
}

pub(crate) fn too_old(server: &str, version: &str) -> StoreError {
    let text = format!("{server}: it is etcd {}", escaped(version));
    StoreError::new(Misconfigured, text).advise(VERSION)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::StatusCode;
    use lock_store::{Clock, Link};
    use tokio::runtime::Handle;
    use tokio::sync::mpsc;

    use super::*;
    use crate::connection::{Begin, Epoch, Live};
    use crate::grpc::Channel;
    use crate::wire::{StatusReply, StatusRequest, path};

    async fn call(status: StatusCode, bytes: &'static [u8]) -> Result<StatusReply, CallError> {
        let call =
            async |channel: Channel| channel.unary(path::STATUS, None, &StatusRequest {}).await;
        answered(status, bytes, call).await
    }

    /// A call to who answers with this status and these bytes, and, if it is no error, with gRPC's
    /// word that all is well.
    async fn answered<T>(
        status: StatusCode,
        bytes: &'static [u8],
        call: impl AsyncFnOnce(Channel) -> T,
    ) -> T {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let server = async move {
            let mut calls = h2::server::handshake(theirs).await.unwrap();
            while let Some(call) = calls.accept().await {
                let (_, mut answer) = call.unwrap();
                let response = http::Response::builder().status(status).body(()).unwrap();
                let is_error = status != StatusCode::OK;
                let mut body = answer.send_response(response, is_error).unwrap();
                if !is_error {
                    body.send_data(bytes.into(), false).unwrap();
                    let well = ("grpc-status".parse().unwrap(), "0".parse().unwrap());
                    body.send_trailers([well].into_iter().collect()).unwrap();
                }
            }
        };
        let called = async move {
            let (send, connection) = h2::client::handshake(ours).await.unwrap();
            let channel = Channel::new(send, "http://h:1".to_owned());
            tokio::select! {
                _ = connection => panic!("it has ended"),
                reply = call(channel) => reply,
            }
        };
        tokio::select! {
            () = server => panic!("it has ended"),
            reply = called => reply,
        }
    }

    #[tokio::test]
    async fn a_reply_is_one_message_and_nothing_is_kept_that_follows_it() {
        for (bytes, is_read) in [
            (&[0, 0, 0, 0, 0][..], true),
            (&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0], false),
            (&[0, 0, 0, 0, 0, 7], false),
        ] {
            let reply = call(StatusCode::OK, bytes).await;
            assert_eq!(reply.is_ok(), is_read, "{bytes:?}: {reply:?}");
            let is_strange = matches!(reply, Err(CallError::Unreadable));
            assert_eq!(is_strange, !is_read, "{bytes:?}: {reply:?}");
        }
    }

    #[tokio::test]
    async fn what_may_yet_be_carried_out_ends_its_connection() {
        for (status, bytes, ends) in [
            (200, &[0, 0, 0, 0, 0][..], false),
            (200, b"<html>", true),
            (403, b"", false),
            (404, b"", true),
            (500, b"", true),
            (502, b"", true),
        ] {
            let (watches, _) = mpsc::unbounded_channel();
            let status = StatusCode::from_u16(status).unwrap();
            let has_ended = answered(status, bytes, async |channel| {
                let begin = Begin {
                    channel,
                    identity: Arc::default(),
                    clock: Clock::new(Handle::current()),
                    epoch: Epoch {
                        key: String::new(),
                        revision: 1,
                        lease: 1,
                    },
                    link: Link(1),
                    server: "h:1".to_owned(),
                    seen: Arc::default(),
                };
                let live = Arc::new(Live::new(begin, watches));
                let reply = live.call::<_, StatusReply>(path::STATUS, StatusRequest {}, None);
                assert_eq!(reply.await.is_ok(), status == 200 && !ends);
                live.broken.borrow().is_some()
            });
            assert_eq!(has_ended.await, ends, "{status}");
        }
    }

    #[tokio::test]
    async fn a_status_of_a_proxy_before_the_servers_has_the_meaning_that_grpc_gives_it() {
        for (status, kind) in [
            (401, Denied),
            (403, Denied),
            (404, Misconfigured),
            (429, Disconnected),
            (500, Misconfigured),
            (502, Disconnected),
            (503, Disconnected),
            (504, Disconnected),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let error = call(status, b"").await.unwrap_err();
            // It may have been carried out, and this is asked again.
            let is_unclear = matches!(&error, CallError::Status(it) if it.is_unclear());
            assert_eq!(is_unclear, kind == Disconnected, "{status}: {error:?}");
            let error = error_of(error, "h:1");
            assert_eq!(error.kind(), kind, "{error}");
            let is_told = error.detail().contains(status.as_str());
            assert_eq!(is_told, kind != Misconfigured, "{error}");
        }
    }
}
