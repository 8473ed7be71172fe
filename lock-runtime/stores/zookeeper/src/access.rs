//! [`Access`]: user, password and TLS beside the URL.

use lock_store::{ConfigError, CredentialsProvider, Login, User};

/// How a client gets into its servers, beside the URL.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// User and password, unless the URL has them. Default: none.
    pub login: Login,
    /// A provider of user and password, which is refused: a session keeps its users.
    pub provider: Option<CredentialsProvider>,
    /// Whom to trust over TLS. Default: no TLS, unless the URL asks for it.
    #[cfg(feature = "tls")]
    pub tls: Option<lock_store::Tls>,
}

impl Access {
    /// The user of the URL, or the one beside it. `None`: nobody.
    pub(crate) fn user(
        &self,
        in_url: (Option<String>, Option<String>),
    ) -> Result<Option<User>, ConfigError> {
        if self.provider.is_some() {
            return Err(ConfigError::new(
                "`credentials` can't be used with ZooKeeper: a session keeps its users for ever; \
                 give user and password in the URL or to the builder",
            ));
        }
        self.login
            .user(in_url, "zookeeper://user:password@host:2181/chroot")
    }

    /// Whether it says whom to trust.
    pub(crate) fn has_tls(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.tls.is_some();
        #[cfg(not(feature = "tls"))]
        false
    }
}
