//! [`Greeting`]: what a new session is asked before anything else.

use lock_store::{StoreError, StoreErrorKind};
use tokio_postgres::{Client, Error, Row};

use crate::errors::{
    of_denied, of_isolation, of_missing, of_nothing, of_postgres, of_read_only, of_standby,
    of_stranger,
};

/// Reads the catalog, and calls nothing that users have made. `needed` is all that a client calls,
/// first what a lock needs until it is given back.
///
/// What those functions do is done with their owner's rights, whoever that is. If one of them is
/// made otherwise, it is done with the rights of this user. A stranger is an owner who would get
/// special rights by that, as those of a superuser. This user trusts a superuser, and the roles of
/// which it is a member, other than by their own word.
const QUESTION: &str = "
    WITH RECURSIVE mine (role) AS (
        SELECT oid FROM pg_catalog.pg_roles WHERE rolname = session_user
        UNION
        SELECT m.roleid FROM mine JOIN pg_catalog.pg_auth_members m
        ON m.member = mine.role AND m.grantor <> m.roleid
    ), schema AS (
        SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = 'lock_store'
    ), needed (function, takes, is_of_lock) AS (VALUES
        ('acquire', 'bytea, bytea, integer, integer, bigint, bigint, bigint, integer, integer, '
            'bytea, bigint', true),
        ('acquire_first', 'bytea, bytea, bigint, bigint', true),
        ('acquire_all', 'bytea[], bytea[], bigint[], integer[], boolean[], bigint', true),
        ('renew', 'bytea, bytea, integer, integer, bigint', true),
        ('fence', 'bytea, bytea, integer, integer', true),
        ('release', 'bytea, bytea, integer, integer, bigint', true),
        ('release_first', 'bytea, bytea', true),
        ('shrink', 'bytea, bytea, integer, integer, integer', true),
        ('abandon', 'bytea, bytea, integer, integer', true),
        ('leave', 'bytea', true),
        ('tell', 'bytea, text', true),
        ('force_release', 'bytea', false),
        ('inspect', 'bytea', false),
        ('holders', 'bytea', false),
        ('rate', 'bytea, bigint, bigint, bigint, bigint', false),
        ('rate_at_most', 'bytea, bigint, bigint, bigint, bigint, bigint', false),
        ('latch_look', 'bytea', false),
        ('latch_set', 'bytea, bytea, bigint, bigint, bigint, bigint', false),
        ('latch_count_down', 'bytea, bytea, bigint, bigint', false),
        ('latch_wait', 'bytea, bytea', false),
        ('latch_leave', 'bytea, bytea', false),
        ('expect_primary', '', false),
        ('sweep', '', false),
        ('sweeps_each', '', false),
        ('version', '', false),
        ('serves', 'integer', false)
    ), there AS (
        SELECT p.oid, proname AS function, proowner AS owner, prosecdef AS is_as_owner,
            pg_catalog.oidvectortypes(proargtypes) AS takes
        FROM schema JOIN pg_catalog.pg_proc p ON pronamespace = schema.oid
    )
    SELECT pg_catalog.pg_is_in_recovery(),
        pg_catalog.current_setting('default_transaction_read_only') = 'on',
        EXISTS (SELECT FROM schema),
        pg_catalog.current_setting('default_transaction_isolation'),
        (SELECT pg_catalog.format('lock_store.%s(%s) belongs to %s and runs with the rights of '
                'its caller, the user %s', function, takes,
            pg_catalog.pg_get_userbyid(owner), session_user)
        FROM there JOIN pg_catalog.pg_roles ON pg_roles.oid = owner
        WHERE function IN (SELECT function FROM needed) AND NOT is_as_owner
            AND NOT rolsuper AND owner NOT IN (SELECT role FROM mine) AND EXISTS (
            SELECT FROM mine JOIN pg_catalog.pg_roles ON pg_roles.oid = role
            WHERE rolsuper OR rolcreaterole OR rolreplication OR rolbypassrls
                OR rolname IN ('pg_read_server_files', 'pg_write_server_files',
                    'pg_execute_server_program'))
        LIMIT 1),
        (SELECT there.oid::regprocedure::text
        FROM there JOIN needed USING (function, takes)
        WHERE is_of_lock
            AND pg_catalog.has_schema_privilege((SELECT oid FROM schema), 'USAGE')
            AND NOT pg_catalog.has_function_privilege(there.oid, 'EXECUTE')
        LIMIT 1),
        (SELECT pg_catalog.format('lock_store.%s(%s)', function, takes)
        FROM needed WHERE NOT EXISTS (SELECT FROM there
            WHERE there.function = needed.function AND there.takes = needed.takes)
        LIMIT 1)";

#[derive(Debug)]
pub(crate) struct Greeting {
    has_schema: bool,
    isolation: String,
    stranger: Option<String>,
    denied: Option<String>,
    missing: Option<String>,
}

impl Greeting {
    /// Refuses a standby, and a user or a database that may only read.
    pub(crate) async fn of(client: &Client, server: &str) -> Result<Self, StoreError> {
        let failed = |error: Error| of_postgres(&error, server);
        let rows = client.query_typed(QUESTION, &[]).await.map_err(failed)?;
        let row = rows.first().ok_or_else(|| no_answer(server))?;
        if row.try_get(0).map_err(failed)? {
            return Err(of_standby(server));
        }
        if row.try_get(1).map_err(failed)? {
            return Err(of_read_only(server));
        }
        Self::read(row).map_err(failed)
    }

    fn read(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            has_schema: row.try_get(2)?,
            isolation: row.try_get(3)?,
            stranger: row.try_get(4)?,
            denied: row.try_get(5)?,
            missing: row.try_get(6)?,
        })
    }

    /// Before anything of the schema is called. If it is not there, anybody may make it in the next
    /// moment.
    pub(crate) fn expect_usable(&self, server: &str) -> Result<(), StoreError> {
        if !self.has_schema {
            return Err(of_nothing(server));
        }
        if let Some(stranger) = &self.stranger {
            return Err(of_stranger(stranger, server));
        }
        if !self.isolation.starts_with("read ") {
            return Err(of_isolation(&self.isolation, server));
        }
        match &self.denied {
            Some(function) => Err(of_denied(function, server)),
            None => Ok(()),
        }
    }

    /// Refuses if a function is missing. Checked after the version: if that is another, that is the
    /// error.
    pub(crate) fn expect_complete(&self, server: &str) -> Result<(), StoreError> {
        match &self.missing {
            Some(function) => Err(of_missing(function, server)),
            None => Ok(()),
        }
    }
}

pub(crate) fn no_answer(server: &str) -> StoreError {
    let text = format!("{server}: no answer to the first question");
    StoreError::new(StoreErrorKind::Refused, text)
}
