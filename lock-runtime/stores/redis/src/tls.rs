//! [`Connector`]: the client's side of every handshake.

use std::fmt;

use lock_store::{ConfigError, Tls};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The client's side of its handshakes. It is made once: it reads certificates from disk, which
/// takes too long for an attempt to connect.
#[derive(Clone)]
pub(crate) struct Connector(TlsConnector);

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}

impl Connector {
    pub(crate) fn new(tls: &Tls) -> Result<Self, ConfigError> {
        Ok(Self(TlsConnector::from(tls.client_config()?)))
    }

    /// The handshake with the server of this name.
    pub(crate) async fn handshake(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(host).map_err(std::io::Error::other)?;
        self.0.connect(name.to_owned(), stream).await
    }
}
