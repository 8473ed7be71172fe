//! Removes what has ended, as long as the client lives.

use std::sync::{Arc, Weak};
use std::time::Duration;

use lock_store::{Clock, Instant};

use crate::connection::Connection;
use crate::pool::Pool;
use crate::rows::{Read, Values, of_micros};
use crate::statement::Statement;
use crate::store::{SLACK, one};

/// How long a sweep may take.
const LONGEST: Duration = Duration::from_secs(60);
/// The longest time to the next one: the functions say when, and see to it that one client sweeps at
/// a time.
const MOST: Duration = Duration::from_secs(60);
const LEAST: Duration = Duration::from_millis(100);

/// From the first connection on. A short program sweeps as well. An error leaves it to the next time.
pub(crate) async fn sweep(pool: Weak<Pool>) {
    let Some(clock) = pool.upgrade().map(|pool| pool.clock.clone()) else {
        return;
    };
    let mut next = LEAST;
    loop {
        clock.sleep_until(clock.now() + next).await;
        let Some(pool) = pool.upgrade().filter(|pool| !pool.is_closed()) else {
            return;
        };
        let by = clock.now() + LONGEST;
        next = match pool.get(by).await {
            Ok(connection) => sweep_some(&connection, &clock, by).await,
            Err(_) => MOST,
        };
    }
}

/// When to go on.
async fn sweep_some(connection: &Arc<Connection>, clock: &Clock, by: Instant) -> Duration {
    let sql = "SELECT lock_store.sweep() AS more, lock_store.sweeps_each() AS each";
    let (statement, began, busy) = (
        Statement::new(sql, Vec::new()),
        clock.now(),
        connection.begin(),
    );
    let done = clock.by(by, connection.run(&statement, began, SLACK)).await;
    drop(busy);
    let read = |row: Values<'_>| -> Read<_> { Ok((row.get("more")?, row.get("each")?)) };
    let read = one(read, || (false, i64::MAX));
    match done.map(|rows| read(&rows?)) {
        // Others have as much of the server as this.
        Some(Ok((true, _))) => clock.now().saturating_duration_since(began),
        Some(Ok((false, each))) => of_micros(each).clamp(LEAST, MOST),
        failed => {
            tracing::debug!(?failed, "what has ended is left to the next sweep");
            MOST
        }
    }
}
