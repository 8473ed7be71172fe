//! The watch of a waiter, on the child before its own. The loop around it is
//! [`lock_store::ordered`]'s.

use std::sync::Arc;

use lock_store::Permits;
use lock_store::ordered::{EngineQueue, KeyNode, Minted, look};
use lock_store::rules::Obstacle;

use crate::connection::Live;
use crate::errors::{Fault, code};
use crate::names::Child;
use crate::store::{Carried, ZooKeeperEngine};
use crate::tokens::Beside;
use crate::wire::{self, Stat};

/// A watch that the server does not have yet. If it never has, those that rely on it look again.
struct Registered<'i> {
    inner: &'i ZooKeeperEngine,
    /// Empty: the server has it.
    path: String,
    looks: bool,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        if self.path.is_empty() {
            return;
        }
        let nodes = self.inner.own.lock().take_watchers(&self.path);
        if let Some(me) = self.inner.me.upgrade().filter(|_| self.looks) {
            nodes.into_iter().for_each(|node| look(&me, node));
        }
    }
}

impl EngineQueue for ZooKeeperEngine {
    /// Watches what is in the way. False if it is gone, or may have changed before.
    async fn watch(
        &self,
        live: &Arc<Live>,
        node: &KeyNode,
        _: Option<Permits>,
        obstacle: &Obstacle,
        _: &Option<Stat>,
    ) -> Carried<bool> {
        let (path, request) = match obstacle {
            Obstacle::Child(name) => {
                let path = node.child(name);
                let request = wire::data(&path, true);
                (path, request)
            }
            Obstacle::Children => (node.path.clone(), wire::children(&node.path, true)),
        };
        // Before the request: the event may come before its reply is read.
        if !self.own.lock().watch(path.clone(), node) {
            return Ok(true);
        }
        let mut watched = Registered {
            inner: self,
            path,
            looks: true,
        };
        match live.send(request).reply().await {
            Ok(reply) => {
                watched.path.clear();
                // What has changed since the listing is not told.
                match obstacle {
                    Obstacle::Children => Ok(false),
                    // The sign that a part of a semaphore is held may have come before.
                    Obstacle::Child(_) => Ok(reply.read(wire::found_data)?.1.version == 0),
                }
            }
            Err(Fault::Refused(code::NO_NODE)) => Ok(false),
            Err(fault) => {
                // What is refused would be so again.
                watched.looks = matches!(fault, Fault::Lost(_));
                Err(fault)
            }
        }
    }

    /// Tells the one that waits behind this part of a semaphore that the part is held now: nothing
    /// else of it changes.
    fn signal(&self, live: &Live, node: &KeyNode, child: &Child) {
        if child.permits.is_some_and(|part| !part.is_read_write()) {
            // If it is lost, the other one asks again in a second.
            drop(live.send(wire::set_data(&node.child(&child.name), b"", None)));
        }
    }

    async fn mint_first(
        &self,
        live: &Arc<Live>,
        node: &KeyNode,
        child: &Child,
        count: u32,
        read: &Option<Stat>,
    ) -> Carried<Minted> {
        let beside = Beside::of_grant(child.permits);
        self.mint(live, node, child.owner, count, *read, beside)
            .await
    }
}
