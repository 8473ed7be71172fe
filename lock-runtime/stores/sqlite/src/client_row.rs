//! [`ClientRow`]: one client's life in the database, from its row to its end.

use std::io;
use std::os::unix::net::UnixDatagram;

use lock_store::{ClientId, StoreError};
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, params};

use crate::client_folder::{Folder, OwnFile};
use crate::database::Database;
use crate::errors::{in_use, of_io, of_sqlite};
use crate::lock::hand_over_freed;
use crate::machine;
use crate::schema::{END_OF_BOOT, NOTE_TIME, expect_version, is_before, step_up};
use crate::step::{After, Step};

/// A client that has a row.
#[derive(Debug)]
pub(crate) struct ClientRow {
    pub(crate) id: i64,
    pub(crate) own: OwnFile,
    clock: StoreClock,
}

/// The store's clock: wall time at one moment of this boot, and boot time since. The same in all
/// processes, whatever happens to the wall clock.
#[derive(Clone, Copy, Debug)]
struct StoreClock {
    micros: i64,
    nanos: i64,
}

impl StoreClock {
    fn at(self, now: i64) -> u64 {
        let since = now.saturating_sub(self.nanos) / 1000;
        let micros = self.micros.saturating_add(since);
        u64::try_from(micros).unwrap_or(0)
    }
}

impl ClientRow {
    /// Writes the client's row, when its file is locked. Ends what clients have left whose
    /// processes are gone, and everything if the machine has started again. With the socket of the
    /// client, or why it has none.
    pub(crate) fn enter(
        database: &mut Database,
        folder: &Folder,
        client: ClientId,
    ) -> Result<(Self, io::Result<UnixDatagram>, After), StoreError> {
        let of_file = |error: io::Error| of_io(&error, folder.path());
        let own = folder.enter().map_err(of_file)?;
        // Who finds the row may try the socket.
        let socket = folder.bind(&own);
        let boot = machine::boot_id().map_err(of_file)?;
        let path = database.path.clone();
        let failed = |error: rusqlite::Error| of_sqlite(&error, &path);
        // Rolled back when it is closed.
        database.begin_patiently()?;
        let rows = &database.connection;
        if is_before(rows).map_err(failed)? && living(database, folder)?.is_empty() {
            step_up(rows).map_err(failed)?;
        }
        expect_version(rows, &path)?;
        let now = machine::boot_nanos().map_err(of_file)?;
        let entered = clock(database, folder, &boot, now).and_then(|clock| {
            let written = Self::write_row(rows, folder, client, &own, clock, now);
            written.map_err(failed)
        });
        let (id, clock, after) = match entered {
            Ok(entered) => entered,
            Err(error) => {
                database.roll_back();
                folder.leave(own);
                return Err(error);
            }
        };
        if let Err(error) = database.commit() {
            database.roll_back();
            return Err(failed(error));
        }
        Ok((Self { id, own, clock }, socket, after))
    }

    fn write_row(
        rows: &Connection,
        folder: &Folder,
        client: ClientId,
        own: &OwnFile,
        clock: StoreClock,
        now: i64,
    ) -> rusqlite::Result<(i64, StoreClock, After)> {
        let mut step = Step::new(rows, folder, 0, now, clock.at(now));
        step.execute(NOTE_TIME, [now])?;
        for session in step.sessions()? {
            step.check_alive(session)?;
        }
        hand_over_freed(&mut step)?;
        let process = folder.own_process();
        rows.execute(
            "INSERT INTO client (file, client, process, space) VALUES (?1, ?2, ?3, ?4)",
            params![own.name, client.0.to_be_bytes(), process.id, process.space],
        )?;
        Ok((rows.last_insert_rowid(), clock, step.after))
    }

    /// False if the row of this client is gone, as with an older state of the database that
    /// somebody has brought back. To others it is over.
    pub(crate) fn is_known(&self, rows: &Connection) -> rusqlite::Result<bool> {
        let known = rows
            .prepare_cached("SELECT 1 FROM client WHERE session = ?1 AND file = ?2")
            .and_then(|mut row| row.exists(params![self.id, self.own.name]));
        match known {
            // No such table.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::Unknown) => Ok(false),
            known => known,
        }
    }

    /// A transaction of this client at that boot time.
    pub(crate) fn step<'t>(&self, rows: &'t Connection, folder: &'t Folder, now: i64) -> Step<'t> {
        Step::new(rows, folder, self.id, now, self.clock.at(now))
    }
}

/// The store's clock. A new one, if the machine has started since it was last used.
fn clock(
    database: &Database,
    folder: &Folder,
    boot: &str,
    now: i64,
) -> Result<StoreClock, StoreError> {
    let Database {
        connection: rows,
        path,
        ..
    } = database;
    let failed = |error: rusqlite::Error| of_sqlite(&error, path);
    let found = rows.query_row(
        "SELECT boot, micros, nanos, floor FROM machine",
        (),
        |row| {
            let (micros, nanos) = (row.get(1)?, row.get(2)?);
            let found: (String, i64) = (row.get(0)?, row.get(3)?);
            Ok((StoreClock { micros, nanos }, found))
        },
    );
    let Some((clock, (before, floor))) = found.optional().map_err(failed)? else {
        return new_boot(rows, boot, now).map_err(failed);
    };
    let is_masked = machine::is_masked(boot) || machine::is_masked(&before);
    // As no clock of one boot does.
    let has_gone_back = clock.nanos > now || clock.at(now) < u64::try_from(floor).unwrap_or(0);
    // The kernel's id is proof enough.
    if before == boot && !(is_masked && has_gone_back) {
        return Ok(clock);
    }
    let living = living(database, folder)?;
    if living.is_empty() {
        if has_gone_back || !is_masked {
            return new_boot(rows, boot, now).map_err(failed);
        }
        // It may be another boot all the same. At worst, the time of what was kept begins anew.
    } else if !is_masked || !living.iter().any(|file| folder.is_reached(file)) {
        return Err(in_use(path, is_masked));
    }
    let noted = rows.execute("UPDATE machine SET boot = ?1", [boot]);
    noted.map(|_| clock).map_err(failed)
}

/// The files of the clients that live.
fn living(database: &Database, folder: &Folder) -> Result<Vec<String>, StoreError> {
    let rows = &database.connection;
    let files = rows
        .prepare("SELECT file FROM client")
        .and_then(|mut files| {
            let files = files.query_map((), |row| row.get::<_, String>(0))?;
            files.collect::<rusqlite::Result<Vec<_>>>()
        });
    let mut living = Vec::new();
    for file in files.map_err(|error| of_sqlite(&error, &database.path))? {
        let is_locked = folder.is_locked(&file);
        if is_locked.map_err(|error| of_io(&error, folder.path()))? {
            living.push(file);
        }
    }
    Ok(living)
}

/// Ends what was before this boot, and sets the clock. It begins above all tokens that are
/// forgotten.
fn new_boot(rows: &Connection, boot: &str, now: i64) -> rusqlite::Result<StoreClock> {
    rows.execute_batch(END_OF_BOOT)?;
    let floor = rows.query_row("SELECT floor FROM machine", (), |row| row.get(0));
    let floor: i64 = floor.optional()?.unwrap_or(0);
    let clock = StoreClock {
        micros: lock_store::wall_micros().cast_signed().max(floor),
        nanos: now,
    };
    rows.execute(
        "INSERT OR REPLACE INTO machine (one, boot, micros, nanos, floor)
         VALUES (1, ?1, ?2, ?3, ?4)",
        params![boot, clock.micros, clock.nanos, floor],
    )?;
    Ok(clock)
}
