//! Parameters that the body never mentions: `_`, `_named`, and one that only the key needs.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "ignored")]
async fn ignored(_: String, _named: String) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "key:<id>:<name>")]
async fn for_the_key_only(id: u32, name: String) -> Result<(), LockError> {
    Ok(())
}

pub(crate) fn main() {
    support::run(async {
        ignored(String::new(), String::new()).await.unwrap();
        for_the_key_only(1, "a".to_owned()).await.unwrap();
    });
}
