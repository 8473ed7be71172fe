//! Guards that are dropped at once: warnings, which are errors here. The second lint is off by
//! default; its name stands in the message of the first.
#![deny(let_underscore_drop, unused_must_use)]

use lock_runtime::{LockClient, LockError};

pub async fn holds_nothing(client: &LockClient) -> Result<(), LockError> {
    client.lock("stock").acquire().await?;
    println!("without the lock");
    Ok(())
}

pub async fn holds_nothing_either(client: &LockClient) -> Result<(), LockError> {
    let _ = client.lock("stock").acquire().await?;
    println!("without the lock");
    Ok(())
}

pub async fn asks_nobody(client: &LockClient) {
    client.lock("stock").acquire();
}

fn main() {}
