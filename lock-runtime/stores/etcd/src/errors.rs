//! What etcd's errors mean to a client.

use lock_store::StoreErrorKind::{Denied, Loading, Misconfigured, OutOfMemory, ReadOnly, Refused};
use lock_store::ordered::{OperationFault, gone};
use lock_store::{StoreError, escaped};

use crate::grpc::{CallError, Status};

/// gRPC's numbers.
mod code {
    pub(super) const NOT_FOUND: u32 = 5;
    pub(super) const DENIED: u32 = 7;
    pub(super) const EXHAUSTED: u32 = 8;
    pub(super) const PRECONDITION: u32 = 9;
    pub(super) const UNIMPLEMENTED: u32 = 12;
    pub(super) const UNAVAILABLE: u32 = 14;
    pub(super) const UNAUTHENTICATED: u32 = 16;
    /// Cancelled, unknown, out of time, aborted, internal, lost data.
    pub(super) const UNCLEAR: [u32; 6] = [1, 2, 4, 10, 13, 15];
}

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

/// Why a request failed. What was lost with its connection is not carried out any more once the
/// next one is up.
pub(crate) type Fault = OperationFault<Status>;

impl Status {
    /// It may have been carried out, or may yet be.
    pub(crate) fn is_unclear(&self) -> bool {
        self.code == code::UNAVAILABLE || code::UNCLEAR.contains(&self.code)
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
