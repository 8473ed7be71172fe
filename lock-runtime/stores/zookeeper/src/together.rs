//! Several keys at once: one transaction makes a child for each of them.

use std::sync::Arc;

use lock_store::ordered::{Attempt, OrderedEngine};
use lock_store::{Acquire, AcquiredAll, Granted};

use crate::acquire::{AskedLock, MadeChild};
use crate::connection::{Live, SentRequest};
use crate::errors::{Fault, code};
use crate::rank::Listing;
use crate::store::{Carried, ZooKeeperEngine, is_there};
use crate::wire::{self, MultiPart, NodeKind, NodeRequest};

/// A request, and what there is of it.
struct KeyWish<'r> {
    asked: AskedLock<'r>,
    child: Option<MadeChild>,
}

impl ZooKeeperEngine {
    pub(crate) async fn acquire_all<'r>(
        &self,
        on: &Attempt<'r, Self>,
        requests: &'r [Acquire],
    ) -> Carried<AcquiredAll> {
        let live = on.live;
        let sent = self.clock.now();
        let wish = |request: &'r Acquire| KeyWish {
            asked: AskedLock {
                live,
                node: self.node(&request.claim.key),
                request,
                sent,
            },
            child: None,
        };
        let mut wishes: Vec<KeyWish<'_>> = requests.iter().map(wish).collect();
        // As for one key: what was released elsewhere is not in the way.
        let synced = live.send(wire::sync());
        let listings = self.list_all(live, &wishes).await?;
        synced.reply().await?;
        // First of all of them: an earlier attempt may have made the children, and its reply was
        // lost. A refusal undoes them.
        for (wish, listing) in wishes.iter_mut().zip(&listings) {
            let claim = &wish.asked.request.claim;
            let found = self.find(live, &wish.asked.node, listing, claim.owner, claim.permits);
            wish.child = found.await?.map(|(child, stat)| (child, Some(stat.czxid)));
        }
        if wishes.iter().any(|wish| wish.child.is_some()) {
            on.progress.note_may_have_made();
        }
        if let Some(refused) = refused(&wishes, &listings) {
            return self.undo_all(live, &wishes, refused).await;
        }
        let listings = self.create_all(on, &mut wishes).await?;
        if let Some(refused) = refused(&wishes, &listings) {
            return self.undo_all(live, &wishes, refused).await;
        }
        let (mut tokens, mut until) = (Vec::new(), None);
        for (at, (wish, listing)) in wishes.iter().zip(&listings).enumerate() {
            let Some(made) = &wish.child else {
                return Err(Fault::Unreadable);
            };
            match self.hold(&wish.asked, made, listing).await? {
                None => return self.undo_all(live, &wishes, AcquiredAll::Busy(at)).await,
                Some(Granted {
                    token, until: ends, ..
                }) => {
                    tokens.push(token);
                    until = until.into_iter().chain(ends).min();
                }
            }
        }
        Ok(AcquiredAll::Granted { tokens, until })
    }

    async fn list_all(&self, live: &Arc<Live>, wishes: &[KeyWish<'_>]) -> Carried<Vec<Listing>> {
        let list = |wish: &KeyWish<'_>| live.send(wire::children(&wish.asked.node.path, false));
        let lists: Vec<SentRequest> = wishes.iter().map(list).collect();
        let mut listings = Vec::new();
        for (wish, list) in wishes.iter().zip(lists) {
            listings.push(self.listing(&wish.asked.node, list.reply().await.map(Some))?);
        }
        Ok(listings)
    }

    /// Makes the children that are not there, and lists all.
    async fn create_all(
        &self,
        on: &Attempt<'_, Self>,
        wishes: &mut [KeyWish<'_>],
    ) -> Carried<Vec<Listing>> {
        let &Attempt { live, progress } = on;
        for is_there in [true, false] {
            if !is_there {
                for wish in wishes.iter() {
                    self.make_node(live, &wish.asked.node).await?;
                }
            }
            let create = |wish: &KeyWish<'_>| {
                let claim = &wish.asked.request.claim;
                let layout = self.settings.layout;
                let name = layout.without_place(claim.owner, claim.permits, false);
                let path = wish.asked.node.child(&name);
                wire::create(&path, b"", self.acl(), NodeKind::EphemeralSequential)
            };
            let missing = wishes.iter().filter(|wish| wish.child.is_none());
            let creates: Vec<NodeRequest> = missing.map(create).collect();
            if creates.is_empty() {
                return self.list_all(live, wishes).await;
            }
            let creates = wire::multi(&creates);
            if creates.is_too_long() {
                return Err(Fault::Refused(code::TOO_LONG));
            }
            let made = progress.send(live, creates)?;
            let listings = self.list_all(live, wishes).await;
            let parts = match made.parts().await {
                Err(Fault::Refused(code::NO_NODE)) => continue,
                parts => parts?,
            };
            let missing = wishes.iter_mut().filter(|wish| wish.child.is_none());
            for (wish, part) in missing.zip(parts) {
                let MultiPart::Created(path) = part else {
                    return Err(Fault::Unreadable);
                };
                let name = path.rsplit('/').next().unwrap_or_default();
                let child = self.settings.layout.child(name).ok_or(Fault::Unreadable)?;
                wish.child = Some((child, None));
            }
            return listings;
        }
        Err(Fault::Refused(code::NO_NODE))
    }

    async fn undo_all(
        &self,
        live: &Arc<Live>,
        wishes: &[KeyWish<'_>],
        reply: AcquiredAll,
    ) -> Carried<AcquiredAll> {
        let sent = wishes.iter().filter_map(|wish| {
            let (child, _) = wish.child.as_ref()?;
            self.own.lock().forget(&wish.asked.node, child);
            Some(live.send(wire::delete(&wish.asked.node.child(&child.name))))
        });
        let sent: Vec<SentRequest> = sent.collect();
        for deleted in sent {
            is_there(deleted.reply().await)?;
        }
        for wish in wishes {
            let child = wish.child.as_ref();
            if child.is_some_and(|(child, _)| child.is_spent()) {
                self.remove_spent(live, &wish.asked.node).await?;
            }
        }
        Ok(reply)
    }
}

/// Why not all of these are held, or would be, if so.
fn refused(wishes: &[KeyWish<'_>], listings: &[Listing]) -> Option<AcquiredAll> {
    let mut each = wishes.iter().zip(listings).enumerate();
    each.find_map(|(at, (wish, listing))| {
        let child = wish.child.as_ref().map(|(child, _)| child);
        listing.refusal(at, wish.asked.request.claim.permits, child)
    })
}
