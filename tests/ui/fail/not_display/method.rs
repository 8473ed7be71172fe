//! A method that gives something without `Display`.

use lock_runtime::{LockError, distributed_lock};

struct Opaque;

impl Opaque {
    fn get(&self) -> &[u8] {
        &[]
    }
}

#[distributed_lock(key = "a:<opaque.get()>")]
async fn work(opaque: Opaque) -> Result<(), LockError> {
    Ok(())
}

fn main() {}
