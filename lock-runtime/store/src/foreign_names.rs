//! [`ForeignNames`]: the names of holders that are clients of other libraries.

use crate::mutex::Mutex;
use crate::owner::{FoundHolder, Holder};
use crate::sweeping_map::SweepingMap;

/// The names of holders that a store has told of lately, for
/// [`Store::foreign_name`](crate::Store::foreign_name).
#[derive(Debug, Default)]
pub struct ForeignNames(Mutex<SweepingMap<Holder, String>>);

impl ForeignNames {
    /// Remembers the name of a holder that is not of this library: the text that was found.
    pub fn note(&self, found: &FoundHolder) {
        if let FoundHolder::Foreign(name) = found {
            let mut names = self.0.lock();
            // They are idle at once: the last few hundred stay.
            names.sweep(|_| false);
            names.insert(found.who(), name.clone());
        }
    }

    /// The name of a holder, if it was told of lately.
    #[must_use]
    pub fn of(&self, holder: Holder) -> Option<String> {
        self.0.lock().get(&holder).cloned()
    }
}
