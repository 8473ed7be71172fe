//! Names that do not exist. Beside mistakes in attributes, the compiler would not report
//! them.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "a", rate = "1/s")]
async fn generated_key() -> Result<u8, LockError> {
    Ok(__lock_key)
}

#[rate_limited(key = "a", rate = "1/s", wait = "1s", crate = nowhere::lock)]
async fn crate_path() -> Result<(), LockError> {
    Ok(())
}

fn main() {}
