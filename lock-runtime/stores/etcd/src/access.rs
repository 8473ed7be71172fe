//! [`Access`]: user, password and TLS beside the URL.

use lock_store::{ConfigError, CredentialsProvider, Login, secrets};

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

/// A user with its password.
#[derive(Clone)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) password: String,
}

/// Hides user and password.
impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("User(…)")
    }
}

impl Access {
    /// The user of the URL, or the one beside it. `None`: nobody.
    pub(crate) fn user(
        &self,
        in_url: (Option<String>, Option<String>),
    ) -> Result<Option<User>, ConfigError> {
        given_once("username", &self.login.username, &in_url.0)?;
        given_once("password", &self.login.password, &in_url.1)?;
        let name = in_url.0.or_else(|| self.login.username.clone());
        let password = in_url.1.or_else(|| self.login.password.clone());
        match (name, password) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) if self.provider.is_some() => Err(ConfigError::new(
                "user and password are given by `credentials` and elsewhere; leave one of them out",
            )),
            (Some(name), Some(password)) => {
                secrets::remember(&name, &password);
                Ok(Some(User { name, password }))
            }
            _ => Err(ConfigError::new(
                "etcd needs both user and password, or neither; write \
                 `etcd://user:password@host:2379/prefix`",
            )),
        }
    }
}

/// Refuses a setting that is given twice: neither would win.
fn given_once(
    what: &str,
    beside: &Option<String>,
    in_url: &Option<String>,
) -> Result<(), ConfigError> {
    match beside.is_some() && in_url.is_some() {
        false => Ok(()),
        true => Err(ConfigError::new(format!(
            "`{what}` is given by the builder and in the store's URL; leave one of them out"
        ))),
    }
}
