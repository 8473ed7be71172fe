//! [`apply`]: user and password outside the URL.

use std::slice;

use lock_store::{Access, ConfigError, Login, given_once, given_twice};
use redis::ConnectionInfo;

use crate::server_text::remember;
use crate::topology::url::Topology;

/// Sets user and password for all servers that have locks. Refuses them beside a provider.
pub(crate) fn apply(access: &Access, topology: &mut Topology) -> Result<(), ConfigError> {
    let servers: &mut [ConnectionInfo] = match topology {
        Topology::Server(server) => slice::from_mut(server),
        Topology::Sentinels { master, .. } => slice::from_mut(master),
        Topology::Cluster { template, .. } => slice::from_mut(template),
        Topology::Quorum { servers, .. } => servers,
    };
    for server in servers.iter_mut() {
        apply_to(&access.login, server)?;
    }
    let is_somebody = |server: &ConnectionInfo| {
        let settings = server.redis_settings();
        settings.username().is_some() || settings.password().is_some()
    };
    match access.provider.is_some() && servers.iter().any(is_somebody) {
        false => Ok(()),
        true => Err(given_twice()),
    }
}

fn apply_to(login: &Login, server: &mut ConnectionInfo) -> Result<(), ConfigError> {
    let mut settings = server.redis_settings().clone();
    if let Some(username) = login.username.as_ref().filter(|name| !name.is_empty()) {
        given_once("username", settings.username().is_some())?;
        settings = settings.set_username(username);
    }
    if let Some(password) = &login.password {
        given_once("password", settings.password().is_some())?;
        settings = settings.set_password(password);
    }
    if settings.username().is_some() && settings.password().is_none() {
        return Err(ConfigError::new(
            "the user has no password, and Redis ignores a user without one; give the password \
                 (any text, if the user needs none)",
        ));
    }
    remember(&settings);
    *server = server.clone().set_redis_settings(settings);
    Ok(())
}
