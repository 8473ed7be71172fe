/// Takes items from the stock.
#[distributed_lock(key = "stock:<product_id>", lease = "10s")]
#[must_use]
pub async fn deduct(product_id: u64, mut amount: u32) -> Result<u32, OrderError> {
    amount += 1;
    load(product_id, amount).await
}
