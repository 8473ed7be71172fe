//! [`ConnectionLogin`]: the identity of a connection, from the URL or from a provider.

use lock_store::{Clock, Credentials, CredentialsProvider, Instant, StoreError};

/// A provider, and the client's clock.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'c> {
    pub(crate) provider: &'c CredentialsProvider,
    pub(crate) clock: &'c Clock,
}

/// User and password. Who has no other name is `default`.
pub(crate) fn user_of(credentials: &Credentials) -> (&str, &str) {
    match credentials.both() {
        ("", password) => ("default", password),
        both => both,
    }
}

/// The identity of a connection, and how long it is valid.
pub(crate) struct ConnectionLogin {
    pub(crate) settings: redis::RedisConnectionInfo,
    /// True if a provider was asked.
    pub(crate) is_asked: bool,
    pub(crate) renew_at: Option<Instant>,
}

impl ConnectionLogin {
    /// The settings with credentials for one more connection.
    pub(crate) async fn prepare(
        settings: &redis::RedisConnectionInfo,
        asking: Option<Asking<'_>>,
    ) -> Result<Self, StoreError> {
        let mut login = Self {
            settings: settings.clone(),
            is_asked: asking.is_some(),
            renew_at: None,
        };
        if let Some(Asking { provider, clock }) = asking {
            let (credentials, again) = provider.ask(clock).await?;
            let (username, password) = user_of(&credentials);
            let settings = login.settings.set_username(username);
            login.settings = settings.set_password(password);
            login.renew_at = again;
        }
        Ok(login)
    }
}
