//! Who waits hears of its turn: it watches what is in its way, and looks again when that has
//! changed.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::connecting::SessionNews;
use super::engine::{Carried, EngineMail, ListingOf, Minted, OrderedEngine};
use super::fault::OperationFault;
use super::names::KeyNode;
use crate::instant::Instant;
use crate::listener::{HandedOver, Listener, Trust};
use crate::request::Permits;
use crate::rules::{ChildStanding, Obstacle, RankedRequest};
use crate::timing::{BACKOFF_MIN, trusted};

/// Between two attempts to read what other clients have to say.
const LONGEST_MAILBOX_PAUSE: Duration = Duration::from_secs(30);

/// How those who wait hear of their turn.
pub trait EngineQueue: OrderedEngine {
    /// Watches what is in the way of a request for this part, since the listing. False: it is gone,
    /// or may have changed before.
    fn watch(
        &self,
        live: &Arc<Self::Live>,
        node: &KeyNode,
        permits: Option<Permits>,
        obstacle: &Obstacle,
        read: &Self::Read,
    ) -> impl Future<Output = Carried<bool, Self>> + Send;

    /// Tells those behind this request that it holds, if [they ask](super::PlacedRequest::SIGNALS).
    fn signal(&self, _live: &Self::Live, _node: &KeyNode, _child: &Self::Child) {}

    /// Fencing tokens for a hold of this client that was handed over.
    fn mint_first(
        &self,
        live: &Arc<Self::Live>,
        node: &KeyNode,
        child: &Self::Child,
        count: u32,
        read: &Self::Read,
    ) -> impl Future<Output = Carried<Minted, Self>> + Send;
}

/// Attends to the news of the session, until the client is closed.
pub(super) async fn attend<E: EngineQueue + EngineMail>(
    me: Arc<E>,
    mut news: mpsc::UnboundedReceiver<SessionNews>,
) {
    while let Some(news) = news.recv().await {
        let nodes = match news {
            SessionNews::Changed(path) if path == me.mailbox() => {
                mind_mailbox(&me, false);
                continue;
            }
            SessionNews::Changed(path) => me.own.lock().take_watchers(&path),
            SessionNews::Up => {
                mind_mailbox(&me, true);
                me.own.lock().unwatch()
            }
            SessionNews::Over(session, link) => {
                me.forget_session(session);
                me.listener.on_lost(link);
                continue;
            }
            SessionNews::Closed => return,
        };
        for node in nodes {
            look(&me, node);
        }
    }
}

/// Listens for messages, or collects what has come, in a task. If that is refused, it is tried
/// again as long as the connection is up: rights may be given, and a chroot made, and nothing tells
/// of it.
fn mind_mailbox<E: EngineMail>(me: &Arc<E>, is_new: bool) {
    let (me, clock) = (Arc::clone(me), me.clock.clone());
    clock.clone().spawn(async move {
        let connection = me.connecting().live_now();
        let mut failures = 0;
        let mut was_told = false;
        while let Some(live) = me.connecting().live_now() {
            if connection.as_ref().is_none_or(|it| !Arc::ptr_eq(it, &live)) {
                return;
            }
            let minded = match is_new {
                true => me.listen(&live).await,
                false => me.collect(&live).await,
            };
            let Err(OperationFault::Refused(why)) = minded else {
                return;
            };
            failures += 1;
            let error = E::refusal(Some(why), me.connecting().server());
            if error.kind().is_transient() || was_told {
                tracing::debug!(%error, "messages of other clients can't be read now");
            } else {
                was_told = true;
                tracing::warn!(
                    %error,
                    "messages of other clients can't be read: errors elsewhere do not name this \
                     client, and `revoke` does not reach it; it is tried again"
                );
            }
            clock
                .sleep_until(clock.now() + mailbox_pause(failures))
                .await;
        }
    });
}

/// How long a mailbox is left alone after so many refusals in a row: each costs the servers
/// something, and most of the reasons last.
fn mailbox_pause(failures: u32) -> Duration {
    BACKOFF_MIN
        .saturating_mul(1 << failures.saturating_sub(1).min(16))
        .min(LONGEST_MAILBOX_PAUSE)
}

/// Looks at a key at which this client waits, in a task: one at a time for each key.
pub fn look<E: EngineQueue>(engine: &Arc<E>, node: KeyNode) {
    if !engine.looks.begin(&node) {
        return;
    }
    let me = Arc::clone(engine);
    engine.clock.spawn(async move {
        loop {
            if let Some(live) = me.connecting().live_now() {
                // If it fails, the next connection looks at all keys.
                let _ = serve(&*me, &live, &node).await;
            }
            if !me.looks.look_again(&node) {
                return;
            }
        }
    });
}

/// Tells those of this client whose turn has come, in their order, and watches for the others.
async fn serve<E: EngineQueue>(me: &E, live: &Arc<E::Live>, node: &KeyNode) -> Carried<(), E> {
    let mut waiting = me.own.lock().waiting(node);
    let mut failed = None;
    while !waiting.is_empty() {
        let sent = me.clock.now();
        let listing = me.list(live, node).await?;
        let mut is_settled = true;
        for child in &waiting {
            if listing.named(child.name()).is_none() {
                me.own.lock().forget(node, child);
                continue;
            }
            let permits = child.permits();
            match listing.rank(permits, Some(child)).standing {
                ChildStanding::Holds => {
                    // Those behind it do not wait for one that can't have its token.
                    let handed = hand_over(me, live, node, child, &listing, sent).await;
                    failed = handed.err().or(failed);
                }
                ChildStanding::Waits(obstacle) => {
                    let watched = me.watch(live, node, permits, &obstacle, &listing.read);
                    is_settled &= watched.await?;
                }
                // It learns of that when it asks again.
                ChildStanding::OtherKind => {}
            }
        }
        if let Some(fault) = failed {
            return Err(fault);
        }
        if is_settled {
            return Ok(());
        }
        waiting = me.own.lock().waiting(node);
    }
    Ok(())
}

async fn hand_over<E: EngineQueue>(
    me: &E,
    live: &Arc<E::Live>,
    node: &KeyNode,
    child: &E::Child,
    listing: &ListingOf<E>,
    sent: Instant,
) -> Carried<(), E> {
    let handed = me.own.lock().hand_over(node, child, me.clock.now());
    let Some(handed) = handed else {
        return Ok(());
    };
    me.signal(live, node, child);
    me.ends.notify_one();
    let mut token = None;
    if handed.tokens > 0 {
        let minted = me.mint_first(live, node, child, handed.tokens, &listing.read);
        match minted.await {
            Ok(Some((first, _))) => token = Some(first),
            Ok(None) => return Ok(()),
            Err(fault) => {
                // Nobody was told. So it waits on, and is told by the next look.
                me.own.lock().take_back(node, child, &handed);
                me.ends.notify_one();
                return Err(fault);
            }
        }
    }
    let until = me.trusted_until(live, child).unwrap_or(sent);
    let until = until.min(sent + trusted(handed.first_lease));
    let grant = HandedOver::new(child.owner(), token, Trust::Until(until));
    drop(me.listener.on_granted(grant));
    Ok(())
}
