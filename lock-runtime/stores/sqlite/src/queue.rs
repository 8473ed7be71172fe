//! The wait queue of one lock: first come, first served. Places of a client that stands still are
//! passed over until the client is heard.

use lock_store::timing::{QUEUE_TTL, UNHEARD};
use lock_store::{Acquire, Owner, Permits};
use rusqlite::{OptionalExtension as _, Row, params};

use crate::holders::{owner_of, permits_of};
use crate::machine::nanos;
use crate::step::Step;

/// A place in the queue.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    number: i64,
    pub(crate) session: i64,
    pub(crate) owner: Owner,
    pub(crate) permits: Option<Permits>,
    pub(crate) first_lease: i64,
    /// When the wait ends.
    ends: Option<i64>,
    pub(crate) tokens: u32,
    /// When the place was taken, or a request of its client with a place here asked again.
    heard: i64,
}

impl Place {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            number: row.get("number")?,
            session: row.get("session")?,
            owner: owner_of(row, "client", "request")?,
            permits: permits_of(row)?,
            first_lease: row.get("first_lease")?,
            ends: row.get("ends")?,
            tokens: row.get("tokens")?,
            heard: row.get("heard")?,
        })
    }

    /// True if its request has given up, or would have if it ran.
    pub(crate) fn has_ended(&self, now: i64) -> bool {
        self.ends.is_some_and(|ends| now > ends)
    }

    /// True if its client was not heard for long.
    pub(crate) fn stands_still(&self, now: i64) -> bool {
        now.saturating_sub(self.heard) > nanos(UNHEARD)
    }

    pub(crate) fn remove(&self, step: &Step<'_>, name: &str) -> rusqlite::Result<()> {
        step.rows
            .prepare_cached("DELETE FROM place WHERE name = ?1 AND number = ?2")?
            .execute(params![name, self.number])?;
        Ok(())
    }

    pub(crate) fn pass_over(&self, step: &Step<'_>, name: &str) -> rusqlite::Result<()> {
        // None of its client's is forgotten before the others.
        step.rows
            .prepare_cached(
                "UPDATE place SET passed_over = ?4
                 WHERE name = ?1 AND session = ?2 AND (number = ?3 OR passed_over IS NOT NULL)",
            )?
            .execute(params![name, self.session, self.number, step.now])?;
        Ok(())
    }
}

/// Forgets a place that was passed over long ago: at most the first.
pub(crate) fn forget_one(step: &Step<'_>, name: &str) -> rusqlite::Result<()> {
    step.rows
        .prepare_cached(
            "DELETE FROM place WHERE name = ?1 AND passed_over < ?2 AND number = (
                SELECT min(number) FROM place WHERE name = ?1 AND passed_over IS NOT NULL
             )",
        )?
        .execute(params![name, step.now.saturating_sub(nanos(QUEUE_TTL))])?;
    Ok(())
}

/// The first place that was not passed over.
pub(crate) fn first(step: &Step<'_>, name: &str) -> rusqlite::Result<Option<Place>> {
    let mut first = step.rows.prepare_cached(
        "SELECT * FROM place WHERE name = ?1 AND passed_over IS NULL ORDER BY number LIMIT 1",
    )?;
    first.query_row([name], Place::of).optional()
}

pub(crate) fn len(step: &Step<'_>, name: &str) -> rusqlite::Result<usize> {
    let mut count = step
        .rows
        .prepare_cached("SELECT count(*) FROM place WHERE name = ?1")?;
    let count: i64 = count.query_row([name], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// True if this client's request has a place.
pub(crate) fn contains(step: &Step<'_>, name: &str, owner: Owner) -> rusqlite::Result<bool> {
    let mut found = step.rows.prepare_cached(
        "SELECT 1 FROM place
         WHERE name = ?1 AND session = ?2 AND client = ?3 AND request = ?4",
    )?;
    found.exists(params![
        name,
        step.session,
        owner.client.0.to_be_bytes(),
        owner.request.cast_signed()
    ])
}

/// A request that has a place asks again: its client runs, and gets back its places that were
/// passed over.
pub(crate) fn is_heard(step: &Step<'_>, name: &str) -> rusqlite::Result<()> {
    step.rows
        .prepare_cached(
            "UPDATE place SET heard = ?3, passed_over = NULL WHERE name = ?1 AND session = ?2",
        )?
        .execute(params![name, step.session, step.now])?;
    forget_one(step, name)
}

/// Takes a place at the end. The client has none yet for this request.
pub(crate) fn join(step: &Step<'_>, name: &str, request: &Acquire) -> rusqlite::Result<()> {
    let mut insert = step.rows.prepare_cached(
        "INSERT INTO place (
            name, number, session, client, request, permits, capacity,
            first_lease, ends, tokens, heard
         ) VALUES (
            ?1, (SELECT coalesce(max(number), 0) + 1 FROM place WHERE name = ?1),
            ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10
         )",
    )?;
    let owner = request.claim.owner;
    let permits = request.claim.permits;
    let ends = request
        .wait
        .map(|wait| step.now.saturating_add(nanos(wait)));
    insert.execute(params![
        name,
        step.session,
        owner.client.0.to_be_bytes(),
        owner.request.cast_signed(),
        permits.map(|permits| permits.count),
        permits.map(|permits| permits.of),
        nanos(request.first_lease),
        ends,
        request.tokens,
        step.now,
    ])?;
    // If places of this client were passed over, it must get them back.
    let mut passed_over = step.rows.prepare_cached(
        "SELECT 1 FROM place
         WHERE name = ?1 AND session = ?2 AND passed_over IS NOT NULL",
    )?;
    if passed_over.exists(params![name, step.session])? {
        is_heard(step, name)?;
    }
    Ok(())
}

/// Gives up the place of this client's request, if it has one.
pub(crate) fn leave(step: &Step<'_>, name: &str, owner: Owner) -> rusqlite::Result<()> {
    step.rows
        .prepare_cached(
            "DELETE FROM place
             WHERE name = ?1 AND session = ?2 AND client = ?3 AND request = ?4",
        )?
        .execute(params![
            name,
            step.session,
            owner.client.0.to_be_bytes(),
            owner.request.cast_signed()
        ])?;
    Ok(())
}
