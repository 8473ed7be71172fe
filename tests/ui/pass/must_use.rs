//! `#[must_use]`, above and below the attribute.

#[path = "../support.rs"]
mod support;

use lock_runtime::distributed_lock;

#[must_use = "the number tells what was sold"]
#[distributed_lock(key = "plain", on_error = |_| 0)]
pub(crate) async fn with_must_use() -> u32 {
    7
}

#[distributed_lock(key = "plain", on_error = |_| 0)]
#[must_use = "the number tells what was sold"]
pub(crate) async fn with_must_use_below() -> u32 {
    7
}

#[expect(unused_must_use, reason = "it is still there")]
async fn forgets() {
    with_must_use().await;
}

#[expect(unused_must_use, reason = "it is still there")]
async fn forgets_the_other() {
    with_must_use_below().await;
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(with_must_use().await, 7);
        assert_eq!(with_must_use_below().await, 7);
        forgets().await;
        forgets_the_other().await;
    });
}
