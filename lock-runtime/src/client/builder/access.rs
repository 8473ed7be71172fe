//! How the client gets into its servers: TLS, user and password.

#[cfg(feature = "tls")]
use lock_store::Tls;
use lock_store::{Credentials, CredentialsProvider};

use super::LockClientBuilder;
use crate::error::LockError;

impl LockClientBuilder {
    /// Whom to trust, and who this client is, over TLS: for every server of a `rediss…://` URL,
    /// sentinels included, and of a `postgres://`, `zookeeper://` or `etcd://` URL. For the last
    /// two it switches TLS on. Default: whom the system trusts, or the file named by
    /// `SSL_CERT_FILE`, and no client certificate.
    ///
    /// # Errors
    /// At `connect`, [`LockError::Config`] for a URL without TLS, as `redis://`,
    /// `?sslmode=disable` and `?tls=off`, and for a file that can't be read or is no PEM.
    ///
    /// # Examples
    /// ```no_run
    /// use lock_runtime::{LockClient, Tls};
    ///
    /// # async fn connect() -> Result<(), lock_runtime::LockError> {
    /// let tls = Tls::new()
    ///     .ca_file("/etc/redis/ca.pem")
    ///     .identity_files("/etc/redis/client.pem", "/etc/redis/client.key");
    /// let client = LockClient::builder()
    ///     .url("rediss://redis.internal")
    ///     .tls(tls)
    ///     .connect()
    ///     .await?;
    /// # drop(client);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.access.tls = Some(tls);
        self
    }

    /// The user at the servers of Redis, PostgreSQL, ZooKeeper and etcd, beside a URL without one.
    /// The user at sentinels stands in their URL. Default: Redis' `default`.
    ///
    /// # Errors
    /// At `connect`, [`LockError::Config`] if the URL has a user too, and at Redis for a user
    /// without a password.
    pub fn username(mut self, username: impl Into<String>) -> Self {
        self.access.login.username = Some(username.into());
        self
    }

    /// The password at the servers, beside a URL without one: as it is, with nothing escaped. No
    /// error, log or `Debug` output shows it. Default: none.
    ///
    /// # Errors
    /// At `connect`, [`LockError::Config`] if the URL has a password too.
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.access.login.password = Some(password.into());
        self
    }

    /// Asks for user and password instead, for tokens that change while the client runs (IAM,
    /// Vault). Asked for each new connection, and again before the
    /// [validity](Credentials::valid_for) of what it gave ends: a connection to Redis then
    /// authenticates anew (`AUTH`), and one to PostgreSQL is replaced, and nobody loses a lock by
    /// that. Not for sentinels, which have users of their own.
    ///
    /// It runs on the client's own thread, where renewals run too: it must not block. There may be
    /// several connections: let it keep a token that is still good. If it takes longer than the
    /// [connect timeout](Self::connect_timeout), that attempt fails, and its answer is kept for the
    /// next one, for a minute. An error, a panic, or no answer is a failed attempt
    /// to connect, which is tried again; its text is shown in [`LockError::Unavailable`] and in the
    /// log, without passwords that were given before.
    ///
    /// # Errors
    /// At `connect`, [`LockError::Config`] if the URL or the builder has a user or a password too,
    /// and on ZooKeeper, whose sessions keep their users.
    ///
    /// # Examples
    /// ```no_run
    /// use std::time::Duration;
    /// use lock_runtime::{Credentials, LockClient, LockError};
    ///
    /// /// A token of the cloud for this user, good for 15 minutes.
    /// async fn token() -> Result<Credentials, std::io::Error> {
    ///     // In a service: ask the cloud's SDK.
    ///     let token = std::fs::read_to_string("/run/secrets/redis-token")?;
    ///     Ok(Credentials::new("app", token.trim()).valid_for(Duration::from_secs(15 * 60)))
    /// }
    ///
    /// # async fn connect() -> Result<(), LockError> {
    /// let client = LockClient::builder()
    ///     .url("rediss://redis.internal")
    ///     .credentials(token)
    ///     .connect()
    ///     .await?;
    /// # drop(client);
    /// # Ok(())
    /// # }
    /// ```
    pub fn credentials<F, Fut, E>(mut self, provider: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Credentials, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.access.provider = Some(CredentialsProvider::new(provider));
        self
    }

    /// Refuses what is for servers, if the store is none. `store` says what it is.
    pub(super) fn expect_no_access(&self, store: &str) -> Result<(), LockError> {
        let given = [
            #[cfg(feature = "tls")]
            ("tls", self.access.tls.is_some()),
            ("username", self.access.login.username.is_some()),
            ("password", self.access.login.password.is_some()),
            ("credentials", self.access.provider.is_some()),
        ];
        given
            .iter()
            .try_for_each(|(option, is_given)| refuse(option, *is_given, store))
    }
}

fn refuse(option: &str, is_given: bool, store: &str) -> Result<(), LockError> {
    match is_given {
        false => Ok(()),
        true => Err(LockError::config(format!(
            "`{option}` is for a server, and {store}; leave it out"
        ))),
    }
}
