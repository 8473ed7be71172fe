//! `outlives`: a transaction that the caller commits is meant to outlive the lock.
#![deny(warnings)]

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, distributed_lock};

struct Transaction<'c>(&'c str);

impl Transaction<'_> {
    fn commit(self) -> usize {
        self.0.len()
    }
}

#[distributed_lock(key = "stock:<id>", outlives = true)]
async fn is_meant(id: u64, tx: &mut Transaction<'_>) -> Result<(), LockError> {
    tx.0 = "written";
    Ok(())
}

#[distributed_lock(key = "stock:<id>")]
#[allow(deprecated, reason = "the caller has the lock of the whole order")]
async fn is_allowed(id: u64, tx: &mut Transaction<'_>) -> Result<(), LockError> {
    tx.0 = "written";
    Ok(())
}

/// It ends with the body.
#[distributed_lock(key = "stock:<id>")]
async fn owns(id: u64, mut tx: Transaction<'_>) -> Result<usize, LockError> {
    tx.0 = "written";
    Ok(tx.commit())
}

/// No transaction of a database, as far as anybody can tell.
#[distributed_lock(key = "stock:<id>")]
async fn reads(id: u64, tx: &Transaction<'_>, seen: &mut usize) -> Result<(), LockError> {
    *seen = tx.0.len();
    Ok(())
}

pub(crate) fn main() {
    support::run(async {
        let mut tx = Transaction("");
        is_meant(1, &mut tx).await.unwrap();
        is_allowed(1, &mut tx).await.unwrap();
        let mut seen = 0;
        reads(1, &tx, &mut seen).await.unwrap();
        assert_eq!(owns(1, tx).await.unwrap(), seen);
    });
}
