//! How the client gets into its servers: TLS, user and password.

#[cfg(feature = "tls")]
use lock_store_redis::Tls;

use super::LockClientBuilder;
use crate::error::LockError;

impl LockClientBuilder {
    /// Whom to trust, and who this client is, over TLS: for every server of a `rediss…://` URL, sentinels included. Default:
    /// whom the system trusts, or the file named by `SSL_CERT_FILE`, and no client certificate.
    ///
    /// # Errors
    /// At `connect`, [`LockError::Config`] for a URL without TLS, and for a file that can't be read or is no PEM.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// The user at the servers, beside a URL without one. The user at sentinels stands in their URL. Default: Redis'
    /// `default`.
    ///
    /// # Errors
    /// At `connect`, [`LockError::Config`] if the URL has a user too, and for a user without a password.
    #[cfg(feature = "redis")]
    pub fn username(mut self, username: impl Into<String>) -> Self {
        self.login.username = Some(username.into());
        self
    }

    /// The password at the servers, beside a URL without one: as it is, with nothing escaped. No error, log or `Debug`
    /// output shows it. Default: none.
    ///
    /// # Errors
    /// At `connect`, [`LockError::Config`] if the URL has a password too.
    #[cfg(feature = "redis")]
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.login.password = Some(password.into());
        self
    }

    /// Refuses what is for servers, if the store is in this process.
    pub(super) fn expect_no_access(&self) -> Result<(), LockError> {
        let given: &[(&str, bool)] = &[
            #[cfg(feature = "tls")]
            ("tls", self.tls.is_some()),
            #[cfg(feature = "redis")]
            ("username", self.login.username.is_some()),
            #[cfg(feature = "redis")]
            ("password", self.login.password.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((option, _)) => Err(LockError::config(format!(
                "`{option}` is for a server, and `memory:` is a store of its own in this process; leave it out"
            ))),
        }
    }
}
