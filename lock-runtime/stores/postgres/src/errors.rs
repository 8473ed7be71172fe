//! What PostgreSQL's errors mean to a client.

use lock_store::{StoreError, StoreErrorKind};
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, SqlState};

/// The error for the user. `address` says which server.
pub(crate) fn of_postgres(error: &Error, address: &str) -> StoreError {
    match error.as_db_error() {
        Some(said) => of_server(said, address),
        None => StoreError::new(StoreErrorKind::Disconnected, with_causes(error)).of(address),
    }
}

/// An error and what it came from: tokio-postgres shows only its own part.
fn with_causes(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        let next_text = next.to_string();
        if !text.contains(&next_text) {
            text = format!("{text}: {next_text}");
        }
        cause = next.source();
    }
    text
}

fn of_server(said: &DbError, address: &str) -> StoreError {
    let code = said.code();
    let (kind, advice) = match *code {
        SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => (
            StoreErrorKind::Denied,
            "check the user and the password in the URL, and pg_hba.conf",
        ),
        SqlState::INVALID_CATALOG_NAME => (
            StoreErrorKind::Misconfigured,
            "create the database, or name another in the URL",
        ),
        SqlState::INVALID_SCHEMA_NAME
        | SqlState::UNDEFINED_FUNCTION
        | SqlState::UNDEFINED_TABLE => (
            StoreErrorKind::Misconfigured,
            "this database does not have the tables and functions of this version: let a role that \
             may create a schema call `migrate` once, or apply `migration.sql`",
        ),
        SqlState::INSUFFICIENT_PRIVILEGE => (
            StoreErrorKind::Denied,
            "write `GRANT USAGE ON SCHEMA lock_runtime TO` this role, and `GRANT EXECUTE ON ALL \
             FUNCTIONS IN SCHEMA lock_runtime TO` it",
        ),
        SqlState::INVALID_TRANSACTION_STATE => (
            StoreErrorKind::Misconfigured,
            "write `ALTER ROLE … SET default_transaction_isolation = 'read committed'`",
        ),
        SqlState::READ_ONLY_SQL_TRANSACTION => (
            StoreErrorKind::ReadOnly,
            "it is a standby, or takes no writes: name all servers in the URL, with \
             `target_session_attrs=read-write`",
        ),
        SqlState::TOO_MANY_CONNECTIONS => (
            StoreErrorKind::Disconnected,
            "raise `max_connections`, use a pooler, or `connections=` fewer in the URL",
        ),
        SqlState::DISK_FULL => (StoreErrorKind::ReadOnly, "free some space on its disk"),
        SqlState::OUT_OF_MEMORY => (StoreErrorKind::OutOfMemory, "give it more memory"),
        SqlState::CANNOT_CONNECT_NOW => (StoreErrorKind::Loading, "it starts, or shuts down"),
        SqlState::T_R_SERIALIZATION_FAILURE
        | SqlState::T_R_DEADLOCK_DETECTED
        | SqlState::LOCK_NOT_AVAILABLE
        | SqlState::QUERY_CANCELED => (
            StoreErrorKind::Timeout,
            "another transaction stood in the way",
        ),
        _ if ends_session(said) => (StoreErrorKind::Disconnected, "it ended this session"),
        _ => (StoreErrorKind::Refused, "see PostgreSQL's own message"),
    };
    let text = format!("{} (SQLSTATE {})", said.message(), code.code());
    StoreError::new(kind, text).of(address).advise(advice)
}

/// True for what is repeated at once: two transactions were in each other's way.
pub(crate) fn is_repeated(error: &Error) -> bool {
    matches!(
        error.code(),
        Some(&SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED)
    )
}

/// True if the statement may have been carried out all the same: the session ended before the end
/// of the commit was told.
pub(crate) fn is_unknown(error: &Error) -> bool {
    error.as_db_error().is_none_or(ends_session)
}

/// Class 57P, operator intervention; 58, system error; XX, internal error.
fn ends_session(said: &DbError) -> bool {
    let code = said.code().code();
    ["57P", "58", "XX"].iter().any(|class| code.starts_with(class))
}
