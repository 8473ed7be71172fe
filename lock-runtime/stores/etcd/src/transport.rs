//! The bytes of a connection: TCP, or TLS over it.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use lock_store::{Access, ConfigError};

use crate::url::Settings;

/// What is read and written.
pub(crate) trait Bytes: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Bytes for T {}

/// A connection's bytes.
pub(crate) type ByteStream = Pin<Box<dyn Bytes>>;

/// How connections are made.
#[derive(Clone)]
pub(crate) enum Transport {
    Plain,
    #[cfg(feature = "tls")]
    Tls {
        /// For HTTP/2.
        calls: tokio_rustls::TlsConnector,
        /// For the servers' metrics.
        plain: tokio_rustls::TlsConnector,
    },
}

lock_store::show!(Transport);

impl Transport {
    #[cfg(feature = "tls")]
    pub(crate) fn new(settings: &Settings, access: &Access) -> Result<Self, ConfigError> {
        if !settings.wants_tls {
            return Ok(Self::Plain);
        }
        let plain = access.tls.clone().unwrap_or_default().client_config()?;
        let mut calls = rustls::ClientConfig::clone(&plain);
        calls.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Self::Tls {
            calls: std::sync::Arc::new(calls).into(),
            plain: plain.into(),
        })
    }

    #[cfg(not(feature = "tls"))]
    pub(crate) fn new(settings: &Settings, _: &Access) -> Result<Self, ConfigError> {
        // Not in the clear, if others in this build have the feature.
        match settings.wants_tls {
            true => Err(lock_store::no_tls()),
            false => Ok(Self::Plain),
        }
    }

    pub(crate) fn scheme(&self) -> &'static str {
        match self {
            Self::Plain => "http",
            #[cfg(feature = "tls")]
            Self::Tls { .. } => "https",
        }
    }

    /// Connects to this address of the host, for calls or for a plain question.
    pub(crate) async fn connect(
        &self,
        host: &str,
        address: SocketAddr,
        for_calls: bool,
    ) -> io::Result<ByteStream> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        match self {
            Self::Plain => {
                let _ = (host, for_calls);
                Ok(Box::pin(stream))
            }
            #[cfg(feature = "tls")]
            Self::Tls { calls, plain } => {
                let name = rustls::pki_types::ServerName::try_from(host.to_owned());
                let tls = if for_calls { calls } else { plain };
                let stream = tls.connect(name.map_err(io::Error::other)?, stream).await?;
                Ok(Box::pin(stream))
            }
        }
    }
}
