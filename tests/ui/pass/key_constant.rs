//! Const generics and associated constants.

#[path = "../support.rs"]
mod support;

use lock_runtime::{Guard, LockError, distributed_lock, lock_key};

const SHOP: &str = "a b";

trait Kind {
    const KIND: &'static str;
}

struct Ring<const N: usize>;

impl<const N: usize> Kind for Ring<N> {
    const KIND: &'static str = "ring";
}

impl<const N: usize> Ring<N> {
    const HALF: usize = N / 2;

    #[distributed_lock(key = "<Self::KIND>:<N>:<Self::HALF>:<id>", guard = lock)]
    async fn turn(&self, id: u32) -> Result<String, LockError> {
        Ok(format!("{id} {}", lock.key()))
    }

    #[distributed_lock(key = "<Self::KIND.len()>:<N.pow(2)>", guard = lock)]
    async fn methods() -> Result<String, LockError> {
        Ok(lock.key().to_string())
    }
}

#[distributed_lock(key = "<K::KIND>:<N>:<n>:<SHOP>", guard = lock)]
async fn generic<K: Kind, const N: u8>(n: u8) -> Result<String, LockError> {
    Ok(format!("{n} {}", key_of(lock)))
}

fn key_of(guard: &Guard) -> String {
    guard.key().to_string()
}

fn plain<const N: usize>() -> String {
    lock_key!("<N>:<N.pow(2)>:<Ring::<3>::KIND>").to_string()
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(Ring::<8>.turn(5).await.unwrap(), "5 ring:8:4:5");
        assert_eq!(Ring::<8>::methods().await.unwrap(), "4:64");
        let generic = generic::<Ring<1>, 7>(9).await.unwrap();
        assert_eq!(generic, "9 ring:7:9:a%20b");
        assert_eq!(plain::<2>(), "2:4:ring");
    });
}
