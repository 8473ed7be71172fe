//! [`Tried`]: asks at each new connection for everything that renewing, releasing and waiting will
//! need. So what is missing is told before there is a lock, and not when it can't be kept.
//!
//! Only what waiting does not mend refuses: a missing right, a command that the server does not
//! know, or one that scripts may not run. A server that is full, loading or read-only does not.

use std::collections::BTreeMap;

use futures_util::future::try_join;
use lock_store::{Layout, StoreError, StoreErrorKind};
use redis::{FromRedisValue, RedisError, Value};

use crate::cluster::slot_map;
use crate::config::Needs;
use crate::errors::{self, Missing};
use crate::names::Prefix;
use crate::resp::{Command, RespConnection};
use crate::scripts;
use crate::server_text::without_secrets;
use crate::topology::address::ServerAddress;
use crate::topology::address_map::AddressMap;
use crate::topology::key_slot::SLOTS;

/// A connection that is tried, and what it is for.
pub(crate) struct Tried<'c> {
    pub(crate) connection: RespConnection,
    pub(crate) namespace: &'c Prefix,
    pub(crate) needs: Needs,
    /// As whose locks keys are kept.
    pub(crate) layout: Layout,
    /// The server is a node of a cluster.
    pub(crate) is_node: bool,
}

/// Which of the slots that were asked for is a node's own.
enum Owned {
    One(u16),
    None,
    /// It does not say.
    Unknown,
}

type Replies = Vec<Result<Value, RedisError>>;

