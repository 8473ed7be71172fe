//! `keys` on methods: of `self`, under `#[async_trait]`, and on a future made by hand.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockClient, LockError, distributed_lock};

struct Bank {
    name: String,
    moved: u64,
    locks: LockClient,
}

impl Bank {
    #[distributed_lock(keys = ["{<self.name>}:<from>", "{<self.name>}:<to>"], client = &self.locks)]
    async fn transfer(&mut self, from: u64, to: u64) -> Result<u64, LockError> {
        self.moved += from + to;
        Ok(self.moved)
    }
}

#[async_trait::async_trait]
trait Transfer {
    async fn transfer_all(&self, from: u64, to: u64) -> Result<(), LockError>;
}

#[async_trait::async_trait]
impl Transfer for Bank {
    #[distributed_lock(keys = ["<self.name>:<from>", "<self.name>:<to>"])]
    async fn transfer_all(&self, from: u64, to: u64) -> Result<(), LockError> {
        Ok(())
    }
}

#[distributed_lock(keys = ["a:<from>", "a:<to>"], fence = tokens)]
fn by_hand(from: u64, to: u64) -> impl Future<Output = Result<usize, LockError>> + Send {
    async move { Ok(tokens.len()) }
}

pub(crate) fn main() {
    support::run(async {
        let mut bank = Bank {
            name: "bank".to_owned(),
            moved: 0,
            locks: LockClient::in_memory(),
        };
        assert_eq!(bank.transfer(1, 2).await.unwrap(), 3);
        support::assert_send(bank.transfer_all(1, 2)).await.unwrap();
        assert_eq!(support::assert_send(by_hand(1, 2)).await.unwrap(), 2);
    });
}
