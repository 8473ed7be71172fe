//! Rows that have ended and that nobody asks for any more.
//!
//! Rows of keys that never come again are deleted as fast as clients write rows: after a number of
//! changes, up to twice as many rows of each kind go. What such a client leaves behind, and what no
//! index finds, goes now and then, whether anybody asks for anything or not.

use std::time::Duration;

use lock_store::nanos;
use lock_store::timing::QUEUE_TTL;
use rusqlite::params;

use crate::schema::NOTE_TIME;
use crate::step::Step;

/// The number of changed rows between two sweeps.
const EACH: u64 = 512;

/// At most this many rows of a table at once, unless more were written: so that nobody waits long.
const AT_ONCE: u64 = 1000;

/// The time between two looks at all tables and clients.
const CLEANS_EACH: Duration = Duration::from_secs(10);

/// The pause between two sweeps if there is more to be deleted. Nobody else writes during a sweep.
const PAUSE: Duration = Duration::from_millis(5);

/// When rows are deleted.
#[derive(Debug, Default)]
pub(crate) struct Sweeps {
    /// How many rows this connection had changed after the last sweep.
    changes: u64,
    /// The time of the next look at all tables.
    next: i64,
    /// When the time is to be noted with what is written.
    notes_at: i64,
    /// There was more than fits into one transaction.
    pub(crate) is_behind: bool,
}

impl Sweeps {
    pub(crate) fn are_due(&self, now: i64) -> bool {
        now >= self.next
    }

    /// At the end of a transaction.
    pub(crate) fn sweep(&mut self, step: &mut Step<'_>) -> rusqlite::Result<()> {
        let written = step.rows.total_changes().saturating_sub(self.changes);
        if written > 0 && step.now >= self.notes_at {
            step.execute(NOTE_TIME, [step.now])?;
            self.notes_at = step.now.saturating_add(nanos(CLEANS_EACH));
        }
        let cleans = self.are_due(step.now);
        if !cleans && written < EACH {
            return Ok(());
        }
        let most = AT_ONCE.max(2 * written);
        let mut full = forget(step, most)?;
        if cleans {
            full |= clean(step, most)?;
            self.is_behind = full;
            let pause = if full { PAUSE } else { CLEANS_EACH };
            self.next = step.now.saturating_add(nanos(pause));
        }
        self.changes = step.rows.total_changes();
        Ok(())
    }
}

/// True if one of them deletes as many rows as it may.
fn delete(step: &Step<'_>, before: i64, most: u64, deletes: &[&str]) -> rusqlite::Result<bool> {
    let mut full = false;
    for delete in deletes {
        let mut delete = step.rows.prepare_cached(delete)?;
        full |= delete.execute(params![before, most.cast_signed()])? as u64 == most;
    }
    Ok(full)
}

/// What an index finds.
fn forget(step: &Step<'_>, most: u64) -> rusqlite::Result<bool> {
    let full = delete(
        step,
        step.now,
        most,
        &[
            "DELETE FROM rate WHERE name IN (
                SELECT name FROM rate WHERE ends <= ?1 ORDER BY ends LIMIT ?2
             )",
            "DELETE FROM pass_log WHERE name IN (
                SELECT name FROM pass_log WHERE ends <= ?1 ORDER BY ends LIMIT ?2
             )",
            "DELETE FROM call WHERE (name, client, request) IN (
                SELECT name, client, request FROM call WHERE ends <= ?1 ORDER BY ends LIMIT ?2
             )",
            "DELETE FROM latch WHERE name IN (
                SELECT name FROM latch WHERE ends <= ?1 ORDER BY ends LIMIT ?2
             )",
            "DELETE FROM hold WHERE (name, client, request, kept) IN (
                SELECT name, client, request, kept FROM hold
                WHERE session IS NULL AND ends <= ?1 ORDER BY ends LIMIT ?2
             )",
        ],
    )?;
    Ok(full | forget_tokens(step, most)?)
}

/// The few tables without an index are as long as what is in use.
fn clean(step: &mut Step<'_>, most: u64) -> rusqlite::Result<bool> {
    let mut full = delete(
        step,
        step.now,
        most,
        &[
            "DELETE FROM hold WHERE (name, client, request, kept) IN (
                SELECT name, client, request, kept FROM hold WHERE ends <= ?1 LIMIT ?2
             )",
            "DELETE FROM latch_place WHERE (name, client, request) IN (
                SELECT name, client, request FROM latch_place WHERE ends <= ?1 LIMIT ?2
             )",
        ],
    )?;
    // A place that was suspended long ago, or whose request has ended without a word.
    full |= delete(
        step,
        step.now.saturating_sub(nanos(QUEUE_TTL)),
        most,
        &["DELETE FROM place WHERE (name, number) IN (
            SELECT name, number FROM place WHERE suspended <= ?1 OR ends <= ?1 LIMIT ?2
         )"],
    )?;
    for session in step.sessions()? {
        step.check_alive(session)?;
    }
    Ok(full)
}

/// Forgets tokens below the store's time: the next one is above them. The store's time stays above
/// them also after a restart of the machine, whatever its wall clock says then.
fn forget_tokens(step: &Step<'_>, most: u64) -> rusqlite::Result<bool> {
    let now = step.micros.cast_signed();
    let full = delete(
        step,
        now,
        most,
        &["DELETE FROM fence WHERE name IN (
            SELECT name FROM fence WHERE token < ?1 ORDER BY token LIMIT ?2
         )"],
    )?;
    if step.rows.changes() > 0 {
        step.execute("UPDATE machine SET floor = max(floor, ?1)", [now])?;
    }
    Ok(full)
}
