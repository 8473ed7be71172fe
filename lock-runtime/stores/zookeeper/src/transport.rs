//! The bytes of a connection: TCP, or TLS over it.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use lock_store::{Access, ConfigError};

use crate::url::Settings;

/// What is read from a server.
pub(crate) type ReadHalf = Pin<Box<dyn AsyncRead + Send>>;
/// What is written to a server.
pub(crate) type WriteHalf = Pin<Box<dyn AsyncWrite + Send>>;

/// How connections are made.
#[derive(Clone)]
pub(crate) enum Transport {
    Plain,
    #[cfg(feature = "tls")]
    Tls(tokio_rustls::TlsConnector),
}

lock_store::show!(Transport);

impl Transport {
    #[cfg(feature = "tls")]
    pub(crate) fn new(settings: &Settings, access: &Access) -> Result<Self, ConfigError> {
        if !settings.wants_tls {
            return Ok(Self::Plain);
        }
        let config = access.tls.clone().unwrap_or_default().client_config()?;
        Ok(Self::Tls(tokio_rustls::TlsConnector::from(config)))
    }

    #[cfg(not(feature = "tls"))]
    pub(crate) fn new(settings: &Settings, _: &Access) -> Result<Self, ConfigError> {
        // Not in the clear, if others in this build have the feature.
        match settings.wants_tls {
            true => Err(lock_store::no_tls()),
            false => Ok(Self::Plain),
        }
    }

    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain)
    }

    /// Connects to this address of the host.
    pub(crate) async fn connect(
        &self,
        host: &str,
        address: SocketAddr,
    ) -> io::Result<(ReadHalf, WriteHalf)> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        #[cfg(not(feature = "tls"))]
        let _ = host;
        match self {
            Self::Plain => {
                let (read, write) = stream.into_split();
                Ok((Box::pin(read), Box::pin(write)))
            }
            #[cfg(feature = "tls")]
            Self::Tls(tls) => {
                let name = rustls::pki_types::ServerName::try_from(host.to_owned());
                let stream = tls.connect(name.map_err(io::Error::other)?, stream).await?;
                let (read, write) = tokio::io::split(stream);
                Ok((Box::pin(read), Box::pin(write)))
            }
        }
    }
}
