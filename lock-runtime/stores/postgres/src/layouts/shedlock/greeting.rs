//! What a new session is asked first: is the table there, as it must be, and may it be used.

use lock_store::{StoreError, StoreErrorKind};
use tokio_postgres::{Client, Error};

use crate::errors::{of_isolation, of_postgres, of_read_only, of_standby};
use crate::greeting::no_answer;

/// What to do where the table is not there.
pub(super) const CREATE: &str = "create ShedLock's table, or name its schema in the URL \
    (`options=-c%20search_path=…`): CREATE TABLE shedlock (name VARCHAR(64) PRIMARY KEY, \
    lock_until TIMESTAMP NOT NULL, locked_at TIMESTAMP NOT NULL, locked_by VARCHAR(255) NOT NULL)";

/// ShedLock writes UTC without saying so. In a column that has a time zone, that is read as the
/// time of the writer's session.
const SHAPE: &str = "give the table the columns that ShedLock's documentation says: `name` and \
    `locked_by` are VARCHAR, `lock_until` and `locked_at` are TIMESTAMP (without time zone, for \
    what ShedLock writes to the other kind depends on its session), and `name` is the primary key";

/// Times are rounded, up to half of the last place: a lock that is free half a second before its
/// lease ends has two holders. Milliseconds are within what a client leaves of its lease.
const COARSE: &str = "a lock would be free before its lease has ended; write, as the owner of the \
    table: ALTER TABLE shedlock ALTER lock_until TYPE timestamp(3), ALTER locked_at TYPE \
    timestamp(3)";

const KEY: &str = "without a key that is checked at once, two could insert the row of one lock; \
    write, as the owner of the table: ALTER TABLE shedlock ADD PRIMARY KEY (name), after dropping \
    a key that is deferrable; an index that is not valid is built by REINDEX";

pub(super) const GRANT: &str =
    "write, as the owner of the table: GRANT SELECT, INSERT, UPDATE ON shedlock TO …";

const QUESTION: &str = "
    WITH wanted (name, is_time) AS (
        VALUES ('name', false), ('lock_until', true), ('locked_at', true), ('locked_by', false)
    ), there AS (SELECT to_regclass('shedlock') AS id)
    SELECT pg_catalog.pg_is_in_recovery(),
        pg_catalog.current_setting('default_transaction_read_only') = 'on',
        pg_catalog.current_setting('default_transaction_isolation'),
        there.id IS NOT NULL,
        (SELECT wanted.name || coalesce(
                ' is of the type ' || pg_catalog.format_type(atttypid, NULL), ' is not there')
        FROM wanted LEFT JOIN pg_catalog.pg_attribute
            ON attrelid = there.id AND attname = wanted.name AND NOT attisdropped
        WHERE (atttypid = ANY (CASE WHEN is_time THEN ARRAY['timestamp'::regtype]
            ELSE ARRAY['varchar'::regtype, 'text'::regtype] END)) IS NOT TRUE
        LIMIT 1),
        EXISTS (SELECT FROM pg_catalog.pg_index JOIN pg_catalog.pg_attribute
            ON attrelid = indrelid AND attnum = indkey[0]
            WHERE indrelid = there.id AND indisunique AND indnkeyatts = 1 AND attname = 'name'
            AND indpred IS NULL AND indisvalid AND indimmediate),
        pg_catalog.has_table_privilege(there.id, 'SELECT')
            AND pg_catalog.has_table_privilege(there.id, 'INSERT')
            AND pg_catalog.has_table_privilege(there.id, 'UPDATE'),
        (SELECT attname || ' is of the type '
            || pg_catalog.format_type(atttypid, atttypmod) || ', which is rounded'
        FROM pg_catalog.pg_attribute
        WHERE attrelid = there.id AND attname IN ('lock_until', 'locked_at')
            AND NOT attisdropped AND atttypmod BETWEEN 0 AND 2
        ORDER BY attname DESC
        LIMIT 1)
    FROM there";

/// In the place of that of the functions: a version, whether that serves, the time, the process.
pub(crate) const HELLO: &str = "
    SELECT 0, true,
        (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::float8)::bigint,
        pg_catalog.pg_backend_pid()";

/// Refuses a standby, a user or a database that may only read, and a table that is not there, not
/// as it must be, or not this user's to write.
pub(crate) async fn expect_table(client: &Client, server: &str) -> Result<(), StoreError> {
    let failed = |error: Error| of_postgres(&error, server);
    let rows = client.query_typed(QUESTION, &[]).await.map_err(failed)?;
    let row = rows.first().ok_or_else(|| no_answer(server))?;
    let is = |at: usize| row.try_get::<_, bool>(at).map_err(failed);
    if is(0)? {
        return Err(of_standby(server));
    }
    if is(1)? {
        return Err(of_read_only(server));
    }
    let isolation: String = row.try_get(2).map_err(failed)?;
    if !isolation.starts_with("read ") {
        return Err(of_isolation(&isolation, server));
    }
    let wrong =
        |what: &str| StoreError::new(StoreErrorKind::Misconfigured, format!("{server}: {what}"));
    if !is(3)? {
        return Err(wrong("this database has no table `shedlock`").advise(CREATE));
    }
    if let Some(column) = row.try_get::<_, Option<String>>(4).map_err(failed)? {
        return Err(wrong(&format!("the table `shedlock`: {column}")).advise(SHAPE));
    }
    if !is(5)? {
        return Err(wrong("the table `shedlock`: `name` is not its primary key").advise(KEY));
    }
    if let Some(column) = row.try_get::<_, Option<String>>(7).map_err(failed)? {
        return Err(wrong(&format!("the table `shedlock`: {column}")).advise(COARSE));
    }
    match is(6)? {
        true => Ok(()),
        false => Err(wrong("the user may not read and write the table `shedlock`").advise(GRANT)),
    }
}
