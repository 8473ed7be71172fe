//! Placeholders whose values can't be displayed: one error each, at the template.

use lock_runtime::{LockError, distributed_lock};

type Result<T> = std::result::Result<T, LockError>;

struct Opaque {
    inner: Vec<u8>,
}

impl Opaque {
    fn get(&self) -> &[u8] {
        &self.inner
    }
}

#[distributed_lock(key = "a:<opaque>")]
async fn parameter(opaque: Opaque) -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a:<opaque.inner>")]
async fn field(opaque: Opaque) -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a:<opaque.get()>")]
async fn method(opaque: Opaque) -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a:<opaque.outer>")]
async fn no_such_field(opaque: Opaque) -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a:<opaque>")]
async fn generic<T>(opaque: T) -> Result<()> {
    Ok(())
}

fn main() {
    let opaque = Opaque { inner: Vec::new() };
    let _ = lock_runtime::lock_key!("a:<opaque>");
}
