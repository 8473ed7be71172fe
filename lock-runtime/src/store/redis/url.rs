//! Reads `redis://…` URLs. No message made here repeats the URL, which can hold a password.

use redis::{ConnectionInfo, IntoConnectionInfo, ProtocolVersion, io::tcp::TcpSettings};

use crate::error::LockError;

const FORMS: &str = "write `redis://[user:password@]host[:port][/db]`, `rediss://…` for TLS, \
                     `redis+unix:///path/to/socket` or `memory:`";

/// The connection's settings: RESP3 for push messages, and TCP_NODELAY.
pub(super) fn connection_info(url: &str) -> Result<ConnectionInfo, LockError> {
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    if !matches!(scheme, "redis" | "rediss" | "redis+unix") {
        return Err(LockError::config(format!(
            "the store's URL does not begin with a known scheme; {FORMS}"
        )));
    }
    if scheme == "rediss" && !cfg!(feature = "tokio-rustls-comp") {
        return Err(LockError::config(
            "the store's URL asks for TLS (`rediss://`), and lock-runtime was built without it: \
             enable its feature `tokio-rustls-comp`",
        ));
    }
    let unreadable = |_| LockError::config(format!("the store's URL can't be read; {FORMS}"));
    let info = url.into_connection_info().map_err(unreadable)?;
    let redis = info
        .redis_settings()
        .clone()
        .set_protocol(ProtocolVersion::RESP3)
        // One command fewer to connect, and one permission fewer to ask for.
        .set_skip_set_lib_name();
    Ok(info
        .set_redis_settings(redis)
        .set_tcp_settings(TcpSettings::default().set_nodelay(true)))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]
mod tests {
    use super::*;

    #[test]
    fn a_bad_url_is_a_config_error_that_does_not_repeat_it() {
        for url in [
            "",
            "localhost",
            "http://u:canary@h",
            "redis://u:canary@h:port",
            "redis://u:canary@h/x",
        ] {
            let error = connection_info(url).map(|_| ()).unwrap_err();
            assert!(matches!(error, LockError::Config { .. }), "{url}: {error}");
            assert!(!format!("{error} {error:?}").contains("canary"), "{error}");
        }
    }

    #[test]
    fn user_password_database_and_sockets_are_read() {
        let info = connection_info("redis://u:p@h:7/3").unwrap();
        assert_eq!(
            (info.redis_settings().username(), info.redis_settings().db()),
            (Some("u"), 3)
        );
        assert!(connection_info("redis+unix:///tmp/redis.sock?db=2").is_ok());
    }
}
