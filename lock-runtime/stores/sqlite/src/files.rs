//! [`Files`]: the three files of an open database, and who writes to them.
//!
//! SQLite finds its log and its index by their names, once. If one of them is deleted or replaced,
//! those who come later work in other files. So each transaction compares what it has with what is
//! there, under a lock of its own: `flock` on the log, which ends only with its handle. It keeps
//! out other clients also when SQLite's lock of a writer was lost ([`crate::database_locks`]), and
//! lets a client put the log into the database while nobody writes, so that the log begins anew.
//!
//! Names are looked up when something was created, deleted or moved in the folder, and each second.
//! Then the log's handle is opened anew: a child that was forked before has no copy of it, and does
//! not keep its lock.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lock_store::StoreError;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::libc;

use crate::database_locks::{DatabaseLocks, FileId, id_of, last_change, open_itself, reset};
use crate::errors::of_io;

/// The log, locked by whoever writes.
pub(crate) type Log = Flock<File>;

/// A handle to the log, from when all names led to the right files.
#[derive(Debug)]
pub(crate) struct FoundFiles {
    pub(crate) log: File,
    /// When the folder had changed last.
    changed: Changed,
}

/// A transaction of these files has begun.
#[derive(Debug)]
pub(crate) struct Writing {
    log: Log,
    changed: Changed,
}

impl Writing {
    pub(crate) fn end(self) -> Option<FoundFiles> {
        let Self { log, changed, .. } = self;
        let log = log.unlock().ok()?;
        Some(FoundFiles { log, changed })
    }
}

/// When something was created, deleted or moved in a folder.
type Changed = [i64; 4];

fn changed(folder: &File) -> io::Result<Changed> {
    let found = folder.metadata()?;
    let (content, folder) = (found.mtime(), found.ctime());
    Ok([content, found.mtime_nsec(), folder, found.ctime_nsec()])
}

/// Why a transaction has not begun.
#[derive(Debug)]
pub(crate) enum NotBegun {
    /// Others write.
    Busy,
    /// What is written here is not seen by those who open the path now.
    Replaced,
    Failed(StoreError),
}

#[derive(Debug)]
pub(crate) struct Files {
    /// As users name it. It may be a link.
    named: PathBuf,
    database: PathBuf,
    log: PathBuf,
    index: PathBuf,
    folder: File,
    log_id: FileId,
    locks: Arc<DatabaseLocks>,
}

fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

/// The pauses of one attempt to write. Together about 50 ms: then the thread looks whether anybody
/// still waits.
pub(crate) const PAUSES: i32 = 120;

/// Transactions are short. SQLite's own pauses are up to 100 ms long.
pub(crate) fn pause(count: i32) -> bool {
    if count >= PAUSES {
        return false;
    }
    let micros = 50 + 10 * u64::try_from(count).unwrap_or(0);
    std::thread::sleep(Duration::from_micros(micros.min(500)));
    true
}

/// `None` if others have it.
fn lock(mut log: File) -> io::Result<Option<Log>> {
    for count in 0.. {
        match Flock::lock(log, FlockArg::LockExclusiveNonblock) {
            Ok(locked) => return Ok(Some(locked)),
            Err((back, Errno::EWOULDBLOCK)) if pause(count) => log = back,
            Err((_, Errno::EWOULDBLOCK)) => break,
            Err((_, error)) => return Err(error.into()),
        }
    }
    Ok(None)
}

pub(crate) fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ELOOP)
}

/// Makes sure that the index which is there is that of the log, before SQLite reads by it, and that
/// nobody writes meanwhile. `Ok(None)` if there is nothing yet.
pub(crate) fn before_opening(named: &Path) -> Result<Option<Log>, NotBegun> {
    // The names of the others are those of the file that a link leads to.
    let database = named.canonicalize().unwrap_or_else(|_| named.to_owned());
    let failed = |error: io::Error| NotBegun::Failed(of_io(&error, &database));
    let (log, index) = (beside(&database, "-wal"), beside(&database, "-shm"));
    let found = fs::metadata(&database);
    let log = match open_itself(&log, false) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let (Ok(found), true) = (&found, index.exists()) else {
                return Ok(None);
            };
            let mut options = File::options();
            let options = options.read(true).write(true).create_new(true);
            options.mode(found.mode()).open(&log)
        }
        log => log,
    };
    let Some(log) = lock(log.map_err(failed)?).map_err(failed)? else {
        return Err(NotBegun::Busy);
    };
    if let Ok(index) = open_itself(&index, true)
        && (found.map_or(0, |found| found.len()) == 0 || last_change(&index, &log).is_none())
    {
        reset(&index).map_err(failed)?;
    }
    Ok(Some(log))
}

