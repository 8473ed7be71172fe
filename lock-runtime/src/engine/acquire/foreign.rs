//! [`ForeignHolder`]: a key that a client holds which knows no queue.
//!
//! Such a client frees the key and tells nobody, and may take it again at once. So whoever waits
//! looks often, at times that no loop of the other client can be in step with.

use lock_store::{Holder, Instant, Owner};

use crate::engine::timing;

/// What a waiting request has seen of such a holder.
#[derive(Debug, Default)]
pub(super) struct ForeignHolder {
    /// What it wrote, by its hash, and since when that is there.
    seen: Option<(u64, Instant)>,
    looks: u64,
}

impl ForeignHolder {
    /// When to look again; `None` if the holder is one of this library's, or not known.
    pub(super) fn recheck_at(
        &mut self,
        holder: Option<Holder>,
        owner: Owner,
        now: Instant,
    ) -> Option<Instant> {
        let Some(Holder::Foreign(value)) = holder else {
            self.seen = None;
            return None;
        };
        let (_, since) = *self
            .seen
            .take_if(|(seen, _)| *seen == value)
            .get_or_insert((value, now));
        self.seen = Some((value, since));
        self.looks += 1;
        let scattered = scatter(owner.request.wrapping_add(self.looks));
        Some(timing::recheck_beside_foreign(now, since, scattered))
    }
}

/// The generator of Steele, Lea and Flood (SplitMix64): the same in each run of a simulation.
fn scatter(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
