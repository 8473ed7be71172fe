//! Generics, lifetimes, `where`, `impl Trait` in both places.
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

use lock_runtime::{LockError, distributed_lock};
use std::fmt::Display;

type Result<T> = std::result::Result<T, LockError>;

#[distributed_lock(key = "generic:<id>")]
async fn generic<T: Display, const N: usize>(id: T, values: [T; N]) -> Result<usize> {
    drop(values);
    Ok(N)
}

#[distributed_lock(key = "borrowed:<a>:<b>")]
async fn borrowed<'a>(a: &'a str, b: &str) -> Result<&'a str> {
    Ok(a.strip_prefix(b).unwrap_or(a))
}

#[distributed_lock(key = "elided:<a>")]
async fn elided(a: &str) -> Result<std::slice::Iter<'_, u8>> {
    Ok(a.as_bytes().iter())
}

#[distributed_lock(key = "where:<a>")]
async fn with_where<A>(a: A) -> Result<A>
where
    A: Display + Clone,
{
    Ok(a.clone())
}

#[distributed_lock(key = "impl:<a>")]
async fn impl_parameter(a: impl Display, f: impl FnOnce() -> u8) -> Result<u8> {
    Ok(f())
}

#[distributed_lock(key = "impl")]
async fn impl_return() -> Result<impl Iterator<Item = u8>> {
    Ok([1, 2].into_iter())
}

#[distributed_lock(key = "coerced")]
async fn coerced(a: u8) -> Result<Box<dyn Fn() -> u8 + Send>> {
    if a == 0 {
        return Ok(Box::new(|| 0));
    }
    Ok(Box::new(move || a))
}

struct Repository<T>(T);

impl<T: Display> Repository<T> {
    #[distributed_lock(key = "repository:<self.0>:<other>")]
    async fn load<U: Display>(&self, other: U) -> Result<String> {
        Ok(format!("{}{other}", self.0))
    }
}

fn assert_send<T: Send>(value: T) -> T {
    value
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(assert_send(generic(1, [2, 3])).await.unwrap(), 2);
        assert_eq!(assert_send(borrowed("ab", "a")).await.unwrap(), "b");
        assert_eq!(elided("ab").await.unwrap().count(), 2);
        assert_eq!(with_where("a").await.unwrap(), "a");
        assert_eq!(impl_parameter("a", || 3).await.unwrap(), 3);
        assert_eq!(impl_return().await.unwrap().count(), 2);
        assert_eq!(coerced(3).await.unwrap()(), 3);
        assert_eq!(assert_send(Repository(1).load(2)).await.unwrap(), "12");
    });
}
