//! [`Connector`]: the client's side of every handshake.

use std::sync::Arc;

use lock_store::{ConfigError, Tls};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The client's side of its handshakes. It is made once: it reads certificates from disk, which
/// takes too long for an attempt to connect.
#[derive(Clone)]
pub(crate) struct Connector(TlsConnector);

lock_store::show!(Connector);

impl Connector {
    pub(crate) fn new(tls: &Tls) -> Result<Self, ConfigError> {
        Ok(Self(TlsConnector::from(tls.client_config()?)))
    }

    /// One that trusts whoever answers, for URLs that end in `#insecure`.
    pub(crate) fn insecure() -> Result<Self, ConfigError> {
        let provider = CryptoProvider::get_default();
        let provider = provider.map_or_else(|| Arc::new(ring::default_provider()), Arc::clone);
        let schemes = provider.signature_verification_algorithms;
        let anybody = Arc::new(Anybody(schemes.supported_schemes()));
        let config = ClientConfig::builder_with_provider(provider);
        let config = config
            .with_safe_default_protocol_versions()
            .map_err(|error| ConfigError::new(format!("TLS can't be used: {error}")))?;
        let config = config.dangerous().with_custom_certificate_verifier(anybody);
        let config = Arc::new(config.with_no_client_auth());
        Ok(Self(TlsConnector::from(config)))
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

/// Trusts whoever answers.
#[derive(Debug)]
struct Anybody(Vec<SignatureScheme>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.clone()
    }
}
