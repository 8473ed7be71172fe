//! The tables.
//!
//! Times are nanoseconds of the machine's boot time, except in `machine` and `fence`. A lock, a
//! latch or a bucket has a name: namespace, `:`, key. A namespace has no `:`. A session is one
//! client's life. Numbers of requests are stored as signed.

use std::path::Path;

use lock_store::{StoreError, StoreErrorKind};
use rusqlite::Connection;

use crate::errors::of_sqlite;

/// Says whose database it is: `lock` in ASCII.
const APPLICATION: i64 = 0x6C6F_636B;

/// Rises whenever the tables change.
const VERSION: i64 = 4;

/// These tables, but for the name of a column.
const BEFORE: i64 = 3;

const TABLES: &str = "
    -- The boot in which all times of the other tables are, and its clock: `micros` since 1970 at
    -- the boot time `nanos`, about the last at which anything was written. No token below `floor`
    -- is given again.
    CREATE TABLE machine (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        boot TEXT NOT NULL,
        micros INTEGER NOT NULL,
        nanos INTEGER NOT NULL,
        floor INTEGER NOT NULL
    );
    CREATE TABLE client (
        session INTEGER PRIMARY KEY AUTOINCREMENT,
        file TEXT NOT NULL,
        client BLOB NOT NULL,
        process INTEGER,
        space INTEGER
    );
    -- `kept` is 0, or the number of permits that stay taken after a release. Such a rest has no
    -- session: it lasts longer than its client. All holds of a lock have the capacity of the last
    -- holder's request.
    CREATE TABLE hold (
        name TEXT NOT NULL,
        client BLOB NOT NULL,
        request INTEGER NOT NULL,
        kept INTEGER NOT NULL,
        session INTEGER,
        permits INTEGER,
        capacity INTEGER,
        ends INTEGER NOT NULL,
        PRIMARY KEY (name, client, request, kept)
    ) WITHOUT ROWID;
    CREATE INDEX rest_by_end ON hold (ends) WHERE session IS NULL;
    CREATE TABLE place (
        name TEXT NOT NULL,
        number INTEGER NOT NULL,
        session INTEGER NOT NULL,
        client BLOB NOT NULL,
        request INTEGER NOT NULL,
        permits INTEGER,
        capacity INTEGER,
        first_lease INTEGER NOT NULL,
        ends INTEGER,
        tokens INTEGER NOT NULL,
        heard INTEGER NOT NULL,
        suspended INTEGER,
        PRIMARY KEY (name, number)
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX place_of ON place (name, session, client, request);
    CREATE TABLE fence (
        name TEXT PRIMARY KEY,
        token INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX fence_by_token ON fence (token);
    CREATE TABLE rate (
        name TEXT PRIMARY KEY,
        at INTEGER NOT NULL,
        turn INTEGER NOT NULL,
        debt INTEGER NOT NULL,
        ends INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX rate_by_end ON rate (ends);
    CREATE TABLE pass_log (
        name TEXT PRIMARY KEY,
        at INTEGER NOT NULL,
        lines BLOB NOT NULL,
        ends INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX pass_log_by_end ON pass_log (ends);
    CREATE TABLE latch (
        name TEXT PRIMARY KEY,
        count INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        opened INTEGER NOT NULL,
        ends INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX latch_by_end ON latch (ends);
    CREATE TABLE latch_place (
        name TEXT NOT NULL,
        client BLOB NOT NULL,
        request INTEGER NOT NULL,
        session INTEGER NOT NULL,
        ends INTEGER NOT NULL,
        PRIMARY KEY (name, client, request)
    ) WITHOUT ROWID;
    -- The counts that calls on latches left.
    CREATE TABLE call (
        name TEXT NOT NULL,
        client BLOB NOT NULL,
        request INTEGER NOT NULL,
        left INTEGER NOT NULL,
        ends INTEGER NOT NULL,
        PRIMARY KEY (name, client, request)
    ) WITHOUT ROWID;
    CREATE INDEX call_by_end ON call (ends);
";

/// What ends with the machine. Tokens stay: they rise for ever.
pub(crate) const END_OF_BOOT: &str = "
    DELETE FROM client;
    DELETE FROM hold;
    DELETE FROM place;
    DELETE FROM rate;
    DELETE FROM pass_log;
    DELETE FROM latch;
    DELETE FROM latch_place;
    DELETE FROM call;
";

/// Notes a boot time of the same clock, to the microsecond: that clock must not go back.
pub(crate) const NOTE_TIME: &str = "
    UPDATE machine SET
        micros = micros + (?1 - nanos) / 1000,
        nanos = nanos + (?1 - nanos) / 1000 * 1000
";

fn number(connection: &Connection, pragma: &str) -> rusqlite::Result<i64> {
    let mut pragma = connection.prepare_cached(pragma)?;
    pragma.query_row((), |row| row.get(0))
}

/// False if the database is empty. An error if it is another program's, or of another version, but
/// for the one that [`step_up`] knows.
pub(crate) fn is_there(connection: &Connection, path: &Path) -> Result<bool, StoreError> {
    let failed = |error: rusqlite::Error| of_sqlite(&error, path);
    let application = number(connection, "PRAGMA application_id").map_err(failed)?;
    if application != APPLICATION {
        let tables = number(connection, "SELECT count(*) FROM sqlite_master");
        return match application == 0 && tables.map_err(failed)? == 0 {
            true => Ok(false),
            false => Err(StoreError::new(
                StoreErrorKind::Misconfigured,
                format!(
                    "{} is the database of another program; name a file of its own",
                    path.display()
                ),
            )),
        };
    }
    match is_before(connection).map_err(failed)? {
        true => Ok(true),
        false => expect_version(connection, path).map(|()| true),
    }
}

/// Whether [`step_up`] has something to do.
pub(crate) fn is_before(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(number(connection, "PRAGMA user_version")? == BEFORE)
}

/// From the version before to this one: in a transaction, and only if no other client is there.
pub(crate) fn step_up(connection: &Connection) -> rusqlite::Result<()> {
    let other_name = "SELECT count(*) FROM pragma_table_info('place') WHERE name = 'passed_over'";
    if number(connection, other_name)? > 0 {
        connection.execute_batch("ALTER TABLE place RENAME COLUMN passed_over TO suspended")?;
    }
    connection.pragma_update(None, "user_version", VERSION)
}

/// Another process may change the tables at any time. In the same transaction, it changes their
/// version.
pub(crate) fn expect_version(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let version = number(connection, "PRAGMA user_version");
    let version = version.map_err(|error| of_sqlite(&error, path))?;
    if version == VERSION {
        return Ok(());
    }
    let text = format!(
        "{} has tables of version {version}, and this lock-runtime knows version {VERSION}",
        path.display()
    );
    let error = StoreError::new(StoreErrorKind::OtherVersion, text);
    Err(error.advise("use one version in all processes, or name another file"))
}

/// In a transaction.
pub(crate) fn make(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(TABLES)?;
    connection.pragma_update(None, "application_id", APPLICATION)?;
    connection.pragma_update(None, "user_version", VERSION)
}
