//! The machine's boot, and its clocks.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use nix::sys::statfs::{PROC_SUPER_MAGIC, statfs};
use nix::sys::time::TimeValLike;
use nix::time::ClockId;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The end of an id that is not the kernel's. Containers of LXC and systemd-nspawn have a file of
/// their own in its place, with another id at each start.
const MASKED: &str = " masked";

/// Changes whenever the machine starts. One that [is masked](is_masked) tells nothing of that.
pub(crate) fn boot_id() -> io::Result<String> {
    let id = fs::read_to_string(BOOT_ID)?;
    let id = id.trim();
    if id.is_empty() {
        return Err(io::Error::other("the machine's boot id is empty"));
    }
    let is_masked = statfs(BOOT_ID).is_ok_and(|it| it.filesystem_type() != PROC_SUPER_MAGIC);
    Ok(format!("{id}{}", if is_masked { MASKED } else { "" }))
}

/// True if another id is no proof of another boot.
pub(crate) fn is_masked(boot: &str) -> bool {
    boot.ends_with(MASKED)
}

/// Nanoseconds since the machine started, with the time of its sleep. The same in all processes.
pub(crate) fn boot_nanos() -> io::Result<i64> {
    let now = ClockId::CLOCK_BOOTTIME.now()?;
    Ok(now.num_nanoseconds())
}

/// True if this process's boot time is not the machine's: it is in a time namespace with an offset.
pub(crate) fn has_own_boot_time() -> bool {
    fs::read_to_string("/proc/self/timens_offsets").is_ok_and(|offsets| is_shifted(&offsets))
}

fn is_shifted(offsets: &str) -> bool {
    offsets.lines().any(|line| {
        let mut words = line.split_whitespace();
        words.next() == Some("boottime") && words.any(|number| number != "0")
    })
}

/// Says which processes this one's process ids mean. `None` if that is unknown.
pub(crate) fn process_space() -> Option<i64> {
    let space = fs::metadata("/proc/self/ns/pid").ok()?;
    i64::try_from(space.ino()).ok()
}

/// A number of nanoseconds, or zero if it is negative.
pub(crate) fn duration(nanos: i64) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boot_has_a_name_and_a_time() {
        assert!(boot_id().is_ok_and(|id| id.trim_end_matches(MASKED).len() == 36));
        assert!(boot_nanos().is_ok_and(|nanos| nanos > 0));
        assert!(process_space().is_some());
    }

    #[test]
    fn an_offset_of_the_boot_time_is_seen() {
        let plain = "monotonic           0         0\nboottime            0         0\n";
        assert!(!is_shifted(plain));
        let other = "monotonic         100         0\nboottime            0         0\n";
        assert!(!is_shifted(other));
        for shifted in [
            "boottime 86400 0",
            "monotonic 0 0\nboottime -5 0",
            "boottime 0 7",
        ] {
            assert!(is_shifted(shifted), "{shifted}");
        }
    }
}
