//! `key`: a template, or any expression that is `Into<LockKey>`.

#[path = "../support.rs"]
mod support;

use lock_runtime::{Guard, LockError, LockKey, distributed_lock, lock_key};

type Result<T> = std::result::Result<T, LockError>;

const NAME: &str = "const:<not a template>";

struct Order {
    id: u64,
}

#[distributed_lock(key = "order:<id>", guard = lock)]
async fn template(id: u64) -> Result<LockKey> {
    Ok(key_of(lock))
}

#[distributed_lock(key = NAME, guard = lock)]
async fn constant() -> Result<LockKey> {
    Ok(key_of(lock))
}

#[distributed_lock(key = format!("order:{id}"), guard = lock)]
async fn formatted(id: u64) -> Result<LockKey> {
    Ok(key_of(lock))
}

#[distributed_lock(key = format!("order:{id:0>width$.1}"), guard = lock)]
async fn padded(id: f64, width: usize) -> Result<LockKey> {
    Ok(key_of(lock))
}

#[distributed_lock(key = "order", wait = "0s", on_error = |_| format!("{id:>width$}"))]
async fn padded_by_the_handler(id: u64, width: usize) -> String {
    String::new()
}

#[distributed_lock(key = lock_key!("made:<a.id>"), guard = lock)]
async fn key_macro(a: Order) -> Result<LockKey> {
    assert_eq!(a.id, 7);
    Ok(key_of(lock))
}

#[distributed_lock(key = name, guard = lock)]
async fn moved_into_the_key(name: String) -> Result<LockKey> {
    Ok(key_of(lock))
}

// What the message about an `Option` tells the user to write.
#[distributed_lock(
    key = if let Some(id) = &id { lock_key!("order:<id>") } else { lock_key!("order") },
    guard = lock
)]
async fn optional(id: Option<u64>) -> Result<(Option<u64>, LockKey)> {
    Ok((id, key_of(lock)))
}

fn key_of(lock: &Guard) -> LockKey {
    lock.key().clone()
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(template(7).await.unwrap(), LockKey::from("order:7"));
        assert_eq!(constant().await.unwrap(), LockKey::from(NAME));
        assert_eq!(formatted(7).await.unwrap(), LockKey::from("order:7"));
        assert_eq!(padded(7.0, 5).await.unwrap(), LockKey::from("order:007.0"));
        assert_eq!(padded_by_the_handler(7, 3).await, "");
        let (id, key) = optional(Some(7)).await.unwrap();
        assert_eq!((id, key), (Some(7), LockKey::from("order:7")));
        let (id, key) = optional(None).await.unwrap();
        assert_eq!((id, key), (None, LockKey::from("order")));
        let key = key_macro(Order { id: 7 }).await.unwrap();
        assert_eq!(key, LockKey::from("made:7"));
        let key = moved_into_the_key("name".to_owned()).await.unwrap();
        assert_eq!(key, LockKey::from("name"));
    });
}
