//! One lock, over rows: what the rules see and change in a transaction.

use lock_store::rules::next_token;
use lock_store::rules::{self, Holders, LockRecord, Waiting};
use lock_store::timing::QUEUE_TTL;
use lock_store::{Acquire, Acquired, AcquiredAll, Instant, Owner, Queue, nanos};
use rusqlite::{Row, params};

use crate::holders::{self, Sessions, columns, owner_of, permits_of};
use crate::latch;
use crate::machine::duration;
use crate::step::Step;

/// A lock during a transaction.
pub(crate) struct Record<'r, 't> {
    step: &'r mut Step<'t>,
    name: &'r str,
    holders: Holders,
    sessions: Sessions,
}

/// A place in the queue.
pub(crate) struct Place {
    number: i64,
    session: i64,
    owner: Owner,
}

/// Runs one operation on one lock.
pub(crate) fn with<T>(
    step: &mut Step<'_>,
    name: &str,
    verb: impl FnOnce(&mut Record<'_, '_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let (before, sessions) = holders::load(step, name)?;
    let mut record = Record {
        step,
        name,
        holders: before.clone(),
        sessions,
    };
    let value = verb(&mut record)?;
    let Record {
        step,
        holders,
        sessions,
        ..
    } = record;
    holders::save(step, name, (&before, &holders), &sessions)?;
    Ok(value)
}

/// Hands over what clients that are over have left.
pub(crate) fn hand_over_freed(step: &mut Step<'_>) -> rusqlite::Result<()> {
    while let Some(name) = step.freed.pop() {
        with(step, &name, |record| rules::hand_over(record, None))?;
    }
    Ok(())
}

pub(crate) fn acquire(
    step: &mut Step<'_>,
    name: &str,
    request: &Acquire,
) -> rusqlite::Result<Acquired> {
    with(step, name, |record| {
        let acquired = rules::acquire(record, request)?;
        if request.queue == Queue::Join && matches!(acquired, Acquired::Busy(_)) {
            for session in record.sessions.values() {
                record.step.watch(*session);
            }
        }
        Ok(acquired)
    })
}

/// Takes all of them, or none.
pub(crate) fn acquire_all(
    step: &mut Step<'_>,
    requests: &[(String, Acquire)],
) -> rusqlite::Result<AcquiredAll> {
    for (at, (name, request)) in requests.iter().enumerate() {
        let refused = with(step, name, |record| rules::refuse_one(record, at, request))?;
        if let Some(refused) = refused {
            return Ok(refused);
        }
    }
    let grant = |(name, request): &(String, Acquire)| {
        with(step, name, |record| rules::grant(record, request))
    };
    let tokens: rusqlite::Result<_> = requests.iter().map(grant).collect();
    tokens.map(AcquiredAll::granted)
}

fn first(row: &Row<'_>) -> rusqlite::Result<(Place, Waiting)> {
    let (owner, ends) = (owner_of(row)?, row.get::<_, Option<i64>>("ends")?);
    let place = Place {
        number: row.get("number")?,
        session: row.get("session")?,
        owner,
    };
    let waiting = Waiting {
        owner,
        permits: permits_of(row)?,
        first_lease: duration(row.get("first_lease")?),
        tokens: row.get("tokens")?,
        ends: ends.map(Instant::from_nanos),
        heard: Instant::from_nanos(row.get("heard")?),
    };
    Ok((place, waiting))
}

impl LockRecord for Record<'_, '_> {
    type Place = Place;
    type Error = rusqlite::Error;

    fn now(&self) -> Instant {
        Instant::from_nanos(self.step.now)
    }

    fn holders(&mut self) -> &mut Holders {
        &mut self.holders
    }

    fn is_latch(&mut self) -> rusqlite::Result<bool> {
        latch::is_there(self.step, self.name)
    }

    fn mint(&mut self, tokens: u32) -> rusqlite::Result<u64> {
        mint(self.step, self.name, tokens)
    }

    fn first(&mut self) -> rusqlite::Result<Option<(Place, Waiting)>> {
        let sql =
            "SELECT * FROM place WHERE name = ?1 AND suspended IS NULL ORDER BY number LIMIT 1";
        self.step.find(sql, [self.name], first)
    }

    fn is_of(&self, place: &Place, request: &Acquire) -> bool {
        place.session == self.step.session && place.owner == request.claim.owner
    }

    fn listens(&mut self, place: &Place) -> rusqlite::Result<bool> {
        self.step.check_alive(place.session)
    }

    fn notify(&mut self, place: &Place, token: Option<u64>) {
        self.sessions.insert(place.owner, place.session);
        self.step.notify_granted(place.session, place.owner, token);
    }

    fn suspend(&mut self, place: &Place) -> rusqlite::Result<()> {
        self.step.execute(
            "UPDATE place SET suspended = ?4
             WHERE name = ?1 AND session = ?2 AND (number = ?3 OR suspended IS NOT NULL)",
            params![self.name, place.session, place.number, self.step.now],
        )
    }

    fn remove(&mut self, place: &Place) -> rusqlite::Result<()> {
        self.step.execute(
            "DELETE FROM place WHERE name = ?1 AND number = ?2",
            params![self.name, place.number],
        )
    }

    fn is_queued(&mut self, request: &Acquire) -> rusqlite::Result<bool> {
        if request.queue == Queue::Barge {
            return Ok(false);
        }
        let (client, number) = columns(request.claim.owner);
        self.step.exists(
            "SELECT 1 FROM place WHERE name = ?1 AND session = ?2 AND client = ?3 AND request = ?4",
            params![self.name, self.step.session, client, number],
        )
    }

    fn join(&mut self, request: &Acquire) -> rusqlite::Result<()> {
        let waiting = Waiting::of(request, self.now());
        let (client, number) = columns(waiting.owner);
        self.step.execute(
            "INSERT INTO place (
                name, number, session, client, request, permits, capacity,
                first_lease, ends, tokens, heard
             ) VALUES (
                ?1, (SELECT coalesce(max(number), 0) + 1 FROM place WHERE name = ?1),
                ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10
             )",
            params![
                self.name,
                self.step.session,
                client,
                number,
                waiting.permits.map(|permits| permits.count),
                waiting.permits.map(|permits| permits.of),
                nanos(waiting.first_lease),
                waiting.ends.map(Instant::as_nanos),
                waiting.tokens,
                waiting.heard.as_nanos(),
            ],
        )?;
        let sql = "SELECT 1 FROM place WHERE name = ?1 AND session = ?2 AND suspended IS NOT NULL";
        match self
            .step
            .exists(sql, params![self.name, self.step.session])?
        {
            true => self.hear(request),
            false => Ok(()),
        }
    }

    fn hear(&mut self, _request: &Acquire) -> rusqlite::Result<()> {
        self.step.execute(
            "UPDATE place SET heard = ?3, suspended = NULL WHERE name = ?1 AND session = ?2",
            params![self.name, self.step.session, self.step.now],
        )?;
        self.forget_one()
    }

    fn leave(&mut self, request: &Acquire) -> rusqlite::Result<()> {
        let (client, number) = columns(request.claim.owner);
        self.step.execute(
            "DELETE FROM place
             WHERE name = ?1 AND session = ?2 AND client = ?3 AND request = ?4",
            params![self.name, self.step.session, client, number],
        )
    }

    fn forget_one(&mut self) -> rusqlite::Result<()> {
        self.step.execute(
            "DELETE FROM place WHERE name = ?1 AND suspended < ?2 AND number = (
                SELECT min(number) FROM place WHERE name = ?1 AND suspended IS NOT NULL
             )",
            params![self.name, self.step.now.saturating_sub(nanos(QUEUE_TTL))],
        )
    }

    fn places(&mut self) -> rusqlite::Result<usize> {
        let sql = "SELECT count(*) FROM place WHERE name = ?1";
        let count = self
            .step
            .find(sql, [self.name], |row| row.get::<_, i64>(0))?;
        Ok(usize::try_from(count.unwrap_or(0)).unwrap_or(0))
    }
}

/// The first of this many new tokens of a lock.
fn mint(step: &mut Step<'_>, name: &str, tokens: u32) -> rusqlite::Result<u64> {
    let sql = "SELECT token FROM fence WHERE name = ?1";
    let last: Option<i64> = step.find(sql, [name], |row| row.get(0))?;
    let first = next_token(last.map_or(0, i64::cast_unsigned), step.micros);
    let last = first.saturating_add(u64::from(tokens).saturating_sub(1));
    let sql = "INSERT OR REPLACE INTO fence (name, token) VALUES (?1, ?2)";
    step.execute(sql, params![name, last.cast_signed()])?;
    step.after.minted = true;
    Ok(first)
}
