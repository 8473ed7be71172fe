//! [`EtcdEngine`]: what a client's operations have in common.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use lock_store::ordered::{KeyNode, OrderedClient, OrderedEngine, gone, text_of};
use lock_store::{Instant, Owner};

use crate::base::{Base, TokenSource};
use crate::connection::{Live, OwnerFlight, TxnOutcome};
use crate::errors::Fault;
use crate::leases::{AskedLease, LeaseUse, seconds_for};
use crate::names::{self, Child};
use crate::rank::{Listing, OwnDetails};
use crate::session::Session;
use crate::transport::Transport;
use crate::url::Settings;
use crate::wire::{self, HeaderReply, LeaseGrant, LeaseId, LeaseReply, RequestOp, path};

/// What the client's operations and its tasks share.
pub(crate) struct EtcdEngine {
    pub(crate) common: OrderedClient<Child, OwnDetails>,
    pub(crate) session: Arc<Session>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) transport: Transport,
    /// One asks for a lease at a time.
    pub(crate) granting: tokio::sync::Mutex<()>,
    /// How many messages this client has sent to others.
    pub(crate) letters: AtomicU64,
}

impl Deref for EtcdEngine {
    type Target = OrderedClient<Child, OwnDetails>;

    fn deref(&self) -> &Self::Target {
        &self.common
    }
}

lock_store::show!(EtcdEngine as it: server = it.settings.server, namespace = it.namespace);

/// The reply to an operation, or why there is none.
pub(crate) type Carried<T> = Result<T, Fault>;

impl EtcdEngine {
    /// The leases that nothing is held on. A hold outlives its client, as its lease says.
    pub(crate) fn unheld(&self) -> Vec<i64> {
        let requests = self.own.lock();
        let mut all = self.session.leases.all();
        all.retain(|id| {
            let mut own = requests.all();
            !own.any(|own| own.child.lease == *id && !own.standing.is_place())
        });
        all
    }

    /// What the next parts of a transaction have [read](reads_with_base). It was sent at `sent`.
    pub(crate) fn listing(
        &self,
        node: &KeyNode,
        outcome: &mut TxnOutcome,
        sent: Instant,
    ) -> Carried<Listing> {
        let mut listing = self.listing_alone(node, outcome, sent)?;
        listing.read.base = self.base_in(outcome)?;
        Ok(listing)
    }

    /// The base that the next part of a transaction has read. `None`: it must be made or raised.
    pub(crate) fn base_in(&self, outcome: &mut TxnOutcome) -> Carried<Option<Base>> {
        let found = outcome.found()?;
        let base = found.first().and_then(|kv| Base::parse(&kv.value));
        let (cluster, lost) = (outcome.header.cluster, self.session.lost());
        Ok(base.filter(|base| base.raised(cluster, 0, lost).is_none()))
    }

    /// What the next two parts of a transaction have [read](reads). It was sent at `sent`.
    pub(crate) fn listing_alone(
        &self,
        node: &KeyNode,
        outcome: &mut TxnOutcome,
        sent: Instant,
    ) -> Carried<Listing> {
        let found = outcome.found()?;
        let own = outcome.found()?;
        let below = node.below();
        let children = found.iter().filter_map(|kv| names::child(&below, kv));
        let children: Vec<Child> = children.collect();
        let is_foreign = children.len() < found.len() || !own.is_empty();
        let term = outcome.header.raft_term;
        for child in &children {
            if child.owner.client == self.client {
                self.session.leases.prove(child.lease, sent, term);
                self.note_lease(node, child, child.lease);
            }
        }
        let source = TokenSource {
            revision: outcome.header.revision,
            base: None,
        };
        Ok(Listing::new(children, source, is_foreign))
    }

    /// The lease of a child, as the servers have it: an answer about it may have been lost.
    pub(crate) fn note_lease(&self, node: &KeyNode, child: &Child, lease: i64) {
        if let Some(own) = self.own.lock().same(node, child) {
            own.child.lease = lease;
        }
    }

    /// A lease for holds of this length.
    pub(crate) async fn lease_for(&self, live: &Arc<Live>, lease: Duration) -> Carried<i64> {
        let find = || self.session.leases.find(lease, self.clock.now());
        if let Some(id) = find() {
            return Ok(id);
        }
        let _turn = self.granting.lock().await;
        if let Some(id) = find() {
            return Ok(id);
        }
        let seconds = seconds_for(lease);
        let needed_until = self.clock.now() + lease;
        let used = LeaseUse::Holds(seconds);
        let asked = self.session.leases.ask_for(used, self.clock.now());
        let (sent, ttl) = self.grant(live, used, asked, seconds).await?;
        let leases = &self.session.leases;
        let asked_for = Duration::from_secs(seconds);
        leases.add(asked.id, asked_for, (sent, ttl), Some(needed_until));
        leases.note_answer(used);
        Ok(asked.id)
    }

