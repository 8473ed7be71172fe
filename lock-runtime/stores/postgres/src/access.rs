//! [`Access`]: user, password and TLS beside the URL.

use lock_store::{ConfigError, CredentialsProvider, Login, secrets};
use tokio_postgres::Config;

use crate::transport::Certificates;

/// How a client gets into its servers, beside the URL.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// User and password, unless the URL has them. Default: none.
    pub login: Login,
    /// The provider of user and password, used instead of `login`. Default: none.
    pub provider: Option<CredentialsProvider>,
    /// Whom to trust over TLS. Default: TLS if the URL asks for it, and what the system trusts.
    #[cfg(feature = "tls")]
    pub tls: Option<lock_store::Tls>,
}

impl Access {
    /// What the builder says about TLS.
    pub(crate) fn certificates(&self) -> Option<&Certificates> {
        #[cfg(feature = "tls")]
        return self.tls.as_ref();
        #[cfg(not(feature = "tls"))]
        None
    }

    /// User and password of the URL, or those beside it; none if there is a provider.
    pub(crate) fn apply(&self, read: &Config, config: &mut Config) -> Result<(), ConfigError> {
        let in_url = (read.get_user(), read.get_password());
        if self.provider.is_some() {
            let is_nobody = in_url == (None, None);
            let beside = [&self.login.username, &self.login.password];
            return match is_nobody && beside.into_iter().all(Option::is_none) {
                true => Ok(()),
                false => Err(ConfigError::new(
                    "`credentials` provides user and password, and the builder or the store's URL \
                     has them as well; leave one of them out",
                )),
            };
        }
        let (username, password) = (
            self.login.username.as_deref(),
            self.login.password.as_deref(),
        );
        given_once("username", username.is_some() && in_url.0.is_some())?;
        given_once("password", password.is_some() && in_url.1.is_some())?;
        let Some(user) = in_url.0.or(username) else {
            return Err(ConfigError::new(
                "the store's URL has no user; write `postgres://user:password@host:5432/database`, \
                 or give the builder a `username`",
            ));
        };
        config.user(user);
        if let Some(password) = in_url.1.or(password.map(str::as_bytes)) {
            secrets::remember("", &String::from_utf8_lossy(password));
            config.password(password);
        }
        Ok(())
    }
}

/// Refuses a setting that is given twice: neither would win.
fn given_once(what: &str, is_twice: bool) -> Result<(), ConfigError> {
    match is_twice {
        false => Ok(()),
        true => Err(ConfigError::new(format!(
            "`{what}` is given by the builder and in the store's URL; leave one of them out"
        ))),
    }
}
