//! Unit structs, constants, statics and variants with everyday names, as a query builder makes them
//! of columns. A pattern with such a name does not bind it.

#[path = "../support.rs"]
mod support;

use lock_runtime::{
    FencingToken, Guard, LockError, LockKey, distributed_lock, lock_key, rate_limited,
};
use std::time::Duration;

#[allow(non_camel_case_types, dead_code)]
mod columns {
    #[derive(Clone, Copy)]
    pub(crate) struct error;
    pub(crate) struct guard;
    pub(crate) struct token;
    pub(crate) struct key;
    pub(crate) struct client;
    pub(crate) struct value;
    pub(crate) struct user_;
    pub(crate) enum Column {
        wait,
        lease,
        body,
        convert,
    }
}

#[allow(non_upper_case_globals, dead_code)]
mod constants {
    pub(crate) const slot: u8 = 1;
    pub(crate) const tokens: u8 = 1;
    pub(crate) static writer: u8 = 1;
    pub(crate) static permits: u8 = 1;
}

#[allow(unused_imports)]
use columns::{Column::*, *};
#[allow(unused_imports)]
use constants::*;

#[allow(unused_macros)]
macro_rules! error {
    () => {};
}

type Result<T> = std::result::Result<T, LockError>;

impl error {
    #[allow(clippy::unused_self)]
    fn name(self) -> &'static str {
        "error"
    }
}

#[distributed_lock(key = "job:<n>", fence = number, guard = held, wait = "1s")]
async fn locked(n: u64) -> Result<FencingToken> {
    let _: &Guard = held;
    Ok(number)
}

#[distributed_lock(keys = ["job:<n>", "other:<n>"], fence = numbers)]
async fn several(n: u64) -> Result<[FencingToken; 2]> {
    Ok(numbers)
}

#[distributed_lock(key = "job", permits = n, lease = Duration::from_secs(u64::from(n)))]
async fn one_of_several(n: u32) -> Result<u32> {
    Ok(n)
}

#[distributed_lock(key = "user:<user>", on_busy = "skip", on_error = |_| Some(user))]
async fn taken_apart((user, _): (u8, String)) -> Option<u8> {
    Some(user)
}

#[distributed_lock(key = "user:<user>")]
async fn taken_apart_before((user, _): (u8, String)) -> Result<u8> {
    Ok(user)
}

#[rate_limited(key = "job:<n>", rate = "100/s", burst = 100, wait = "1s")]
async fn limited(n: u64) -> Result<u64> {
    Ok(n)
}

#[rate_limited(key = "job", rate = "100/s", on_error = |_| n)]
async fn limited_without_result(n: u64) -> u64 {
    n
}

pub(crate) fn main() {
    support::run(async {
        locked(1).await.unwrap();
        let [first, second] = several(1).await.unwrap();
        let _ = (first, second);
        assert_eq!(one_of_several(2).await.unwrap(), 2);
        assert_eq!(taken_apart((3, String::new())).await, Some(3));
        assert_eq!(taken_apart_before((4, String::new())).await.unwrap(), 4);
        assert_eq!(limited(4).await.unwrap(), 4);
        assert_eq!(limited_without_result(5).await, 5);
    });
    assert_eq!(
        lock_key!("column:<error.name()>"),
        LockKey::from("column:error")
    );
}
