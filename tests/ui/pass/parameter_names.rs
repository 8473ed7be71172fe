//! Parameters with names that the expansion could use itself, or that the body shadows.

#[path = "../support.rs"]
mod support;

use std::time::Duration;

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a:<a>")]
async fn shadowed(a: u32) -> Result<u32, LockError> {
    let a = a + 1;
    Ok(a)
}

#[distributed_lock(key = "key:<key>:<guard>")]
async fn names_like_ours(
    key: u8,
    guard: u8,
    error: u8,
    value: u8,
    client: u8,
) -> Result<u8, LockError> {
    Ok(key + guard + error + value + client)
}

struct Words {
    client: u8,
    key: u8,
    slot: u8,
    place: u8,
}

// Each of these is taken apart in the body, so that the expansion makes a name of it.
#[distributed_lock(key = "slot:<slot>")]
async fn bound_early(Words { slot, .. }: Words, (place, _): (u8, u8)) -> Result<u8, LockError> {
    Ok(slot + place)
}

#[distributed_lock(key = "late", lease = "10s", wait = Duration::from_secs(1), fence = token)]
async fn bound_late(
    Words { client, .. }: Words,
    (key, _): (u8, u8),
    (keys, _): (u8, u8),
    (lease, _): (u8, u8),
    ref wait: u8,
    (guard, _): (u8, u8),
    (convert, _): (u8, u8),
) -> Result<u8, LockError> {
    assert!(u64::from(token) > 0);
    Ok(client + key + keys + lease + wait + guard + convert)
}

#[distributed_lock(key = "counted")]
async fn like_a_counted_one(
    (arg1, _): (u8, u8),
    _: u8,
    (arg3, _): (u8, u8),
) -> Result<u8, LockError> {
    Ok(arg1 + arg3)
}

#[distributed_lock(key = "skipped", on_busy = "skip")]
async fn may_be_skipped((skipped, _): (u8, u8)) -> Result<Option<u8>, LockError> {
    Ok(Some(skipped))
}

fn words() -> Words {
    Words {
        client: 1,
        key: 2,
        slot: 3,
        place: 4,
    }
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(shadowed(1).await.unwrap(), 2);
        assert_eq!(names_like_ours(1, 2, 3, 4, 5).await.unwrap(), 15);
        let Words { key, place, .. } = words();
        assert_eq!(bound_early(words(), (place, 0)).await.unwrap(), 7);
        let two = (key, 0);
        let late = bound_late(words(), two, two, two, 2, two, two).await;
        assert_eq!(late.unwrap(), 13);
        assert_eq!(like_a_counted_one(two, 0, two).await.unwrap(), 4);
        assert_eq!(may_be_skipped(two).await.unwrap(), Some(2));
    });
}
