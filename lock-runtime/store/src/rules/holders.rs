//! The holders of one lock: one exclusive holder, or several with permits.

mod leases;

use std::time::Duration;

use self::leases::Leases;
pub use self::leases::{HeldPart, HoldId};
use crate::instant::Instant;
use crate::{Claim, FoundHolder, Holder, Owner, Permits};

/// The holders of one lock: one exclusive holder, or several with permits.
#[derive(Clone, Debug, Default)]
pub struct Holders {
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

/// The name of an owner's hold.
fn of(owner: Owner) -> HoldId {
    HoldId { owner, kept: 0 }
}

fn found(HoldId { owner, kept }: HoldId, permits: Option<Permits>) -> FoundHolder {
    FoundHolder::Owner {
        owner,
        kept: kept > 0,
        permits: permits.map(|permits| permits.count),
    }
}

impl Holders {
    /// Removes holds whose lease has ended.
    pub fn sweep(&mut self, now: Instant) {
        while let Some((expires, name)) = self.leases.first() {
            if expires > now {
                return;
            }
            self.remove(name);
        }
    }

    /// True if nobody holds the lock.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.leases.len()
    }

    /// The number of holds whose lease has not ended.
    #[must_use]
    pub fn live(&self, now: Instant) -> usize {
        self.leases.ending_after(now)
    }

    /// True if one holds all of it, alone.
    #[must_use]
    pub fn is_exclusive(&self) -> bool {
        !self.is_empty() && self.exclusive
    }

    /// The capacity by the last holder's request, if the lock is held in shares.
    #[must_use]
    pub fn capacity(&self) -> Option<u32> {
        (!self.is_empty() && !self.exclusive).then_some(self.of)
    }

    /// The permits that all holders have, of that capacity.
    #[must_use]
    pub fn permits(&self) -> Option<Permits> {
        let count = u32::try_from(self.used).unwrap_or(u32::MAX);
        self.capacity().map(|of| Permits { count, of })
    }

    /// True if the lock is held as another kind than requested: exclusive, read-write or semaphore.
    #[must_use]
    pub fn is_other_kind(&self, permits: Option<Permits>) -> bool {
        let read_write = |of: u32| of == Permits::READ_WRITE;
        !self.is_empty()
            && (self.exclusive != permits.is_none()
                || read_write(self.of) != read_write(size(permits).1))
    }

    /// The capacity that the present holders use, if it differs from this request's.
    #[must_use]
    pub fn other_limit(&self, permits: Option<Permits>) -> Option<u32> {
        self.capacity().filter(|of| *of != size(permits).1)
    }

    /// True if enough permits are left. The limit is the request's own: two versions of a service
    /// may use different limits for a while.
    #[must_use]
    pub fn fits(&self, permits: Option<Permits>) -> bool {
        let (count, of) = size(permits);
        self.is_empty() || !self.is_other_kind(permits) && self.used + count <= of.into()
    }

    /// True if the claim is held.
    #[must_use]
    pub fn has(&self, claim: &Claim) -> bool {
        let hold = self.leases.get(of(claim.owner));
        hold.is_some_and(|hold| match (hold.permits, claim.permits) {
            // A downgrade may run before or after a command that was sent around the same time.
            (Some(has), Some(says)) if has.is_read_write() => has.of == says.of,
            (Some(has), Some(says)) => has.count == says.count,
            (has, says) => has == says,
        })
    }

    /// Prolongs a hold at least until then.
    pub fn prolong(&mut self, owner: Owner, expires: Instant) {
        if let Some(hold) = self.remove(of(owner)) {
            self.put(of(owner), hold.permits, expires.max(hold.expires));
        }
    }

    /// Adds a hold. An existing one keeps its permits, and its lease is never shortened.
    pub fn enter(&mut self, owner: Owner, permits: Option<Permits>, expires: Instant) {
        match self.leases.get(of(owner)) {
            Some(_) => self.prolong(owner, expires),
            None => self.add(of(owner), HeldPart { permits, expires }),
        }
    }

    /// Adds a hold that is not there, as an engine has written it down.
    pub fn add(&mut self, name: HoldId, hold: HeldPart) {
        (self.exclusive, self.of) = (hold.permits.is_none(), size(hold.permits).1);
        self.put(name, hold.permits, hold.expires);
    }

    fn put(&mut self, name: HoldId, permits: Option<Permits>, expires: Instant) {
        self.used += size(permits).0;
        self.leases.insert(name, HeldPart { permits, expires });
    }

    /// Ends a hold. If `keep` is above zero, its key stays taken for that time.
    pub fn leave(&mut self, owner: Owner, now: Instant, keep: Duration) {
        if let Some(hold) = self.remove(of(owner))
            && keep > Duration::ZERO
        {
            let kept = hold.permits.map_or(1, |permits| permits.count);
            let name = HoldId { owner, kept };
            self.remove(name);
            self.put(name, hold.permits, now + keep);
        }
    }

    /// Gives back all but `count` permits of a hold.
    pub fn shrink(&mut self, owner: Owner, count: u32) {
        if let Some(hold) = self.remove(of(owner)) {
            let rest = hold.permits.map(|permits| Permits {
                count: permits.count.min(count),
                ..permits
            });
            self.put(of(owner), rest, hold.expires);
        }
    }

    /// Ends all holds.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    fn remove(&mut self, name: HoldId) -> Option<HeldPart> {
        let hold = self.leases.remove(name)?;
        self.used -= size(hold.permits).0;
        Some(hold)
    }

    /// The holder whose lease ends first, and when.
    #[must_use]
    pub fn first(&self) -> Option<(Holder, Instant)> {
        let (expires, HoldId { owner, kept }) = self.leases.first()?;
        let holder = match kept {
            0 => Holder::Owner(owner),
            _ => Holder::Kept,
        };
        Some((holder, expires))
    }

    /// The holder whose lease ends last, and when.
    #[must_use]
    pub fn last(&self) -> Option<(FoundHolder, Instant)> {
        let (id, hold) = self.leases.last()?;
        Some((found(id, hold.permits), hold.expires))
    }

    /// All holders.
    pub fn all(&self) -> impl Iterator<Item = FoundHolder> {
        self.leases.iter().map(|(id, hold)| found(id, hold.permits))
    }

    /// What an engine has to write: each hold that is not as it was before, and `None` for those
    /// that have ended. The [capacity](Self::capacity) is not a hold's own.
    pub fn changes(&self, before: &Self) -> impl Iterator<Item = (HoldId, Option<HeldPart>)> {
        let ended = before.leases.iter().map(|(name, _)| (name, None));
        let ended = ended.filter(|(name, _)| self.leases.get(*name).is_none());
        let there = self.leases.iter().map(|(name, hold)| (name, Some(hold)));
        ended.chain(there.filter(|(name, hold)| before.leases.get(*name) != hold.as_ref()))
    }
}
