//! Count-down latches.

use std::time::Duration;

use lock_store::rules::{LatchRecord, StoredLatch};
use lock_store::timing::{CALL_REMEMBERED, QUEUE_TTL};
use lock_store::{Instant, LatchCall, LatchCounted, LatchFound, LatchSet, Owner, nanos};
use rusqlite::params;

use crate::holders::{self, columns, owner_of};
use crate::step::Step;

/// True if the key is a latch. No lock can be taken on it.
pub(crate) fn is_there(step: &Step<'_>, name: &str) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM latch WHERE name = ?1 AND ends > ?2";
    step.exists(sql, params![name, step.now])
}

fn load(step: &Step<'_>, name: &str) -> rusqlite::Result<Option<StoredLatch>> {
    let sql = "SELECT count, generation, opened, ends FROM latch WHERE name = ?1 AND ends > ?2";
    step.find(sql, params![name, step.now], |row| {
        Ok(StoredLatch {
            count: row.get(0)?,
            generation: row.get::<_, i64>(1)?.cast_unsigned(),
            opened: row.get::<_, i64>(2)?.cast_unsigned(),
            expires: Instant::from_nanos(row.get(3)?),
        })
    })
}

/// True if the key is a held lock, which no latch can be.
fn is_lock(step: &mut Step<'_>, name: &str) -> rusqlite::Result<bool> {
    let (holders, _) = holders::load(step, name)?;
    Ok(!holders.is_empty())
}

fn record(step: &Step<'_>, name: &str, call: &LatchCall) -> rusqlite::Result<LatchRecord> {
    let (client, request) = columns(call.owner);
    let sql =
        "SELECT left FROM call WHERE name = ?1 AND client = ?2 AND request = ?3 AND ends > ?4";
    let with = params![name, client, request, step.now];
    Ok(LatchRecord {
        latch: load(step, name)?,
        left: step.find(sql, with, |row| row.get(0))?,
        micros: step.micros,
    })
}

/// Writes what a call has changed.
fn save(step: &Step<'_>, name: &str, call: &LatchCall, latch: StoredLatch) -> rusqlite::Result<()> {
    let (generation, opened) = (latch.generation.cast_signed(), latch.opened.cast_signed());
    step.execute(
        "INSERT OR REPLACE INTO latch (name, count, generation, opened, ends)
         VALUES (?1, ?2, ?3, ?4, ?5)",
        params![
            name,
            latch.count,
            generation,
            opened,
            latch.expires.as_nanos()
        ],
    )?;
    let (client, request) = columns(call.owner);
    let ends = step.now.saturating_add(nanos(CALL_REMEMBERED));
    step.execute(
        "INSERT OR REPLACE INTO call (name, client, request, left, ends)
         VALUES (?1, ?2, ?3, ?4, ?5)",
        params![name, client, request, latch.count, ends],
    )
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
    let expires = Instant::from_nanos(step.now) + ttl;
    let (reply, changed) = record(step, name, call)?.set(call, count, expires);
    if let Some(latch) = changed {
        save(step, name, call, latch)?;
    }
    Ok(reply)
}

pub(crate) fn count_down(
    step: &mut Step<'_>,
    name: &str,
    call: &LatchCall,
) -> rusqlite::Result<LatchCounted> {
    if is_lock(step, name)? {
        return Ok(LatchCounted::Conflict);
    }
    let (reply, changed) = record(step, name, call)?.count_down(call);
    if let Some(latch) = changed {
        save(step, name, call, latch)?;
        if latch.count == 0 {
            notify_latch_waiters(step, name, latch.generation)?;
        }
    }
    Ok(reply)
}

/// Takes out all places, and tells their clients which generation has opened.
fn notify_latch_waiters(step: &mut Step<'_>, name: &str, generation: u64) -> rusqlite::Result<()> {
    let sql = "SELECT client, request, session FROM latch_place WHERE name = ?1 AND ends > ?2";
    let places = step.list(sql, params![name, step.now], |row| {
        Ok((owner_of(row)?, row.get("session")?))
    })?;
    step.execute("DELETE FROM latch_place WHERE name = ?1", [name])?;
    for (owner, session) in places {
        if step.check_alive(session)? {
            step.notify_granted(session, owner, Some(generation));
        }
    }
    Ok(())
}

fn state(step: &Step<'_>, name: &str) -> rusqlite::Result<LatchFound> {
    let now = Instant::from_nanos(step.now);
    Ok(StoredLatch::look(load(step, name)?, now))
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
    if StoredLatch::takes_waiters(load(step, name)?) {
        let (client, request) = columns(owner);
        let ends = step.now.saturating_add(nanos(QUEUE_TTL));
        step.execute(
            "INSERT OR REPLACE INTO latch_place (name, client, request, session, ends)
             VALUES (?1, ?2, ?3, ?4, ?5)",
            params![name, client, request, step.session, ends],
        )?;
    }
    state(step, name)
}

pub(crate) fn leave(step: &Step<'_>, name: &str, owner: Owner) -> rusqlite::Result<()> {
    let (client, request) = columns(owner);
    let sql = "DELETE FROM latch_place WHERE name = ?1 AND client = ?2 AND request = ?3";
    step.execute(sql, params![name, client, request])
}
