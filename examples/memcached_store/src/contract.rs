//! The contract. What is not here memcached can't do.

use std::time::Duration;

use lock_store::{
    Acquire, Acquired, Answer, Asked, Capabilities, Claim, Finding, Instant, Link, LockFound,
    LockKey, Release, Released, Renewal, Renewed, Role, ServerHealth, Store, StoreFuture,
};

use crate::protocol::Reply;
use crate::store::{MemcachedStore, is_done};

impl Store for MemcachedStore {
    fn capabilities(&self) -> Capabilities {
        crate::capabilities()
    }

    fn acquire(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Acquired> {
        Box::pin(async move { self.take(&request, by).await })
    }

    fn renew(&self, holds: Vec<Renewal>, by: Instant) -> StoreFuture<'_, Vec<Renewed>> {
        Box::pin(async move {
            let (mut replies, mut link) = (Vec::with_capacity(holds.len()), self.link());
            for hold in &holds {
                match self.renew_one(hold, by).await {
                    Ok((renewed, over)) => {
                        replies.push(renewed);
                        link = over;
                    }
                    // One server has all: what fails for one will fail for the others. Those that
                    // were renewed are not to be lost with them.
                    Err(_) if !replies.is_empty() => {
                        replies.resize(holds.len(), Renewed::Unanswered);
                        break;
                    }
                    Err(failure) => return Err(failure),
                }
            }
            Ok(Answer::new(replies, link))
        })
    }

    fn release(&self, requests: Vec<Release>, by: Instant) -> StoreFuture<'_, Vec<Released>> {
        Box::pin(async move {
            let (mut replies, mut link) = (Vec::with_capacity(requests.len()), self.link());
            for request in &requests {
                let (is_held, over) = self.end(&request.claim, request.keep, by).await?;
                replies.push(released(is_held));
                link = over;
            }
            Ok(Answer::new(replies, link))
        })
    }

    fn abandon(&self, request: Acquire, by: Instant) -> StoreFuture<'_, Released> {
        Box::pin(async move {
            let claim: &Claim = &request.claim;
            let (is_held, link) = self.end(claim, Duration::ZERO, by).await?;
            Ok(Answer::new(released(is_held), link))
        })
    }

    fn inspect(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<LockFound>> {
        Box::pin(async move {
            let (item, link) = self.item(&self.name(&key)?, by).await?;
            let found = item.map_or_else(
                || LockFound::free(0),
                |item| LockFound::held(item.holder(), item.remaining(), 0),
            );
            Ok(Answer::new(Some(found), link))
        })
    }

    fn force_release(&self, key: LockKey, by: Instant) -> StoreFuture<'_, Option<bool>> {
        Box::pin(async move {
            let delete = format!("md {}\r\n", self.name(&key)?);
            let (reply, link) = self.connection.ask(delete, None, by).await?;
            Ok(Answer::new(Some(is_done(&reply)), link))
        })
    }

    fn ping(&self, by: Instant) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let (_, link) = self.connection.ask("mn\r\n".to_owned(), None, by).await?;
            Ok(Answer::new((), link))
        })
    }

    fn await_connection(&self, by: Instant) -> Asked<'_, ()> {
        Box::pin(async move {
            let ping = self.ping(by).await;
            ping.map(drop).map_err(|failure| failure.error)
        })
    }

    fn is_connected(&self) -> bool {
        self.connection.is_up()
    }

    fn servers(&self, by: Instant) -> Asked<'_, Vec<ServerHealth>> {
        Box::pin(async move {
            let asked = self
                .connection
                .ask("stats settings\r\n".to_owned(), None, by);
            let (reply, _) = asked.await.map_err(|failure| failure.error)?;
            let mut server = ServerHealth::new(self.connection.address().to_owned());
            server.role = Role::Master;
            server.findings.push(Finding::other(
                "it keeps nothing on disk, so a restart frees every lock that is held".to_owned(),
            ));
            let set = |setting: &str| match &reply {
                Reply::Lines(lines) => lines.iter().any(|line| line == setting),
                _ => false,
            };
            if set("STAT evictions on") {
                server.findings.push(Finding::other(
                    "it evicts locks when its memory is full; start it with \
                     `--disable-evictions`"
                        .to_owned(),
                ));
            }
            if set("STAT cas_enabled no") {
                server.findings.push(Finding::other(
                    "it runs without CAS numbers, so that no lock can be renewed or released; \
                     start it without `-C`"
                        .to_owned(),
                ));
            }
            Ok(vec![server])
        })
    }

    fn link(&self) -> Link {
        self.connection.link()
    }

    fn close(&self) {
        self.connection.close();
    }

    fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }
}

fn released(is_held: bool) -> Released {
    match is_held {
        true => Released::Released,
        false => Released::NotHeld,
    }
}
