//! The holders of one lock: one exclusive holder, or several with permits.

use std::collections::BTreeSet;
use std::time::Duration;

use lock_store::{Claim, ClientId, Holder, Owner, Permits};
use rusqlite::{Row, params};

use crate::machine::nanos;
use crate::step::Step;

/// One hold.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    pub(crate) owner: Owner,
    /// Above 0 if it was released and stays taken for a while: how many permits. Then it belongs to
    /// no owner.
    pub(crate) kept: u32,
    /// `None` if it is a rest.
    pub(crate) session: Option<i64>,
    /// Its capacity is that of the last holder's request.
    permits: Option<Permits>,
    pub(crate) ends: i64,
}

/// All holds of one lock, as they are in the table.
#[derive(Debug)]
pub(crate) struct Holders {
    name: String,
    holds: Vec<Hold>,
}

/// An exclusive lock counts as one permit of one.
fn size(permits: Option<Permits>) -> (u64, u32) {
    permits.map_or((1, 1), |permits| (permits.count.into(), permits.of))
}

pub(crate) fn owner_of(row: &Row<'_>, client: &str, request: &str) -> rusqlite::Result<Owner> {
    let id: [u8; 16] = row.get(client)?;
    let request: i64 = row.get(request)?;
    Ok(Owner {
        client: ClientId(u128::from_be_bytes(id)),
        request: request.cast_unsigned(),
    })
}

/// The two columns of a part of a key.
pub(crate) fn permits_of(row: &Row<'_>) -> rusqlite::Result<Option<Permits>> {
    let (count, of): (Option<u32>, Option<u32>) = (row.get("permits")?, row.get("capacity")?);
    Ok(count.zip(of).map(|(count, of)| Permits { count, of }))
}

impl Hold {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            owner: owner_of(row, "client", "request")?,
            kept: row.get("kept")?,
            session: row.get("session")?,
            permits: permits_of(row)?,
            ends: row.get("ends")?,
        })
    }

    /// In which order leases end, if several end at once.
    fn order(&self) -> (i64, Owner, u32) {
        (self.ends, self.owner, self.kept)
    }
}

