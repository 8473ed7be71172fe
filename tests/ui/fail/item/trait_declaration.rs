//! A declaration in a trait, without a body.

use lock_runtime::{LockError, distributed_lock};

trait Store {
    #[distributed_lock(key = "a")]
    async fn save(&self) -> Result<(), LockError>;
}

fn main() {}
