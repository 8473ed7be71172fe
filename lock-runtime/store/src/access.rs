//! [`Access`]: user, password and TLS beside the URL.

use crate::credentials::{CredentialsProvider, Login};
#[cfg(feature = "tls")]
use crate::tls::Tls;

/// How a client gets into its servers, beside the URL.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// User and password, unless the URL has them. Default: none.
    pub login: Login,
    /// A provider of user and password, instead of both. Default: none. An engine whose sessions
    /// keep their users refuses it.
    pub provider: Option<CredentialsProvider>,
    /// Whom to trust over TLS. Default: TLS if the URL asks for it, and what the system trusts.
    #[cfg(feature = "tls")]
    pub tls: Option<Tls>,
}

impl Access {
    /// Whether it says whom to trust.
    #[must_use]
    pub fn has_tls(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.tls.is_some();
        #[cfg(not(feature = "tls"))]
        false
    }
}
