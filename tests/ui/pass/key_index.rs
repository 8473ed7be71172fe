//! `req.items[0].sku`: by number, by name and by range.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, LockKey, distributed_lock};
use std::collections::HashMap;

struct Item {
    sku: String,
}

struct Request {
    items: Vec<Item>,
    labels: HashMap<&'static str, &'static str>,
}

#[distributed_lock(key = "sku:<req.items[0].sku>", guard = lock)]
async fn by_number(req: Request) -> Result<LockKey, LockError> {
    drop(req);
    Ok(lock.key().clone())
}

#[distributed_lock(key = "label:<req.labels[\"a\"]>", guard = lock)]
async fn by_name(req: Request) -> Result<LockKey, LockError> {
    drop(req);
    Ok(lock.key().clone())
}

#[distributed_lock(key = "text:<text[..2]>", guard = lock)]
async fn by_range(text: &str) -> Result<LockKey, LockError> {
    Ok(lock.key().clone())
}

#[distributed_lock(key = "item:<items[at]>", guard = lock)]
async fn by_parameter(items: Vec<u8>, at: usize) -> Result<LockKey, LockError> {
    drop(items);
    Ok(lock.key().clone())
}

fn request() -> Request {
    Request {
        items: vec![Item {
            sku: "apple".to_owned(),
        }],
        labels: HashMap::from([("a", "b")]),
    }
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(
            by_number(request()).await.unwrap(),
            LockKey::from("sku:apple")
        );
        assert_eq!(by_name(request()).await.unwrap(), LockKey::from("label:b"));
        assert_eq!(by_range("abc").await.unwrap(), LockKey::from("text:ab"));
        assert_eq!(
            by_parameter(vec![1, 2], 1).await.unwrap(),
            LockKey::from("item:2")
        );
    });
}
