//! Messages from client to client: each has keys for them, of which one of its session says that it
//! listens. A message is a key of its sender's session, which the receiver deletes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lock_store::ordered::EngineMail;
use lock_store::{ClientId, ClientMessage, Letter};

use crate::connection::{Live, Watch, WatchedChange};
use crate::store::{Carried, EtcdEngine};
use crate::wire::{self, Op, PutRequest, RequestOp};

/// Beside the namespaces. No escaped name is like it.
const MAIL: &str = "%mail";
/// The key that says that a client listens.
const HERE: &str = "here";

impl EngineMail for EtcdEngine {
    fn mailbox(&self) -> String {
        self.mailbox_of(self.client)
    }

    /// Says that the client listens. Over each connection anew.
    async fn listen(&self, live: &Arc<Live>) -> Carried<()> {
        let here = format!("{}{HERE}", self.mailbox_of(self.client));
        let put = vec![wire::put(&here, "", live.epoch.lease)];
        live.txn(Vec::new(), put, Vec::new(), None).await?;
        self.collect(live).await
    }

    /// Reads what has come, and watches for more.
    async fn collect(&self, live: &Arc<Live>) -> Carried<()> {
        let below = self.mailbox_of(self.client);
        let read = vec![wire::get_below(&below)];
        let mut read = live.txn(Vec::new(), read, Vec::new(), None).await?;
        let found = read.found()?;
        let _ = live.watches.send(Watch {
            path: below.clone(),
            is_prefix: true,
            start: read.header.revision + 1,
            what: WatchedChange::News,
        });
        let here = format!("{below}{HERE}").into_bytes();
        for kv in found.iter().filter(|kv| kv.key != here) {
            let name = String::from_utf8_lossy(&kv.key);
            let delete = vec![wire::delete(&name)];
            live.txn(Vec::new(), delete, Vec::new(), None).await?;
            self.deliver(&kv.value);
        }
        Ok(())
    }

    async fn tell(
        &self,
        live: &Arc<Live>,
        to: ClientId,
        message: &ClientMessage,
    ) -> Carried<Option<String>> {
        let below = self.mailbox_of(to);
        let here = vec![wire::get(&format!("{below}{HERE}"))];
        let mut read = live.txn(Vec::new(), here, Vec::new(), None).await?;
        if read.found()?.is_empty() {
            return Ok(None);
        }
        let Some(value) = Letter::of(message, &self.namespace).write() else {
            return Ok(None);
        };
        let number = self.letters.fetch_add(1, Ordering::Relaxed);
        let key = format!("{below}{:032x}-{number:016x}", self.client.0);
        let put = Op::Put(PutRequest {
            key: key.clone().into(),
            value,
            lease: live.epoch.lease,
        });
        let put = vec![RequestOp { op: Some(put) }];
        live.txn(Vec::new(), put, Vec::new(), None).await?;
        Ok(Some(key))
    }

    async fn take_back(&self, live: &Arc<Live>, letter: &str) -> Carried<()> {
        let delete = vec![wire::delete(letter)];
        let deleted = live.txn(Vec::new(), delete, Vec::new(), None).await;
        deleted.map(drop)
    }
}

impl EtcdEngine {
    /// What the keys for this client's messages begin with.
    pub(crate) fn mailbox_of(&self, client: ClientId) -> String {
        format!("{}{MAIL}/{:032x}/", self.settings.prefix, client.0)
    }
}
