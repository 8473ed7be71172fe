//! What can be wrong with a placeholder.

use lock_runtime::{LockError, distributed_lock};

type Result<T> = std::result::Result<T, LockError>;

#[distributed_lock(key = "a:<prodct_id>")]
async fn misspelt(product_id: u64) -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a:<prodct_id>")]
async fn misspelt_among_others(tenant: u64, product_id: u64) -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a:<other>")]
async fn unknown(tenant: u64, product_id: u64) -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a:<id>")]
async fn without_parameters() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a:<self.id>")]
async fn without_self(id: u64) -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a:<>:b:< >")]
async fn empty(id: u64) -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a:<id")]
async fn not_closed(id: u64) -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a:id>")]
async fn not_opened(id: u64) -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a:<1 2>:<id +>")]
async fn not_an_expression(id: u64) -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a:<(>")]
async fn not_even_tokens(id: u64) -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "a:<id + 1>:<f(id)>:<42>")]
async fn another_expression(id: u64) -> Result<()> {
    Ok(())
}

fn main() {}
