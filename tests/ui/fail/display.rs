//! Placeholders that have no text.

use lock_runtime::{LockError, distributed_lock, lock_key};

struct Opaque {
    inner: Vec<u8>,
}

impl Opaque {
    fn get(&self) -> &[u8] {
        &[]
    }
}

#[distributed_lock(key = "a:<opaque>")]
async fn parameter(opaque: Opaque) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a:<opaque>")]
async fn generic<T>(opaque: T) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a:<opaque.inner>")]
async fn field(opaque: Opaque) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a:<opaque.get()>")]
async fn method(opaque: Opaque) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a:<opaque.outer>")]
async fn no_such_field(opaque: Opaque) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a:<opaque.xyzzy()>")]
async fn no_such_method(opaque: Opaque) -> Result<(), LockError> {
    Ok(())
}

fn in_lock_key() {
    let opaque = Opaque { inner: Vec::new() };
    let _ = lock_key!("a:<opaque>");
}

fn main() {}
