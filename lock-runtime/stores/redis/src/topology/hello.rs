//! `HELLO`: what a server is. Every user may ask it, unlike `ROLE` and `INFO`.

use std::collections::HashMap;

use lock_store::{StoreError, StoreErrorKind};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, Value};

use crate::server_text::shown;

/// What a server says about itself.
pub(crate) struct Hello {
    mode: String,
    pub(crate) version: String,
    pub(crate) is_replica: bool,
}

impl Hello {
    pub(crate) async fn of(connection: &mut MultiplexedConnection) -> Result<Self, RedisError> {
        Self::ask(&redis::cmd("HELLO"), connection).await
    }

    /// The same, and sets the client's name. An empty name is not sent.
    pub(crate) async fn greet(
        connection: &mut MultiplexedConnection,
        name: &str,
    ) -> Result<Self, RedisError> {
        let mut hello = redis::cmd("HELLO");
        if !name.is_empty() {
            // The protocol version that the connection has already.
            hello.arg(3).arg("SETNAME").arg(name);
        }
        Self::ask(&hello, connection).await
    }

    async fn ask(hello: &Cmd, connection: &mut MultiplexedConnection) -> Result<Self, RedisError> {
        let said: HashMap<String, Value> = hello.query_async(connection).await?;
        let word = |name: &str| match said.get(name) {
            Some(Value::BulkString(word)) => String::from_utf8_lossy(word).into_owned(),
            Some(Value::SimpleString(word)) => word.clone(),
            // If the server does not say, assume what is expected.
            _ => String::new(),
        };
        Ok(Self {
            mode: word("mode"),
            version: word("version"),
            is_replica: matches!(word("role").as_str(), "replica" | "slave"),
        })
    }

    /// An error unless the server stands alone, as the URL says.
    pub(super) fn expect_standalone(&self) -> Result<(), StoreError> {
        self.require_mode("standalone")
    }

    /// An error unless the server is a node of a cluster, and can send a message to one node only.
    pub(super) fn expect_cluster(&self) -> Result<(), StoreError> {
        self.require_mode("cluster")?;
        let major = self.version.split('.').next().unwrap_or_default();
        if major.parse::<u32>().is_ok_and(|major| major < 7) {
            let text = format!(
                "a cluster needs Redis 7.0 or later, and this is {}",
                shown(&self.version)
            );
            return Err(StoreError::new(StoreErrorKind::Misconfigured, text));
        }
        Ok(())
    }

    fn require_mode(&self, mode: &str) -> Result<(), StoreError> {
        if self.mode.is_empty() || self.mode == mode {
            return Ok(());
        }
        let (is, instead) = match self.mode.as_str() {
            "cluster" => (
                "a node of a Redis Cluster",
                "`redis-cluster://host:port,…` (its nodes)",
            ),
            "sentinel" => (
                "a sentinel",
                "`redis-sentinel://host:port,…/master-name` (all sentinels)",
            ),
            _ => ("a server of its own", "`redis://host:port`"),
        };
        Err(StoreError::new(
            StoreErrorKind::Misconfigured,
            format!("it is {is}; the URL for it is {instead}"),
        ))
    }
}
