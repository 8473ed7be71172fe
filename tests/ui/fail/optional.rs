//! An `Option` in a placeholder: `None` names nothing to lock.

use lock_runtime::{LockError, distributed_lock, lock_key};

struct User {
    id: u64,
    name: Option<String>,
}

#[distributed_lock(key = "a:<id>")]
async fn parameter(id: Option<u64>) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a:<user.id>")]
async fn field_of_it(user: &Option<User>) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a:<user.name>")]
async fn field(user: User) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "a:<user.name.as_deref()>")]
async fn method(user: User) -> Result<(), LockError> {
    Ok(())
}

impl User {
    #[distributed_lock(key = "a:<self.name>")]
    async fn of_self(&self) -> Result<(), LockError> {
        Ok(())
    }
}

fn in_lock_key() {
    let id = Some(1);
    let _ = lock_key!("a:<id>");
}

fn main() {}
