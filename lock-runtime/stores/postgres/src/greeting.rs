//! [`Greeting`]: what a new session is asked before anything else.

use lock_store::{StoreError, StoreErrorKind};
use tokio_postgres::{Client, Error, Row};

use crate::errors::{
    of_denied, of_isolation, of_nothing, of_postgres, of_read_only, of_standby, of_stranger,
};

/// Reads the catalog, and calls nothing that users have made: what a function does is done with
/// the rights of whoever calls it. A stranger is an owner who would get special rights by that, as
/// those of a superuser. This user trusts a superuser, and the roles of which it is a member, other
/// than by their own word. The functions are those that a lock needs until it is given back.
const QUESTION: &str = "
    WITH RECURSIVE mine (role) AS (
        SELECT oid FROM pg_catalog.pg_roles WHERE rolname = session_user
        UNION
        SELECT m.roleid FROM mine JOIN pg_catalog.pg_auth_members m
        ON m.member = mine.role AND m.grantor <> m.roleid
    ), schema AS (
        SELECT tableoid, oid, nspowner
        FROM pg_catalog.pg_namespace WHERE nspname = 'lock_store'
    ), there (class, object, owner) AS (
        TABLE schema
        UNION ALL SELECT p.tableoid, p.oid, proowner
        FROM schema JOIN pg_catalog.pg_proc p ON pronamespace = schema.oid
        UNION ALL SELECT c.tableoid, c.oid, relowner
        FROM schema JOIN pg_catalog.pg_class c ON relnamespace = schema.oid
    )
    SELECT pg_catalog.pg_is_in_recovery(),
        pg_catalog.current_setting('default_transaction_read_only') = 'on',
        EXISTS (SELECT FROM schema),
        pg_catalog.current_setting('default_transaction_isolation'),
        (SELECT pg_catalog.format('%s belongs to %s, whom the user %s need not trust',
            pg_catalog.pg_describe_object(class, object, 0),
            pg_catalog.pg_get_userbyid(owner), session_user)
        FROM there JOIN pg_catalog.pg_roles ON pg_roles.oid = owner
        WHERE NOT rolsuper AND owner NOT IN (SELECT role FROM mine) AND EXISTS (
            SELECT FROM mine JOIN pg_catalog.pg_roles ON pg_roles.oid = role
            WHERE rolsuper OR rolcreaterole OR rolreplication OR rolbypassrls
                OR rolname IN ('pg_read_server_files', 'pg_write_server_files',
                    'pg_execute_server_program'))
        LIMIT 1),
        (SELECT p.oid::regprocedure::text
        FROM schema JOIN pg_catalog.pg_proc p ON pronamespace = schema.oid
        WHERE proname IN ('acquire', 'acquire_all', 'renew', 'fence', 'release', 'shrink',
                'abandon', 'leave', 'tell')
            AND pg_catalog.has_schema_privilege(schema.oid, 'USAGE')
            AND NOT pg_catalog.has_function_privilege(p.oid, 'EXECUTE')
        LIMIT 1)";

#[derive(Debug)]
pub(crate) struct Greeting {
    has_schema: bool,
    isolation: String,
    stranger: Option<String>,
    denied: Option<String>,
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
        })
    }

    /// Before anything of the schema is called. If it is not there, anybody may make it in the next
    /// moment.
    pub(crate) fn expect_usable(self, server: &str) -> Result<(), StoreError> {
        if !self.has_schema {
            return Err(of_nothing(server));
        }
        if let Some(stranger) = self.stranger {
            return Err(of_stranger(&stranger, server));
        }
        if !self.isolation.starts_with("read ") {
            return Err(of_isolation(&self.isolation, server));
        }
        match self.denied {
            Some(function) => Err(of_denied(&function, server)),
            None => Ok(()),
        }
    }
}

pub(crate) fn no_answer(server: &str) -> StoreError {
    let text = format!("{server}: no answer to the first question");
    StoreError::new(StoreErrorKind::Refused, text)
}
