//! Why there is no connection. If only one side expects TLS, neither side says so.

use std::io;
use std::time::Duration;

use lock_store::{StoreError, StoreErrorKind};
use redis::{ErrorKind, RedisError};

use super::progress::{Progress, Step};
use crate::access::Access;
use crate::credentials::Session;
use crate::errors;
use crate::secrets::DEFAULT_USER;
use crate::server_text::{escaped, shown};

/// The error when an attempt's time is over: what it was waiting for.
pub(crate) fn silent(access: &Access, progress: &Progress, limit: Duration) -> StoreError {
    late("it does not answer in time", access, progress, limit)
}

/// The same for a caller that has less time than the attempt.
pub(crate) fn slow(access: &Access, progress: &Progress, limit: Duration) -> StoreError {
    late("connecting takes too long", access, progress, limit)
}

fn late(reaching: &str, access: &Access, progress: &Progress, limit: Duration) -> StoreError {
    let text = match progress.step() {
        Step::Reaching => reaching.to_owned(),
        Step::Credentials => format!(
            "the credentials provider does not answer in time: an attempt to connect has {limit:?} \
             (`connect_timeout`); the next one waits for the same answer"
        ),
        Step::Handshake => {
            let write = access.other_scheme(true);
            format!("it does not answer the TLS handshake; if it expects no TLS, {write}")
        }
        Step::Greeting if !progress.has_replied() => {
            let write = access.other_scheme(false);
            format!("it accepts the connection and does not answer; if it expects TLS, {write}")
        }
        Step::Greeting | Step::GreetingOverTls => {
            "it accepts the connection and does not answer".to_owned()
        }
    };
    StoreError::new(StoreErrorKind::Timeout, text)
}

/// The error if the server can't be reached.
pub(super) fn unreachable(error: io::Error) -> StoreError {
    errors::store_error(&error.into())
}

/// True if the server sent this error as a reply of the Redis protocol. A TLS alert can't be
/// parsed.
pub(super) fn is_reply(error: &RedisError) -> bool {
    !error.is_io_error() && !error.is_connection_dropped() && error.kind() != ErrorKind::Parse
}

/// The connection ended before its first reply, or what came is no reply.
pub(super) fn not_greeted(error: &RedisError, access: &Access, progress: &Progress) -> StoreError {
    let text = shown(&error.to_string());
    let text = match progress.step() {
        Step::GreetingOverTls if !progress.has_replied() => {
            format!("{text}; if it asks for a client certificate, give one (`Tls::identity_files`)")
        }
        Step::Greeting if !progress.has_replied() => {
            format!("{text}; if it expects TLS, {}", access.other_scheme(false))
        }
        _ => text,
    };
    // Retrying does not turn another protocol into that of Redis.
    let kind = match error.kind() {
        ErrorKind::Parse => StoreErrorKind::Refused,
        _ => StoreErrorKind::Disconnected,
    };
    StoreError::new(kind, text)
}

/// The server's error reply to the first command, which may refuse the user.
pub(super) fn refused(error: &RedisError, session: &Session) -> StoreError {
    let error = errors::store_error(error);
    if error.kind() != StoreErrorKind::Denied {
        return error;
    }
    let user = escaped(session.settings.username().unwrap_or(DEFAULT_USER));
    let whose = match session.is_asked {
        true => "; the user and password are those of the credentials provider",
        false => "",
    };
    let text = format!("{} (user `{user}`){whose}", error.detail());
    errors::advised(StoreError::new(StoreErrorKind::Denied, text))
}

/// The error if the TLS handshake failed.
#[cfg(feature = "tls")]
pub(super) fn handshake_failed(error: &io::Error, access: &Access) -> StoreError {
    use rustls::{AlertDescription as Alert, CertificateError, Error};

    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    let todo = match inner {
        Some(Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        )) => "connect to a name that the certificate has".to_owned(),
        Some(Error::InvalidCertificate(_)) => {
            "if it is the right server, trust the CA of its certificate (`Tls::ca_file`)".to_owned()
        }
        Some(Error::AlertReceived(
            Alert::HandshakeFailure
            | Alert::BadCertificate
            | Alert::CertificateRequired
            | Alert::CertificateUnknown
            | Alert::UnknownCA,
        )) => {
            "if it asks for a client certificate, give one that it trusts (`Tls::identity_files`)"
                .to_owned()
        }
        Some(Error::AlertReceived(_) | Error::PeerIncompatible(_)) => {
            "both sides must know a common version of TLS".to_owned()
        }
        // A server without TLS answers in plain text, or closes the connection.
        _ => format!("if it expects no TLS, {}", access.other_scheme(true)),
    };
    let text = shown(&error.to_string());
    let text = format!("the TLS handshake failed: {text}; {todo}");
    StoreError::new(StoreErrorKind::Disconnected, text)
}
