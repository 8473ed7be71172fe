//! `client`: a field of `self`, also of `&mut self`, or any other expression.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockClient, LockError, distributed_lock};

struct Service {
    locks: LockClient,
    count: u32,
}

impl Service {
    #[distributed_lock(key = "service:<id>", client = &self.locks)]
    async fn count(&mut self, id: u32) -> Result<u32, LockError> {
        self.count += id;
        Ok(self.count)
    }
}

#[distributed_lock(key = "a", client = clients.first().unwrap())]
async fn chosen(clients: &[LockClient]) -> Result<usize, LockError> {
    Ok(clients.len())
}

pub(crate) fn main() {
    support::run(async {
        let mut service = Service {
            locks: LockClient::in_memory(),
            count: 1,
        };
        assert_eq!(service.count(2).await.unwrap(), 3);
        assert_eq!(chosen(&[service.locks]).await.unwrap(), 1);
    });
}
