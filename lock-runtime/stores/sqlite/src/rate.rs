//! Token buckets of rate limiters, over rows.

use std::time::Duration;

use lock_store::rules::TokenBucket;
use lock_store::{RateRequest, Rated};
use rusqlite::{OptionalExtension as _, params};

use crate::machine::{duration, nanos};
use crate::step::Step;

pub(crate) fn take(step: &Step<'_>, name: &str, request: &RateRequest) -> rusqlite::Result<Rated> {
    let mut known = step
        .rows
        .prepare_cached("SELECT at, turn, debt FROM rate WHERE name = ?1")?;
    let known = known.query_row([name], |row| {
        let (turn, debt) = (duration(row.get(1)?), duration(row.get(2)?));
        let elapsed = step.now - row.get::<_, i64>(0)?;
        let elapsed = (elapsed >= 0).then(|| duration(elapsed));
        Ok((elapsed, TokenBucket { turn, debt }))
    });
    let full = (Some(Duration::ZERO), TokenBucket::default());
    let (elapsed, bucket) = known.optional()?.unwrap_or(full);
    let (rated, changed) = bucket.take(elapsed, request);
    if let Some(bucket) = changed {
        let (at, turn, debt) = (step.now, nanos(bucket.turn), nanos(bucket.debt));
        let ends = at.saturating_add(debt);
        step.rows
            .prepare_cached(
                "INSERT OR REPLACE INTO rate (name, at, turn, debt, ends)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![name, at, turn, debt, ends])?;
    }
    Ok(rated)
}
