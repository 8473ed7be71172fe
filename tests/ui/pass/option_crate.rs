//! `crate`: the path of a re-export, for the attribute and for `lock_key!`.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

mod facade {
    pub(crate) mod inner {
        pub(crate) use lock_runtime::*;
    }
}

#[distributed_lock(key = "facade:<id>", crate = facade::inner, guard = hold)]
async fn through_a_facade(id: u8) -> Result<u8, LockError> {
    assert!(hold.is_held());
    Ok(id)
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(through_a_facade(1).await.unwrap(), 1);
        let id = 3;
        let key = lock_runtime::lock_key!("facade:<id>", crate = facade::inner);
        assert_eq!(key, lock_runtime::LockKey::from("facade:3"));
    });
}
