//! Cluster slots: the slot of a name, and a name for each slot.

use std::sync::LazyLock;

/// The number of slots.
pub(crate) const SLOTS: u16 = 16384;

/// The slot of a hash tag, or of a name without one: CRC16 (XMODEM), as the Redis Cluster
/// specification defines it.
pub(crate) fn slot_of(hashed: &str) -> u16 {
    hashed.bytes().fold(0, checksum) % SLOTS
}

/// The checksum of what stands before a byte, with that byte.
fn checksum(before: u16, byte: u8) -> u16 {
    let [high, low] = before.to_be_bytes();
    (u16::from(low) << 8) ^ OF_BYTE[usize::from(high ^ byte)]
}

/// The checksums of all bytes.
static OF_BYTE: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc << 1) ^ (0x1021 * (crc >> 15));
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// A hash tag that lies in this slot: the smallest number that does, the same in every client.
pub(crate) fn tag_in(slot: u16) -> u32 {
    // The first release of a client waits for this: it must be quick.
    static TAGS: LazyLock<Vec<u32>> = LazyLock::new(|| {
        let (mut tags, mut checksums) = (vec![None; usize::from(SLOTS)], Vec::<u16>::new());
        let mut missing = tags.len();
        for (tag, digit) in (0_u32..).zip((b'0'..=b'9').cycle()) {
            // That of the digits before is known.
            let before = checksums.get(tag as usize / 10).filter(|_| tag >= 10);
            let checksum = checksum(before.copied().unwrap_or(0), digit);
            checksums.push(checksum);
            let found = &mut tags[usize::from(checksum % SLOTS)];
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
        // Clients of other versions hear each other.
        assert_eq!([0, 1, 16_383].map(tag_in), [3_560, 22_179, 39_296]);
    }
}
