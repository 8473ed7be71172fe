//! How many semaphores are remembered.

use super::*;

#[test]
fn the_first_hundred_are_remembered() {
    let limits = OtherLimits::default();
    for number in 0..REMEMBERED + 5 {
        limits.met(&LockKey::from(number.to_string()), 1, 2);
    }
    assert_eq!(limits.told.lock().len(), REMEMBERED);
}