impl Files {
    /// While SQLite has them open. `database` is the name that SQLite goes by.
    pub(crate) fn of(named: &Path, database: &Path) -> io::Result<Self> {
        let (log, index) = (beside(database, "-wal"), beside(database, "-shm"));
        if fs::metadata(database)?.nlink() > 1 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the file has more than one name (hard links), and each would have a log of its \
                 own; delete the others",
            ));
        }
        let folder = database.parent().unwrap_or(Path::new("/"));
        Ok(Self {
            folder: File::open(folder)?,
            named: named.to_owned(),
            database: database.to_owned(),
            log_id: id_of(&log.symlink_metadata()?),
            locks: DatabaseLocks::of(database, &index)?,
            log,
            index,
        })
    }

    fn is_database(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|found| id_of(&found) == self.locks.database)
    }

    fn is_index(&self) -> bool {
        let index = self.index.symlink_metadata();
        index.is_ok_and(|found| id_of(&found) == self.locks.index) && !self.locks.is_cut_off()
    }

    /// True if one of the paths leads to another file, or to none: somebody has deleted or replaced
    /// it.
    pub(crate) fn are_replaced(&self) -> bool {
        let log = self.log.symlink_metadata();
        let is_log = log.is_ok_and(|found| id_of(&found) == self.log_id);
        !(is_log && self.is_database(&self.named) && self.is_index())
    }

    /// Locks the log. Waits a moment for others.
    pub(crate) fn lock(&self, found: Option<FoundFiles>) -> Result<Writing, NotBegun> {
        let failed = |error: io::Error| NotBegun::Failed(of_io(&error, &self.log));
        let changed = changed(&self.folder).map_err(failed)?;
        let is_linked = self.named != self.database;
        let found = found.filter(|found| {
            found.changed == changed && (!is_linked || self.is_database(&self.named))
        });
        let looks_up = found.is_none();
        let log = match found {
            Some(found) => found.log,
            None => self.open_log()?,
        };
        let log = lock(log).map_err(failed)?.ok_or(NotBegun::Busy)?;
        if looks_up {
            self.look_up(&log)?;
        }
        Ok(Writing { log, changed })
    }

    fn open_log(&self) -> Result<File, NotBegun> {
        open_itself(&self.log, false).map_err(|error| match is_missing(&error) {
            true => NotBegun::Replaced,
            false => NotBegun::Failed(of_io(&error, &self.log)),
        })
    }

    /// Under the lock of the log that is there.
    fn look_up(&self, log: &Log) -> Result<(), NotBegun> {
        if !log
            .metadata()
            .is_ok_and(|found| id_of(&found) == self.log_id)
        {
            return Err(NotBegun::Replaced);
        }
        if !self.is_database(&self.named) {
            self.delete_log();
            return Err(NotBegun::Replaced);
        }
        match self.is_index() {
            true => Ok(()),
            false => Err(self.reset()),
        }
    }

    /// What SQLite left beside a file that is gone is not that of the file which is there now.
    fn delete_log(&self) {
        // A link may lead to another file now, and this one is there.
        if self.is_database(&self.database) {
            return;
        }
        let _ = fs::remove_file(&self.log);
        let _ = fs::remove_file(&self.index);
    }

    /// True if it is certainly these files that SQLite writes to, in this transaction.
    pub(crate) fn are_written(&self) -> bool {
        self.locks.has_writer()
    }

    /// The number of the last change, if SQLite can read by the index. Another program may be about
    /// to change it.
    pub(crate) fn fit(&self, writing: &Writing) -> Result<Option<u32>, NotBegun> {
        let change = self.locks.last_change(&writing.log);
        // SQLite has it in memory, where what is missing ends the process.
        if change.is_none() && self.locks.is_cut_off() {
            return Err(self.reset());
        }
        Ok(change)
    }

    /// All clients of these files read anew what is left.
    pub(crate) fn reset(&self) -> NotBegun {
        match self.locks.reset() {
            Ok(()) => NotBegun::Replaced,
            Err(error) => NotBegun::Failed(of_io(&error, &self.index)),
        }
    }
}
