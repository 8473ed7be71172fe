//! Why there is no connection. If only one side expects TLS, neither side says so.

use std::io;

use lock_store::{StoreError, StoreErrorKind, escaped};
use redis::{ErrorKind, RedisError};

use super::progress::{AnnouncedAddress, AnnouncedBy, ConnectStep, Progress};
use crate::access::ServerAccess;
use crate::connection_login::ConnectionLogin;
use crate::errors;
use crate::server_text::without_secrets;

/// The error when an attempt's time is over: what it was waiting for.
pub(crate) fn silent(access: &ServerAccess, progress: &Progress) -> StoreError {
    late("it does not answer in time", access, progress)
}

/// The error of a caller that has less time than the attempt.
pub(crate) fn slow(access: &ServerAccess, progress: &Progress) -> StoreError {
    late("connecting takes too long", access, progress)
}

fn late(reaching: &str, access: &ServerAccess, progress: &Progress) -> StoreError {
    let text = match progress.step() {
        ConnectStep::Reaching => with_origin(reaching, progress),
        ConnectStep::Credentials => format!(
            "the credentials provider does not answer in time: an attempt to connect has {:?} \
             (`connect_timeout`); the next one waits for the same answer",
            access.connect_timeout
        ),
        ConnectStep::Handshake => {
            let write = access.other_scheme(true);
            format!("it does not answer the TLS handshake; if it expects no TLS, {write}")
        }
        ConnectStep::Greeting if !progress.has_replied() => {
            let write = access.other_scheme(false);
            format!("it accepts the connection and does not answer; if it expects TLS, {write}")
        }
        ConnectStep::Greeting | ConnectStep::GreetingOverTls => {
            "it accepts the connection and does not answer".to_owned()
        }
    };
    let error = StoreError::new(StoreErrorKind::Timeout, text);
    match progress.announced() {
        Some(AnnouncedAddress { reachable, .. }) => error.of(&reachable.to_string()),
        None => error,
    }
}

/// The error if the server can't be reached.
pub(super) fn unreachable(error: io::Error, progress: &Progress) -> StoreError {
    let error = errors::store_error(&error.into());
    StoreError::new(error.kind(), with_origin(error.detail(), progress))
}

/// The text, and who named the address if the URL does not: it may be another one from here.
fn with_origin(text: &str, progress: &Progress) -> String {
    let Some(address) = progress.announced() else {
        return text.to_owned();
    };
    let (announced, reachable) = (&address.announced, &address.reachable);
    let who = match address.by {
        AnnouncedBy::Sentinels => "the sentinels name",
        AnnouncedBy::ClusterMap => "the cluster's map names",
    };
    match announced == reachable {
        true => format!(
            "{text}; {who} this address: if the server has another one from here, add \
             `?map={announced}>host:port` to the URL"
        ),
        false => format!("{text}; {who} {announced}, and `map` leads from there to this address"),
    }
}

/// True if the server sent this error as a reply of the Redis protocol. A TLS alert can't be
/// parsed.
pub(super) fn is_reply(error: &RedisError) -> bool {
    !error.is_io_error() && !error.is_connection_dropped()
}

/// The connection ended before its first reply, or what came is no reply.
pub(super) fn not_greeted(
    error: &RedisError,
    access: &ServerAccess,
    progress: &Progress,
) -> StoreError {
    let text = without_secrets(&errors::text(error));
    let text = match progress.step() {
        ConnectStep::GreetingOverTls if !progress.has_replied() => {
            format!("{text}; if it asks for a client certificate, give one (`Tls::identity_files`)")
        }
        ConnectStep::Greeting if !progress.has_replied() => {
            format!("{text}; if it expects TLS, {}", access.other_scheme(false))
        }
        _ => text,
    };
    // Retrying does not turn another protocol into that of Redis.
    let kind = match errors::is_unreadable(error) {
        true => StoreErrorKind::Refused,
        false => StoreErrorKind::Disconnected,
    };
    StoreError::new(kind, text)
}

/// True if the server refuses `HELLO 3` since it does not know the command, or not that version.
pub(super) fn is_without_hello(error: &RedisError) -> bool {
    const WORDS: [&str; 6] = [
        "hello",
        "unknown command",
        "unsupported",
        "noproto",
        "protocol",
        "resp2",
    ];
    let said = error.to_string().to_lowercase();
    let is_reply = error.code().is_some() || error.kind() == ErrorKind::RESP3NotSupported;
    let is_refused = is_reply && errors::kind(error) == StoreErrorKind::Refused;
    is_refused && WORDS.iter().any(|word| said.contains(word))
}

/// The error for a server, or a proxy before it, that speaks an older protocol.
pub(super) fn without_resp3(text: &str) -> StoreError {
    let text = format!("{text}; this client speaks RESP3 (Redis 6)");
    StoreError::new(StoreErrorKind::Misconfigured, text).advise(
        "connect to the server itself, or by a proxy that forwards `HELLO 3` and `SUBSCRIBE`, as \
         one for TCP does",
    )
}

/// The server's error reply to the first command, which may refuse the user.
pub(super) fn refused(error: &RedisError, login: &ConnectionLogin) -> StoreError {
    let error = errors::store_error(error);
    if error.kind() != StoreErrorKind::Denied {
        return error;
    }
    let user = escaped(login.settings.username().unwrap_or("default"));
    let whose = match login.is_asked {
        true => "; the user and password are those of the credentials provider",
        false => "",
    };
    let text = format!("{} (user `{user}`){whose}", error.detail());
    errors::advised(StoreError::new(StoreErrorKind::Denied, text))
}

/// The error if the TLS handshake failed.
#[cfg(feature = "tls")]
pub(super) fn handshake_failed(
    error: &io::Error,
    access: &ServerAccess,
    progress: &Progress,
) -> StoreError {
    use rustls::{AlertDescription as Alert, CertificateError, Error};

    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    let todo = match inner {
        Some(Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        )) => match progress.announced() {
            Some(address) => announce_names(&address),
            None => "connect to a name that the certificate has".to_owned(),
        },
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
    let text = without_secrets(&error.to_string());
    let text = format!("the TLS handshake failed: {text}; {todo}");
    StoreError::new(StoreErrorKind::Disconnected, text)
}

/// What to do about a certificate without the host that others announced.
#[cfg(feature = "tls")]
fn announce_names(address: &AnnouncedAddress) -> String {
    let (announced, by) = (&address.announced, address.by);
    let is_ip = announced.host.parse::<std::net::IpAddr>().is_ok();
    let (who, how) = match by {
        AnnouncedBy::Sentinels => (
            "the sentinels",
            "set `resolve-hostnames yes` and `announce-hostnames yes` at all sentinels, and \
             monitor the servers by their names (`replica-announce-ip NAME` at the servers)",
        ),
        AnnouncedBy::ClusterMap => (
            "the cluster's map",
            "set `cluster-announce-hostname NAME` and `cluster-preferred-endpoint-type hostname` \
             at all nodes",
        ),
    };
    match is_ip {
        true => format!(
            "{who} named {announced} by its IP address, which the certificate lacks: {how}; or add \
             the address to the certificate, or map it to a name that the certificate has \
             (`?map={announced}>name:port`)"
        ),
        false => format!(
            "{who} named {announced}: announce a name that the certificate has, or map it to one \
             (`?map={announced}>name:port`)"
        ),
    }
}
