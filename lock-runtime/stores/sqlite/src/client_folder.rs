//! The folder beside the database: a lock file and a socket for each client.
//!
//! A client creates its file and locks it before it writes its first row. The kernel frees the lock
//! when the process ends, however it ends. Whoever can lock the file of a client knows that the
//! client is over.
//!
//! A file is deleted only under its lock, and its client checks after locking it that it is still
//! there. So nobody locks a file that is no longer in the folder. A file that is missing proves
//! nothing: somebody may have cleaned up by hand, and the holds last as long as their leases. Nor
//! does one that took its place, as when a folder is copied back: each file has its own number
//! (inode) in it, which a copy does not have.
//!
//! The folder may be somebody else's, or a link to another. So each use opens it, looks at what it
//! has opened, and goes on from there. Only files with names that clients make are touched.
//!
//! `flock` and no record lock: a record lock is lost as soon as the process closes any handle to
//! the file, as a copying of the folder does. But a child that was forked has the `flock` of its
//! parent as well. So a client is also over if its process is gone.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::libc;
use nix::sys::signal::kill;
use nix::unistd::{Pid, geteuid};

use crate::database_locks::open_itself;
use crate::files::is_missing;
use crate::machine;

/// The end of the name of a client's file.
const LOCK: &str = "lock";
/// The end of the name of its socket.
const SOCKET: &str = "sock";

/// The folder beside a database.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    database: PathBuf,
    /// Of this process; see [`machine::process_space`].
    space: Option<i64>,
}

/// The folder itself, whatever its path leads to meanwhile.
#[derive(Debug)]
pub(crate) struct OpenFolder(File);

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

