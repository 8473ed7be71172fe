//! Functions that return a future by hand, boxed or not; recursion; bodies that are not `Send`; `#[async_trait]`.
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

use async_trait::async_trait;
use lock_runtime::{LockError, distributed_lock};
use std::pin::Pin;
use std::rc::Rc;

type Result<T> = std::result::Result<T, LockError>;
type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

#[distributed_lock(key = "future:<id>")]
fn future(id: u32) -> impl Future<Output = Result<u32>> + Send {
    let doubled = id * 2;
    async move {
        tokio::task::yield_now().await;
        Ok(doubled)
    }
}

#[distributed_lock(key = "boxed:<id>")]
fn boxed(id: &str) -> Pin<Box<dyn Future<Output = Result<usize>> + Send + '_>> {
    Box::pin(async move {
        let length = id.len();
        Ok(length)
    })
}

#[distributed_lock(key = "boxed:<id>")]
fn aliased(id: &str) -> BoxFuture<'_, Result<usize>> {
    Box::pin(async move { Ok(id.len()) })
}

#[distributed_lock(key = "recursive:<n>")]
async fn recursive(n: u32) -> Result<u32> {
    if n == 0 {
        return Ok(0);
    }
    Ok(Box::pin(recursive(n - 1)).await? + 1)
}

#[distributed_lock(key = "local:<n>")]
async fn not_send(n: u32) -> Result<u32> {
    let shared = Rc::new(n);
    tokio::task::yield_now().await;
    Ok(*shared)
}

#[async_trait]
trait Store {
    async fn save(&mut self, id: u32, (a, b): (u8, u8), value: String) -> Result<usize>;
    async fn load(&self, id: u32) -> Result<&str>;
}

struct Memory {
    name: String,
    value: String,
}

#[async_trait]
impl Store for Memory {
    #[distributed_lock(key = "store:<self.name>:<id>")]
    async fn save(&mut self, id: u32, (a, b): (u8, u8), value: String) -> Result<usize> {
        self.value = format!("{value}{a}{b}");
        Ok(self.value.len())
    }

    #[distributed_lock(key = "store:<self.name>:<id>")]
    async fn load(&self, id: u32) -> Result<&str> {
        Ok(&self.value)
    }
}

macro_rules! repository {
    ($name:ident, $parameter:ident, $key:literal) => {
        #[distributed_lock(key = $key)]
        async fn $name($parameter: u32, inner: u32) -> Result<u32> {
            Ok($parameter + inner)
        }
    };
    ($name:ident, $parameter:ident) => {
        #[distributed_lock(key = "fixed:<id>")]
        async fn $name($parameter: u32) -> Result<u32> {
            Ok($parameter)
        }
    };
    ($name:ident) => {
        #[distributed_lock(key = "fixed:<inner>")]
        async fn $name(inner: u32) -> Result<u32> {
            Ok(inner)
        }
    };
}

repository!(by_macro, id, "macro:<id>");
repository!(by_macro_with_its_key, id);
repository!(by_macro_inside);

fn assert_send<T: Send>(value: T) -> T {
    value
}

pub(crate) fn main() {
    support::run(async {
        assert_eq!(assert_send(future(2)).await.unwrap(), 4);
        assert_eq!(boxed("ab").await.unwrap(), 2);
        assert_eq!(aliased("ab").await.unwrap(), 2);
        assert_eq!(assert_send(recursive(2)).await.unwrap(), 2);
        assert_eq!(not_send(2).await.unwrap(), 2);
        let mut store = Memory {
            name: "m".to_owned(),
            value: String::new(),
        };
        assert_eq!(
            assert_send(store.save(1, (2, 3), "v".to_owned()))
                .await
                .unwrap(),
            3
        );
        assert_eq!(store.load(1).await.unwrap(), "v23");
        assert_eq!(by_macro(1, 2).await.unwrap(), 3);
        assert_eq!(by_macro_with_its_key(1).await.unwrap(), 1);
        assert_eq!(by_macro_inside(1).await.unwrap(), 1);
    });
}
