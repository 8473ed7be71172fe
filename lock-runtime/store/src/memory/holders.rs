//! The holders of one lock: one exclusive holder, or several with permits.

mod leases;

use std::time::Duration;

use self::leases::{Hold, HoldId, Leases};
use crate::instant::Instant;
use crate::{Claim, Holder, Owner, Permits};

#[derive(Debug, Default)]
pub(super) struct Holders {
    leases: Leases,
    used: u64,
    /// The capacity by the last holder's request.
    of: u32,
    exclusive: bool,
}

/// An exclusive lock counts as one permit of one.
fn size(permits: Option<Permits>) -> (u64, u32) {
    permits.map_or((1, 1), |permits| (permits.count.into(), permits.of))
}

impl Holders {
    /// Removes expired holds.
    pub(super) fn sweep(&mut self, now: Instant) {
        while let Some((expires, name)) = self.leases.first() {
            if expires > now {
                return;
            }
            self.remove(name);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.leases.len() == 0
    }

    pub(super) fn len(&self) -> usize {
        self.leases.len()
    }

    /// The number of holders at `now`, without expired ones.
    pub(super) fn live(&self, now: Instant) -> usize {
        self.leases.ending_after(now)
    }

    pub(super) fn is_exclusive(&self) -> bool {
        !self.is_empty() && self.exclusive
    }

    /// True if the lock is held as another kind than requested: exclusive, read-write or semaphore.
    pub(super) fn is_other_kind(&self, permits: Option<Permits>) -> bool {
        let read_write = |of: u32| of == Permits::READ_WRITE;
        !self.is_empty()
            && (self.exclusive != permits.is_none()
                || read_write(self.of) != read_write(size(permits).1))
    }

    /// The capacity that the present holders use, if it differs from this request's.
    pub(super) fn other_limit(&self, permits: Option<Permits>) -> Option<u32> {
        let others = !self.is_empty() && !self.exclusive && self.of != size(permits).1;
        others.then_some(self.of)
    }

    /// True if enough permits are left. The limit is the request's own: two versions of a service
    /// may use different limits for a while.
    pub(super) fn fits(&self, permits: Option<Permits>) -> bool {
        let (count, of) = size(permits);
        self.is_empty() || !self.is_other_kind(permits) && self.used + count <= of.into()
    }

    /// The end of the claim's lease, if it is held.
    pub(super) fn held(&self, claim: &Claim) -> Option<Instant> {
        let hold = self.leases.get((claim.owner, None))?;
        let same = match (hold.permits, claim.permits) {
            // A downgrade may run before or after a command that was sent around the same time.
            (Some(has), Some(says)) if has.of == Permits::READ_WRITE => has.of == says.of,
            (Some(has), Some(says)) => has.count == says.count,
            (has, says) => has == says,
        };
        same.then_some(hold.expires)
    }

    /// Prolongs a hold at least until then.
    pub(super) fn prolong(&mut self, owner: Owner, expires: Instant) {
        if let Some(hold) = self.remove((owner, None)) {
            self.put((owner, None), hold.permits, expires.max(hold.expires));
        }
    }

    /// Adds a hold. An existing one keeps its permits, and its lease is never shortened.
    pub(super) fn enter(&mut self, owner: Owner, permits: Option<Permits>, expires: Instant) {
        let name = (owner, None);
        if let Some(hold) = self.remove(name) {
            return self.put(name, hold.permits, expires.max(hold.expires));
        }
        (self.exclusive, self.of) = (permits.is_none(), size(permits).1);
        self.put(name, permits, expires);
    }

    fn put(&mut self, name: HoldId, permits: Option<Permits>, expires: Instant) {
        self.used += size(permits).0;
        self.leases.insert(name, Hold { permits, expires });
    }

    /// Ends a hold. If `keep` is above zero, its key stays taken for that time.
    pub(super) fn leave(&mut self, claim: &Claim, now: Instant, keep: Duration) {
        if let Some(hold) = self.remove((claim.owner, None))
            && keep > Duration::ZERO
        {
            let name = (claim.owner, Some(size(hold.permits).0));
            self.remove(name);
            self.put(name, hold.permits, now + keep);
        }
    }

    /// Gives back all but `count` permits of a hold.
    pub(super) fn shrink(&mut self, owner: Owner, count: u32) {
        let name = (owner, None);
        if let Some(hold) = self.remove(name) {
            let rest = hold.permits.map(|permits| Permits {
                count: permits.count.min(count),
                ..permits
            });
            self.put(name, rest, hold.expires);
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn remove(&mut self, name: HoldId) -> Option<Hold> {
        let hold = self.leases.remove(name)?;
        self.used -= size(hold.permits).0;
        Some(hold)
    }

    /// The holder whose lease ends first, and when.
    pub(super) fn first(&self) -> Option<(Holder, Instant)> {
        let (expires, (owner, kept)) = self.leases.first()?;
        let holder = match kept {
            Some(_) => Holder::Kept,
            None => Holder::Owner(owner),
        };
        Some((holder, expires))
    }

    /// The holder whose lease ends last, as Redis shows it, and when.
    pub(super) fn last(&self) -> Option<(String, Instant)> {
        let ((owner, kept), hold) = self.leases.last()?;
        let kept = if kept.is_some() { ":kept" } else { "" };
        let permits = hold
            .permits
            .map(|permits| format!(":{}", permits.count))
            .unwrap_or_default();
        Some((format!("{owner}{kept}{permits}"), hold.expires))
    }
}
