//! Many placeholders in one key, of many types and by many paths.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockError, LockKey, distributed_lock};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use uuid::Uuid;

type Result<T> = std::result::Result<T, LockError>;

struct ProductId(u64);

impl fmt::Display for ProductId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

struct Item {
    sku: String,
}

struct Request {
    items: Vec<Item>,
    labels: HashMap<&'static str, &'static str>,
    pair: (u8, (char, bool)),
}

impl Request {
    fn first(&self) -> &Item {
        &self.items[0]
    }

    fn number<N: From<u8>>(&self) -> N {
        N::from(self.pair.0)
    }
}

#[distributed_lock(key = "types:<id>:<text>:<shared>:<cow>:<new>:<flag>:<boxed>", guard = lock)]
async fn types(
    id: Uuid,
    text: &str,
    shared: Arc<str>,
    cow: Cow<'_, str>,
    new: &ProductId,
    flag: bool,
    boxed: Box<dyn fmt::Display + Send + Sync>,
) -> Result<LockKey> {
    drop((shared, cow, boxed));
    Ok(lock.key().clone())
}

#[distributed_lock(
    key = "paths:<r.items[0].sku>:<r.first().sku>:<r.pair.1.0>:<r.labels[\"a\"]>:<r.number::<u32>()>",
    guard = lock
)]
async fn paths(r: Request) -> Result<LockKey> {
    drop(r);
    Ok(lock.key().clone())
}

pub(crate) fn main() {
    support::run(async {
        let key = types(
            Uuid::nil(),
            "t",
            "s".into(),
            "c".into(),
            &ProductId(7),
            true,
            Box::new(1.5),
        )
        .await
        .unwrap();
        assert_eq!(
            key,
            LockKey::from("types:00000000-0000-0000-0000-000000000000:t:s:c:7:true:1.5")
        );
        let request = Request {
            items: vec![Item {
                sku: "apple".to_owned(),
            }],
            labels: HashMap::from([("a", "b")]),
            pair: (3, ('x', true)),
        };
        let key = paths(request).await.unwrap();
        assert_eq!(key, LockKey::from("paths:apple:apple:x:b:3"));
    });
}
