//! Messages from client to client: each has a node for them, in which a child of its session says
//! that it listens. A message is a child of its sender's session, which the receiver deletes.

use std::sync::Arc;

use lock_store::ordered::EngineMail;
use lock_store::{ClientId, ClientMessage, Letter};

use crate::connection::{Live, SentRequest};
use crate::errors::{Fault, code};
use crate::store::{Carried, ZooKeeperEngine, is_there, there};
use crate::wire::{self, NodeKind};

/// Beside the namespaces. No escaped name is like it.
const MAIL: &str = "%mail";
/// The child that says that a client listens.
const HERE: &str = "here";

impl EngineMail for ZooKeeperEngine {
    fn mailbox(&self) -> String {
        self.mailbox_of(self.client)
    }

    /// Makes the client's mailbox, and listens. Over each connection anew.
    async fn listen(&self, live: &Arc<Live>) -> Carried<()> {
        let path = self.mailbox_of(self.client);
        let make = || live.send(wire::create(&path, b"", self.acl(), NodeKind::Container));
        if let Err(Fault::Refused(code::NO_NODE)) = make().reply().await {
            let all = format!("{}/{MAIL}", self.settings.chroot);
            let all = wire::create(&all, b"", self.acl(), NodeKind::Persistent);
            there(live.send(all).reply().await.map(drop))?;
            there(make().reply().await.map(drop))?;
        }
        let here = format!("{path}/{HERE}");
        let listens = || live.send(wire::create(&here, b"", self.acl(), NodeKind::Ephemeral));
        let made = listens().reply().await;
        if matches!(made, Err(Fault::Refused(code::NODE_EXISTS))) {
            // That of a session that is over goes with it, later than this.
            if self.stat_of(live, &here).await?.is_none() {
                self.delete(live, &here).await?;
                there(listens().reply().await.map(drop))?;
            }
        } else {
            made?;
        }
        self.collect(live).await
    }

    /// Reads what has come, and watches for more.
    async fn collect(&self, live: &Arc<Live>) -> Carried<()> {
        let path = self.mailbox_of(self.client);
        let listed = live.send(wire::children(&path, true)).reply().await?;
        let (mut names, _) = listed.read(wire::found_children)?;
        names.retain(|name| name != HERE);
        names.sort();
        let begin = |name: &String| {
            let letter = format!("{path}/{name}");
            let read = live.send(wire::data(&letter, false));
            (read, live.send(wire::delete(&letter)))
        };
        let letters: Vec<(SentRequest, SentRequest)> = names.iter().map(begin).collect();
        for (read, _) in letters {
            let Ok(read) = read.reply().await else {
                continue;
            };
            let (data, _) = read.read(wire::found_data)?;
            self.deliver(&data);
        }
        Ok(())
    }

    async fn tell(
        &self,
        live: &Arc<Live>,
        to: ClientId,
        message: &ClientMessage,
    ) -> Carried<Option<String>> {
        let path = self.mailbox_of(to);
        let here = wire::exists(&format!("{path}/{HERE}"));
        if !is_there(live.send(here).reply().await)? {
            return Ok(None);
        }
        let Some(data) = Letter::of(message, &self.namespace).write() else {
            return Ok(None);
        };
        let path = format!("{path}/m-");
        let letter = wire::create(&path, &data, self.acl(), NodeKind::EphemeralSequential);
        match live.send(letter).reply().await {
            Ok(made) => Ok(Some(made.read(wire::created)?.0)),
            Err(Fault::Refused(code::NO_NODE)) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    async fn take_back(&self, live: &Arc<Live>, letter: &str) -> Carried<()> {
        self.delete(live, letter).await.map(drop)
    }
}

impl ZooKeeperEngine {
    pub(crate) fn mailbox_of(&self, of: ClientId) -> String {
        format!("{}/{MAIL}/{:032x}", self.settings.chroot, of.0)
    }
}
