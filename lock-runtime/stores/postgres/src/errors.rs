//! What PostgreSQL's errors mean to a client.

use lock_store::StoreErrorKind::{
    self, Contended, Denied, Disconnected, Loading, Misconfigured, OutOfMemory, ReadOnly, Refused,
    Timeout,
};
use lock_store::{Failure, StoreError, escaped, secrets};
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

/// Of the functions: the command came after its deadline.
const TOO_LATE: &str = "LK001";
/// Of the functions: the isolation level does not suit.
const ISOLATION: &str = "LK003";
/// Of the functions: a `lock_check` is open.
const CHECKED: &str = "LK004";
/// Of the functions: what is to be replaced belongs to somebody else.
const STRANGER: &str = "LK005";
/// Within `statement_timeout`, or by an operator.
const CANCELED: &str = "57014";
/// The functions wait for the row of a key for some time.
const CONTENDED: &str = "55P03";

const MIGRATE: &str = "apply the migration to this database: `LockClient::migrate()`, or the SQL \
                       of `lock_runtime::POSTGRES_MIGRATION`, as a user who may create a schema";
const GRANT: &str = "write, as the owner of the schema: GRANT USAGE ON SCHEMA lock_store TO …; \
                     GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA lock_store TO …";

const DATABASE: &str = "create that database, or name another in the URL";

const OWNER: &str = "apply the migration as the owner of the schema lock_store; if that is a \
                     stranger, drop the schema first";

const CONNECTIONS: &str = "raise `max_connections`, put pgbouncer in front, or ask for fewer: \
                           `?connections=…`";

const CLOCK: &str = "check its load, and whether its clock was set";

const STATEMENT_TIMEOUT: &str = "let this user take longer: ALTER ROLE … SET statement_timeout = 0";

const CONNECT: &str = "write, as the owner of the database: GRANT CONNECT ON DATABASE … TO …";

const WITH_TLS: &str = "it takes this user over TLS only, or not at all: write \
                        `sslmode=require` in the URL, which needs the feature `tls`, or change \
                        its `pg_hba.conf`";
const WITHOUT_TLS: &str = "it takes this user without TLS only: switch TLS on in the server, or \
                           write `sslmode=disable` in the URL and leave `tls` out of the builder";

const PRIMARY: &str = "connect to the primary; name it and its standbys as hosts in the URL, and \
                       the one that takes writes is found";

const READ_ONLY: &str = "if it is a standby, connect to the primary; if not, \
                         `default_transaction_read_only` is on: switch it off";

const LEVEL: &str = "write, where it was set: ALTER ROLE … (or ALTER DATABASE …) SET \
                     default_transaction_isolation = 'read committed'";

const CERTIFICATE: &str = "if it is the right server, trust the CA of its certificate \
                           (`Tls::ca_file`), and connect to a name that the certificate has";

/// What becomes of a statement that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    None,
    /// None. It may be sent again at once.
    Repeat,
    /// None: what it calls is not there. Another migration may have been applied. A new session
    /// finds that out at its beginning.
    Gone,
    /// None: it came too late, by what its connection knows of the server's clock.
    Late,
    /// None: it took too long, as behind a crowd or an open `lock_check`. It may be sent again.
    RowLocked,
    /// Unknown: the connection is gone.
    Unknown,
}

pub(crate) fn effect_of(error: &Error) -> Effect {
    let Some(error) = error.as_db_error() else {
        return Effect::Unknown;
    };
    let code = error.code();
    if *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED {
        Effect::Repeat
    } else if matches!(code.code(), CONTENDED | CHECKED | CANCELED) {
        Effect::RowLocked
    } else if is_of_class(code, &["08", "40003", "57", "58", "XX"]) {
        // The server, or a pooler, ended the session, perhaps while it committed.
        Effect::Unknown
    } else if *code == SqlState::UNDEFINED_FUNCTION {
        Effect::Gone
    } else if code.code() == TOO_LATE {
        Effect::Late
    } else {
        Effect::None
    }
}

fn is_of_class(code: &SqlState, classes: &[&str]) -> bool {
    classes.iter().any(|class| code.code().starts_with(class))
}

/// Somebody kept a row for too long, and the statement had no effect. A server or an operator that
/// cancels what waits is quicker than the functions.
pub(crate) fn is_of_kept_row(failure: &Failure) -> bool {
    let error = &failure.error;
    let is_canceled = error.detail().ends_with(&format!("({CANCELED})"));
    failure.unknown.is_none() && (error.kind() == Contended || is_canceled)
}

/// The row of a key is locked by one request after the other.
pub(crate) fn contended(server: &str) -> StoreError {
    let text = format!("{server}: the row of the key is contended ({CONTENDED})");
    StoreError::new(Contended, text)
}

/// The server found the deadline passed when it began.
pub(crate) fn of_late(server: &str) -> StoreError {
    let text = format!("{server}: the statement came after its deadline");
    StoreError::new(Timeout, text).advise(CLOCK)
}

/// The advice if a server's list of hosts and users has none in plain, or none over TLS.
fn other_sslmode(message: &str) -> Option<&'static str> {
    let ends = |ends: [&str; 2]| ends.iter().any(|end| message.trim_end().ends_with(end));
    if ends(["no encryption", "SSL off"]) {
        Some(WITH_TLS)
    } else if ends(["SSL encryption", "SSL on"]) {
        Some(WITHOUT_TLS)
    } else {
        None
    }
}

