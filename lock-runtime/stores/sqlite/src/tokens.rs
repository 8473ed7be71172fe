//! Fencing tokens, over rows.

use lock_store::rules::next_token;
use rusqlite::{OptionalExtension as _, params};

use crate::step::Step;

/// The first of this many new tokens of a lock.
pub(crate) fn mint(step: &mut Step<'_>, name: &str, tokens: u32) -> rusqlite::Result<u64> {
    let mut last = step
        .rows
        .prepare_cached("SELECT token FROM fence WHERE name = ?1")?;
    let last: Option<i64> = last.query_row([name], |row| row.get(0)).optional()?;
    let first = next_token(last.map_or(0, i64::cast_unsigned), step.micros);
    let last = first + u64::from(tokens) - 1;
    step.rows
        .prepare_cached("INSERT OR REPLACE INTO fence (name, token) VALUES (?1, ?2)")?
        .execute(params![name, last.cast_signed()])?;
    step.after.minted = true;
    Ok(first)
}
