#[distributed_lock(keys = ["account:<from>", "account:<to.id>", LEDGER], fence = tokens)]
async fn transfer(from: u64, to: Account, amount: u64) -> Result<(), BankError> {
    move_money(from, to, amount, tokens).await
}
