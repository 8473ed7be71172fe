//! Where servers of tests keep their files.

use nix::sys::statvfs::statvfs;
use tempfile::TempDir;

/// The servers that run at once need less.
const ENOUGH: u64 = 2 << 30;

#[allow(
    clippy::useless_conversion,
    reason = "the numbers are smaller on other systems"
)]
fn free_space(path: &str) -> u64 {
    statvfs(path).map_or(0, |of| {
        u64::from(of.blocks_available()).saturating_mul(u64::from(of.fragment_size()))
    })
}

/// A folder in memory, if there is room: no test is about how long the disk takes.
///
/// # Panics
/// If there is no room on the disk either.
#[must_use]
pub fn temporary_folder() -> TempDir {
    const MEMORY: &str = "/dev/shm";
    let in_memory = (free_space(MEMORY) > ENOUGH).then(|| tempfile::tempdir_in(MEMORY).ok());
    let folder = in_memory.flatten().map_or_else(tempfile::tempdir, Ok);
    folder.expect("a temporary folder")
}