fn refused(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// True for what [`Folder::enter`] makes.
fn is_name(name: &str) -> bool {
    i64::from_str_radix(name, 16).is_ok_and(|nanos| nanos > 0 && format!("{nanos:x}") == name)
}

/// True for a file as its client made it, and false for one that took its place.
fn is_original(file: &File) -> bool {
    let mut text = [0; 20];
    let read = file.read_at(&mut text, 0).unwrap_or(0);
    let number = str::from_utf8(&text[..read]).ok();
    let number = number.and_then(|text| text.parse().ok());
    file.metadata()
        .is_ok_and(|found| number == Some(found.ino()))
}

impl OpenFolder {
    fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }

    /// Also shorter than a socket's path may be.
    pub(crate) fn socket(&self, name: &str) -> PathBuf {
        self.path().join(name).with_extension(SOCKET)
    }

    fn lock(&self, name: &str) -> PathBuf {
        self.path().join(name).with_extension(LOCK)
    }

    /// Opens a client's lock file. `None`: it is not there.
    fn open(&self, name: &str) -> io::Result<Option<File>> {
        if !is_name(name) {
            return Ok(None);
        }
        match open_itself(&self.lock(name), false) {
            Ok(file) => Ok(file.metadata()?.is_file().then_some(file)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Under the lock of the file. What can't be deleted stays: it does no harm.
    fn delete(&self, name: &str) {
        let _ = fs::remove_file(self.socket(name));
        let _ = fs::remove_file(self.lock(name));
    }

    /// Deletes the files of a client that is over.
    fn clear(&self, name: &str) {
        if let Ok(Some(file)) = self.open(name)
            && let Ok(_lock) = Flock::lock(file, FlockArg::LockExclusiveNonblock)
        {
            self.delete(name);
        }
    }
}

impl Folder {
    pub(crate) fn beside(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-clients");
        Self {
            path: path.into(),
            database: database.to_owned(),
            space: machine::process_space(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The rights of the database file, as SQLite's other files have them.
    fn rights(&self) -> io::Result<u32> {
        Ok(fs::metadata(&self.database)?.mode() & 0o666)
    }

    /// An error if it is a link, or of a third user.
    pub(crate) fn open(&self) -> io::Result<OpenFolder> {
        let folder = match open_itself(&self.path, false) {
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
                return Err(refused(
                    "it is a link, and a folder is needed; delete the link",
                ));
            }
            folder => folder?,
        };
        let found = folder.metadata()?;
        if !found.is_dir() {
            return Err(refused("it is no folder, and one is needed; delete it"));
        }
        let owner = found.uid();
        if owner != geteuid().as_raw() && owner != fs::metadata(&self.database)?.uid() {
            return Err(refused(&format!(
                "the folder belongs to user {owner}, which is neither this process's nor that of \
                 the database file; give it to the latter"
            )));
        }
        Ok(OpenFolder(folder))
    }

    /// Opens the folder, and makes it if it is not there.
    fn make(&self) -> io::Result<OpenFolder> {
        match fs::create_dir(&self.path) {
            Ok(()) => {
                let rights = self.rights()?;
                let folder = self.open()?;
                // Who may read files may look for them.
                let rights = 0o700 | rights | (rights & 0o444) >> 2;
                folder.0.set_permissions(Permissions::from_mode(rights))?;
                Ok(folder)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.open(),
            Err(error) => Err(error),
        }
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
        let folder = self.make()?;
        let rights = Permissions::from_mode(self.rights()?);
        loop {
            // Rises, so that no name comes again in this boot.
            let name = format!("{:x}", machine::boot_nanos()?);
            let path = folder.lock(&name);
            let file = match File::create_new(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            };
            file.set_permissions(rights.clone())?;
            // Somebody who cleans up may have been faster. Then it is deleted.
            let lock = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => lock,
                Err((_, Errno::EWOULDBLOCK)) => continue,
                Err((_, error)) => return Err(error.into()),
            };
            let number = lock.metadata()?.ino();
            lock.write_all_at(number.to_string().as_bytes(), 0)?;
            let there = fs::symlink_metadata(&path).map(|there| there.ino()).ok();
            if there == Some(number) {
                return Ok(OwnFile { name, _lock: lock });
            }
        }
    }

    /// The socket of this client.
    pub(crate) fn bind(&self, own: &OwnFile) -> io::Result<UnixDatagram> {
        let folder = self.open()?;
        let path = folder.socket(&own.name);
        let socket = UnixDatagram::bind(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(self.rights()?))?;
        Ok(socket)
    }

    fn lock_file(&self, name: &str) -> io::Result<Option<File>> {
        self.open()?.open(name)
    }

    /// True if the client with this file is certainly over.
    pub(crate) fn is_over(&self, name: &str, process: Process) -> bool {
        if let Ok(Some(file)) = self.lock_file(name)
            && is_original(&file)
            && Flock::lock(file, FlockArg::LockSharedNonblock).is_ok()
        {
            return true;
        }
        self.is_gone(process)
    }

    /// True if the client with this file is certainly not over, and false if its file is not there
    /// or not locked.
    pub(crate) fn is_locked(&self, name: &str) -> io::Result<bool> {
        let Some(file) = self.lock_file(name)? else {
            return Ok(false);
        };
        match Flock::lock(file, FlockArg::LockSharedNonblock) {
            Ok(_) => Ok(false),
            Err((_, Errno::EWOULDBLOCK)) => Ok(true),
            Err((_, error)) => Err(error.into()),
        }
    }

    /// True if the client with this file is certainly one of this kernel's: no other finds its
    /// socket, whatever file system they share.
    pub(crate) fn is_reached(&self, name: &str) -> bool {
        let reach = || UnixDatagram::unbound()?.connect(self.open()?.socket(name));
        is_name(name) && reach().is_ok()
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
        if let Ok(folder) = self.open() {
            folder.clear(name);
        }
    }

    /// Deletes this client's own files.
    pub(crate) fn leave(&self, own: OwnFile) {
        if let Ok(folder) = self.open() {
            folder.delete(&own.name);
        }
        drop(own);
    }

    /// Deletes the files of clients that are over, if `is_known` has no row of them.
    pub(crate) fn clear_strays(&self, is_known: impl Fn(&str) -> bool) {
        let Ok(folder) = self.open() else {
            return;
        };
        for entry in fs::read_dir(folder.path()).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|end| end == LOCK)
                && let Some(name) = path.file_stem().and_then(|name| name.to_str())
                && !is_known(name)
            {
                folder.clear(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNKNOWN: Process = Process {
        id: None,
        space: None,
    };

    fn folder() -> (tempfile::TempDir, Folder) {
        let parent = tempfile::tempdir().unwrap();
        let database = parent.path().join("locks.db");
        fs::write(&database, "").unwrap();
        let folder = Folder::beside(&database);
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
    fn a_file_that_took_the_place_of_another_proves_nothing() {
        let (parent, folder) = folder();
        let own = folder.enter().unwrap();
        let open = folder.open().unwrap();
        let (path, copy) = (open.lock(&own.name), parent.path().join("copy"));
        for content in [fs::read(&path).unwrap(), Vec::new(), b"x".to_vec()] {
            fs::write(&copy, content).unwrap();
            fs::rename(&copy, &path).unwrap();
            assert!(!folder.is_over(&own.name, UNKNOWN));
            assert!(!folder.is_over(&own.name, folder.own_process()));
        }
    }

    #[test]
    fn only_files_of_clients_that_are_over_are_deleted() {
        let (_parent, folder) = folder();
        let own = folder.enter().unwrap();
        let over = folder.enter().unwrap().name;
        let known = folder.enter().unwrap().name;
        folder.clear_strays(|name| name == known);
        let there = |name: &str| folder.open().unwrap().lock(name).exists();
        assert!(there(&own.name) && !there(&over) && there(&known));
        folder.clear(&own.name);
        let name = own.name.clone();
        assert!(there(&name));
        folder.leave(own);
        assert!(!there(&name));
    }

    #[test]
    fn names_that_no_client_makes_are_not_touched() {
        let (parent, folder) = folder();
        let own = folder.enter().unwrap();
        assert!(is_name(&own.name) && is_name("1a2b"));
        for name in ["", "0", "-1", "+1", "01", "1A", "a.b", "../x", "/x"] {
            assert!(!is_name(name), "{name}");
        }
        fs::write(parent.path().join("x.lock"), "").unwrap();
        folder.clear("../x");
        assert!(parent.path().join("x.lock").exists());
        assert!(!folder.is_over("../x", UNKNOWN));
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
