//! Cluster slots: the slot of a name, and a name for each slot.

use std::sync::LazyLock;

/// The number of slots.
pub(crate) const SLOTS: u16 = 16384;

/// The slot of a hash tag, or of a name without one: CRC16 (XMODEM), as the Redis Cluster
/// specification defines it.
pub(crate) fn slot_of(hashed: &str) -> u16 {
    let crc = hashed.bytes().fold(0u16, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 {
                crc << 1
            } else {
                (crc << 1) ^ 0x1021
            }
        })
    });
    crc % SLOTS
}

/// A hash tag that lies in this slot, the same number in every client.
pub(crate) fn tag_in(slot: u16) -> u32 {
    static TAGS: LazyLock<Vec<u32>> = LazyLock::new(|| {
        let mut tags = vec![None; usize::from(SLOTS)];
        let mut missing = tags.len();
        for tag in 0u32.. {
            let found = &mut tags[usize::from(slot_of(&tag.to_string()))];
            if found.is_none() {
                *found = Some(tag);
                missing -= 1;
            }
            if missing == 0 {
                break;
            }
        }
        tags.into_iter().flatten().collect()
    });
    TAGS[usize::from(slot % SLOTS)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_specification() {
        assert_eq!(slot_of("123456789"), 0x31C3);
    }

    #[test]
    fn every_slot_has_a_tag_that_lies_in_it() {
        for slot in 0..SLOTS {
            assert_eq!(slot_of(&tag_in(slot).to_string()), slot);
        }
    }
}
