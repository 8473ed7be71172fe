//! What SQLite's errors mean to a client.

use std::path::Path;

use lock_store::StoreError;
use lock_store::StoreErrorKind::{
    Disconnected, Misconfigured, OutOfMemory, ReadOnly, Refused, Timeout,
};
use nix::libc;
use rusqlite::ErrorCode;

const STANDS_STILL: &str = "look for a process that has it open and stands still";

const RIGHTS: &str = "give this user the right to read and write the file and to create files in \
                      its folder";

/// Others keep this client from writing, or have kept it busy.
pub(crate) fn busy(path: &Path) -> StoreError {
    let path = path.display();
    let detail = format!("{path}: other processes write to it, or its disk is slow");
    StoreError::new(Timeout, detail).advise(STANDS_STILL)
}

/// By this user.
pub(crate) fn not_writable(path: &Path) -> StoreError {
    let detail = format!("{} can't be written by this user", path.display());
    StoreError::new(Misconfigured, detail).advise(RIGHTS)
}

/// Clients live that are not of this boot, or can't be known to be.
pub(crate) fn in_use(path: &Path, is_masked: bool) -> StoreError {
    let path = path.display();
    let (by, advice) = match is_masked {
        true => (
            "clients of another container, whose sockets can't be reached from here, and a mount \
             hides the kernel's boot id from one of the two",
            "unmount /proc/sys/kernel/random/boot_id in each container, start the others again if \
             their `.sock` files were deleted, give each a file of its own, or use a server",
        ),
        false => (
            "another machine, or a container with a kernel of its own",
            "give each machine a file of its own, or use a server",
        ),
    };
    StoreError::new(Misconfigured, format!("{path} is in use by {by}")).advise(advice)
}

/// Somebody takes the files away again and again.
pub(crate) fn replaced(path: &Path) -> StoreError {
    let path = path.display();
    let detail = format!("{path}, or a file beside it, was deleted or replaced");
    StoreError::new(Disconnected, detail)
        .advise("look for the program that does it; a restored copy needs all clients to end first")
}

/// The error for the user. `path` says which database.
pub(crate) fn of_sqlite(error: &rusqlite::Error, path: &Path) -> StoreError {
    let (kind, advice) = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (Timeout, STANDS_STILL),
        Some(ErrorCode::DiskFull) => (ReadOnly, "its disk is full; free some space"),
        Some(ErrorCode::ReadOnly) => (
            ReadOnly,
            "it can't be written; check the rights of the file and its folder, and its file system",
        ),
        Some(ErrorCode::SystemIoFailure) => (ReadOnly, "its disk does not work, or is full"),
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => (Misconfigured, RIGHTS),
        Some(ErrorCode::NotADatabase) => {
            (Misconfigured, "it is no SQLite database; name another file")
        }
        Some(ErrorCode::DatabaseCorrupt) => (
            Refused,
            "the file is damaged; end all processes that use it, and delete it with the files \
             beside it",
        ),
        _ => (Refused, "see SQLite's own message"),
    };
    StoreError::new(kind, format!("{}: {error}", path.display())).advise(advice)
}

/// The error of a file beside the database.
pub(crate) fn of_io(error: &std::io::Error, path: &Path) -> StoreError {
    use std::io::ErrorKind;
    let (kind, advice) = match error.kind() {
        ErrorKind::PermissionDenied => (
            Misconfigured,
            "give this user the right to create files in its folder",
        ),
        ErrorKind::ReadOnlyFilesystem => (ReadOnly, "its file system can't be written"),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            (ReadOnly, "its disk is full; free some space")
        }
        // In the words of this crate.
        ErrorKind::InvalidData => (Misconfigured, "correct that, or name another file"),
        _ if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
            (OutOfMemory, "raise the limit of open files (`ulimit -n`)")
        }
        _ => (Refused, "see the system's own message"),
    };
    StoreError::new(kind, format!("{}: {error}", path.display())).advise(advice)
}

/// True if another connection has what this one needs, for a moment.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

/// True if a failed commit may have taken effect.
pub(crate) fn is_unknown(error: &rusqlite::Error) -> bool {
    !matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::DiskFull
                | ErrorCode::ReadOnly
        )
    )
}