impl Holders {
    /// The holds that have not ended. Deletes the others.
    pub(crate) fn load(step: &mut Step<'_>, name: &str) -> rusqlite::Result<Self> {
        let mut rows = step
            .rows
            .prepare_cached("SELECT * FROM hold WHERE name = ?1")?;
        let holds = rows.query_map([name], Hold::of)?;
        let mut holds = holds.collect::<rusqlite::Result<Vec<_>>>()?;
        if holds.iter().any(|hold| hold.ends <= step.now) {
            step.rows
                .prepare_cached("DELETE FROM hold WHERE name = ?1 AND ends <= ?2")?
                .execute(params![name, step.now])?;
            holds.retain(|hold| hold.ends > step.now);
        }
        let sessions: BTreeSet<i64> = holds.iter().filter_map(|hold| hold.session).collect();
        for session in sessions {
            if !step.lives(session)? {
                holds.retain(|hold| hold.session != Some(session));
            }
        }
        Ok(Self {
            name: name.to_owned(),
            holds,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.holds.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.holds.len()
    }

    pub(crate) fn is_exclusive(&self) -> bool {
        self.holds
            .first()
            .is_some_and(|hold| hold.permits.is_none())
    }

    /// The sessions that hold it.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = i64> + '_ {
        self.holds.iter().filter_map(|hold| hold.session)
    }

    /// The capacity by the last holder's request.
    fn capacity(&self) -> u32 {
        size(self.holds.first().and_then(|hold| hold.permits)).1
    }

    fn used(&self) -> u64 {
        self.holds.iter().map(|hold| size(hold.permits).0).sum()
    }

    /// True if the lock is held as another kind than requested: exclusive, read-write or semaphore.
    pub(crate) fn is_other_kind(&self, permits: Option<Permits>) -> bool {
        let read_write = |of: u32| of == Permits::READ_WRITE;
        !self.is_empty()
            && (self.is_exclusive() != permits.is_none()
                || read_write(self.capacity()) != read_write(size(permits).1))
    }

    /// The capacity that the present holders use, if it differs from this request's.
    pub(crate) fn other_limit(&self, permits: Option<Permits>) -> Option<u32> {
        let others = !self.is_empty() && !self.is_exclusive();
        let capacity = others.then(|| self.capacity());
        capacity.filter(|of| *of != size(permits).1)
    }

    /// True if enough permits are left. The limit is the request's own.
    pub(crate) fn fits(&self, permits: Option<Permits>) -> bool {
        let (count, of) = size(permits);
        self.is_empty() || !self.is_other_kind(permits) && self.used() + count <= of.into()
    }

    /// True if the claim is held.
    pub(crate) fn has(&self, claim: &Claim) -> bool {
        let Some(hold) = self.own(claim.owner) else {
            return false;
        };
        match (hold.permits, claim.permits) {
            // A downgrade may run before or after a command that was sent around the same time.
            (Some(has), Some(says)) if has.of == Permits::READ_WRITE => has.of == says.of,
            (Some(has), Some(says)) => has.count == says.count,
            (has, says) => has == says,
        }
    }

    fn own(&self, owner: Owner) -> Option<&Hold> {
        let mut holds = self.holds.iter();
        holds.find(|hold| hold.owner == owner && hold.kept == 0)
    }

    /// Prolongs a hold at least until then.
    pub(crate) fn prolong(
        &mut self,
        step: &Step<'_>,
        owner: Owner,
        ends: i64,
    ) -> rusqlite::Result<()> {
        let mut holds = self.holds.iter_mut();
        let hold = holds.find(|hold| hold.owner == owner && hold.kept == 0 && hold.ends < ends);
        if let Some(hold) = hold {
            hold.ends = ends;
            let hold = hold.clone();
            self.put(step, &hold)?;
        }
        Ok(())
    }

    /// Adds a hold of a session. An existing one keeps its permits, and its lease is never
    /// shortened.
    pub(crate) fn enter(
        &mut self,
        step: &Step<'_>,
        session: i64,
        owner: Owner,
        permits: Option<Permits>,
        ends: i64,
    ) -> rusqlite::Result<()> {
        if self.own(owner).is_some() {
            return self.prolong(step, owner, ends);
        }
        if let Some(of) = permits.map(|permits| permits.of) {
            self.set_capacity(step, of)?;
        }
        let hold = Hold {
            owner,
            kept: 0,
            session: Some(session),
            permits,
            ends,
        };
        self.put(step, &hold)?;
        self.holds.push(hold);
        Ok(())
    }

    fn set_capacity(&mut self, step: &Step<'_>, of: u32) -> rusqlite::Result<()> {
        if self.is_empty() || self.capacity() == of {
            return Ok(());
        }
        for permits in self
            .holds
            .iter_mut()
            .filter_map(|hold| hold.permits.as_mut())
        {
            permits.of = of;
        }
        step.rows
            .prepare_cached("UPDATE hold SET capacity = ?2 WHERE name = ?1")?
            .execute(params![self.name, of])?;
        Ok(())
    }

    /// Ends a hold. If `keep` is above zero, its key stays taken for that time.
    pub(crate) fn leave(
        &mut self,
        step: &Step<'_>,
        owner: Owner,
        keep: Duration,
    ) -> rusqlite::Result<()> {
        let held = |hold: &Hold| hold.owner == owner && hold.kept == 0;
        let Some(at) = self.holds.iter().position(held) else {
            return Ok(());
        };
        let hold = self.holds.remove(at);
        self.delete(step, owner)?;
        if keep > Duration::ZERO {
            let kept = hold.permits.map_or(1, |permits| permits.count);
            self.holds
                .retain(|hold| hold.owner != owner || hold.kept != kept);
            let rest = Hold {
                kept,
                session: None,
                ends: step.now.saturating_add(nanos(keep)),
                ..hold
            };
            self.put(step, &rest)?;
            self.holds.push(rest);
        }
        Ok(())
    }

    /// Gives back all but `count` permits of a hold.
    pub(crate) fn shrink(
        &mut self,
        step: &Step<'_>,
        owner: Owner,
        count: u32,
    ) -> rusqlite::Result<()> {
        let mut holds = self.holds.iter_mut();
        if let Some(hold) = holds.find(|hold| hold.owner == owner && hold.kept == 0) {
            if let Some(permits) = &mut hold.permits {
                permits.count = permits.count.min(count);
            }
            let hold = hold.clone();
            self.put(step, &hold)?;
        }
        Ok(())
    }

    pub(crate) fn clear(&mut self, step: &Step<'_>) -> rusqlite::Result<()> {
        self.holds.clear();
        step.rows
            .prepare_cached("DELETE FROM hold WHERE name = ?1")?
            .execute([&self.name])?;
        Ok(())
    }

    /// The holder whose lease ends first, and when.
    pub(crate) fn first(&self) -> Option<(Holder, i64)> {
        let hold = self.holds.iter().min_by_key(|hold| hold.order())?;
        let holder = match hold.kept {
            0 => Holder::Owner(hold.owner),
            _ => Holder::Kept,
        };
        Some((holder, hold.ends))
    }

    /// The holder whose lease ends last, as Redis shows it, and when.
    pub(crate) fn last(&self) -> Option<(String, i64)> {
        let hold = self.holds.iter().max_by_key(|hold| hold.order())?;
        let kept = if hold.kept > 0 { ":kept" } else { "" };
        let permits = hold.permits.map(|permits| format!(":{}", permits.count));
        let permits = permits.unwrap_or_default();
        Some((format!("{}{kept}{permits}", hold.owner), hold.ends))
    }

    fn put(&self, step: &Step<'_>, hold: &Hold) -> rusqlite::Result<()> {
        let mut insert = step.rows.prepare_cached(
            "INSERT OR REPLACE INTO hold (
                name, client, request, kept, session, permits, capacity, ends
             ) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?;
        insert.execute(params![
            self.name,
            hold.owner.client.0.to_be_bytes(),
            hold.owner.request.cast_signed(),
            hold.kept,
            hold.session,
            hold.permits.map(|permits| permits.count),
            hold.permits.map(|permits| permits.of),
            hold.ends,
        ])?;
        Ok(())
    }

    fn delete(&self, step: &Step<'_>, owner: Owner) -> rusqlite::Result<()> {
        let mut delete = step.rows.prepare_cached(
            "DELETE FROM hold WHERE name = ?1 AND client = ?2 AND request = ?3 AND kept = 0",
        )?;
        delete.execute(params![
            self.name,
            owner.client.0.to_be_bytes(),
            owner.request.cast_signed(),
        ])?;
        Ok(())
    }
}
