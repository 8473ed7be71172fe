//! A transaction that the caller commits, after the lock is released: a warning, which is an error
//! under `-D warnings`.
#![deny(warnings)]

use async_trait::async_trait;
use lock_runtime::{LockError, distributed_lock};

pub struct Transaction<'c>(&'c str);

mod sqlx {
    pub type PgTransaction<'c> = super::Transaction<'c>;
}

#[distributed_lock(key = "stock:<id>")]
pub async fn borrows(id: u64, tx: &mut Transaction<'_>) -> Result<(), LockError> {
    tx.0 = "written";
    Ok(())
}

#[distributed_lock(key = "stock")]
pub async fn borrows_by_path<'a>(tx: &'a mut sqlx::PgTransaction<'a>) -> Result<(), LockError> {
    tx.0 = "written";
    Ok(())
}

#[distributed_lock(key = "stock", outlives = false)]
pub async fn may_borrow(tx: Option<&mut Transaction<'_>>) -> Result<(), LockError> {
    drop(tx);
    Ok(())
}

#[async_trait]
pub trait Repository {
    async fn save(&self, tx: &mut Transaction<'_>) -> Result<(), LockError>;
}

#[async_trait]
impl Repository for u64 {
    #[distributed_lock(key = "stock")]
    async fn save(&self, tx: &mut Transaction<'_>) -> Result<(), LockError> {
        tx.0 = "written";
        Ok(())
    }
}

fn main() {}
