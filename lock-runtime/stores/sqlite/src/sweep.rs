//! Rows that have ended and that nobody asks for any more.

use lock_store::timing::QUEUE_TTL;
use rusqlite::params;

use crate::machine::nanos;
use crate::step::Step;

/// At most so many rows of a table at once, so that nobody waits long.
const AT_ONCE: i64 = 1000;

/// Deletes rows that have ended. The few tables without an index are as long as what is in use.
pub(crate) fn sweep(step: &Step<'_>) -> rusqlite::Result<()> {
    for delete in [
        "DELETE FROM rate WHERE name IN (
            SELECT name FROM rate WHERE ends <= ?1 ORDER BY ends LIMIT ?2
         )",
        "DELETE FROM call WHERE (name, client, request) IN (
            SELECT name, client, request FROM call WHERE ends <= ?1 ORDER BY ends LIMIT ?2
         )",
        "DELETE FROM hold WHERE (name, client, request, kept) IN (
            SELECT name, client, request, kept FROM hold WHERE ends <= ?1 LIMIT ?2
         )",
        "DELETE FROM latch WHERE name IN (SELECT name FROM latch WHERE ends <= ?1 LIMIT ?2)",
        "DELETE FROM latch_place WHERE (name, client, request) IN (
            SELECT name, client, request FROM latch_place WHERE ends <= ?1 LIMIT ?2
         )",
    ] {
        step.rows
            .prepare_cached(delete)?
            .execute(params![step.now, AT_ONCE])?;
    }
    // A place that was passed over long ago.
    step.rows
        .prepare_cached(
            "DELETE FROM place WHERE (name, number) IN (
                SELECT name, number FROM place WHERE passed_over <= ?1 LIMIT ?2
             )",
        )?
        .execute(params![step.now.saturating_sub(nanos(QUEUE_TTL)), AT_ONCE])?;
    forget_tokens(step)
}

/// Forgets tokens below the store's time: the next one is above them. The store's time stays above
/// them also after a restart of the machine, whatever its wall clock says then.
fn forget_tokens(step: &Step<'_>) -> rusqlite::Result<()> {
    let now = step.micros.cast_signed();
    let forgotten = step
        .rows
        .prepare_cached(
            "DELETE FROM fence WHERE name IN (
                SELECT name FROM fence WHERE token < ?1 ORDER BY token LIMIT ?2
             )",
        )?
        .execute(params![now, AT_ONCE])?;
    if forgotten > 0 {
        step.rows
            .prepare_cached("UPDATE machine SET floor = max(floor, ?1)")?
            .execute([now])?;
    }
    Ok(())
}
