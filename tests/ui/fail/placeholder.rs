//! What a placeholder of a key can't be.

use async_trait::async_trait;
use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "a:<>")]
async fn empty(id: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a:< >")]
async fn blank(id: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a:<id")]
async fn not_closed(id: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a:id>")]
async fn not_opened(id: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a:<1 2>")]
async fn not_an_expression(id: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a:<id +>")]
async fn half_an_expression(id: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a:<(>")]
async fn not_even_tokens(id: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a:<42>")]
async fn literal(id: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a:<id + 1>")]
async fn operator(id: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a:<f(id)>")]
async fn function_call(id: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a:<other>")]
async fn unknown(tenant: u64, product_id: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a:<prodct_id>")]
async fn misspelt(product_id: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a:<prodct_id>")]
async fn misspelt_among_others(tenant: u64, product_id: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a:<id>")]
async fn without_parameters() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a:<self.id>")]
async fn without_self(id: u64) -> Result<(), LockError> {
    Ok(())
}

// A name from a pattern under `#[async_trait]`, which takes patterns apart in the body.
#[async_trait]
trait Store {
    async fn save(&self, (a, b): (u32, u32)) -> Result<u32, LockError>;
}

#[async_trait]
impl Store for u8 {
    #[distributed_lock(key = "a:<a>")]
    async fn save(&self, (a, b): (u32, u32)) -> Result<u32, LockError> {
        Ok(a + b)
    }
}

fn main() {}
