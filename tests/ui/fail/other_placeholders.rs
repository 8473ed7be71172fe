//! Other frameworks' placeholders are plain text here: one key for all values.

use lock_runtime::{LockError, distributed_lock, lock_key, rate_limited};

struct Order {
    id: u64,
}

#[distributed_lock(key = "stock:{product_id}")]
async fn braces(product_id: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "stock:{order.id}")]
async fn field(order: Order) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "stock:{id:08}")]
async fn format(id: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "stock:${id}")]
async fn shell_with_braces(id: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "stock:$id")]
async fn shell(id: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "stock:#{id}")]
async fn ruby(id: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "stock:#order.id")]
async fn spring(order: Order) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "stock:%id%")]
async fn batch(id: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "stock:{type}")]
async fn keyword(r#type: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "stock:{N}")]
async fn const_generic<const N: usize>() -> Result<(), LockError> {
    Ok(())
}

// The hash tag is not a value, although another placeholder is one.
#[distributed_lock(key = "{tenant}:stock:<id>")]
async fn tag_beside_a_value(tenant: u64, id: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(keys = ["account:<from>", "account:{to}"])]
async fn in_keys(from: u64, to: u64) -> Result<(), LockError> {
    Ok(())
}

impl Order {
    #[distributed_lock(key = "order:{self.id}")]
    async fn of_self(&self) -> Result<(), LockError> {
        Ok(())
    }

    #[rate_limited(key = "order:{self.id}", rate = "1/s")]
    async fn limited(&self) -> Result<(), LockError> {
        Ok(())
    }
}

fn in_lock_key() {
    let id = 1;
    let _ = lock_key!("stock:{id}");
    // Another mistake.
    let _ = lock_key!("stock:#id");
}

fn main() {}
