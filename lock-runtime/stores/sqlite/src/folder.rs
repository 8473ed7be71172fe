//! The folder beside the database: a lock file and a socket for each client.
//!
//! A client creates its file and locks it before it writes its first row. The kernel frees the lock
//! when the process ends, however it ends. Whoever can lock the file of a client knows that the
//! client is over.
//!
//! A file is deleted only under its lock, and its client checks after locking it that it is still
//! there. So nobody locks a file that is no longer in the folder. A file that is missing proves
//! nothing: somebody may have cleaned up by hand, and the holds last as long as their leases.
//!
//! `flock` and no record lock: a record lock is lost as soon as the process closes any handle to
//! the file, as a copying of the folder does. But a child that was forked has the `flock` of its
//! parent as well. So a client is also over if its process is gone.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::kill;
use nix::unistd::Pid;

use crate::machine;

/// The ends of the names.
const LOCK: &str = "lock";
const SOCKET: &str = "sock";

/// The folder beside a database.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Of this process; see [`machine::process_space`].
    space: Option<i64>,
}

/// The lock file of this client. Its lock ends with this value.
#[derive(Debug)]
pub(crate) struct OwnFile {
    pub(crate) name: String,
    _lock: Flock<File>,
}

/// What is known of another client's process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    pub(crate) id: Option<i64>,
    pub(crate) space: Option<i64>,
}

impl Folder {
    pub(crate) fn beside(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-clients");
        Self {
            path: path.into(),
            space: machine::process_space(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn socket(&self, name: &str) -> PathBuf {
        self.path.join(name).with_extension(SOCKET)
    }

    fn lock(&self, name: &str) -> PathBuf {
        self.path.join(name).with_extension(LOCK)
    }

    /// This process, as others find it.
    pub(crate) fn own_process(&self) -> Process {
        Process {
            id: Some(i64::from(std::process::id())),
            space: self.space,
        }
    }

    /// Creates and locks a file of this client's own.
    pub(crate) fn enter(&self) -> io::Result<OwnFile> {
        match fs::create_dir(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        loop {
            // Rises, so that no name comes again in this boot.
            let name = format!("{:x}", machine::boot_nanos()?);
            let path = self.lock(&name);
            let file = match File::create_new(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            };
            // Somebody who cleans up may have been faster. Then it is deleted.
            let lock = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => lock,
                Err((_, Errno::EWOULDBLOCK)) => continue,
                Err((_, error)) => return Err(error.into()),
            };
            let there = fs::metadata(&path).map(|there| there.ino()).ok();
            if there == Some(lock.metadata()?.ino()) {
                return Ok(OwnFile { name, _lock: lock });
            }
        }
    }

    /// True if the client with this file is certainly over.
    pub(crate) fn is_over(&self, name: &str, process: Process) -> bool {
        if let Ok(file) = File::open(self.lock(name))
            && Flock::lock(file, FlockArg::LockSharedNonblock).is_ok()
        {
            return true;
        }
        self.is_gone(process)
    }

    /// True if the client with this file is certainly not over.
    pub(crate) fn is_locked(&self, name: &str) -> bool {
        File::open(self.lock(name)).is_ok_and(|file| {
            let lock = Flock::lock(file, FlockArg::LockSharedNonblock);
            matches!(lock, Err((_, Errno::EWOULDBLOCK)))
        })
    }

    /// True if the process certainly does not exist any more.
    fn is_gone(&self, process: Process) -> bool {
        let same_space = self.space.is_some() && self.space == process.space;
        let id = process.id.and_then(|id| i32::try_from(id).ok());
        let id = id.filter(|id| same_space && *id > 0);
        id.is_some_and(|id| kill(Pid::from_raw(id), None) == Err(Errno::ESRCH))
    }

    /// Deletes the files of a client that is over.
    pub(crate) fn clear(&self, name: &str) {
        let Ok(file) = File::open(self.lock(name)) else {
            return;
        };
        if let Ok(_lock) = Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            self.delete(name);
        }
    }

    /// Deletes this client's own files.
    pub(crate) fn leave(&self, own: OwnFile) {
        self.delete(&own.name);
        drop(own);
    }

    /// Under the lock of the file. What can't be deleted stays: it does no harm.
    fn delete(&self, name: &str) {
        let _ = fs::remove_file(self.socket(name));
        let _ = fs::remove_file(self.lock(name));
    }

    /// Deletes the files of clients that are over, if `is_known` has no row of them.
    pub(crate) fn clear_strays(&self, is_known: impl Fn(&str) -> bool) {
        let Ok(entries) = fs::read_dir(&self.path) else {
            return;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|end| end == LOCK)
                && let Some(name) = path.file_stem().and_then(|name| name.to_str())
                && !is_known(name)
            {
                self.clear(name);
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]
mod tests {
    use super::*;

    const UNKNOWN: Process = Process {
        id: None,
        space: None,
    };

    fn folder() -> (tempfile::TempDir, Folder) {
        let parent = tempfile::tempdir().unwrap();
        let folder = Folder::beside(&parent.path().join("locks.db"));
        (parent, folder)
    }

    #[test]
    fn a_client_is_over_when_its_lock_is_free() {
        let (_parent, folder) = folder();
        let own = folder.enter().unwrap();
        let name = own.name.clone();
        assert!(!folder.is_over(&name, UNKNOWN));
        assert!(!folder.is_over(&name, folder.own_process()));
        drop(own);
        assert!(folder.is_over(&name, UNKNOWN));
    }

    #[test]
    fn a_file_that_is_missing_proves_nothing() {
        let (_parent, folder) = folder();
        folder.enter().unwrap();
        assert!(!folder.is_over("missing", UNKNOWN));
        assert!(!folder.is_over("missing", folder.own_process()));
    }

    #[test]
    fn only_files_of_clients_that_are_over_are_deleted() {
        let (_parent, folder) = folder();
        let own = folder.enter().unwrap();
        let over = folder.enter().unwrap().name;
        let known = folder.enter().unwrap().name;
        folder.clear_strays(|name| name == known);
        let there = |name: &str| folder.lock(name).exists();
        assert!(there(&own.name) && !there(&over) && there(&known));
        folder.clear(&own.name);
        let name = own.name.clone();
        assert!(there(&name));
        folder.leave(own);
        assert!(!there(&name));
    }

    /// A child that was forked keeps the lock of its parent.
    #[test]
    fn a_client_is_over_when_its_process_is_gone() {
        let (_parent, folder) = folder();
        let own = folder.enter().unwrap();
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let mut process = Process {
            id: Some(ended.id().into()),
            ..folder.own_process()
        };
        assert!(folder.is_over(&own.name, process));
        // In another space, the same number is another process.
        process.space = process.space.map(|space| space + 1);
        assert!(!folder.is_over(&own.name, process));
    }
}
