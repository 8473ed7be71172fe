//! Who holds one lock: one exclusively, or several with permits.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use crate::store::{Claim, Owner, Share};

#[derive(Debug, Default)]
pub(super) struct Holders {
    holds: HashMap<Owner, Hold>,
    /// Of those holds, by the end of their leases.
    ends: BTreeSet<(Instant, Owner)>,
    used: u64,
    of: u64,
    exclusive: bool,
}

#[derive(Clone, Copy, Debug)]
struct Hold {
    share: Option<Share>,
    expires: Instant,
    /// Released, and kept for the rest of `hold_at_least`: nobody's any more.
    kept: bool,
}

/// An exclusive lock has one permit, of one.
fn size(share: Option<Share>) -> (u64, u64) {
    share.map_or((1, 1), |share| (share.permits.into(), share.of.into()))
}

impl Holders {
    /// Takes out the holds whose lease has ended.
    pub(super) fn sweep(&mut self, now: Instant) {
        while let Some(&(expires, owner)) = self.ends.first() {
            if expires > now {
                return;
            }
            self.remove(owner);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.holds.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.holds.len()
    }

    /// How many hold it at `now`, expired ones not counted.
    pub(super) fn live(&self, now: Instant) -> usize {
        self.holds
            .values()
            .filter(|hold| hold.expires > now)
            .count()
    }

    pub(super) fn is_exclusive(&self) -> bool {
        !self.is_empty() && self.exclusive
    }

    /// Whether such a request is for another kind of lock than the one that is held.
    pub(super) fn conflicts(&self, share: Option<Share>) -> bool {
        !self.is_empty() && (self.exclusive != share.is_none() || self.of != size(share).1)
    }

    /// Whether there is enough left.
    pub(super) fn fits(&self, share: Option<Share>) -> bool {
        let (permits, of) = size(share);
        self.is_empty() || (!self.conflicts(share) && self.used + permits <= of)
    }

    /// Until when the claim is held, if it is.
    pub(super) fn held(&self, claim: &Claim) -> Option<Instant> {
        let hold = self.holds.get(&claim.owner)?;
        // A reader may be found as the writer that it was, if nobody has heard how its downgrade ended.
        let was_writer = claim.share == Some(Share::READ) && hold.share == Some(Share::WRITE);
        (!hold.kept && (hold.share == claim.share || was_writer)).then_some(hold.expires)
    }

    /// Lets a hold last at least until then.
    pub(super) fn prolong(&mut self, owner: Owner, expires: Instant) {
        if let Some(hold) = self.remove(owner) {
            self.put(owner, hold.share, expires.max(hold.expires), hold.kept);
        }
    }

    /// Writes a hold down, or prolongs it; never makes it shorter.
    pub(super) fn enter(&mut self, owner: Owner, share: Option<Share>, expires: Instant) {
        let earlier = self.remove(owner).map_or(expires, |hold| hold.expires);
        self.put(owner, share, expires.max(earlier), false);
    }

    fn put(&mut self, owner: Owner, share: Option<Share>, expires: Instant, kept: bool) {
        let (permits, of) = size(share);
        self.exclusive = share.is_none();
        self.of = of;
        self.used += permits;
        self.ends.insert((expires, owner));
        self.holds.insert(
            owner,
            Hold {
                share,
                expires,
                kept,
            },
        );
    }

    /// Ends a hold; its key stays taken until `keep`, if that is later than now.
    pub(super) fn leave(&mut self, claim: &Claim, now: Instant, keep: Duration) {
        if let Some(hold) = self.remove(claim.owner)
            && keep > Duration::ZERO
        {
            self.put(claim.owner, hold.share, now + keep, true);
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn remove(&mut self, owner: Owner) -> Option<Hold> {
        let hold = self.holds.remove(&owner)?;
        self.ends.remove(&(hold.expires, owner));
        self.used -= size(hold.share).0;
        Some(hold)
    }

    /// Changes how many permits there are of a lock that is held in shares.
    pub(super) fn resize(&mut self, of: u32) {
        self.of = of.into();
        for hold in self.holds.values_mut() {
            if let Some(share) = &mut hold.share {
                share.of = of;
            }
        }
    }

    pub(super) fn is_read_write(&self) -> bool {
        self.of == u64::from(Share::READ_WRITE)
    }

    /// When the first lease ends.
    pub(super) fn first_end(&self) -> Option<Instant> {
        self.ends.first().map(|(expires, _)| *expires)
    }

    /// The holder with the longest lease, as Redis shows it, and when that ends.
    pub(super) fn last(&self) -> Option<(String, Instant)> {
        let &(expires, owner) = self.ends.last()?;
        let hold = self.holds.get(&owner)?;
        let kept = if hold.kept { ":kept" } else { "" };
        let permits = hold
            .share
            .map(|share| format!(":{}", share.permits))
            .unwrap_or_default();
        Some((format!("{owner}{kept}{permits}"), expires))
    }
}
