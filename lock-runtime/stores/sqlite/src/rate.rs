//! Token buckets of rate limiters: the algorithm of the embedded store (see its `rate.rs`), over
//! rows.

use std::time::Duration;

use lock_store::{RateRequest, Rated};
use rusqlite::{OptionalExtension as _, params};

use crate::machine::{duration, nanos};
use crate::step::Step;

/// A bucket as it was when tokens were last taken.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    at: i64,
    /// How long after `at` the last request that took tokens passes.
    turn: Duration,
    /// How long after `at` the bucket is full.
    debt: Duration,
}

/// The reply, and the new state of the bucket if it changes.
fn decide(known: Option<Bucket>, now: i64, request: &RateRequest) -> (Rated, Option<Bucket>) {
    let window = request.interval * request.burst;
    let (turn, debt) = known.map_or_else(Default::default, |bucket| {
        let elapsed = duration(now - bucket.at);
        // Another rate may have been in force. At worst, the bucket was empty when the last taker
        // passed.
        let debt = bucket.debt.min(bucket.turn + window);
        (
            bucket.turn.saturating_sub(elapsed),
            debt.saturating_sub(elapsed),
        )
    });
    let debt = debt + request.interval * request.tokens;
    let delay = debt.saturating_sub(window);
    if delay > request.wait {
        return (Rated::Limited { retry_after: delay }, None);
    }
    let free = window.saturating_sub(debt).as_nanos();
    let left = free.checked_div(request.interval.as_nanos()).unwrap_or(0);
    let passed = Rated::Passed {
        delay,
        left: u32::try_from(left).unwrap_or(u32::MAX),
    };
    let bucket = Bucket {
        at: now,
        turn: turn.max(delay),
        debt,
    };
    (passed, (request.tokens > 0).then_some(bucket))
}

pub(crate) fn take(step: &Step<'_>, name: &str, request: &RateRequest) -> rusqlite::Result<Rated> {
    let mut known = step
        .rows
        .prepare_cached("SELECT at, turn, debt FROM rate WHERE name = ?1")?;
    let known = known.query_row([name], |row| {
        Ok(Bucket {
            at: row.get(0)?,
            turn: duration(row.get(1)?),
            debt: duration(row.get(2)?),
        })
    });
    let (rated, changed) = decide(known.optional()?, step.now, request);
    if let Some(bucket) = changed {
        let (turn, debt) = (nanos(bucket.turn), nanos(bucket.debt));
        let ends = bucket.at.saturating_add(debt);
        step.rows
            .prepare_cached(
                "INSERT OR REPLACE INTO rate (name, at, turn, debt, ends)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![name, bucket.at, turn, debt, ends])?;
    }
    Ok(rated)
}
