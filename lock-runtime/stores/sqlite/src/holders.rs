//! The holders of one lock, over rows.

use std::collections::{BTreeSet, HashMap};

use lock_store::rules::{HeldPart, HoldId, Holders};
use lock_store::{ClientId, Instant, Owner, Permits};
use rusqlite::{Row, params};

use crate::step::Step;

/// The session of each holder. What stays taken after a release has none.
pub(crate) type Sessions = HashMap<Owner, i64>;

pub(crate) fn owner_of(row: &Row<'_>) -> rusqlite::Result<Owner> {
    let client: [u8; 16] = row.get("client")?;
    let request: i64 = row.get("request")?;
    Ok(Owner::new(
        ClientId(u128::from_be_bytes(client)),
        request.cast_unsigned(),
    ))
}

/// The columns `client` and `request`.
pub(crate) fn columns(owner: Owner) -> ([u8; 16], i64) {
    let Owner { client, request } = owner;
    (client.0.to_be_bytes(), request.cast_signed())
}

/// The two columns of a part of a key.
pub(crate) fn permits_of(row: &Row<'_>) -> rusqlite::Result<Option<Permits>> {
    let (count, of): (Option<u32>, Option<u32>) = (row.get("permits")?, row.get("capacity")?);
    Ok(count.zip(of).map(|(count, of)| Permits { count, of }))
}

fn hold_of(row: &Row<'_>) -> rusqlite::Result<(HoldId, HeldPart, Option<i64>)> {
    let (owner, kept) = (owner_of(row)?, row.get("kept")?);
    let (permits, ends) = (permits_of(row)?, row.get("ends")?);
    let expires = Instant::from_nanos(ends);
    let hold = HeldPart { permits, expires };
    Ok((HoldId { owner, kept }, hold, row.get("session")?))
}

/// The holds that have not ended. Deletes the others.
pub(crate) fn load(step: &mut Step<'_>, name: &str) -> rusqlite::Result<(Holders, Sessions)> {
    let mut rows = step.list("SELECT * FROM hold WHERE name = ?1", [name], hold_of)?;
    let now = Instant::from_nanos(step.now);
    if rows.iter().any(|(_, hold, _)| hold.expires <= now) {
        let sql = "DELETE FROM hold WHERE name = ?1 AND ends <= ?2";
        step.execute(sql, params![name, step.now])?;
        rows.retain(|(_, hold, _)| hold.expires > now);
    }
    let sessions: BTreeSet<i64> = rows.iter().filter_map(|(_, _, session)| *session).collect();
    for session in sessions {
        if !step.check_alive(session)? {
            rows.retain(|(_, _, of)| *of != Some(session));
        }
    }
    let (mut holders, mut sessions) = (Holders::default(), Sessions::new());
    for (id, hold, session) in rows {
        holders.add(id, hold);
        sessions.extend(session.map(|session| (id.owner, session)));
    }
    Ok((holders, sessions))
}

/// Writes what has changed. New holders without a session are of this client.
pub(crate) fn save(
    step: &Step<'_>,
    name: &str,
    (before, holders): (&Holders, &Holders),
    sessions: &Sessions,
) -> rusqlite::Result<()> {
    let capacity = holders.capacity();
    if capacity != before.capacity() && capacity.is_some() && !before.is_empty() {
        let sql = "UPDATE hold SET capacity = ?2 WHERE name = ?1";
        step.execute(sql, params![name, capacity])?;
    }
    for (HoldId { owner, kept }, hold) in holders.changes(before) {
        let (client, request) = columns(owner);
        let Some(HeldPart { permits, expires }) = hold else {
            step.execute(
                "DELETE FROM hold WHERE name = ?1 AND client = ?2 AND request = ?3 AND kept = ?4",
                params![name, client, request, kept],
            )?;
            continue;
        };
        let session = sessions.get(&owner).copied().unwrap_or(step.session);
        step.execute(
            "INSERT OR REPLACE INTO hold (
                name, client, request, kept, session, permits, capacity, ends
             ) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                name,
                client,
                request,
                kept,
                (kept == 0).then_some(session),
                permits.map(|permits| permits.count),
                permits.and(capacity),
                expires.as_nanos(),
            ],
        )?;
    }
    Ok(())
}
