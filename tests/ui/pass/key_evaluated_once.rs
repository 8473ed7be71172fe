//! A placeholder is evaluated once, before the body, even if the lock is waited for.

#[path = "../support.rs"]
mod support;

use lock_runtime::{LockClient, LockError, distributed_lock};
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

/// Counts how often it is looked at.
struct Counted<'a>(&'a AtomicU32);

impl fmt::Display for Counted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fetch_add(1, Ordering::SeqCst);
        f.write_str("it")
    }
}

impl Counted<'_> {
    fn name(&self) -> &'static str {
        self.0.fetch_add(1, Ordering::SeqCst);
        "it"
    }

    fn count(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

#[distributed_lock(key = "once:<value>")]
async fn displayed(value: Counted<'_>) -> Result<u32, LockError> {
    tokio::task::yield_now().await;
    Ok(value.count())
}

#[distributed_lock(key = "once:<value.name()>")]
async fn called(value: Counted<'_>) -> Result<u32, LockError> {
    tokio::task::yield_now().await;
    Ok(value.count())
}

pub(crate) fn main() {
    support::run(async {
        let (first, second) = (AtomicU32::new(0), AtomicU32::new(0));
        assert_eq!(displayed(Counted(&first)).await.unwrap(), 1);
        assert_eq!(called(Counted(&second)).await.unwrap(), 1);
        assert_eq!((first.into_inner(), second.into_inner()), (1, 1));

        let count = AtomicU32::new(0);
        let client = LockClient::in_memory();
        let busy = client.lock("once:it").acquire().await.unwrap();
        let (seen, released) = tokio::join!(client.scope(displayed(Counted(&count))), async {
            assert_eq!(count.load(Ordering::SeqCst), 1, "before the lock is there");
            busy.release().await
        });
        released.unwrap();
        assert_eq!((seen.unwrap(), count.into_inner()), (1, 1));
    });
}
