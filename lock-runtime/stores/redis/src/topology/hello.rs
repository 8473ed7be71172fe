//! `HELLO`: what a server is. Every user may ask it, unlike `ROLE` and `INFO`.

use std::collections::HashMap;

use lock_store::{StoreError, StoreErrorKind};
use redis::{RedisError, Value};

use super::unreached;
use crate::errors;
use crate::resp::{Command, RespConnection};
use crate::server_text::without_secrets;

/// What a server says about itself.
pub(crate) struct Hello {
    mode: String,
    pub(crate) version: String,
    pub(crate) is_replica: bool,
    /// The version of the protocol from now on.
    protocol: Option<i64>,
}

impl Hello {
    pub(crate) async fn of(connection: &RespConnection) -> Result<Self, RedisError> {
        Self::greet(connection, "").await
    }

    /// Chooses the protocol, and sets the client's name. An empty name is not sent.
    pub(crate) async fn greet(connection: &RespConnection, name: &str) -> Result<Self, RedisError> {
        let mut hello = Command::new("HELLO");
        // The protocol version that the connection has already: Redis 6.0 expects one.
        hello.arg(3);
        if !name.is_empty() {
            hello.arg("SETNAME").arg(name);
        }
        let said: HashMap<String, Value> = connection.query(&hello).await?;
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
            protocol: match said.get("proto") {
                Some(Value::Int(version)) => Some(*version),
                _ => None,
            },
        })
    }

    /// An error unless the server stands alone, as the URL says.
    pub(super) async fn expect_standalone(
        &self,
        connection: &RespConnection,
    ) -> Result<(), StoreError> {
        self.expect_no_sentinel()?;
        // Some vendors' servers say the wrong thing about themselves.
        match self.mode == "cluster" && has_slots(connection).await? != Some(false) {
            true => Err(errors::cluster_node()),
            false => self.expect_resp3(),
        }
    }

    /// An error unless the server is a node of a cluster, and can send a message to one node only.
    pub(super) async fn expect_cluster(
        &self,
        connection: &RespConnection,
    ) -> Result<(), StoreError> {
        self.expect_no_sentinel()?;
        let is_said = matches!(self.mode.as_str(), "" | "cluster");
        if !is_said && has_slots(connection).await? == Some(false) {
            return Err(errors::no_cluster_node());
        }
        let major = self.version.split('.').next().unwrap_or_default();
        if major.parse::<u32>().is_ok_and(|major| major < 7) {
            let text = format!(
                "a cluster needs Redis 7.0 or later, and this is {}",
                without_secrets(&self.version)
            );
            return Err(StoreError::new(StoreErrorKind::Misconfigured, text));
        }
        self.expect_resp3()
    }

    fn expect_no_sentinel(&self) -> Result<(), StoreError> {
        match self.mode.as_str() {
            "sentinel" => Err(errors::other_kind(
                "a sentinel",
                "`redis-sentinel://host:port,…/master-name` (all sentinels)",
            )),
            _ => Ok(()),
        }
    }

    fn expect_resp3(&self) -> Result<(), StoreError> {
        match self.protocol {
            Some(older @ ..3) => Err(unreached::without_resp3(&format!(
                "it answers `HELLO 3` in version {older} of the protocol"
            ))),
            _ => Ok(()),
        }
    }
}

/// Whether `CLUSTER SLOTS` is answered; `None` if the user may not ask. A node of a cluster knows
/// what it is, whatever its `HELLO` says.
async fn has_slots(connection: &RespConnection) -> Result<Option<bool>, StoreError> {
    let mut slots = Command::new("CLUSTER");
    match connection.query::<Value>(slots.arg("SLOTS")).await {
        Ok(_) => Ok(Some(true)),
        Err(error) => match errors::kind(&error) {
            StoreErrorKind::Refused => Ok(Some(false)),
            StoreErrorKind::Denied => Ok(None),
            _ => Err(errors::store_error(&error)),
        },
    }
}