/// The error for the user. `server` says which.
pub(crate) fn of_postgres(error: &Error, server: &str) -> StoreError {
    let Some(db) = error.as_db_error() else {
        return of_connection(error, server);
    };
    let code = db.code().code();
    if code == CONTENDED {
        return contended(server);
    }
    let (kind, advice) = meaning(db);
    let said = escaped(&secrets::strip(db.message()));
    let error = StoreError::new(kind, format!("{server}: {said} ({code})"));
    error.advise(advice)
}

/// What went wrong without a word of the database.
fn of_connection(error: &Error, server: &str) -> StoreError {
    use std::error::Error as _;
    let source = error.source().map(ToString::to_string);
    let text = source.unwrap_or_else(|| error.to_string());
    let error = StoreError::new(Disconnected, format!("{server}: {}", text.trim()));
    if text.contains("invalid peer certificate") {
        error.advise(CERTIFICATE)
    } else if text.contains("server does not support TLS") {
        error.advise(WITHOUT_TLS)
    } else {
        error
    }
}

/// What a database's error is, and what to do.
fn meaning(error: &DbError) -> (StoreErrorKind, Option<&'static str>) {
    let code = error.code();
    match code.code() {
        "3F000" | "42883" | "42P01" => (Misconfigured, Some(MIGRATE)),
        // At the login it is this right.
        "42501" if error.parsed_severity() == Some(Severity::Fatal) => {
            (Misconfigured, Some(CONNECT))
        }
        "42501" => (Misconfigured, Some(GRANT)),
        "3D000" => (Misconfigured, Some(DATABASE)),
        ISOLATION => (Misconfigured, Some(LEVEL)),
        STRANGER => (Misconfigured, Some(OWNER)),
        "25006" => (ReadOnly, Some(READ_ONLY)),
        "53100" => (ReadOnly, Some("its disk is full; free some space")),
        "53200" => (OutOfMemory, None),
        "53300" => (Disconnected, Some(CONNECTIONS)),
        CHECKED => (Contended, Some("let that transaction end")),
        CANCELED => (Timeout, Some(STATEMENT_TIMEOUT)),
        "57P03" => (Loading, None),
        TOO_LATE => (Timeout, Some(CLOCK)),
        _ if is_of_class(code, &["28"]) => (Denied, other_sslmode(error.message())),
        _ if error.message().contains("SSL required") => (Denied, Some(WITH_TLS)),
        _ if is_of_class(code, &["08", "57"]) => (Disconnected, None),
        _ if is_of_class(code, &["40"]) => (Timeout, None),
        _ => (Refused, None),
    }
}

/// The server may know a new password a moment before the provider: that passes.
pub(crate) fn of_old_credentials(denied: &StoreError) -> StoreError {
    StoreError::new(Disconnected, denied.detail()).advise(
        "the credentials provider is asked again; if this lasts, its user and password are wrong",
    )
}

pub(crate) fn of_standby(server: &str) -> StoreError {
    let error = StoreError::new(ReadOnly, format!("{server}: it is a standby"));
    error.advise(PRIMARY)
}

/// The user or the database may only read.
pub(crate) fn of_read_only(server: &str) -> StoreError {
    let text = format!("{server}: `default_transaction_read_only` is on");
    StoreError::new(Misconfigured, text).advise(
        "locks are written; write, where it was set: ALTER ROLE … (or ALTER DATABASE …) SET \
         default_transaction_read_only = off",
    )
}

/// The user or the database has another isolation level, at which not all of a lock works.
pub(crate) fn of_isolation(level: &str, server: &str) -> StoreError {
    let text = format!(
        "{server}: `default_transaction_isolation` is `{}`",
        escaped(level)
    );
    StoreError::new(Misconfigured, text).advise(LEVEL)
}

/// The migration could not be applied.
pub(crate) fn of_migration(error: &Error, server: &str) -> StoreError {
    if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) {
        let text = format!("{server}: another transaction keeps what the migration changes");
        return StoreError::new(Timeout, text)
            .advise("end it, as a backup or another migration that stands still, or wait for it");
    }
    let told = of_postgres(error, server);
    match error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) {
        true => told.advise(
            "apply the migration as the owner of the schema lock_store; to make it, the user needs \
             CREATE on the database",
        ),
        false => told,
    }
}

/// There is no schema.
pub(crate) fn of_nothing(server: &str) -> StoreError {
    let text = format!("{server}: this database has no schema lock_store");
    StoreError::new(Misconfigured, text).advise(MIGRATE)
}

/// A part of what the migration makes is not there.
pub(crate) fn of_missing(function: &str, server: &str) -> StoreError {
    let text = format!("{server}: the function {function} is missing");
    StoreError::new(Misconfigured, text).advise(MIGRATE)
}

/// What is called would run with more rights than its owner has.
pub(crate) fn of_stranger(what: &str, server: &str) -> StoreError {
    let text = format!("{server}: {}", escaped(what));
    StoreError::new(Misconfigured, text).advise(
        "use the locks as a user without special rights, or make this one a member of the owner's \
         role: GRANT … TO …; if the owner is a stranger, drop the schema and apply the migration",
    )
}

/// The user may connect, and not use all of a lock.
pub(crate) fn of_denied(function: &str, server: &str) -> StoreError {
    let text = format!("{server}: the user may not execute {function}");
    StoreError::new(Misconfigured, text).advise(GRANT)
}

/// The functions are of another version.
pub(crate) fn of_version(found: i32, server: &str) -> StoreError {
    let wanted = crate::VERSION;
    let text = format!(
        "{server}: the functions in the schema lock_store are of version {found}, and this \
         lock-runtime needs {wanted}"
    );
    let advice = match found < wanted {
        true => MIGRATE,
        false => "use the lock-runtime that the newest migration came with",
    };
    StoreError::new(StoreErrorKind::OtherVersion, text).advise(advice)
}