    /// A lease for what stays taken after a release, for its whole time from now on.
    pub(crate) async fn lease_to_keep(
        &self,
        live: &Arc<Live>,
        owner: Owner,
        seconds: u64,
    ) -> Carried<i64> {
        let used = LeaseUse::Kept(owner);
        let mut asked = self.session.leases.ask_for(used, self.clock.now());
        if asked.is_repeated {
            // Nothing is under it. It is asked for anew, and by another number: that revocation may
            // be carried out late.
            revoke(live, asked.id).await;
            self.session.leases.note_answer(used);
            asked = self.session.leases.ask_for(used, self.clock.now());
        }
        self.grant(live, used, asked, seconds).await?;
        self.session.leases.note_answer(used);
        Ok(asked.id)
    }

    /// From when on it lasts, and how long.
    async fn grant(
        &self,
        live: &Arc<Live>,
        used: LeaseUse,
        asked: AskedLease,
        seconds: u64,
    ) -> Carried<(Instant, Duration)> {
        let grant = LeaseGrant {
            seconds: i64::try_from(seconds).unwrap_or(i64::MAX),
            id: asked.id,
        };
        let granted = live.call::<_, LeaseReply>(path::GRANT, grant, None).await;
        match granted {
            Ok(granted) => {
                let seconds = u64::try_from(granted.seconds).unwrap_or(0);
                Ok((asked.sent, Duration::from_secs(seconds)))
            }
            Err(Fault::Refused(status)) if status.is_lease_there() && asked.is_repeated => {
                Ok((asked.first_sent, Duration::from_secs(seconds)))
            }
            Err(fault) => {
                if let Fault::Refused(status) = &fault {
                    self.session.leases.note_refusal(used, status);
                }
                Err(fault)
            }
        }
    }

    /// What came of a transaction under a lease. `None`: the lease is gone, with all that was under
    /// it. Then it is forgotten here as well, and the session ends if the lease was the session's.
    pub(crate) fn drop_lease_if_gone(
        &self,
        live: &Live,
        lease: i64,
        outcome: Result<TxnOutcome, Fault>,
    ) -> Result<Option<TxnOutcome>, Fault> {
        match outcome {
            Err(Fault::Refused(status)) if status.is_lease_gone() => {}
            outcome => return outcome.map(Some),
        }
        self.session.leases.remove(lease);
        self.forget_session(lease);
        if lease == live.epoch.lease {
            live.end(gone(&live.server, "the client's session is over"));
        }
        Ok(None)
    }

    /// Writes a child again, perhaps under another lease: what its tokens are made of. `None`: it
    /// is gone.
    pub(crate) async fn rewrite(
        &self,
        live: &Arc<Live>,
        node: &KeyNode,
        child: &Child,
        lease: i64,
        flight: &Arc<OwnerFlight>,
    ) -> Carried<Option<TokenSource>> {
        let path = node.child(&child.name);
        let put = wire::put(&path, &text_of(child.permits), lease);
        let put = vec![put, wire::get(&base_of(node))];
        let same = vec![wire::made_by(&path, child.made)];
        let sent = self.clock.now();
        let written = live.txn(same, put, Vec::new(), Some(flight)).await;
        let Some(mut written) = self.drop_lease_if_gone(live, lease, written)? else {
            // The operation begins again, with another one.
            return Err(Fault::Lost(gone(&live.server, "a lease is over")));
        };
        if !written.succeeded {
            self.own.lock().forget(node, child);
            return Ok(None);
        }
        let term = written.header.raft_term;
        self.session.leases.prove(lease, sent, term);
        self.note_lease(node, child, lease);
        written.skip();
        Ok(Some(TokenSource {
            revision: written.header.revision,
            base: self.base_in(&mut written)?,
        }))
    }

    /// Deletes a child, if it is there.
    pub(crate) async fn delete(
        &self,
        live: &Arc<Live>,
        node: &KeyNode,
        child: &Child,
        flight: Option<&Arc<OwnerFlight>>,
    ) -> Carried<bool> {
        let path = node.child(&child.name);
        let same = vec![wire::made_by(&path, child.made)];
        let delete = vec![wire::delete(&path)];
        let deleted = live.txn(same, delete, Vec::new(), flight).await?;
        Ok(deleted.succeeded)
    }
}

/// Ends a lease, and all that is under it.
pub(crate) async fn revoke(live: &Arc<Live>, id: i64) {
    // If it fails, it ends by itself.
    let revoked = live.call::<_, HeaderReply>(path::REVOKE, LeaseId { id }, None);
    let _ = revoked.await;
}

/// What reads a key's requests, and what may be there of another program.
pub(crate) fn reads(node: &KeyNode) -> Vec<RequestOp> {
    vec![wire::get_below(&node.below()), wire::get(&node.path)]
}

/// The same, and the base of tokens: a token is made of a revision and of the base at that
/// revision, which somebody may raise at any time.
pub(crate) fn reads_with_base(node: &KeyNode) -> Vec<RequestOp> {
    let mut reads = reads(node);
    reads.push(wire::get(&base_of(node)));
    reads
}

/// The key that has the base of a namespace's tokens.
pub(crate) fn base_of(node: &KeyNode) -> String {
    format!("{}base", names::helpers(&node.namespace))
}