impl Tried<'_> {
    /// An error with the name of a command or right that is missing. False if the server runs no
    /// scripts now, so that nothing is known of theirs.
    pub(crate) async fn ensure(&self) -> Result<bool, StoreError> {
        let scripts = async {
            match self.is_node {
                false => Ok(self.expect_scripts(None).await? == Some(true)),
                true => self.expect_node().await,
            }
        };
        let (_, is_tried) = try_join(self.expect_messages(), scripts).await?;
        Ok(is_tried)
    }

    async fn expect_messages(&self) -> Result<(), StoreError> {
        match self.needs {
            Needs::Locks(client) => {
                let channel = self.namespace.own_channel(client);
                self.expect_subscription("SUBSCRIBE", &channel).await
            }
            Needs::Confirmation => {
                let mut wait = Command::new("WAIT");
                wait.arg(0).arg(1);
                self.expect_all(vec![("WAIT", wait)]).await.map(drop)
            }
        }
    }

    /// A node of a cluster runs scripts on keys of its own slots only: those of one of the masters.
    async fn expect_node(&self) -> Result<bool, StoreError> {
        let mut slots = Command::new("CLUSTER");
        slots.arg("SLOTS");
        // `ASKING` counts for the next command, which must be none of a lock.
        let asking = [
            ("ASKING", Command::new("ASKING")),
            ("PING", Command::new("PING")),
        ];
        let commands = [("CLUSTER SLOTS", slots)]
            .into_iter()
            .chain(asking)
            .collect();
        let map = self.expect_all(commands).await?.swap_remove(0);
        let ranges = Vec::<Value>::from_redis_value(map.unwrap_or(Value::Nil));
        let nobody = ServerAddress {
            host: String::new(),
            port: 0,
        };
        let mut first_slots = BTreeMap::new();
        let ranges = ranges.unwrap_or_default();
        let map = slot_map::read(&ranges, &nobody, &AddressMap::default());
        for slot in 0..SLOTS {
            if let Some(master) = map.owner(slot) {
                first_slots.entry(master).or_insert(slot);
            }
        }
        let slots: Vec<u16> = first_slots.into_values().collect();
        let own = match self.own_of(&slots).await? {
            Owned::One(own) => own,
            // A node without slots runs no script.
            Owned::None => return Ok(!slots.is_empty()),
            Owned::Unknown => return Ok(false),
        };
        let is_tried = self.expect_scripts(Some(own)).await?;
        // With one master, the right is seen only where it is of no use.
        if let Some(other) = slots.into_iter().find(|slot| *slot != own) {
            self.expect_shard_channels(other).await?;
        }
        // It may have moved meanwhile.
        Ok(is_tried == Some(true))
    }

    /// The first of these slots that is this node's, if it says so. All are asked in one round
    /// trip: there is one for each master.
    async fn own_of(&self, slots: &[u16]) -> Result<Owned, StoreError> {
        if slots.is_empty() {
            return Ok(Owned::None);
        }
        let asks = slots.iter().map(|slot| {
            let mut get = Command::new("GET");
            get.arg(self.namespace.unused_key(Some(*slot)));
            ("GET", get)
        });
        let replies = self.expect_all(asks.collect()).await?;
        let mut owned = Owned::None;
        for (slot, reply) in slots.iter().zip(&replies) {
            match reply.as_ref().err().and_then(RedisError::code) {
                Some("MOVED") => {}
                // A node that was just started says so of every slot.
                Some("CLUSTERDOWN") => owned = Owned::Unknown,
                _ => return Ok(Owned::One(*slot)),
            }
        }
        Ok(owned)
    }

    /// Listens nowhere: the slot is another node's, which is told only to who may listen. If it has
    /// moved here meanwhile, nobody speaks there.
    async fn expect_shard_channels(&self, elsewhere: u16) -> Result<(), StoreError> {
        let channel = self.namespace.unused_channel(Some(elsewhere));
        self.expect_subscription("SSUBSCRIBE", &channel).await
    }

    async fn expect_subscription(
        &self,
        word: &'static str,
        channel: &str,
    ) -> Result<(), StoreError> {
        let subscribed = self.connection.subscribe(word, channel, false, None);
        match subscribed.await {
            Err(error) if error.is_io_error() || error.is_connection_dropped() => {
                Err(errors::store_error(&error))
            }
            subscribed => self.expect_reply(word, &subscribed.map(|()| Value::Nil)),
        }
    }

    /// Whether the server ran the script; `None` if the slot is another node's.
    async fn expect_scripts(&self, slot: Option<u16>) -> Result<Option<bool>, StoreError> {
        let form = scripts::REQUIRED_RIGHTS.form(slot.is_some());
        let mut by_hash = form.call();
        by_hash.arg(1);
        by_hash.arg(self.namespace.unused_key(slot));
        by_hash.arg(self.namespace.unused_channel(slot));
        by_hash.arg(self.layout.as_str());
        let by_text = form.by_text(&by_hash);
        let commands = vec![("PING", Command::new("PING")), ("EVAL", by_text)];
        let said = match self.expect_all(commands).await?.pop() {
            Some(Ok(said)) => said,
            Some(Err(error)) if error.code() == Some("MOVED") => return Ok(None),
            // Of an error that lasts, nothing else will be known.
            Some(Err(error)) => return Ok(Some(!errors::is_passing(&error))),
            None => return Ok(Some(true)),
        };
        let said = Vec::<String>::from_redis_value(said).unwrap_or_default();
        let Some((may_by_hash, failed)) = said.split_first() else {
            return Ok(Some(true));
        };
        for failure in failed.chunks_exact(2) {
            if let [command, said] = failure {
                self.expect_runnable(command, said, " in scripts")?;
            }
        }
        if may_by_hash != "1" {
            self.expect_all(vec![("EVALSHA", by_hash)]).await?;
        }
        Ok(Some(true))
    }

    /// Sends these commands together, and expects that the user may run each of them.
    async fn expect_all(&self, commands: Vec<(&str, Command)>) -> Result<Replies, StoreError> {
        let all: Vec<&Command> = commands.iter().map(|(_, command)| command).collect();
        let replies = self.connection.send_together(&all, false, None).await;
        let replies = replies.map_err(|error| errors::store_error(&error))?;
        for ((name, _), reply) in commands.iter().zip(&replies) {
            self.expect_reply(name, reply)?;
        }
        Ok(replies)
    }

    fn expect_reply(
        &self,
        name: &str,
        reply: &Result<Value, RedisError>,
    ) -> Result<(), StoreError> {
        match reply {
            Err(error) => self.expect_runnable(name, &errors::text(error), ""),
            Ok(_) => Ok(()),
        }
    }

    /// An error if the server's words say that this command is not for this client.
    fn expect_runnable(&self, command: &str, said: &str, place: &str) -> Result<(), StoreError> {
        let namespace = self.namespace.pattern();
        let denied = |text: String| StoreError::new(StoreErrorKind::Denied, text);
        let lacks = |text: String| {
            let error = StoreError::new(StoreErrorKind::Misconfigured, text);
            error.advise("use a server that runs it")
        };
        Err(match errors::missing(said) {
            None => return Ok(()),
            Some(Missing::Right) => denied(format!(
                "the user may not run `{command}`, which locks need; allow it (`+{}`)",
                command.to_lowercase().replace(' ', "|")
            )),
            Some(Missing::Key) => denied(format!(
                "the user may not run `{command}` on the keys of locks; allow them (`~{namespace}`)"
            )),
            Some(Missing::Channel) => denied(format!(
                "the user may not use the channels of locks; allow them (`&{namespace}`)"
            )),
            Some(Missing::Command) => lacks(format!(
                "the server does not know `{command}`, which locks need; if it was renamed, undo \
                 that"
            )),
            Some(Missing::Leave) => lacks(format!(
                "the server does not allow `{command}`{place}, which locks need: {}",
                without_secrets(said)
            )),
        })
    }
}
