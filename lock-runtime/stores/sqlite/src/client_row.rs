//! [`ClientRow`]: one client's life in the database, from its row to its end.

use lock_store::{ClientId, StoreError, StoreErrorKind};
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, params};

use crate::client_folder::{Folder, OwnFile};
use crate::database::Database;
use crate::errors::{of_io, of_sqlite};
use crate::lock::hand_over_freed;
use crate::machine;
use crate::schema::{END_OF_BOOT, expect_version, is_before, step_up};
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
        let micros = self.micros + (now - self.nanos) / 1000;
        u64::try_from(micros).unwrap_or(0)
    }
}

impl ClientRow {
    /// Writes the client's row, when its file is locked. Ends what clients have left whose
    /// processes are gone, and everything if the machine has started again.
    pub(crate) fn enter(
        database: &mut Database,
        folder: &Folder,
        client: ClientId,
    ) -> Result<(Self, After), StoreError> {
        let of_file = |error: std::io::Error| of_io(&error, folder.path());
        let own = folder.enter().map_err(of_file)?;
        let boot = machine::boot_id().map_err(of_file)?;
        let path = database.path.clone();
        let failed = |error: rusqlite::Error| of_sqlite(&error, &path);
        // Rolled back when it is closed.
        database.begin_patiently()?;
        let rows = &database.connection;
        if is_before(rows).map_err(failed)? && !has_living(rows, folder).map_err(failed)? {
            step_up(rows).map_err(failed)?;
        }
        expect_version(rows, &path)?;
        let now = machine::boot_nanos().map_err(of_file)?;
        let entered = Self::write_row(rows, folder, client, &own, &boot, now);
        let (id, clock, after) = match entered {
            Ok(Some(entered)) => entered,
            Ok(None) => {
                database.roll_back();
                folder.leave(own);
                return Err(StoreError::new(
                    StoreErrorKind::Misconfigured,
                    format!(
                        "{} is in use by another machine, or by a container with a kernel of its \
                         own; give each machine a file of its own, or use a server",
                        path.display()
                    ),
                ));
            }
            Err(error) => {
                database.roll_back();
                folder.leave(own);
                return Err(failed(error));
            }
        };
        if let Err(error) = database.commit() {
            database.roll_back();
            return Err(failed(error));
        }
        Ok((Self { id, own, clock }, after))
    }

    /// `None`: clients of another machine are in the file.
    fn write_row(
        rows: &Connection,
        folder: &Folder,
        client: ClientId,
        own: &OwnFile,
        boot: &str,
        now: i64,
    ) -> rusqlite::Result<Option<(i64, StoreClock, After)>> {
        let clock = match clock(rows, boot)? {
            Some(clock) => clock,
            None if has_living(rows, folder)? => return Ok(None),
            None => new_boot(rows, boot, now)?,
        };
        let mut step = Step::new(rows, folder, 0, now, clock.at(now));
        for session in step.sessions()? {
            step.check_alive(session)?;
        }
        hand_over_freed(&mut step)?;
        let process = folder.own_process();
        rows.execute(
            "INSERT INTO client (file, client, process, space) VALUES (?1, ?2, ?3, ?4)",
            params![own.name, client.0.to_be_bytes(), process.id, process.space],
        )?;
        Ok(Some((rows.last_insert_rowid(), clock, step.after)))
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

/// The store's clock, if it is of this boot.
fn clock(rows: &Connection, boot: &str) -> rusqlite::Result<Option<StoreClock>> {
    let clock = rows.query_row(
        "SELECT micros, nanos FROM machine WHERE boot = ?1",
        [boot],
        |row| {
            Ok(StoreClock {
                micros: row.get(0)?,
                nanos: row.get(1)?,
            })
        },
    );
    clock.optional()
}

/// True if a client of another boot has its file locked. It is on another machine.
fn has_living(rows: &Connection, folder: &Folder) -> rusqlite::Result<bool> {
    let mut files = rows.prepare("SELECT file FROM client")?;
    let files = files.query_map((), |row| row.get::<_, String>(0))?;
    for file in files {
        if folder.is_locked(&file?) {
            return Ok(true);
        }
    }
    Ok(false)
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
