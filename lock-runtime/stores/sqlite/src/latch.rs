//! Count-down latches.

use std::time::Duration;

use lock_store::timing::{CALL_REMEMBERED, QUEUE_TTL};
use lock_store::{LatchCall, LatchCounted, LatchFound, LatchSet, LatchState, Owner};
use rusqlite::{OptionalExtension as _, params};

use crate::holders::{Holders, owner_of};
use crate::machine::{duration, nanos};
use crate::step::Step;

/// A latch that is set, open or not.
#[derive(Clone, Copy, Debug)]
struct Latch {
    count: u32,
    generation: i64,
    opened: i64,
    ends: i64,
}

/// True if the key is a latch. No lock can be taken on it.
pub(crate) fn is_there(step: &Step<'_>, name: &str) -> rusqlite::Result<bool> {
    step.rows
        .prepare_cached("SELECT 1 FROM latch WHERE name = ?1 AND ends > ?2")?
        .exists(params![name, step.now])
}

fn load(step: &Step<'_>, name: &str) -> rusqlite::Result<Option<Latch>> {
    let mut latch = step.rows.prepare_cached(
        "SELECT count, generation, opened, ends FROM latch WHERE name = ?1 AND ends > ?2",
    )?;
    let latch = latch.query_row(params![name, step.now], |row| {
        Ok(Latch {
            count: row.get(0)?,
            generation: row.get(1)?,
            opened: row.get(2)?,
            ends: row.get(3)?,
        })
    });
    latch.optional()
}

fn save(step: &Step<'_>, name: &str, latch: Latch) -> rusqlite::Result<()> {
    step.rows
        .prepare_cached(
            "INSERT OR REPLACE INTO latch (name, count, generation, opened, ends)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            name,
            latch.count,
            latch.generation,
            latch.opened,
            latch.ends
        ])?;
    Ok(())
}

/// True if the key is a held lock, which no latch can be.
fn is_lock(step: &mut Step<'_>, name: &str) -> rusqlite::Result<bool> {
    Ok(!Holders::load(step, name)?.is_empty())
}

/// The count that a call left, if it is remembered.
fn remembered(step: &Step<'_>, name: &str, owner: Owner) -> rusqlite::Result<Option<u32>> {
    let mut left = step.rows.prepare_cached(
        "SELECT left FROM call WHERE name = ?1 AND client = ?2 AND request = ?3 AND ends > ?4",
    )?;
    let (client, request) = (owner.client.0.to_be_bytes(), owner.request.cast_signed());
    left.query_row(params![name, client, request, step.now], |row| row.get(0))
        .optional()
}

fn remember(step: &Step<'_>, name: &str, owner: Owner, left: u32) -> rusqlite::Result<()> {
    let (client, request) = (owner.client.0.to_be_bytes(), owner.request.cast_signed());
    let ends = step.now.saturating_add(nanos(CALL_REMEMBERED));
    step.rows
        .prepare_cached(
            "INSERT OR REPLACE INTO call (name, client, request, left, ends)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![name, client, request, left, ends])?;
    Ok(())
}

pub(crate) fn set(
    step: &mut Step<'_>,
    name: &str,
    call: &LatchCall,
    count: u32,
    ttl: Duration,
) -> rusqlite::Result<LatchSet> {
    if is_lock(step, name)? {
        return Ok(LatchSet::Conflict);
    }
    if remembered(step, name, call.owner)?.is_some() {
        return Ok(LatchSet::Set);
    }
    if !call.valid().contains(&step.micros) {
        return Ok(LatchSet::Untimely { now: step.micros });
    }
    let before = load(step, name)?;
    if before.is_some_and(|latch| latch.count > 0) {
        return Ok(LatchSet::SetBefore);
    }
    let opened = before.map_or(0, |latch| latch.generation);
    let latch = Latch {
        count,
        generation: (opened + 1).max(step.micros.cast_signed()),
        opened,
        ends: step.now.saturating_add(nanos(ttl)),
    };
    save(step, name, latch)?;
    remember(step, name, call.owner, count)?;
    Ok(LatchSet::Set)
}

pub(crate) fn count_down(
    step: &mut Step<'_>,
    name: &str,
    call: &LatchCall,
) -> rusqlite::Result<LatchCounted> {
    if is_lock(step, name)? {
        return Ok(LatchCounted::Conflict);
    }
    if let Some(left) = remembered(step, name, call.owner)? {
        return Ok(LatchCounted::Left(left));
    }
    if !call.valid().contains(&step.micros) {
        return Ok(LatchCounted::Untimely { now: step.micros });
    }
    let Some(mut latch) = load(step, name)? else {
        return Ok(LatchCounted::NotSet);
    };
    if latch.count == 0 {
        return Ok(LatchCounted::Left(0));
    }
    latch.count -= 1;
    save(step, name, latch)?;
    remember(step, name, call.owner, latch.count)?;
    if latch.count == 0 {
        tell_waiters(step, name, latch.generation)?;
    }
    Ok(LatchCounted::Left(latch.count))
}

/// Takes out all places, and tells their clients which generation has opened.
fn tell_waiters(step: &mut Step<'_>, name: &str, generation: i64) -> rusqlite::Result<()> {
    let mut places = step.rows.prepare_cached(
        "SELECT client, request, session FROM latch_place WHERE name = ?1 AND ends > ?2",
    )?;
    let places = places.query_map(params![name, step.now], |row| {
        Ok((owner_of(row, "client", "request")?, row.get("session")?))
    })?;
    let places = places.collect::<rusqlite::Result<Vec<(Owner, i64)>>>()?;
    step.rows
        .prepare_cached("DELETE FROM latch_place WHERE name = ?1")?
        .execute([name])?;
    for (owner, session) in places {
        if step.lives(session)? {
            step.tell_granted(session, owner, Some(generation.cast_unsigned()));
        }
    }
    Ok(())
}

fn state(step: &Step<'_>, name: &str) -> rusqlite::Result<LatchFound> {
    Ok(load(step, name)?.map_or(LatchFound::NotSet, |latch| {
        let mut found = LatchState::new(latch.count, latch.generation.cast_unsigned());
        found.opened = latch.opened.cast_unsigned();
        found.remaining = Some(duration(latch.ends - step.now));
        LatchFound::Is(found)
    }))
}

pub(crate) fn look(step: &mut Step<'_>, name: &str) -> rusqlite::Result<LatchFound> {
    if is_lock(step, name)? {
        return Ok(LatchFound::Conflict);
    }
    state(step, name)
}

pub(crate) fn wait(step: &mut Step<'_>, name: &str, owner: Owner) -> rusqlite::Result<LatchFound> {
    if is_lock(step, name)? {
        return Ok(LatchFound::Conflict);
    }
    if load(step, name)?.is_none_or(|latch| latch.count > 0) {
        let (client, request) = (owner.client.0.to_be_bytes(), owner.request.cast_signed());
        let ends = step.now.saturating_add(nanos(QUEUE_TTL));
        step.rows
            .prepare_cached(
                "INSERT OR REPLACE INTO latch_place (name, client, request, session, ends)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![name, client, request, step.session, ends])?;
    }
    state(step, name)
}

pub(crate) fn leave(step: &Step<'_>, name: &str, owner: Owner) -> rusqlite::Result<()> {
    let (client, request) = (owner.client.0.to_be_bytes(), owner.request.cast_signed());
    step.rows
        .prepare_cached("DELETE FROM latch_place WHERE name = ?1 AND client = ?2 AND request = ?3")?
        .execute(params![name, client, request])?;
    Ok(())
}
