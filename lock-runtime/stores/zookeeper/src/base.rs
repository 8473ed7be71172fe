//! The base of a namespace's [tokens](crate::tokens), as its node has it.

use std::time::SystemTime;

/// The base of a new namespace, as its node has it.
pub(crate) fn first_base() -> Vec<u8> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let micros = now.map_or(0, |now| u64::try_from(now.as_micros()).unwrap_or(0));
    micros.to_string().into_bytes()
}

/// The base in a node's data. `None`: it is somebody else's.
pub(crate) fn base_in(data: &[u8]) -> Option<u64> {
    std::str::from_utf8(data).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_written_and_read() {
        let base = base_in(&first_base());
        assert!(base.is_some_and(|base| base > 1_700_000_000_000_000));
        assert_eq!(base_in(b"somebody's"), None);
        assert_eq!(base_in(b""), None);
    }
}
