//! Where the database may be: in a folder of this machine that exists.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use lock_store::ConfigError;
use nix::libc;
use nix::sys::statfs::statfs;

/// File systems that several machines can share, by their numbers in the kernel. Locks on their
/// files need not exclude, and a lease on the boot time of another machine means nothing.
const SHARED: [(u32, &str); 17] = [
    (0x6969, "NFS"),
    (0xFF53_4D42, "CIFS"),
    (0xFE53_4D42, "SMB"),
    (0x517B, "SMB"),
    // sshfs, GlusterFS, s3fs, virtiofs and the folders that a virtual machine shares with its host.
    (0x6573_5546, "FUSE"),
    (0x0102_1997, "9P"),
    (0x00C3_6400, "Ceph"),
    (0x5346_414F, "AFS"),
    (0x6B41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x564C, "NCP"),
    (0x0BD0_0BD0, "Lustre"),
    (0x7461_636F, "OCFS2"),
    (0x0116_1970, "GFS2"),
    (0x786F_4256, "vboxsf"),
    (0xBACB_ACBC, "vmhgfs"),
    (0x2030_528A, "OrangeFS"),
];

/// Checks the place of the database file, which need not exist yet.
pub(crate) fn check(path: &Path) -> Result<(), ConfigError> {
    let shown = path.display();
    if path.is_dir() {
        return Err(ConfigError::new(format!(
            "{shown} is a folder; name a file in it, as `sqlite://{shown}/locks.db`"
        )));
    }
    let Some(folder) = path.parent() else {
        return Err(ConfigError::new(format!("{shown} is no file; name one")));
    };
    let folder_shown = folder.display();
    match folder.metadata() {
        Ok(found) if found.is_dir() => {}
        Ok(_) => {
            return Err(ConfigError::new(format!(
                "{folder_shown} is no folder; name a file in a folder"
            )));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(ConfigError::new(format!(
                "the folder {folder_shown} does not exist; create it, or correct the path"
            )));
        }
        Err(error) => {
            return Err(ConfigError::new(format!(
                "the folder {folder_shown} can't be used: {error}"
            )));
        }
    }
    // The file itself can be a link to another file system.
    for place in [folder, path] {
        if let Ok(found) = statfs(place) {
            refuse_shared(
                u64::from_ne_bytes(found.filesystem_type().0.to_ne_bytes()),
                path,
            )?;
        }
    }
    refuse_mounted(path)
}

/// The log and the index are found by the file's name, in its folder. As the only file that is
/// mounted, it has others there than in the folder that it comes from.
fn refuse_mounted(path: &Path) -> Result<(), ConfigError> {
    let Ok(file) = path.canonicalize() else {
        return Ok(());
    };
    match file.parent().map(mount_of) {
        Some(Some(mount)) if mount_of(&file).is_some_and(|of_file| of_file != mount) => {
            Err(ConfigError::new(format!(
                "{} is mounted by itself, so its log would be another one than where it comes \
                 from; mount the folder that it is in",
                file.display()
            )))
        }
        _ => Ok(()),
    }
}

/// The kernel's number of the mount that a path leads into.
fn mount_of(path: &Path) -> Option<String> {
    let mut options = File::options();
    // It does not open the file: closing it would end SQLite's locks there.
    let file = options.read(true).custom_flags(libc::O_PATH).open(path);
    let info = format!("/proc/self/fdinfo/{}", file.as_ref().ok()?.as_raw_fd());
    let info = fs::read_to_string(info).ok()?;
    let mount = info.lines().find_map(|line| line.strip_prefix("mnt_id:"));
    mount.map(str::to_owned)
}

fn refuse_shared(number: u64, path: &Path) -> Result<(), ConfigError> {
    let number = number & u64::from(u32::MAX);
    match SHARED
        .iter()
        .find(|(shared, _)| u64::from(*shared) == number)
    {
        None => Ok(()),
        Some((_, name)) => Err(ConfigError::new(format!(
            "{} is on a file system that several machines can share ({name}), where SQLite's locks \
             need not exclude; name a file on a disk of this machine, or use a server, as Redis",
            path.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_place_that_can_not_be_used_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let (file, missing) = (folder.path().join("file"), folder.path().join("missing"));
        fs::write(&file, "").unwrap();
        assert_eq!(check(&file), Ok(()));
        assert_eq!(check(&missing), Ok(()));
        for (path, says) in [
            (folder.path().to_owned(), "is a folder; name a file in it"),
            (missing.join("locks.db"), "does not exist; create it"),
            (file.join("locks.db"), "is no folder"),
        ] {
            let error = check(&path).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_file_system_of_several_machines_is_refused() {
        let path = Path::new("/mnt/locks.db");
        // ext4, XFS, Btrfs, tmpfs, overlayfs, ZFS.
        for local in [
            0xEF53,
            0x5846_5342,
            0x9123_683E,
            0x0102_1994,
            0x794C_7630,
            0x2FC1_2FC1,
        ] {
            assert_eq!(refuse_shared(local, path), Ok(()), "{local:x}");
        }
        // The kernel's number is signed on some machines.
        for (shared, name) in [
            (0x6969, "NFS"),
            (0xFFFF_FFFF_FF53_4D42, "CIFS"),
            (0x6573_5546, "FUSE"),
        ] {
            let error = refuse_shared(shared, path).unwrap_err().to_string();
            assert!(
                error.contains(name) && error.contains("/mnt/locks.db"),
                "{error}"
            );
        }
    }
}
