//! How many semaphores are remembered.

use super::*;

#[test]
fn no_more_than_so_many_are_remembered() {
    let limits = OtherLimits::default();
    for number in 0..REMEMBERED + 5 {
        limits.met(&LockKey::from(number.to_string()), 1, 2);
    }
    assert_eq!(limits.told.lock().len(), REMEMBERED);
}
