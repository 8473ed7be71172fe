//! [`ZooKeeperEngine`]: what a client's operations have in common.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use lock_store::ordered::{KeyNode, OrderedClient};
use lock_store::{Instant, Mutex, Owner, Permits, SweepingMap};

use crate::base::first_base;
use crate::connection::Live;
use crate::errors::{Fault, code};
use crate::names::{self, Child, NodeLayout};
use crate::own_children::{GivenTokens, OwnDetails};
use crate::rank::Listing;
use crate::session::Session;
use crate::transport::Transport;
use crate::url::Settings;
use crate::wire::{self, Acl, NodeKind, Stat};

/// What the client's operations and its tasks share.
pub(crate) struct ZooKeeperEngine {
    pub(crate) common: OrderedClient<Child, OwnDetails>,
    /// Itself, for tasks that end after their callers.
    pub(crate) me: Weak<Self>,
    pub(crate) session: Arc<Session>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) transport: Transport,
    /// The keys that were taken when they were last asked for.
    pub(crate) busy: Mutex<SweepingMap<KeyNode, Instant>>,
    /// The fencing tokens that this client has given, by the nodes of their bases.
    pub(crate) given: Mutex<HashMap<String, GivenTokens>>,
}

impl Deref for ZooKeeperEngine {
    type Target = OrderedClient<Child, OwnDetails>;

    fn deref(&self) -> &Self::Target {
        &self.common
    }
}

lock_store::show!(ZooKeeperEngine as it: server = it.settings.server, namespace = it.namespace);

/// Where the base of tokens stands if the namespace's node is Curator's. No escaped name is like
/// it.
const BASE: &str = "%base";

/// The reply to an operation, or why there is none.
pub(crate) type Carried<T> = Result<T, Fault>;

impl ZooKeeperEngine {
    pub(crate) fn acl(&self) -> Acl {
        match self.settings.user {
            Some(_) => Acl::Creator,
            None => Acl::Open,
        }
    }

    /// What a reply to [`wire::children`] says. `None`: there is no such node.
    pub(crate) fn listing(
        &self,
        node: &KeyNode,
        reply: Carried<Option<crate::connection::NodeReply>>,
    ) -> Carried<Listing> {
        let reply = match reply {
            Ok(Some(reply)) => reply,
            Ok(None) | Err(Fault::Refused(code::NO_NODE)) => return Ok(Listing::default()),
            Err(fault) => return Err(fault),
        };
        let (found, stat) = reply.read(wire::found_children)?;
        let children: Vec<Child> = found
            .iter()
            .filter_map(|name| self.settings.layout.child(name))
            .collect();
        let is_foreign = children.len() < found.len() || self.is_others(&stat);
        self.note_kept(node, &children);
        Ok(Listing::new(children, Some(stat), is_foreign))
    }

    /// Whether a key's node is that of another program. Curator's users may write into theirs.
    fn is_others(&self, stat: &Stat) -> bool {
        stat.owner != 0 || self.settings.layout == NodeLayout::Native && stat.data_length != 0
    }

    /// Makes the nodes above a child, of those that are not there.
    pub(crate) async fn make_node(&self, live: &Live, node: &KeyNode) -> Carried<()> {
        match self.make_container(live, node).await {
            Err(Fault::Refused(code::NO_NODE)) => {
                self.make_namespace(live, &node.namespace).await?;
                self.make_container(live, node).await
            }
            other => other,
        }
    }

    async fn make_container(&self, live: &Live, node: &KeyNode) -> Carried<()> {
        let container = wire::create(&node.path, b"", self.acl(), NodeKind::Container);
        there(live.send(container).reply().await.map(drop))
    }

    pub(crate) async fn make_namespace(&self, live: &Live, namespace: &str) -> Carried<()> {
        match self.settings.layout {
            NodeLayout::Native => self.make_base(live, namespace).await,
            NodeLayout::Curator if namespace.is_empty() => Ok(()),
            // Curator makes nodes without data.
            NodeLayout::Curator => {
                let node = wire::create(namespace, b"", self.acl(), NodeKind::Persistent);
                there(live.send(node).reply().await.map(drop))
            }
        }
    }

    /// The node that has the base of a namespace's fencing tokens.
    pub(crate) fn base_node(&self, namespace: &str) -> String {
        match self.settings.layout {
            NodeLayout::Native => namespace.to_owned(),
            NodeLayout::Curator => format!("{namespace}/{BASE}"),
        }
    }

    pub(crate) async fn make_base(&self, live: &Live, path: &str) -> Carried<()> {
        let base = wire::create(path, &first_base(), self.acl(), NodeKind::Persistent);
        there(live.send(base).reply().await.map(drop))
    }

    /// Makes the chroot, part by part, and this client's namespace.
    pub(crate) async fn make_chroot(&self, live: &Live) -> Carried<()> {
        let chroot = &self.settings.chroot;
        let ends = chroot.match_indices('/').map(|(at, _)| at).skip(1);
        for end in ends.chain([chroot.len()]) {
            let path = chroot.get(..end).unwrap_or_default();
            if path.is_empty() {
                continue;
            }
            // Another user's may be read only.
            if live.send(wire::exists(path)).reply().await.is_err() {
                let node = wire::create(path, b"", self.acl(), NodeKind::Persistent);
                there(live.send(node).reply().await.map(drop))?;
            }
        }
        let namespace = names::of_namespace(self.settings.layout, chroot, &self.namespace);
        self.make_namespace(live, &namespace).await
    }

    /// Whether this child is of the session. Its name says that it is of this owner.
    pub(crate) async fn stat_of(&self, live: &Live, path: &str) -> Carried<Option<Stat>> {
        live.own_stat(live.send(wire::exists(path)).reply().await)
    }

    /// Deletes a child. False if it was gone.
    pub(crate) async fn delete(&self, live: &Live, path: &str) -> Carried<bool> {
        is_there(live.send(wire::delete(path)).reply().await)
    }

    /// The child of this owner in a listing, if it is of this session.
    pub(crate) async fn find(
        &self,
        live: &Live,
        node: &KeyNode,
        listing: &Listing,
        owner: Owner,
        permits: Option<Permits>,
    ) -> Carried<Option<(Child, Stat)>> {
        for child in listing.claimed(owner, permits) {
            if self.own.lock().is_buried(&node.child(&child.name)) {
                continue;
            }
            if let Some(stat) = self.stat_of(live, &node.child(&child.name)).await? {
                return Ok(Some((child.clone(), stat)));
            }
        }
        Ok(None)
    }
}

pub(crate) fn there(made: Carried<()>) -> Carried<()> {
    match made {
        Err(Fault::Refused(code::NODE_EXISTS)) => Ok(()),
        other => other,
    }
}

/// False: there is no such node.
pub(crate) fn is_there<T>(reply: Carried<T>) -> Carried<bool> {
    match reply {
        Ok(_) => Ok(true),
        Err(Fault::Refused(code::NO_NODE)) => Ok(false),
        Err(fault) => Err(fault),
    }
}
