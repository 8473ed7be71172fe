//! Every option.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing example panics"
)]
#![deny(
    warnings,
    clippy::all,
    clippy::pedantic,
    missing_docs,
    rust_2018_idioms
)]

#[path = "../support.rs"]
mod support;

use lock_runtime::{FencingToken, LockClient, LockError, distributed_lock};

type Result<T> = std::result::Result<T, LockError>;

const NAME: &str = "const:<not a template>";

#[distributed_lock(key = NAME, lease = "1m30s", renew = true, max_hold = "5m", wait = "0s", reentrant = false)]
async fn one() -> Result<()> {
    Ok(())
}

#[distributed_lock(
    key = "two",
    fair = true,
    wait = "forever",
    on_lost = "continue",
    hold_at_least = "10ms"
)]
async fn two() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "three", fence = token, guard = hold)]
async fn three() -> Result<FencingToken> {
    assert!(hold.is_held());
    let copy: FencingToken = token;
    Ok(copy)
}

#[distributed_lock(key = "job", on_busy = "skip", on_error = |error| panic!("{error}"))]
async fn skip_unit() {
    tokio::task::yield_now().await;
}

#[distributed_lock(key = "job", on_busy = "skip", on_error = |_| None)]
async fn skip_option() -> Option<u8> {
    Some(1)
}

#[distributed_lock(key = "job", on_busy = "skip")]
async fn skip_result() -> Result<()> {
    Ok(())
}

#[distributed_lock(key = "job", on_busy = "skip", on_lost = "cancel")]
async fn skip_result_option() -> Result<Option<u8>> {
    Ok(Some(1))
}

#[distributed_lock(key = "job", on_busy = "error", on_error = status)]
async fn with_function() -> u16 {
    200
}

fn status(error: LockError) -> u16 {
    drop(error);
    503
}

#[distributed_lock(key = "job:<name>", on_error = { let name = name.clone(); move |error| format!("{name}: {error}") })]
async fn with_closure(name: String) -> String {
    name
}

#[distributed_lock(key = "job:<name>", on_error = |error| format!("{name}: {error}"))]
async fn with_a_borrowing_closure(name: String) -> String {
    "ran".to_owned()
}

struct Service {
    locks: LockClient,
    count: u32,
}

impl Service {
    #[distributed_lock(key = "service:<id>", client = &self.locks)]
    async fn count(&mut self, id: u32) -> Result<u32> {
        self.count += id;
        Ok(self.count)
    }
}

mod facade {
    pub(crate) mod inner {
        pub(crate) use lock_runtime::*;
    }
}

#[distributed_lock(key = "facade:<id>", crate = facade::inner, guard = hold)]
async fn through_a_facade(id: u8) -> Result<u8> {
    assert!(hold.is_held());
    Ok(id)
}

pub(crate) fn main() {
    support::run(async {
        one().await.unwrap();
        two().await.unwrap();
        three().await.unwrap();
        skip_unit().await;
        assert_eq!(skip_option().await, Some(1));
        skip_result().await.unwrap();
        assert_eq!(skip_result_option().await.unwrap(), Some(1));
        assert_eq!(with_function().await, 200);
        assert_eq!(with_closure("name".to_owned()).await, "name");
        let name = || "name".to_owned();
        assert_eq!(with_a_borrowing_closure(name()).await, "ran");
        let mut service = Service {
            locks: LockClient::in_memory(),
            count: 1,
        };
        assert_eq!(service.count(2).await.unwrap(), 3);
        assert_eq!(through_a_facade(1).await.unwrap(), 1);
        let id = 3;
        let key = lock_runtime::lock_key!("facade:<id>", crate = facade::inner);
        assert_eq!(key, lock_runtime::LockKey::from("facade:3"));
    });
}
