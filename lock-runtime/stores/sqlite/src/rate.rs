//! Rate limiters, over rows: token buckets, and logs of exact limits.

use std::time::Duration;

use lock_store::rules::{PassLog, TokenBucket};
use lock_store::{RateRequest, Rated, nanos};
use rusqlite::params;

use crate::machine::duration;
use crate::step::Step;

/// The time in a line of a log.
const TIME: usize = size_of::<i64>();
/// A line of a log: a time, and how many tokens were taken then.
const LINE: usize = TIME + size_of::<u32>();
/// Whole microseconds, as the rules of exact limits count.
const TICK: i64 = 1_000;

pub(crate) fn take_of_bucket(
    step: &Step<'_>,
    name: &str,
    request: &RateRequest,
) -> rusqlite::Result<Rated> {
    let sql = "SELECT at, turn, debt FROM rate WHERE name = ?1";
    let known = step.find(sql, [name], |row| {
        let (turn, debt) = (duration(row.get(1)?), duration(row.get(2)?));
        let elapsed = step.now - row.get::<_, i64>(0)?;
        let elapsed = (elapsed >= 0).then(|| duration(elapsed));
        Ok((elapsed, TokenBucket { turn, debt }))
    });
    let full = (Some(Duration::ZERO), TokenBucket::default());
    let (elapsed, bucket) = known?.unwrap_or(full);
    let (rated, changed) = bucket.take(elapsed, request);
    if let Some(bucket) = changed {
        let (at, turn, debt) = (step.now, nanos(bucket.turn), nanos(bucket.debt));
        let ends = at.saturating_add(debt);
        step.execute(
            "INSERT OR REPLACE INTO rate (name, at, turn, debt, ends) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![name, at, turn, debt, ends],
        )?;
    }
    Ok(rated)
}

pub(crate) fn take_exactly(
    step: &Step<'_>,
    name: &str,
    window: Duration,
    request: &RateRequest,
) -> rusqlite::Result<Rated> {
    let now = step.now / TICK * TICK;
    let sql = "SELECT at, lines FROM pass_log WHERE name = ?1";
    let known = step.find(sql, [name], |row| {
        let elapsed = now - row.get::<_, i64>(0)?;
        let elapsed = (elapsed >= 0).then(|| duration(elapsed));
        Ok((elapsed, read_lines(row.get_ref(1)?.as_blob()?)))
    });
    let empty = (Some(Duration::ZERO), PassLog::default());
    let (elapsed, log) = known?.unwrap_or(empty);
    let (rated, changed) = log.take(elapsed, window, request);
    if let Some(log) = changed {
        let ends = now.saturating_add(nanos(log.last() + window));
        step.execute(
            "INSERT OR REPLACE INTO pass_log (name, at, lines, ends) VALUES (?1, ?2, ?3, ?4)",
            params![name, now, write_lines(&log), ends],
        )?;
    }
    Ok(rated)
}

fn read_lines(lines: &[u8]) -> PassLog {
    let (lines, _) = lines.as_chunks::<LINE>();
    PassLog::of_lines(lines.iter().filter_map(|line| {
        let (at, tokens) = line.split_first_chunk::<TIME>()?;
        let tokens = tokens.try_into().ok()?;
        Some((i64::from_be_bytes(*at), u32::from_be_bytes(tokens)))
    }))
}

fn write_lines(log: &PassLog) -> Vec<u8> {
    let mut lines = Vec::new();
    for (at, tokens) in log.lines() {
        lines.extend(at.to_be_bytes());
        lines.extend(tokens.to_be_bytes());
    }
    lines
}
