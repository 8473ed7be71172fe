//! [`Looks`]: one look at a key at a time.

use std::collections::HashMap;

use super::names::KeyNode;
use crate::mutex::Mutex;

/// The keys that are looked at, and whether they have changed since.
#[derive(Debug, Default)]
pub struct Looks(Mutex<HashMap<KeyNode, bool>>);

impl Looks {
    /// True if nobody looks at this key: the caller does so now. Else whoever does looks again.
    pub fn begin(&self, node: &KeyNode) -> bool {
        let mut looks = self.0.lock();
        match looks.get_mut(node) {
            Some(again) => *again = true,
            None => {
                looks.insert(node.clone(), false);
                return true;
            }
        }
        false
    }

    /// Whether the one who looks is to look again.
    pub fn goes_on(&self, node: &KeyNode) -> bool {
        let mut looks = self.0.lock();
        match looks.get_mut(node) {
            Some(again) if *again => *again = false,
            _ => {
                looks.remove(node);
                return false;
            }
        }
        true
    }
}
