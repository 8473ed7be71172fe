//! [`Access`]: user, password and TLS beside the URL.

use lock_store::{ConfigError, CredentialsProvider, Login, User};

/// How a client gets into its servers, beside the URL.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// User and password, unless the URL has them. Default: none.
    pub login: Login,
    /// A provider of user and password, instead of both. It is asked when the client logs in, and
    /// again when the servers have forgotten that.
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
        let user = self
            .login
            .user(in_url, "etcd://user:password@host:2379/prefix")?;
        match user {
            Some(_) if self.provider.is_some() => Err(ConfigError::new(
                "user and password are given by `credentials` and elsewhere; leave one of them out",
            )),
            user => Ok(user),
        }
    }

    /// Whether it says whom to trust.
    pub(crate) fn has_tls(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.tls.is_some();
        #[cfg(not(feature = "tls"))]
        false
    }
}
