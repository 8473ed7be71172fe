//! User, password and TLS beside the URL.

use lock_store::{Access, ConfigError, given_once, given_twice, secrets};
use tokio_postgres::Config;

use crate::transport::Certificates;

/// What the builder says about TLS.
pub(crate) fn certificates(access: &Access) -> Option<&Certificates> {
    #[cfg(feature = "tls")]
    return access.tls.as_ref();
    #[cfg(not(feature = "tls"))]
    {
        let _ = access;
        None
    }
}

/// User and password of the URL, or those beside it; none if there is a provider.
pub(crate) fn apply(
    access: &Access,
    read: &Config,
    config: &mut Config,
) -> Result<(), ConfigError> {
    let in_url = (read.get_user(), read.get_password());
    if access.provider.is_some() {
        let is_nobody = in_url == (None, None);
        let beside = [&access.login.username, &access.login.password];
        return match is_nobody && beside.into_iter().all(Option::is_none) {
            true => Ok(()),
            false => Err(given_twice()),
        };
    }
    let (username, password) = (
        access.login.username.as_deref(),
        access.login.password.as_deref(),
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
