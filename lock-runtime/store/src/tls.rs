//! [`Tls`]: trusted authorities and the client's certificate.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use once_cell::sync::OnceCell;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::error::ConfigError;

/// Trusted authorities and the client's certificate, for every server of a URL.
///
/// # Default
/// - trusts what the system trusts, or the authorities in the file that `SSL_CERT_FILE` names
/// - no client certificate
#[derive(Clone, Debug, Default)]
#[must_use = "settings of TLS do nothing until a builder has them"]
pub struct Tls {
    trusted: Vec<Pem>,
    identity: Option<Identity>,
}

impl Tls {
    /// What the system trusts, and no client certificate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts servers whose certificate one of these authorities has signed, instead of what the
    /// system trusts. The file has one or more certificates in PEM. Several files add up. They are
    /// read when the client connects.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.trusted.push(Pem::File(path.into()));
        self
    }

    /// [`ca_file`](Self::ca_file) from memory.
    pub fn ca_pem(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.trusted.push(Pem::Memory(pem.into()));
        self
    }

    /// The client's certificate with its chain, and the private key, for servers that ask for it.
    /// Both are PEM, and are read when the client connects.
    pub fn identity_files(mut self, cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.identity = Some(Identity {
            cert: Pem::File(cert.into()),
            key: Pem::File(key.into()),
        });
        self
    }

    /// [`identity_files`](Self::identity_files) from memory.
    pub fn identity_pem(mut self, cert: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.identity = Some(Identity {
            cert: Pem::Memory(cert.into()),
            key: Pem::Memory(key.into()),
        });
        self
    }

    /// The same for rustls, for an engine. It reads certificates from disk, which takes too long
    /// for an attempt to connect. The process' own choice of cryptography is used, if it made one.
    ///
    /// # Errors
    /// For a file that can't be read or is no PEM, and if there is nothing to trust.
    pub fn client_config(&self) -> Result<Arc<ClientConfig>, ConfigError> {
        let provider = CryptoProvider::get_default().map_or_else(
            || Arc::new(rustls::crypto::ring::default_provider()),
            Arc::clone,
        );
        let unusable =
            |error: rustls::Error| ConfigError::new(format!("TLS can't be used: {error}"));
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_root_certificates(self.roots()?);
        let config = match &self.identity {
            None => config.with_no_client_auth(),
            Some(Identity { cert, key }) => {
                let (chain, private) = (cert.certificates(CLIENT)?, key.private_key()?);
                let made = config.with_client_auth_cert(chain, private);
                made.map_err(|error| {
                    ConfigError::new(format!(
                        "`tls`: {} and {} can't be used together: {error}",
                        cert.named(CLIENT),
                        key.named("key")
                    ))
                })?
            }
        };
        Ok(Arc::new(config))
    }

    fn roots(&self) -> Result<Arc<RootCertStore>, ConfigError> {
        if self.trusted.is_empty() {
            return of_the_system();
        }
        let mut roots = RootCertStore::empty();
        for pem in &self.trusted {
            for cert in pem.certificates("CA")? {
                roots.add(cert).map_err(|error| {
                    let what = pem.named("CA");
                    ConfigError::new(format!(
                        "`tls`: {what} has a certificate that can't be used: {error}"
                    ))
                })?;
            }
        }
        Ok(Arc::new(roots))
    }
}

#[derive(Clone, Debug)]
struct Identity {
    cert: Pem,
    key: Pem,
}

/// A source of PEM text. `Debug` shows only a path.
#[derive(Clone)]
enum Pem {
    File(PathBuf),
    Memory(Vec<u8>),
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Memory(_) => f.write_str("Memory(…)"),
        }
    }
}

impl Pem {
    /// Its name in errors.
    fn named(&self, what: &str) -> String {
        match self {
            Self::File(path) => format!("the {what} file {}", Path::display(path)),
            Self::Memory(_) => format!("the {what} in memory"),
        }
    }

    fn read(&self, what: &str) -> Result<Vec<u8>, ConfigError> {
        match self {
            Self::Memory(pem) => Ok(pem.clone()),
            Self::File(path) => std::fs::read(path).map_err(|error| {
                let file = self.named(what);
                ConfigError::new(format!("`tls`: {file} can't be read: {error}"))
            }),
        }
    }

    /// Returns at least one certificate.
    fn certificates(&self, what: &str) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
        let pem = self.read(what)?;
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
        match found {
            Ok(found) if !found.is_empty() => Ok(found),
            _ => Err(ConfigError::new(format!(
                "`tls`: {} has no certificate that can be read; it must be PEM \
                 (`-----BEGIN CERTIFICATE-----`)",
                self.named(what)
            ))),
        }
    }

    fn private_key(&self) -> Result<PrivateKeyDer<'static>, ConfigError> {
        const WHAT: &str = "key";
        let pem = self.read(WHAT)?;
        // The parser's error could repeat what it found.
        PrivateKeyDer::from_pem_slice(&pem).map_err(|_| {
            let encrypted = pem
                .windows(ENCRYPTED.len())
                .any(|part| part == ENCRYPTED.as_bytes());
            let why = match encrypted {
                true => "is encrypted; decrypt it, as `openssl pkey -in FILE` does",
                false => {
                    "has no private key that can be read; it must be PEM \
                     (`-----BEGIN PRIVATE KEY-----`)"
                }
            };
            ConfigError::new(format!("`tls`: {} {why}", self.named(WHAT)))
        })
    }
}

/// The client certificate's name in errors.
const CLIENT: &str = "client certificate";

const ENCRYPTED: &str = "ENCRYPTED";

/// The system's authorities, read once for all clients of the process. If they can't be read, the
/// next client tries again.
fn of_the_system() -> Result<Arc<RootCertStore>, ConfigError> {
    static ROOTS: OnceCell<Arc<RootCertStore>> = OnceCell::new();
    ROOTS.get_or_try_init(read_the_systems).cloned()
}

/// Certificates that can't be read are left out: no setting of ours can mend them.
fn read_the_systems() -> Result<Arc<RootCertStore>, ConfigError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map(|error| format!(" ({error})"));
        return Err(ConfigError::new(format!(
            "TLS needs certificates to trust, and this system has none{}: install \
             `ca-certificates`, set `SSL_CERT_FILE`, or give the servers' CA, \
             `.tls(Tls::new().ca_file(\"…\"))`",
            why.unwrap_or_default()
        )));
    }
    Ok(Arc::new(roots))
}
