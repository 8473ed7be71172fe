//! What ZooKeeper's errors mean to a client.

use std::time::Duration;

use lock_store::StoreError;
use lock_store::StoreErrorKind::{Denied, Loading, Misconfigured, OutOfMemory, ReadOnly, Refused};
use lock_store::ordered::{OperationFault, gone};

/// The server's numbers for errors.
pub(crate) mod code {
    /// Of the parts of a transaction behind the one that failed.
    pub(crate) const ROLLED_BACK: i32 = -2;
    pub(crate) const UNIMPLEMENTED: i32 = -6;
    pub(crate) const BAD_ARGUMENTS: i32 = -8;
    pub(crate) const NO_NODE: i32 = -101;
    pub(crate) const NO_AUTH: i32 = -102;
    pub(crate) const BAD_VERSION: i32 = -103;
    pub(crate) const NODE_EXISTS: i32 = -110;
    pub(crate) const EPHEMERAL_PARENT: i32 = -108;
    pub(crate) const NOT_EMPTY: i32 = -111;
    pub(crate) const EXPIRED: i32 = -112;
    pub(crate) const INVALID_ACL: i32 = -114;
    pub(crate) const AUTH_FAILED: i32 = -115;
    pub(crate) const MOVED: i32 = -118;
    pub(crate) const NOT_READ_ONLY: i32 = -119;
    pub(crate) const NO_LOGIN: i32 = -124;
    pub(crate) const QUOTA: i32 = -125;
    pub(crate) const THROTTLED: i32 = -127;

    /// No server's: the request was not sent.
    pub(crate) const TOO_LONG: i32 = 1;

    /// What a server says before it carries a request out. After that, whatever goes wrong has
    /// another number, such as `MarshallingError`, and what was made stays.
    const BEFOREHAND: [i32; 11] = [
        BAD_ARGUMENTS,
        NO_NODE,
        NO_AUTH,
        BAD_VERSION,
        EPHEMERAL_PARENT,
        NODE_EXISTS,
        NOT_EMPTY,
        INVALID_ACL,
        NOT_READ_ONLY,
        QUOTA,
        THROTTLED,
    ];

    /// Whether a request that was refused so has done nothing.
    pub(crate) fn is_beforehand(code: i32) -> bool {
        BEFOREHAND.contains(&code)
    }
}

// What to do about each.
const RIGHTS: &str = "allow this user to create, read, write and delete below the chroot of the \
                      URL (`setAcl`), or give the URL the user who may";
const LOGIN: &str = "check user and password in the URL, and the servers' authentication providers";
const NOBODY: &str = "give the URL a user, and let the servers' `enforce.auth.schemes` have \
                      `digest`: SASL is not available";
const CHROOT: &str = "create it, with `LockClient::migrate()` or `zkCli.sh create`, or correct the \
                      path at the end of the URL";
const VERSION: &str = "use ZooKeeper 3.5 or later on all servers: older ones have no containers";
const CUT_OFF: &str = "it may have no majority of its ensemble: see its log, and `srvr` of all \
                       servers";
const CUT_OFF_OR_TLS: &str = "it may have no majority of its ensemble: see its log, and `srvr` of \
                              all servers; if the port is its `secureClientPort`, write `tls=on` \
                              in the URL";
const ROOM: &str = "raise the quota of the chroot (`setquota`), or remove what is not needed";

/// Why a request failed. A server refuses with a number.
pub(crate) type Fault = OperationFault<i32>;

/// The error for the user.
pub(crate) fn of_code(code: i32, server: &str) -> StoreError {
    let (kind, text, advice) = match code {
        code::NO_AUTH => (Denied, "the user may not do this (NoAuth)", Some(RIGHTS)),
        code::AUTH_FAILED => (
            Denied,
            "user or password are wrong (AuthFailed)",
            Some(LOGIN),
        ),
        code::NO_LOGIN => (
            Denied,
            "it serves only who has logged in (SessionClosedRequireSaslAuth)",
            Some(NOBODY),
        ),
        code::NO_NODE => (
            Misconfigured,
            "the chroot of the URL does not exist (NoNode)",
            Some(CHROOT),
        ),
        code::UNIMPLEMENTED => (
            Misconfigured,
            "it is older than ZooKeeper 3.5, and does not know this request (Unimplemented)",
            Some(VERSION),
        ),
        code::NOT_READ_ONLY => (
            ReadOnly,
            "it is cut off from the others (NotReadOnly)",
            Some(CUT_OFF),
        ),
        code::QUOTA => (
            OutOfMemory,
            "the quota is used up (QuotaExceeded)",
            Some(ROOM),
        ),
        code::THROTTLED => (Loading, "it is overloaded", None),
        code::TOO_LONG => (
            Refused,
            "one transaction for all of these keys would be longer than 1 MB, the limit here \
             whatever the servers' `jute.maxbuffer` is",
            Some("lock fewer keys at once, or shorter ones"),
        ),
        code => {
            let text = format!("{server}: it refuses the request with error {code}");
            let error = StoreError::new(Refused, text);
            return error.advise("see its log, and `KeeperException.Code` for the number");
        }
    };
    let error = StoreError::new(kind, format!("{server}: {text}"));
    error.advise(advice)
}

/// By which such an error is known again.
const NOT_SERVING: &str = "it closes connections at once: it serves nobody, as without a majority \
                           of its ensemble, or nobody more from this address \
                           (`maxClientCnxns`)";

/// The server has ended the connection before it had answered the first message. A server that
/// expects TLS does so as well, without a word, to who is `plain`.
pub(crate) fn not_serving(server: &str, is_plain: bool) -> StoreError {
    match is_plain {
        false => gone(server, NOT_SERVING).advise(CUT_OFF),
        true => gone(
            server,
            &format!("{NOT_SERVING}, or it expects TLS on this port"),
        )
        .advise(CUT_OFF_OR_TLS),
    }
}

/// The server grants no session that is long enough for the URL's `tick`.
pub(crate) fn too_short(granted: Duration, server: &str) -> StoreError {
    let text = format!(
        "{server}: it grants a session of {granted:?}, which is shorter than three ticks (`tick` \
         in the URL)"
    );
    StoreError::new(Misconfigured, text).advise(
        "raise `maxSessionTimeout` of all servers, or write their `tickTime` for `tick`, if that \
         is less",
    )
}

/// Whether a server has done so.
pub(crate) fn is_not_serving(error: &StoreError) -> bool {
    error.detail().contains(NOT_SERVING)
}
