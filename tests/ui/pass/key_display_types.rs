//! Other types with `Display`: `bool`, floats, `Cow`, a boxed `dyn Display`.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, LockKey, distributed_lock};
use std::borrow::Cow;
use std::fmt::Display;

#[distributed_lock(key = "<flag>:<number>:<cow>:<boxed>", guard = lock)]
async fn types(
    flag: bool,
    number: f32,
    cow: Cow<'_, str>,
    boxed: Box<dyn Display + Send + Sync>,
) -> Result<LockKey, LockError> {
    drop((cow, boxed));
    Ok(lock.key().clone())
}

pub(crate) fn main() {
    support::run(async {
        let key = types(true, 0.5, "c".into(), Box::new(1.5)).await.unwrap();
        assert_eq!(key, LockKey::from("true:0.5:c:1.5"));
    });
}
