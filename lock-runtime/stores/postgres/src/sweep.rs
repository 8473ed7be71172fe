//! Removes what has ended, as long as the client lives.

use std::sync::{Arc, Weak};
use std::time::Duration;

use lock_store::{Clock, Instant};

use crate::pool::Pool;
use crate::rows::{Read, Values, of_micros};
use crate::statement::Statement;
use crate::store::{SLACK, read_first_row};

/// How long a sweep may take.
const LONGEST: Duration = Duration::from_secs(60);
/// The longest time to the next one. The functions say when, and let one client sweep at a time.
const MOST: Duration = Duration::from_secs(60);
/// The shortest time to the next one.
const LEAST: Duration = Duration::from_millis(100);

/// From the start on: a short program sweeps as well. After an error it is tried again, later and
/// later.
pub(crate) async fn sweep(pool: Weak<Pool>) {
    let Some(clock) = pool.upgrade().map(|pool| pool.clock.clone()) else {
        return;
    };
    let (mut next, mut each) = (LEAST, MOST);
    loop {
        clock.sleep_until(clock.now() + next).await;
        let Some(pool) = pool.upgrade().filter(|pool| !pool.is_closed()) else {
            return;
        };
        let began = clock.now();
        let swept = sweep_some(&pool, &clock, began + LONGEST).await;
        next = match swept {
            // Others have as much of the server as this.
            Some(Swept { more: true, .. }) => clock.now().saturating_duration_since(began),
            Some(swept) => {
                each = swept.each.clamp(LEAST, MOST);
                each
            }
            None => (2 * next).min(each),
        };
    }
}

struct Swept {
    more: bool,
    /// How long it is from one sweep to the next.
    each: Duration,
}

async fn sweep_some(pool: &Arc<Pool>, clock: &Clock, by: Instant) -> Option<Swept> {
    let connection = pool.get(by).await.ok()?;
    let sql = "SELECT lock_store.sweep() AS more, lock_store.sweeps_each() AS each";
    let statement = Statement::new(sql, Vec::new());
    let rows = clock.by(by, connection.run(&statement, clock.now(), SLACK));
    let rows = rows.await?;
    let read = |row: Values<'_>| -> Read<_> {
        Ok(Some(Swept {
            more: row.get("more")?,
            each: of_micros(row.get("each")?),
        }))
    };
    let swept = rows.and_then(|rows| read_first_row(read, || None)(&rows));
    swept.unwrap_or_else(|error| {
        tracing::debug!(%error, "what has ended is left to the next sweep");
        None
    })
}
