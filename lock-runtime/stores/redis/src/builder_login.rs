//! [`apply`]: user and password outside the URL.

use lock_store::{ConfigError, Login, given_once, given_twice};
use redis::ConnectionInfo;

use crate::server_text::remember;
use crate::topology::url::Topology;

/// Sets user and password for all servers that have locks.
pub(crate) fn apply(login: &Login, topology: &mut Topology) -> Result<(), ConfigError> {
    match topology {
        Topology::Server(server) => apply_to(login, server),
        Topology::Sentinels { master, .. } => apply_to(login, master),
        Topology::Cluster { template, .. } => apply_to(login, template),
        Topology::Quorum { servers, .. } => servers
            .iter_mut()
            .try_for_each(|server| apply_to(login, server)),
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

/// Refuses a user or password beside a provider of them.
pub(crate) fn expect_nobody(topology: &Topology) -> Result<(), ConfigError> {
    let servers = match topology {
        Topology::Server(server) => std::slice::from_ref(server),
        Topology::Sentinels { master, .. } => std::slice::from_ref(master),
        Topology::Cluster { template, .. } => std::slice::from_ref(template),
        Topology::Quorum { servers, .. } => servers,
    };
    let is_somebody = |server: &ConnectionInfo| {
        let settings = server.redis_settings();
        settings.username().is_some() || settings.password().is_some()
    };
    match servers.iter().any(is_somebody) {
        false => Ok(()),
        true => Err(given_twice()),
    }
}
