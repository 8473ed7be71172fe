//! The base of a namespace's [tokens](crate::tokens), as its node has it.

use std::collections::HashMap;

use lock_store::{Mutex, wall_micros};

/// The base of a new namespace, as its node has it.
pub(crate) fn first_base() -> Vec<u8> {
    wall_micros().to_string().into_bytes()
}

/// The base in a node's data. `None`: it is somebody else's.
pub(crate) fn base_in(data: &[u8]) -> Option<u64> {
    std::str::from_utf8(data).ok()?.parse().ok()
}

/// The bases that were read and are watched, by the paths of their nodes.
///
/// A server tells of a change before it shows anything that came later. So what is here is as new
/// as what was read over the same connection.
#[derive(Debug, Default)]
pub(crate) struct KnownBases(Mutex<Bases>);

#[derive(Debug, Default)]
struct Bases {
    known: HashMap<String, u64>,
    /// Rises with each change that was heard of.
    changes: u64,
}

impl KnownBases {
    /// The base, or how many changes were heard of before it is asked for.
    pub(crate) fn get(&self, path: &str) -> Result<u64, u64> {
        let bases = self.0.lock();
        bases.known.get(path).copied().ok_or(bases.changes)
    }

    /// It was asked for when this number of changes was heard of.
    pub(crate) fn note(&self, path: &str, base: u64, changes: u64) {
        let mut bases = self.0.lock();
        if bases.changes == changes {
            bases.known.insert(path.to_owned(), base);
        }
    }

    /// This node has changed.
    pub(crate) fn forget(&self, path: &str) {
        let mut bases = self.0.lock();
        bases.changes += 1;
        bases.known.remove(path);
    }

    /// The connection is gone, and what was watched over it.
    pub(crate) fn forget_all(&self) {
        let mut bases = self.0.lock();
        bases.changes += 1;
        bases.known.clear();
    }
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

    #[test]
    fn a_base_that_changed_while_it_was_read_is_not_kept() {
        let bases = KnownBases::default();
        let Err(changes) = bases.get("/a") else {
            unreachable!("nothing is known yet")
        };
        bases.forget("/a");
        bases.note("/a", 7, changes);
        assert_eq!(bases.get("/a"), Err(changes + 1));
        bases.note("/a", 8, changes + 1);
        assert_eq!(bases.get("/a"), Ok(8));
        bases.forget_all();
        assert_eq!(bases.get("/a"), Err(changes + 2));
    }
}
