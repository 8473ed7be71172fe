//! Type parameters of the function, and of the type that it belongs to.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};
use std::fmt::Display;

#[distributed_lock(key = "generic:<id>")]
async fn generic<T: Display, V>(id: T, values: Vec<V>) -> Result<usize, LockError> {
    Ok(values.len())
}

struct Repository<T>(T);

impl<T: Display> Repository<T> {
    #[distributed_lock(key = "repository:<self.0>:<other>")]
    async fn load<U: Display>(&self, other: U) -> Result<String, LockError> {
        Ok(format!("{}{other}", self.0))
    }
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(
            support::assert_send(generic(1, vec!['a'])).await.unwrap(),
            1
        );
        let repository = Repository(1);
        assert_eq!(
            support::assert_send(repository.load(2)).await.unwrap(),
            "12"
        );
    });
}
