//! [`ServerAccess`]: what the servers of a URL require of a connection, the same for all of them.

use std::time::Duration;

#[cfg(feature = "tls")]
use tokio::net::TcpStream;
#[cfg(feature = "tls")]
use tokio_rustls::client::TlsStream;

#[cfg(feature = "tls")]
use crate::tls::Connector;

/// What servers require of a connection.
#[derive(Clone, Debug)]
pub(crate) struct ServerAccess {
    /// Present if the URL asks for TLS.
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<Connector>,
    /// `redis`, or its twin `valkey`.
    pub(crate) family: &'static str,
    /// How long an attempt to connect may take.
    pub(crate) connect_timeout: Duration,
    /// The part of the scheme after `redis` or `rediss`: `-cluster`, for example, or nothing.
    pub(crate) kind: &'static str,
}

impl ServerAccess {
    /// The TLS handshake with the server of this name.
    #[cfg(feature = "tls")]
    pub(crate) async fn handshake(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        match &self.tls {
            Some(tls) => tls.handshake(host, stream).await,
            None => Err(std::io::Error::other("TLS was not asked for")),
        }
    }

    /// The advice if only one side uses TLS.
    pub(crate) fn other_scheme(&self, is_tls: bool) -> String {
        let (family, kind) = (self.family, self.kind);
        match is_tls {
            true => format!("write `{family}{kind}://` instead of `{family}s{kind}://`"),
            false => format!("write `{family}s{kind}://` instead of `{family}{kind}://`"),
        }
    }
}
