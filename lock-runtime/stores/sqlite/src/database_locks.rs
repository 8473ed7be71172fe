//! [`DatabaseLocks`]: this process's own locks on the files of a database, beside SQLite's.
//!
//! SQLite's are POSIX record locks. The kernel drops all those of a process on a file as soon as
//! the process closes any handle to that file, as a backup does that reads it. To other processes
//! its clients are gone then: the last of the others deletes the log, and the next that comes
//! empties the index, while both are in use. Locks of an open file (`F_OFD_SETLK`) stay as long as
//! their own handle, and SQLite's respect them.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Weak};

use lock_store::Mutex;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

/// The first byte of the database file that every reader locks. Who deletes the log needs it alone.
const READERS: libc::off_t = 0x4000_0002;
/// The byte of the index that the writer locks.
const WRITER: libc::off_t = 120;
/// The byte of the index that everybody locks who uses it. Who empties it needs it alone.
const USERS: libc::off_t = 128;

/// Of the index, as SQLite makes it. It grows from there.
const INDEX_SIZE: u64 = 32 * 1024;

/// A file's device and number.
pub(crate) type FileId = (u64, u64);

pub(crate) fn id_of(found: &Metadata) -> FileId {
    (found.dev(), found.ino())
}

/// The locks on a database file and its index. All clients of this process share them: closing a
/// handle would end SQLite's locks of the others.
#[derive(Debug)]
pub(crate) struct DatabaseLocks {
    pub(crate) database: FileId,
    pub(crate) index: FileId,
    index_file: File,
    _database_file: File,
}

/// The locks of this process's clients.
static KNOWN: Mutex<Vec<Weak<DatabaseLocks>>> = Mutex::new(Vec::new());

fn record(kind: libc::c_int, byte: libc::off_t) -> libc::flock {
    let short = |number: libc::c_int| libc::c_short::try_from(number).unwrap_or_default();
    libc::flock {
        l_type: short(kind),
        l_whence: short(libc::SEEK_SET),
        l_start: byte,
        l_len: 1,
        l_pid: 0,
    }
}

fn share(file: &File, byte: libc::off_t) -> io::Result<()> {
    fcntl(file, FcntlArg::F_OFD_SETLK(&record(libc::F_RDLCK, byte)))?;
    Ok(())
}

/// Opens a file itself, and none that a link leads to.
pub(crate) fn open_itself(path: &Path, writes: bool) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(writes);
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    options.open(path)
}

impl DatabaseLocks {
    /// While SQLite has both of them open.
    pub(crate) fn of(database: &Path, index: &Path) -> io::Result<Arc<Self>> {
        let ids = (
            id_of(&database.symlink_metadata()?),
            id_of(&index.symlink_metadata()?),
        );
        let mut all = KNOWN.lock();
        all.retain(|locks| locks.strong_count() > 0);
        let mut known = all.iter().filter_map(Weak::upgrade);
        if let Some(known) = known.find(|locks| (locks.database, locks.index) == ids) {
            return Ok(known);
        }
        let (database_file, index_file) =
            (open_itself(database, false)?, open_itself(index, true)?);
        share(&database_file, READERS)?;
        share(&index_file, USERS)?;
        let locks = Arc::new(Self {
            database: id_of(&database_file.metadata()?),
            index: id_of(&index_file.metadata()?),
            index_file,
            _database_file: database_file,
        });
        all.push(Arc::downgrade(&locks));
        Ok(locks)
    }

    /// True if it is this process whose SQLite writes by this index. So SQLite's is the same file.
    pub(crate) fn has_writer(&self) -> bool {
        let mut lock = record(libc::F_WRLCK, WRITER);
        let asked = fcntl(&self.index_file, FcntlArg::F_OFD_GETLK(&mut lock));
        asked.is_ok()
            && libc::c_int::from(lock.l_type) == libc::F_WRLCK
            && u32::try_from(lock.l_pid) == Ok(std::process::id())
    }

    pub(crate) fn last_change(&self, log: &File) -> Option<u32> {
        last_change(&self.index_file, log)
    }

    pub(crate) fn is_cut_off(&self) -> bool {
        let found = self.index_file.metadata();
        found.is_ok_and(|found| found.len() < INDEX_SIZE)
    }

    /// Makes everybody read the log again. An index that was cut off has its size again.
    pub(crate) fn reset(&self) -> io::Result<()> {
        if self.is_cut_off() {
            self.index_file.set_len(INDEX_SIZE)?;
        }
        reset(&self.index_file)
    }
}

/// The two copies of the index's header.
const HEADERS: usize = 96;

/// The number of the last change, if the index is of this log: it has the checksum of the whole
/// log, which also the last frame has. The places are those of SQLite's file format.
pub(crate) fn last_change(index: &File, log: &File) -> Option<u32> {
    let (mut header, mut frame) = ([0; 48], [0; 24]);
    index.read_exact_at(&mut header, 0).ok()?;
    let bytes = |of: &[u8], at: usize| [0, 1, 2, 3].map(|byte| of[at + byte]);
    let number = |at: usize| u32::from_ne_bytes(bytes(&header, at));
    let change = number(8);
    let Some(before) = u64::from(number(16)).checked_sub(1) else {
        return Some(change);
    };
    let page = match u16::from_ne_bytes([header[14], header[15]]) {
        1 => 1 << 16,
        page => u64::from(page),
    };
    let last = 32 + before * (24 + page);
    log.read_exact_at(&mut frame, last).ok()?;
    let salts = frame[8..16] == header[32..40];
    let checksum = [16, 20].map(|at| u32::from_be_bytes(bytes(&frame, at)));
    (salts && checksum == [number(24), number(28)]).then_some(change)
}

/// Empties the index: its next reader makes it anew from the log.
pub(crate) fn reset(index: &File) -> io::Result<()> {
    index.write_all_at(&[0; HEADERS], 0)
}

/// True if another process has what this one needs, for a moment.
pub(crate) fn is_taken(error: &io::Error) -> bool {
    let taken = [Errno::EAGAIN, Errno::EACCES].map(|error| Some(error as i32));
    taken.contains(&error.raw_os_error())
}
