//! A misspelt parameter in the key.

use lock_runtime::{LockError, rate_limited};

#[rate_limited(key = "api:<ap_id>", rate = "1/s")]
async fn work(app_id: u64) -> Result<(), LockError> {
    Ok(())
}

fn main() {}
